"""What Python does around a capture and a replay does not: calls, lists, prints, threads, files."""

import functools

import torch

from . import program
from .helpers import capture


@program("python: a list fills during capture alone")
def _(cuda, device):
    x, log = torch.ones(2, device=device), []
    made = capture(cuda, lambda: [log.append(len(log)), x + 1][1])
    made.graph.replay()
    made.graph.replay()
    return log


@program("python: a counter is frozen")
def _(cuda, device):
    x, count = torch.zeros(2, device=device), iter(range(100))
    made = capture(cuda, lambda: x.add_(next(count)).add_(next(count)))
    made.graph.replay()
    made.graph.replay()
    return x.tolist(), next(count)


@program("python: a generator expression, zip and enumerate")
def _(cuda, device):
    x = torch.arange(4.0, device=device)
    made = capture(
        cuda, lambda: sum(w * r for w, (i, r) in zip((1, 2), enumerate(x.view(2, 2)), strict=True))
    )
    made.graph.replay()
    return made.out.tolist(), made.errors


@program("python: a lazily made table is made within the capture")
def _(cuda, device):
    x = torch.ones(4, device=device)

    @functools.cache
    def table():
        return torch.arange(4, device=device) * 2

    made = capture(cuda, lambda: x + table())
    made.graph.replay()
    return made.out.tolist(), table().tolist()


@program("python: a lazily made buffer of numbers")
def _(cuda, device):
    x, lazy = torch.ones(4, device=device), {}

    def f():
        if "scale" not in lazy:
            lazy["scale"] = torch.tensor([1.0, 2, 3, 4], device=device)
        return x * lazy["scale"]

    first = capture(cuda, f)
    f()
    second = capture(cuda, f)
    second.graph.replay()
    return first.errors, second.errors, second.out.tolist()


@program("python: try and except within")
def _(cuda, device):
    x = torch.zeros(4, device=device)

    def f():
        try:
            x.add_(1)
            x.tolist()
        except RuntimeError:
            x.add_(10)

    made = capture(cuda, f)
    made.graph.replay()
    return made.errors, x.tolist()


@program("python: try and except of a sync within")
def _(cuda, device):
    x = torch.zeros(4, device=device)

    def f():
        try:
            x.sum().item()
        except RuntimeError:
            x.add_(10)

    return capture(cuda, f).errors
