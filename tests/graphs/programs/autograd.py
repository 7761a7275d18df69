"""Autograd within a capture, across its border, and whole training steps."""

import torch
import torch.nn.functional as F

from . import case
from .helpers import attempt, capture


def trained(body):
    """A program: ``body(w, x)`` is run twice eagerly, captured, and replayed twice; ``w`` has a gradient."""

    def run(cuda, device):
        w = torch.nn.Parameter(torch.ones(3, device=device))
        x = torch.tensor([1.0, 2, 3], device=device)
        side, main = cuda.Stream(), cuda.current_stream()
        side.wait_stream(main)
        with cuda.stream(side):
            for _ in range(2):
                attempt(body, w, x)
        main.wait_stream(side)
        with torch.no_grad():
            w.fill_(1)
        w.grad = None if w.grad is None else torch.zeros_like(w)
        made = capture(cuda, lambda: body(w, x))
        cuda.set_stream(main)
        if made.errors:
            return made.errors
        seen = []
        for value in (1.0, 3.0):
            x.fill_(value)
            made.graph.replay()
            grad = None if w.grad is None else w.grad.tolist()
            out = made.out.tolist() if isinstance(made.out, torch.Tensor) else None
            seen.append([w.tolist(), grad, out])
        return seen

    return run


def loss(w, x):
    return (w * x).pow(2).sum()


@case("autograd", trained)
def forward_only(w, x):
    return loss(w, x)


@case("autograd", trained)
def autograd_grad(w, x):
    return torch.autograd.grad(loss(w, x), w)[0]


@case("autograd", trained)
def no_grad(w, x):
    with torch.no_grad():
        return w * x


@case("autograd", trained)
def inference_mode(w, x):
    with torch.inference_mode():
        return w * x


@case("autograd", trained)
def detach(w, x):
    return (w * x).detach() + 1


@case("autograd", trained)
def relu_and_softmax(w, x):
    return torch.autograd.grad(F.relu(w * x).softmax(0)[0], w)[0]


@case("autograd", trained)
def cross_entropy(w, x):
    target = torch.zeros(1, dtype=torch.long, device=x.device)
    return torch.autograd.grad(F.cross_entropy((w * x)[None], target), w)[0]


@case("autograd", trained)
def gather_backward(w, x):
    index = torch.tensor(2).new_zeros(2, device=x.device) + torch.arange(2, device=x.device)
    return torch.autograd.grad((w[index] * 2).sum(), w)[0]


@case("autograd", trained)
def double_backward(w, x):
    (g,) = torch.autograd.grad(loss(w, x), w, create_graph=True)
    return torch.autograd.grad(g.sum(), w)[0]


@case("autograd", trained)
def checkpointed(w, x):
    out = torch.utils.checkpoint.checkpoint(loss, w, x, use_reentrant=False, preserve_rng_state=False)
    return torch.autograd.grad(out, w)[0]


@case("autograd", trained)
def hook(w, x):
    y = w * x
    y.register_hook(lambda g: g * 10)
    return torch.autograd.grad(y.sum(), w)[0]


@case("autograd", trained)
def hook_that_waits(w, x):
    y = w * x
    y.register_hook(lambda g: g * g.sum().item())
    return torch.autograd.grad(y.sum(), w)[0]


@case("autograd", trained)
def custom_function(w, x):
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            return a * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    return torch.autograd.grad(Double.apply(w * x).sum(), w)[0]


@case("autograd", trained)
def functional_grad(w, x):
    return torch.func.grad(lambda v: loss(v, x))(w)


@case("autograd", trained)
def jvp(w, x):
    return torch.func.jvp(lambda v: v * v, (w.detach(),), (x,))[1]


@case("autograd", trained)
def nested_inference(w, x):
    with torch.inference_mode():
        y = w * x
    return y * 2
