"""Autograd with one foot in a capture: forward within and backward without, and the other ways."""

import torch

from . import case
from .autograd import loss
from .helpers import attempt, capture


def across(body):
    """A program: ``body(cuda, w, x)`` does part of the work eagerly, part within a capture."""

    def run(cuda, device):
        w = torch.nn.Parameter(torch.ones(3, device=device))
        loss(w, w.detach()).backward()
        w.grad = None
        return attempt(body, cuda, w, torch.tensor([1.0, 2, 3], device=device))

    return run


@case("autograd", across)
def forward_in_backward_out(cuda, w, x):
    made = capture(cuda, lambda: loss(w, x))
    made.graph.replay()
    made.out.backward()
    return made.errors, made.out.item(), w.grad.tolist()


@case("autograd", across, unfaithful="item 11: backward takes the current stream")
def forward_out_backward_in(cuda, w, x):
    value = loss(w, x)
    made = capture(cuda, value.backward)
    cuda.set_stream(cuda.default_stream())
    return made.errors


@case("autograd", across)
def two_graphs(cuda, w, x):
    pool = cuda.graph_pool_handle()
    forward = capture(cuda, lambda: loss(w, x), pool=pool)
    back = capture(cuda, lambda: torch.autograd.grad(forward.out, w)[0], pool=pool)
    if back.errors:
        cuda.set_stream(cuda.default_stream())
        return forward.errors, back.errors
    forward.graph.replay()
    back.graph.replay()
    return forward.out.item(), back.out.tolist()


@case("autograd", across)
def backward_of_a_captured_backward(cuda, w, x):
    made = capture(cuda, lambda: loss(w, x).backward())
    first = None if w.grad is None else w.grad.shape[0]
    made.graph.replay()
    seen = w.grad.tolist()
    made.graph.replay()
    return made.errors, first, seen, w.grad.tolist()


@case("autograd", across)
def grad_made_outside(cuda, w, x):
    w.grad = torch.zeros_like(w)
    made = capture(cuda, lambda: loss(w, x).backward())
    made.graph.replay()
    made.graph.replay()
    return made.errors, w.grad.tolist()
