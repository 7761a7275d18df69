"""What the checks of this lesson note while an answer runs: writes, waits for the device, and replays."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager

import torch
from torch.overrides import TorchFunctionMode

from minillm import graphs
from minillm.grading.checks.lesson03.polls import Polls
from minillm.grading.checks.lesson03.reads import READS, by_mask, goes_to_host
from minillm.grading.device_memory import on_device

MOVES = {"set_", "resize_"}


class Watch(TorchFunctionMode):
    """Notes what an answer does to tensors, and lets it. ``paused`` while the grader itself does something.

    written   the tensors that were written in place, in order
    moved     whether a tensor was given other memory
    waits     (call, replays so far) for each call that waits for the device
    """

    def __init__(self):
        super().__init__()
        self.paused, self.moved, self.replays = False, False, 0
        self.written: list[torch.Tensor] = []
        self.waits: list[tuple[str, int]] = []
        self._polls = Polls(lambda: self.waits.append(("`query` until it is done", self.replays)))

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        self._polls.something_done()
        if not self.paused and args and isinstance(args[0], torch.Tensor):
            with self.pause():
                self._note(func, args, kwargs)
        return func(*args, **kwargs)

    def _note(self, func, args, kwargs) -> None:
        name, subject = getattr(func, "__name__", ""), args[0]
        if name in MOVES or (name == "__set__" and func == torch.Tensor.data.__set__):
            self.moved = True
        elif name == "__setitem__" or (name.endswith("_") and not name.startswith("_")):
            self.written.append(subject)
        waits = name in READS or by_mask(name, args) or goes_to_host(name, func, args, kwargs)
        if waits and on_device(subject):
            self.waits.append((f"`{name}`", self.replays))
        elif name in ("copy_", "__setitem__") and on_device(args[-1]) and not on_device(subject):
            self.waits.append(("a copy into host memory", self.replays))

    @contextmanager
    def pause(self):
        """Nothing is noted within it."""
        before, self.paused = self.paused, True
        try:
            yield
        finally:
            self.paused = before

    @contextmanager
    def on(self):
        """Watch what happens within it, `synchronize` of the device, its streams and its events included."""
        with ExitStack() as stack:
            for owner in (graphs.cuda, graphs.cuda.Stream, graphs.cuda.Event):
                stack.enter_context(self._noted(owner))
            stack.enter_context(self._polls.on())
            stack.enter_context(self)
            yield

    @contextmanager
    def _noted(self, owner):
        """``owner.synchronize`` notes that it was called, and does its work."""
        original = owner.synchronize

        def synchronize(*args, **kwargs):
            self.waits.append(("`synchronize`", self.replays))
            return original(*args, **kwargs)

        owner.synchronize = synchronize
        try:
            yield
        finally:
            owner.synchronize = original


def captured(step, *inputs):
    """(graph, what ``step(*inputs)`` returned): warmed up before the capture."""
    graphs.warm_up(lambda: step(*inputs))
    graph = graphs.cuda.CUDAGraph()
    with graphs.cuda.graph(graph):
        output = step(*inputs)
    return graph, output


def random_tensor(rng, *shape: int) -> torch.Tensor:
    """Distinct random numbers on the device."""
    count = torch.Size(shape).numel()
    return torch.tensor([rng.uniform(-1, 1) for _ in range(count)], device=graphs.device).reshape(shape)


def memory(tensor: torch.Tensor) -> int:
    """The address of the memory that a tensor, or the one that it is a view of, lies in."""
    return tensor.untyped_storage().data_ptr()


def place(tensor: torch.Tensor) -> tuple:
    """What a graph has baked in of a tensor: address, shape, strides."""
    return tensor.data_ptr(), tuple(tensor.shape), tensor.stride()


def same(left: torch.Tensor, right: torch.Tensor) -> bool:
    """Equal in shape, and in value up to rounding."""
    return left.shape == right.shape and torch.allclose(left.float().cpu(), right.float().cpu(), atol=1e-6)
