"""Random numbers: what replays draw, and what a seed does before, during and between them.

CPU and GPU draw different numbers from one seed, so outcomes say only which draws are alike.
"""

import torch
import torch.nn.functional as F

from . import table
from .helpers import attempt, capture


def alike(drawn):
    """Each draw's class: [0, 1, 0] says that the third equals the first."""
    return [drawn.index(d) for d in drawn]


def draws(op):
    """A program: eager draws and replays from one seed; are replays alike, and are they eager's?"""

    def run(cuda, device):
        x = torch.tensor([0.25, 0.25, 0.25, 0.25], device=device).repeat(16)
        torch.manual_seed(3)
        eager = [attempt(lambda: op(x).tolist()) for _ in range(3)]
        torch.manual_seed(3)
        made = capture(cuda, lambda: op(x))
        if made.errors:
            return made.errors
        seen = []
        for seed in (None, None, 3, 5, 3):
            if seed is not None:
                torch.manual_seed(seed)
            made.graph.replay()
            seen.append(made.out.tolist())
        return {"replays": alike(seen), "as eager": alike(eager[:2] + seen[:2])}

    return run


OPS = {
    "rand": lambda x: torch.rand(8, device=x.device),
    "randn": lambda x: torch.randn(8, device=x.device),
    "randint": lambda x: torch.randint(0, 1000, (8,), device=x.device),
    "rand_like": lambda x: torch.rand_like(x),
    "randperm": lambda x: torch.randperm(64, device=x.device),
    "dropout": lambda x: F.dropout(x, 0.5),
    "dropout not training": lambda x: F.dropout(x, 0.5, training=False),
    "bernoulli": lambda x: torch.bernoulli(x),
    "bernoulli_": lambda x: torch.empty_like(x).bernoulli_(0.5),
    "uniform_": lambda x: torch.empty_like(x).uniform_(-1, 1),
    "normal_": lambda x: torch.empty_like(x).normal_(),
    "exponential_": lambda x: torch.empty_like(x).exponential_(),
    "multinomial of one": lambda x: torch.multinomial(x.view(8, 8), 1),
    "multinomial of three": lambda x: torch.multinomial(x.view(8, 8), 3),
    "multinomial with replacement": lambda x: torch.multinomial(x.view(8, 8), 3, replacement=True),
    "gumbel": lambda x: (x.view(8, 8).log() - torch.empty_like(x.view(8, 8)).exponential_().log()).argmax(-1),
    "two draws": lambda x: torch.rand(4, device=x.device) - torch.rand(4, device=x.device),
    "normal of tensors": lambda x: torch.normal(x, x),
    "on the host": lambda x: x + float(torch.rand(1)),
}
table("random", draws, OPS)
