"""Decode loops with a mistake that people really make, and the same loops without it (lesson 03).

None can harm its process: whatever a graph reads or writes wrongly lies in the recital's own KV cache.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from ..config import ModelConfig, default_dtype
from ..graphs import backend, cuda, device
from ..inputs import DecodeInputs
from ..model import Transformer
from ..reciter import load_reciter, tokenizer
from .recital import Recital, capture, copy_rows

# A graph that minds its inputs, and an input that is freed: for a process of its own.
DEAD_INPUT = """
import inspect, torch
from minillm.graphs import cuda, device, warm_up

x = torch.ones(4, device=device)
warm_up(lambda: x + 1)
graph, options = cuda.CUDAGraph(), {"check_input_liveness": True}
if "check_input_liveness" not in inspect.signature(cuda.graph).parameters:
    options = {}
    print("torch", torch.__version__, "has no check_input_liveness, which came with 2.13: nobody is told")
with cuda.graph(graph, **options):
    y = x + 1
del x
graph.replay()
"""


def hand_over(
    model: Transformer,
    load: Callable[[DecodeInputs, DecodeInputs], None],
    before: list[str],
    then: str,
    steps: int = 50,
) -> tuple[Recital, DecodeInputs]:
    """The prompts ``before`` decode together; at step 10 all end, and ``then`` begins in row 0.

    One graph serves all. ``load(static, batch)`` brings each step's batch into its static inputs, which are
    returned behind the recital.
    """
    recital = Recital(model, *before)
    static = recital.batch()
    graph, logits = capture(lambda: model.decode(static, recital.kv))
    for step in range(steps):
        if step == 10:
            for _ in before:
                recital.end()
            recital.begin(then)
        load(static, recital.batch())
        graph.replay()
        recital.write(logits)
    return recital, static


def constant_table(keep: bool, steps: int = 40) -> Recital:
    """The block table never changes, so it is filled in once and, unless ``keep``, not kept either."""
    recital = Recital(load_reciter(), "The Star\nTwinkle, tw", "Humpty Dumpty\nHumpty")
    another = recital.batch().block_tables[1:].clone()
    recital.end(1)
    static = recital.batch()
    graph, logits = capture(lambda: recital.model.decode(static, recital.kv))
    held = [static.block_tables]
    address, static.block_tables = held[0].data_ptr(), None
    if not keep:
        held.clear()  # so the table is freed, and other requests get theirs
        held += take_address(address, like=another)
    for _ in range(steps):
        for name, new in recital.batch().tensors().items():
            if name != "block_tables":
                getattr(static, name).copy_(new)
        graph.replay()
        recital.write(logits)
    return recital


def take_address(address: int, like: torch.Tensor, most: int = 50_000) -> list[torch.Tensor]:
    """Copies of ``like``, made until one lies at ``address``: a busy process does that sooner or later.

    The allocator hands out a freed block again to a tensor of its size. RuntimeError when no copy came there.
    """
    copies = []
    while not copies or copies[-1].data_ptr() != address:
        if len(copies) == most:
            raise RuntimeError(f"none of {most} tensors came to lie at {address:#x}; is it free?")
        copies.append(like.clone())
    return copies


def staged(shared: bool, steps: int = 40) -> tuple[Recital, list[int]]:
    """The step's first node copies the token from pinned host memory, which is ``shared`` with a prefill.

    Returns the recital, and the tokens that the graph was really fed.
    """
    recital, fed = Recital(load_reciter(), "The Star\nTwinkle, tw"), []
    static = recital.batch()
    staging = torch.zeros(1, dtype=torch.int64, pin_memory=True)
    of_prefill = staging if shared else torch.zeros(1, dtype=torch.int64, pin_memory=True)

    def step():
        static.token_ids.copy_(staging, non_blocking=True)
        return recital.model.decode(static, recital.kv)

    graph, logits = capture(step)
    for number in range(steps):
        copy_rows(static, recital.batch())
        staging.fill_(recital.rows[0].ids[-1])
        if number == 12:  # a request comes in, and its prompt goes through pinned memory as well
            of_prefill.fill_(tokenizer.encode("H")[0])
        graph.replay()
        recital.write(logits)
        fed += static.token_ids.tolist()
    return recital, fed


def overtaken(wait: bool) -> float:
    """What a busy device gets of a pinned buffer of ones, filled with twos once its copy was ordered.

    ``wait`` has the host wait for the copy before it writes again. The emulator copies at once.
    """
    staging, got = torch.ones(2**20, pin_memory=True), torch.zeros(2**20, device=device)
    copied = cuda.Event()
    if backend == "cuda":
        torch.cuda._sleep(100_000_000)  # clock cycles: some tens of milliseconds
    got.copy_(staging, non_blocking=True)
    copied.record()
    if wait:
        copied.synchronize()
    staging.fill_(2)
    return got.max().item()


def untrained_reciter(seed: int = 3) -> Transformer:
    """A model of the reciter's shape that has learnt nothing; drawn on the host, so everywhere the same."""
    config = ModelConfig.preset("reciter")
    drawn = Transformer(config, device="cpu", dtype=torch.float32, seed=seed)
    model = Transformer(config, device=device, dtype=default_dtype(device), seed=None)
    model.load_state_dict(drawn.state_dict())
    return model
