"""Exercise 2.6: run an answer through replays and seeds, and note masks, values and random draws."""

import gc
import inspect
from dataclasses import dataclass, field

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from minillm.grading.compare import short
from minillm.grading.device_memory import on_device
from minillm.grading.registry import Wrong
from minillm.graphs import backend, cuda, device, warm_up

SHAPE = (64, 64)
aten = torch.ops.aten
COPIES = {aten.copy_, aten._to_copy}
ARITHMETIC = {
    *(aten.mul, aten.mul_, aten.div, aten.div_, aten.where, aten.masked_fill, aten.masked_fill_),
    *(aten.native_dropout, aten.reciprocal, aten.ge, aten.lt, aten.gt),
}


class Draws(TorchDispatchMode):
    """Notes the random operations that torch is asked for; a replay asks for none."""

    def __init__(self):
        super().__init__()
        self.eager, self.captured, self.work = [], [], []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if torch.Tag.nondeterministic_seeded in func.tags:
            noted = self.captured if cuda.is_current_stream_capturing() else self.eager
            noted.append(func.overloadpacket._qualified_op_name.removeprefix("aten::"))
        elif func.overloadpacket in COPIES and _from_host(func, args):
            self.eager.append("copy from the host")
        elif func.overloadpacket in ARITHMETIC:
            self.work.append(func.overloadpacket._qualified_op_name.removeprefix("aten::"))
        return func(*args, **(kwargs or {}))


def _from_host(func, args) -> bool:
    source = args[1] if func.overloadpacket is aten.copy_ else args[0]
    return source.numel() > 1 and not on_device(source)


@dataclass
class Run:
    """What was seen: one entry of `outs` for each replay, under the name of the part of the run."""

    x: torch.Tensor
    p: float
    replay: object
    reseed: object
    outs: dict[str, list] = field(default_factory=dict)  # part -> [(input, output)], both [64, 64] float32
    in_replay: Draws = field(default_factory=Draws)
    in_reseed: Draws = field(default_factory=Draws)
    overwrote: bool = False
    squatters: list = field(default_factory=list)  # they take over memory that the answer let go of
    trespassed: bool = False  # a replay wrote there

    def replays(self, part: str, x: torch.Tensor, count: int) -> None:
        """`count` replays with the values of `x` in the static input."""
        for _ in range(count):
            self.x.copy_(x)
            cuda.synchronize()
            with self.in_replay:
                out = self.replay()
            cuda.synchronize()
            self.overwrote |= not torch.equal(self.x, x)
            self.outs.setdefault(part, []).append((x, _tensor(out).clone()))

    def squat(self) -> None:
        """Take over what is free: memory for masks, and for single numbers."""
        for shape, dtype, count in (
            (SHAPE, torch.float32, 4),
            (SHAPE, torch.bool, 2),
            ((), torch.float32, 2),
        ):
            self.squatters += [torch.ones(shape, dtype=dtype, device=device) for _ in range(count)]

    def refill(self) -> None:
        """Other values in there: who reads them gives another result."""
        self.trespassed = any(not bool((each == 1).all()) for each in self.squatters)
        for each in self.squatters:
            each.zero_()

    def seed(self, seed: int) -> None:
        with self.in_reseed:
            self.reseed(seed)

    def masks(self, part: str) -> list[torch.Tensor]:
        """Which elements were dropped, replay by replay."""
        return [out == 0 for _, out in self.outs[part]]


def begin(answer, values: torch.Tensor, p: float, seed: int) -> Run:
    """Call the answer with a static input of its own."""
    if backend == "cuda":
        gc.collect()  # an old graph that is destroyed within a capture breaks it
    x = values.clone()
    warm_up(lambda: torch.nn.functional.dropout(x, p))  # loads kernels, which a capture may not do
    run = Run(x, p, *_two_functions(answer(x, p, seed)))
    _refuse_swapped(run.replay)
    run.squat()
    return run


def inputs(rng) -> torch.Tensor:
    """Values far from 0, so that a zero in the output was dropped."""
    values = [rng.choice((-1, 1)) * rng.uniform(1, 2) for _ in range(SHAPE[0] * SHAPE[1])]
    return torch.tensor(values, device=device).view(SHAPE)


def _two_functions(returned):
    if returned is None:
        raise Wrong("returned-nothing")
    if hasattr(returned, "replay") and hasattr(returned, "reseed"):
        return returned.replay, returned.reseed
    if isinstance(returned, (tuple, list)) and len(returned) == 2 and all(map(callable, returned)):
        return tuple(returned)
    raise Wrong("wrong-type", f"Return two functions, (replay, reseed); yours is {short(returned)}.")


def _refuse_swapped(replay):
    try:
        inspect.signature(replay).bind()
    except TypeError as error:
        raise Wrong(
            "wrong-type", f"replay() is called without arguments; the first of yours: {error}."
        ) from None
    except ValueError:  # a function written in C that does not tell
        pass


def _tensor(out):
    if out is None:
        raise Wrong("returned-nothing", "It is replay() that returned None.")
    if not isinstance(out, torch.Tensor) or tuple(out.shape) != SHAPE:
        got = (
            f"one of shape {list(out.shape)}" if isinstance(out, torch.Tensor) else f"a {type(out).__name__}"
        )
        raise Wrong("wrong-type", f"replay() has to return a tensor of x's shape {list(SHAPE)}, not {got}.")
    return out
