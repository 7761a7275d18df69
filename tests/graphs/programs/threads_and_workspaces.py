"""Assertions, threads, error modes, runners and workspaces: the rest of what surrounds a capture."""

import threading

import torch

from minillm import graphs

from . import program
from .helpers import MiB, attempt, capture


@program("python: an assertion of shape, and one of values")
def _(cuda, device):
    x = torch.zeros(4, device=device)

    def shape():
        assert x.shape == (4,)
        return x + 1

    def values():
        assert (x == 0).all()
        return x + 1

    return capture(cuda, shape).errors, capture(cuda, values).errors


@program("python: a mistake of shape within")
def _(cuda, device):
    x = torch.zeros(4, device=device)
    made = capture(
        cuda, lambda: [x.add_(1), attempt(lambda: x + torch.zeros(3, device=device)), x.add_(1)][1]
    )
    made.graph.replay()
    return made.errors, made.out, x.tolist()


@program(
    "python: kernels of another thread",
    unfaithful="item 7: another thread is not recorded, nor refused",
    alone=True,
)
def _(cuda, device):
    x, seen = torch.zeros(4, device=device), []
    other = threading.Thread(target=lambda: seen.append(attempt(lambda: x.sum().item())))

    def f():
        x.add_(1)
        other.start()
        other.join()

    made = capture(cuda, f)
    return made.errors, seen


@program("python: kernels of another thread, thread_local", alone=True)
def _(cuda, device):
    x, y, seen = torch.zeros(4, device=device), torch.ones(4, device=device), []
    other = threading.Thread(target=lambda: seen.append(attempt(lambda: y.sum().item())))

    def f():
        x.add_(1)
        other.start()
        other.join()

    made = capture(cuda, f, capture_error_mode="thread_local")
    return made.errors, seen, attempt(made.graph.replay), x.tolist()


@program("python: a sync in relaxed mode is still a sync")
def _(cuda, device):
    x = torch.zeros(4, device=device)
    return [capture(cuda, lambda: x.sum().item(), capture_error_mode=m).errors for m in ("relaxed",)]


@program("python: a graph as a class's attribute and a dict's value")
def _(cuda, device):
    class Runner:
        def __init__(self, f, *inputs):
            self.f, self.inputs, self.made = f, inputs, None

        def __call__(self, *new):
            if self.made is None:
                self.made = capture(cuda, lambda: self.f(*self.inputs))
            for old, value in zip(self.inputs, new, strict=True):
                old.copy_(value)
            self.made.graph.replay()
            return self.made.out

    run = Runner(lambda a, b: a * b, torch.zeros(2, device=device), torch.zeros(2, device=device))
    return [run(torch.full((2,), 2.0), torch.full((2,), k)).tolist() for k in (3.0, 4.0)]


@program(
    "python: the first product within a capture takes a workspace",
    unfaithful="item 4: no workspaces",
    alone=True,
)
def _(cuda, device):
    a = torch.ones(64, 64, device=device)
    (a @ a).sum().item()
    made = capture(cuda, lambda: a @ a, stream=cuda.Stream())
    return made.errors, graphs.pool_bytes(made.graph.pool()) > 4 * MiB


@program("python: a bool tensor and a bool")
def _(cuda, device):
    x, flag = torch.ones(2, device=device), torch.tensor(True, device=device)
    made, seen = capture(cuda, lambda: torch.where(flag, x, -x)), []
    for value in (True, False):
        flag.fill_(value)
        made.graph.replay()
        seen.append(made.out.tolist())
    return seen


@program("python: is_available and the names of the surface")
def _(cuda, device):
    names = "CUDAGraph Event Stream graph graph_pool_handle stream current_stream set_stream synchronize"
    return [hasattr(cuda, n) for n in names.split()]
