"""The life of a graph, second half: empty captures, keep_graph, instantiate, dumps."""

import os
import tempfile

import torch

from . import program
from .helpers import attempt, capture, streams


@program("life: an empty capture")
def _(cuda, device):
    made = capture(cuda, lambda: None)
    return made.errors, attempt(made.graph.replay), attempt(lambda: len(made.graph.pool()))


@program("life: a capture of views and empty tensors alone")
def _(cuda, device):
    x = torch.ones(4, device=device)
    made = capture(cuda, lambda: (x[1:], x.view(2, 2).t(), torch.empty(3, device=device), x.detach()))
    return made.errors, attempt(made.graph.replay), made.out[0].tolist()


@program("life: keep_graph")
def _(cuda, device):
    x, g = torch.zeros(4, device=device), cuda.CUDAGraph(keep_graph=True)
    early = attempt(g.instantiate)
    made = capture(cuda, lambda: x.add_(1), graph=g)
    steps = [attempt(f) for f in (g.instantiate, g.replay, g.instantiate, g.replay)]
    return early, made.errors, steps, x.tolist()


@program("life: keep_graph without instantiate")
def _(cuda, device):
    x, g = torch.zeros(4, device=device), cuda.CUDAGraph(keep_graph=True)
    capture(cuda, lambda: x.add_(1), graph=g)
    return attempt(g.replay), x.tolist(), attempt(lambda: len(g.pool()))


@program("life: keep_graph captured twice before instantiate")
def _(cuda, device):
    x, g = torch.zeros(4, device=device), cuda.CUDAGraph(keep_graph=True)
    capture(cuda, lambda: x.add_(1), graph=g)
    again = capture(cuda, lambda: x.add_(10), graph=g)
    cuda.set_stream(cuda.default_stream())
    return again.errors, attempt(g.replay), x.tolist()


@program("life: keep_graph captured twice after a replay")
def _(cuda, device):
    x, g = torch.zeros(4, device=device), cuda.CUDAGraph(keep_graph=True)
    capture(cuda, lambda: x.add_(1), graph=g)
    g.replay()
    again = capture(cuda, lambda: x.add_(10), graph=g)
    cuda.set_stream(cuda.default_stream())
    return again.errors, attempt(g.replay), x.tolist()


@program("life: instantiate a plain graph")
def _(cuda, device):
    x = torch.zeros(4, device=device)
    g = capture(cuda, lambda: x.add_(1)).graph
    return attempt(g.instantiate), attempt(g.replay), x.tolist()


@program("life: debug_dump with keep_graph writes a file")
def _(cuda, device):
    x, g = torch.zeros(4, device=device), cuda.CUDAGraph(keep_graph=True)
    g.enable_debug_mode()
    capture(cuda, lambda: x.add_(1), graph=g)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "g.dot")
        done = attempt(g.debug_dump, path)
        return done, os.path.exists(path) and "digraph" in open(path, encoding="utf-8").read()


@program("life: debug_dump without keep_graph writes nothing")
def _(cuda, device):
    x, g = torch.zeros(4, device=device), cuda.CUDAGraph()
    g.enable_debug_mode()
    capture(cuda, lambda: x.add_(1), graph=g)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "g.dot")
        done = attempt(g.debug_dump, path)
        return done, os.path.exists(path), attempt(g.replay), x.tolist()


@program("life: replayed on another stream")
def _(cuda, device):
    x, (side,) = torch.zeros(4, device=device), streams(cuda, 1)
    g = capture(cuda, lambda: x.add_(1)).graph
    side.wait_stream(cuda.current_stream())
    with cuda.stream(side):
        g.replay()
        g.replay()
    cuda.synchronize()
    return x.tolist()
