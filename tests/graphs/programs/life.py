"""The life of a graph: made, captured, kept, replayed, reset, dumped; and everything out of order."""

import torch

from . import program
from .helpers import attempt, capture


@program("life: replay, pool, reset, instantiate and dump before any capture")
def _(cuda, device):
    g = cuda.CUDAGraph()
    return [attempt(f) for f in (g.replay, g.pool, g.reset, g.instantiate, g.capture_end)]


@program("life: no replay until the first replay")
def _(cuda, device):
    x = torch.zeros(4, device=device)
    made = capture(cuda, lambda: x.add_(1))
    seen = [x.tolist()]
    for _ in range(3):
        made.graph.replay()
        seen.append(x.tolist())
    return seen, made.out is x, made.out.data_ptr() == x.data_ptr()


@program("life: captured twice")
def _(cuda, device):
    x = torch.zeros(4, device=device)
    made = capture(cuda, lambda: x.add_(1))
    again = capture(cuda, lambda: x.add_(10), graph=made.graph)
    stayed = cuda.current_stream() != cuda.default_stream()
    cuda.set_stream(cuda.default_stream())
    made.graph.replay()
    return again.errors, stayed, x.tolist()


@program("life: reset and captured again")
def _(cuda, device):
    x = torch.zeros(4, device=device)
    made = capture(cuda, lambda: x.add_(1))
    made.graph.reset()
    early = attempt(made.graph.replay)
    again = capture(cuda, lambda: x.add_(10), graph=made.graph)
    made.graph.replay()
    return early, again.errors, x.tolist()


@program("life: reset twice, and after failing")
def _(cuda, device):
    x, main = torch.zeros(4, device=device), cuda.current_stream()
    made = capture(cuda, lambda: x.sum().item())
    cuda.set_stream(main)
    resets = [attempt(made.graph.reset), attempt(made.graph.reset)]
    again = capture(cuda, lambda: x.add_(10), graph=made.graph)
    return made.errors, resets, again.errors, attempt(made.graph.replay), x.tolist()


@program("life: a failed graph captured again without reset")
def _(cuda, device):
    x, main = torch.zeros(4, device=device), cuda.current_stream()
    made = capture(cuda, lambda: x.sum().item())
    cuda.set_stream(main)
    again = capture(cuda, lambda: x.add_(10), graph=made.graph)
    return again.errors, attempt(made.graph.replay), x.tolist()


@program("life: a failed graph's replay, pool and reset")
def _(cuda, device):
    x = torch.zeros(4, device=device)
    g = capture(cuda, lambda: x.sum().item()).graph
    return [attempt(lambda f=f: f() is not None) for f in (g.replay, g.pool, g.instantiate, g.reset)]


@program("life: an exception keeps what came before it")
def _(cuda, device):
    x = torch.zeros(4, device=device)

    def f():
        x.add_(1)
        [][0]
        x.add_(10)

    made = capture(cuda, f)
    current = cuda.current_stream() == cuda.default_stream()
    made.graph.replay()
    return made.errors, current, x.tolist()


@program("life: KeyboardInterrupt within")
def _(cuda, device):
    x, g = torch.zeros(4, device=device), cuda.CUDAGraph()
    try:
        with cuda.graph(g):
            x.add_(1)
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        seen = cuda.is_current_stream_capturing()
    g.replay()
    return seen, x.tolist()


@program("life: return from within the with")
def _(cuda, device):
    x, g = torch.zeros(4, device=device), cuda.CUDAGraph()

    def f():
        with cuda.graph(g):
            return x + 1

    y = f()
    g.replay()
    return y.tolist(), cuda.is_current_stream_capturing()
