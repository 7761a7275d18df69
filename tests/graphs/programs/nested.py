"""Graphs within graphs: captures, replays, resets and deletions while a capture is underway."""

import torch

from . import program, table
from .helpers import attempt, capture, streams


@program("by hand: a graph within a graph")
def _(cuda, device):
    x = torch.zeros(4, device=device)
    made = capture(cuda, lambda: capture(cuda, lambda: x.add_(1)).errors)
    return made.errors, made.out


@program("by hand: an inner graph on another stream")
def _(cuda, device):
    x, (one,) = torch.zeros(4, device=device), streams(cuda, 1)
    made = capture(cuda, lambda: capture(cuda, lambda: x.add_(1), stream=one).errors)
    return made.errors, made.out


@program("by hand: a replay within a capture")
def _(cuda, device):
    x = torch.zeros(4, device=device)
    g = capture(cuda, lambda: x.add_(1)).graph
    made = capture(cuda, lambda: [attempt(g.replay), attempt(lambda: x.add_(10) is x)])
    if not made.errors:
        made.graph.replay()
    return made.errors, made.out, x.tolist()


@program("by hand: a graph replays itself while captured")
def _(cuda, device):
    x, g = torch.zeros(4, device=device), cuda.CUDAGraph()
    made = capture(cuda, lambda: [x.add_(1), attempt(g.replay)][1], graph=g)
    return made.errors, made.out, attempt(g.replay), x.tolist()


@program("by hand: pool() while capturing")
def _(cuda, device):
    x, g = torch.zeros(4, device=device), cuda.CUDAGraph()
    made = capture(cuda, lambda: [x.add_(1), attempt(g.pool)][1], graph=g)
    return made.errors, made.out if isinstance(made.out, dict) else "a pool"


@program("by hand: reset while capturing", alone=True)
def _(cuda, device):
    x, g = torch.zeros(4, device=device), cuda.CUDAGraph()
    made = capture(cuda, lambda: [x.add_(1), attempt(g.reset)][1], graph=g)
    return made.errors, made.out, attempt(g.replay), x.tolist()


@program("by hand: another graph reset while capturing")
def _(cuda, device):
    x = torch.zeros(4, device=device)
    old = capture(cuda, lambda: x.add_(1)).graph
    made = capture(cuda, lambda: [x.add_(10), attempt(old.reset)][1])
    return made.errors, made.out, attempt(made.graph.replay), x.tolist()


@program("by hand: another graph deleted while capturing")
def _(cuda, device):
    x = torch.zeros(4, device=device)
    old = [capture(cuda, lambda: x.add_(1)).graph]
    made = capture(cuda, lambda: [x.add_(10), old.clear()][1])
    return made.errors, attempt(made.graph.replay), x.tolist()


@program("by hand: the pool of a graph under capture given to another")
def _(cuda, device):
    x, pool = torch.zeros(4, device=device), cuda.graph_pool_handle()
    made = capture(cuda, lambda: capture(cuda, lambda: x.add_(1), pool=pool).errors, pool=pool)
    return made.errors, made.out


@program("by hand: cuda.graph on the default stream")
def _(cuda, device):
    x = torch.zeros(4, device=device)
    made = capture(cuda, lambda: x.add_(1), stream=cuda.default_stream())
    return made.errors, x.tolist(), attempt(made.graph.replay)


@program("by hand: cuda.graph on a given stream")
def _(cuda, device):
    x, (one,) = torch.zeros(4, device=device), streams(cuda, 1)
    made = capture(cuda, lambda: cuda.current_stream() == one and x.add_(1) is x, stream=one)
    made.graph.replay()
    return made.errors, made.out, x.tolist(), cuda.current_stream() == cuda.default_stream()


@program("by hand: cuda.graph within with stream")
def _(cuda, device):
    (one,) = streams(cuda, 1)
    with cuda.stream(one):
        made = capture(cuda, lambda: cuda.current_stream() == one)
        within = cuda.current_stream() == one
    return made.errors, made.out, within


@program("by hand: not a graph")
def _(cuda, device):
    made = capture(cuda, lambda: None, graph="a graph")
    return made.errors.get("outside", "").partition(":")[0]


def deleted_in(mode):
    def run(cuda, device):
        x = torch.zeros(4, device=device)
        old = [capture(cuda, lambda: x.add_(1)).graph]
        made = capture(cuda, lambda: [x.add_(10), old.clear()][1], capture_error_mode=mode)
        return made.errors, attempt(made.graph.replay), x.tolist()

    return run


table("by hand: another graph deleted", deleted_in, {"relaxed": "relaxed", "thread_local": "thread_local"})
