"""Pinned host memory: what a capture may copy from and to."""

import torch

from . import table
from .helpers import attempt, capture


def pinned(op):
    """A program: ``op(x, host)`` within a capture, ``host`` being pinned, and a replay before and after it
    changed on the host."""

    def run(cuda, device):
        x, host, seen = torch.ones(4, device=device), torch.arange(4.0).pin_memory(), []
        made = capture(cuda, lambda: op(x, host))
        cuda.set_stream(cuda.default_stream())
        for value in (None, 9.0):
            if value is not None:
                host.fill_(value)
            seen.append(attempt(made.graph.replay))
            cuda.synchronize()
            seen.append([x.tolist(), host.tolist(), host.is_pinned()])
        return made.errors, seen

    return run


PINNED = {
    "copy_ from it": lambda x, host: x.copy_(host),
    "copy_ from it, non_blocking": lambda x, host: x.copy_(host, non_blocking=True),
    "copy_ from a slice of it": lambda x, host: x[:2].copy_(host[:2], non_blocking=True),
    "copy_ from it across dtypes": lambda x, host: x.double().copy_(host, non_blocking=True),
    "to device": lambda x, host: x.add_(host.to(x.device)),
    "to device, non_blocking": lambda x, host: x.add_(host.to(x.device, non_blocking=True)),
    "copy_ to it, non_blocking": lambda x, host: host.copy_(x.mul_(2), non_blocking=True),
    "copy_ to it": lambda x, host: host.copy_(x.mul_(2)),
    "add": lambda x, host: x + host,
    "index with it": lambda x, host: x.copy_(x[host.long()]),
}
table("pinned", pinned, PINNED, unfaithful=dict.fromkeys(PINNED, "item 3: there is no pinned memory"))
