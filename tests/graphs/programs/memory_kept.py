"""What keeps a block of a pool, and what lets go of it."""

import gc

import torch

from minillm import graphs

from . import program
from .helpers import MiB, capture, places


@program("memory: a reference cycle keeps the block until gc")
def _(cuda, device):
    x, at = torch.ones(1000, device=device), []
    gc.collect()
    gc.disable()

    def f():
        for _ in range(2):
            y = x + 1
            loop = [y]
            loop.append(loop)
            at.append(y.data_ptr())

    try:
        capture(cuda, f)
    finally:
        gc.enable()
    return at[0] == at[1]


@program("memory: a view, a detached copy and numpy() keep the block")
def _(cuda, device):
    x, pool = torch.ones(1000, device=device), cuda.graph_pool_handle()
    kept = []
    for f in (
        lambda: (x + 1)[5:6],
        lambda: (x + 1).detach(),
        lambda: (x + 1).view(10, 100).t(),
        lambda: x + 1,
    ):
        kept.append(capture(cuda, f, pool=pool))
    return places(pool, [made.out.data_ptr() for made in kept])


@program("memory: a failed capture and its pool", unfaithful="item 6: the pool stays open on CUDA")
def _(cuda, device):
    x, pool = torch.ones(1000, device=device), cuda.graph_pool_handle()
    before = cuda.current_stream()
    failed = capture(cuda, lambda: (x + 1).sum().item(), pool=pool)
    cuda.set_stream(before)
    again = capture(cuda, lambda: x + 2, pool=pool)
    if again.errors:
        return failed.errors, again.errors
    again.graph.replay()
    return failed.errors, again.out[:2].tolist(), graphs.pool_bytes(pool)


@program("memory: eager tensors stay out of the pool")
def _(cuda, device):
    x = torch.ones(1000, device=device)
    made = capture(cuda, lambda: x + 1)
    pool, address = made.graph.pool(), made.out.data_ptr()
    made.out = None
    eager = [x + i for i in range(30)]
    return address in {t.data_ptr() for t in eager}, places(pool, [eager[0].data_ptr()])


@program("memory: an output that grows eagerly leaves the pool", unfaithful="item 14: it cannot grow")
def _(cuda, device):
    x = torch.ones(4, device=device)
    made = capture(cuda, lambda: x + 1)
    made.graph.replay()
    pool, before = made.graph.pool(), made.out.data_ptr()
    made.out.resize_(MiB)
    made.graph.replay()
    return made.out.data_ptr() == before, places(pool, [made.out.data_ptr()]), made.out[:4].tolist()
