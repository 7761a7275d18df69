"""capture_begin and capture_end by hand, in the wrong order, on the wrong stream, within each other."""

import torch

from . import program
from .helpers import attempt, streams


def at(cuda, device):
    """x, a graph, and a stream that has waited for what was done so far."""
    (one,) = streams(cuda, 1)
    one.wait_stream(cuda.current_stream())
    return torch.zeros(4, device=device), cuda.CUDAGraph(), one


@program("by hand: begin and end")
def _(cuda, device):
    x, g, one = at(cuda, device)
    with cuda.stream(one):
        g.capture_begin()
        x.add_(1)
        g.capture_end()
    g.replay()
    cuda.synchronize()
    return x.tolist()


@program("by hand: end without begin")
def _(cuda, device):
    x, g, one = at(cuda, device)
    with cuda.stream(one):
        return attempt(g.capture_end), attempt(g.replay)


@program("by hand: end twice", alone=True)
def _(cuda, device):
    x, g, one = at(cuda, device)
    with cuda.stream(one):
        g.capture_begin()
        x.add_(1)
        first = attempt(g.capture_end)
        second = attempt(g.capture_end)
    return first, second, attempt(g.replay)


@program("by hand: begin on the default stream")
def _(cuda, device):
    x, g, one = at(cuda, device)
    return attempt(g.capture_begin), attempt(g.replay)


@program("by hand: begin twice on one graph", alone=True)
def _(cuda, device):
    x, g, one = at(cuda, device)
    with cuda.stream(one):
        g.capture_begin()
        x.add_(1)
        second = attempt(g.capture_begin)
        return second, attempt(lambda: x.add_(1) is x), attempt(g.capture_end)


@program("by hand: end on another stream")
def _(cuda, device):
    x, g, one = at(cuda, device)
    with cuda.stream(one):
        g.capture_begin()
        x.add_(1)
        with cuda.stream(cuda.default_stream()):
            early = attempt(g.capture_end)
        late = attempt(g.capture_end)
    g.replay()
    cuda.synchronize()
    return early, late, x.tolist()


@program("by hand: an unknown error mode")
def _(cuda, device):
    x, g, one = at(cuda, device)
    with cuda.stream(one):
        return attempt(lambda: g.capture_begin(capture_error_mode="strict")), attempt(g.capture_end)
