"""Backward passes and whole training steps within a capture."""

import torch

from . import case
from .autograd import loss, trained


@case("autograd", trained)
def backward(w, x):
    loss(w, x).backward()


@case("autograd", trained)
def backward_with_zeroed_grad(w, x):
    w.grad = None
    loss(w, x).backward()


@case("autograd", trained)
def backward_accumulates(w, x):
    loss(w, x).backward()
    loss(w, x).backward()


@case("autograd", trained)
def step_by_hand(w, x):
    w.grad = None
    loss(w, x).backward()
    with torch.no_grad():
        w.sub_(w.grad, alpha=0.25)


@case("autograd", trained)
def update_without_no_grad(w, x):
    return w.add_(1)


@case("autograd", trained)
def item_of_the_loss(w, x):
    value = loss(w, x)
    value.backward()
    return value.item()


@case("autograd", trained)
def log_the_loss(w, x):
    value = loss(w, x)
    value.backward()
    return value.detach()


@case("autograd", trained)
def clip(w, x):
    w.grad = None
    loss(w, x).backward()
    torch.nn.utils.clip_grad_norm_([w], 1.0)


@case("autograd", trained)
def clip_nonfinite(w, x):
    w.grad = None
    loss(w, x).backward()
    torch.nn.utils.clip_grad_norm_([w], 1.0, error_if_nonfinite=True)


@case("autograd", trained)
def sgd(w, x):
    w.grad = None
    loss(w, x).backward()
    torch.optim.SGD([w], lr=0.25).step()
