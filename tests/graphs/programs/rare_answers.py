"""Questions that only a GPU could answer: rare mixtures of host and device, of shapes, of captures."""

import torch
import torch.nn.functional as F

from . import program, table
from .helpers import attempt, capture, inside, plain


def mask_and_number(x):
    y = torch.stack([x, x])
    y[y > 1, ...] = 0.0
    y[torch.tensor(1), x > 1] = 9.0
    return y


RARE = {
    "host vector through a mask": lambda x: x.__setitem__(x > 1, torch.ones(2)),
    "mask beside a host number": mask_and_number,
    "cat with a host number": lambda x: torch.cat([x, torch.tensor([1.0])[0][None]]),
    "equal, two shapes": lambda x: torch.equal(x, x[:2]),
    "equal, a view": lambda x: torch.equal(x.view(2, 2), x.view(2, 2)),
    "one_hot, no class": lambda x: F.one_hot(x.long(), 0),
    "resize_ of a view": lambda x: (x + 1)[2:4].resize_(6)[:2] * 2,
    "resize_ smaller": lambda x: (x + 1).resize_(2) * 2,
}
table("rare", inside, RARE)


@program("rare: a kept graph captured again, in vain", unfaithful="item 6: CUDA loses the old template too")
def _(cuda, device):
    x, g = torch.zeros(4, device=device), cuda.CUDAGraph(keep_graph=True)
    first = capture(cuda, lambda: x.add_(1), graph=g)
    second = capture(cuda, lambda: x.sum().item(), graph=g)
    return first.errors, second.errors, attempt(g.replay), plain(x)


@program("pinned: to device and another dtype", unfaithful="item 3: there is no pinned memory")
def _(cuda, device):
    host = torch.ones(4).pin_memory()
    host.to(device, torch.float64)
    made = capture(cuda, lambda: host.to(device, torch.float64, non_blocking=True) + 1)
    if not made.errors:
        made.graph.replay()
    return made.errors, plain(made.out)
