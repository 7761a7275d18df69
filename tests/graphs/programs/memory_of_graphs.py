"""How long a pool lives, who keeps it, and what addresses tell."""

import gc

import torch

from minillm import graphs

from . import program
from .helpers import attempt, capture, places


@program("memory: the graph dies, its output lives")
def _(cuda, device):
    x = torch.ones(4, device=device)
    made = capture(cuda, lambda: x + 1)
    made.graph.replay()
    y = made.out
    del made
    gc.collect()
    others = [torch.zeros(4, device=device) for _ in range(20)]
    return y.tolist(), y.data_ptr() in {t.data_ptr() for t in others}


@program("memory: outputs survive reset")
def _(cuda, device):
    x = torch.ones(4, device=device)
    made = capture(cuda, lambda: x + 1)
    made.graph.replay()
    made.graph.reset()
    return made.out.tolist(), attempt(made.graph.replay), attempt(made.graph.pool)


@program("memory: a pool after its only graph died, and after the next capture")
def _(cuda, device):
    x = torch.ones(4, device=device)
    made = capture(cuda, lambda: x + 1)
    pool = made.graph.pool()
    before = graphs.pool_bytes(pool)
    del made
    gc.collect()
    capture(cuda, lambda: x + 1)
    return before, graphs.pool_bytes(pool)


@program("memory: a pool whose output alone lives, after the next capture")
def _(cuda, device):
    x = torch.ones(4, device=device)
    made = capture(cuda, lambda: x + 1)
    pool, y = made.graph.pool(), made.out
    del made
    gc.collect()
    capture(cuda, lambda: x + 1)
    return graphs.pool_bytes(pool), y.shape[0]


@program("memory: a pool right after its only graph died")
def _(cuda, device):
    x = torch.ones(4, device=device)
    made = capture(cuda, lambda: x + 1)
    pool = made.graph.pool()
    del made
    gc.collect()
    return graphs.pool_bytes(pool)


@program("memory: a pool whose first graph died is shared all the same")
def _(cuda, device):
    x, pool = torch.ones(4, device=device), cuda.graph_pool_handle()
    first = capture(cuda, lambda: x + 1, pool=pool)
    y = first.out
    second = capture(cuda, lambda: x + 2, pool=pool)
    del first
    gc.collect()
    third = capture(cuda, lambda: x + 3, pool=pool)
    third.graph.replay()
    second.graph.replay()
    at = places(pool, [y.data_ptr(), second.out.data_ptr(), third.out.data_ptr()])
    return at, second.out.tolist(), third.out.tolist(), graphs.pool_bytes(pool)


@program("memory: the pool of a graph that is gone can be used again")
def _(cuda, device):
    x = torch.ones(4, device=device)
    first = capture(cuda, lambda: x + 1)
    pool = first.graph.pool()
    del first
    gc.collect()
    second = capture(cuda, lambda: x + 2, pool=pool)
    if second.errors:
        return second.errors
    second.graph.replay()
    return second.graph.pool() == pool, second.out.tolist(), graphs.pool_bytes(pool)


@program("memory: a handle that no capture has used")
def _(cuda, device):
    a, b = cuda.graph_pool_handle(), cuda.graph_pool_handle()
    return a == b, a == a, isinstance(a, tuple), len(a), graphs.pool_bytes(a)


@program("memory: pool() is the handle given")
def _(cuda, device):
    x, pool = torch.ones(4, device=device), cuda.graph_pool_handle()
    first, second = capture(cuda, lambda: x + 1, pool=pool), capture(cuda, lambda: x + 1)
    return first.graph.pool() == pool, second.graph.pool() == pool


@program("memory: pools that are no pools")
def _(cuda, device):
    x = torch.ones(4, device=device)
    return [
        capture(cuda, lambda: x + 1, pool=pool).errors["outside"].partition(":")[0]
        for pool in (5, "mine", cuda.CUDAGraph())
    ]
