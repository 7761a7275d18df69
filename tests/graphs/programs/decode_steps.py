"""Decode steps in small: KV caches, slots, padding, sampling, stop conditions, buckets."""

import torch

from . import program
from .helpers import capture


def decoder(device, rows=4):
    """A toy whose next token is (3 * token + position) % 17, through a cache of what was said."""
    return {
        "token": torch.ones(rows, dtype=torch.long, device=device),
        "position": torch.zeros(rows, dtype=torch.long, device=device),
        "cache": torch.full((rows + 1, 8), -1, dtype=torch.long, device=device),
        "row": torch.arange(1, rows + 1, device=device),
        "alive": torch.ones(rows, dtype=torch.bool, device=device),
    }


def step(s):
    s["cache"][s["row"], s["position"]] = s["token"]
    s["token"].copy_((3 * s["token"] + s["position"]) % 17)
    s["position"].add_(1)


@program("decode: a step that feeds itself")
def _(cuda, device):
    s = decoder(device)
    made = capture(cuda, lambda: step(s))
    for _ in range(5):
        made.graph.replay()
    return made.errors, s["cache"].tolist(), s["token"].tolist()


@program("decode: warm-up moves the state on")
def _(cuda, device):
    s = decoder(device)
    step(s)
    step(s)
    made = capture(cuda, lambda: step(s))
    made.graph.replay()
    return s["position"].tolist(), s["cache"].tolist(), made.errors


@program("decode: a position that is a number stays")
def _(cuda, device):
    s, at = decoder(device), 0

    def f():
        s["cache"][1:, at] = s["token"]
        s["token"].add_(1)

    made = capture(cuda, f)
    for at in range(3):  # noqa: B007 - the mistake
        made.graph.replay()
    return s["cache"].tolist(), made.errors


@program("decode: slot mapping with -1 writes the last slot")
def _(cuda, device):
    cache, new = torch.zeros(6, 2, device=device), torch.ones(3, 2, device=device)
    slots = torch.tensor([1, 3, -1], device=device)

    def f():
        cache[slots] = new

    f()
    cache.zero_()
    capture(cuda, f).graph.replay()
    return cache.tolist()


@program("decode: padding rows write the null slot")
def _(cuda, device):
    cache, slots = torch.zeros(6, device=device), torch.zeros(4, dtype=torch.long, device=device)
    new = torch.zeros(4, device=device)
    made = capture(cuda, lambda: cache.index_copy_(0, slots, new))
    for batch in ([2, 3, 4], [5]):
        slots.zero_()
        new.zero_()
        slots[: len(batch)] = torch.tensor(batch, device=device)
        new[: len(batch)] = torch.tensor(batch, device=device) * 10.0
        made.graph.replay()
    return cache[1:].tolist()


@program("decode: stale rows of a wider batch")
def _(cuda, device):
    x = torch.zeros(4, device=device)
    made, seen = capture(cuda, lambda: x.sum() + 0 * x), []
    for batch in ([1.0, 2, 3, 4], [10.0]):
        x[: len(batch)].copy_(torch.tensor(batch))
        made.graph.replay()
        seen.append(made.out.tolist())
    return seen


@program("decode: a NaN in a padding row spreads through a sum")
def _(cuda, device):
    x = torch.tensor([1.0, 2, float("nan")], device=device)
    made = capture(cuda, lambda: [x / x.max(), x / x.nansum(), x.isfinite()])
    made.graph.replay()
    return [o.tolist() for o in made.out]


@program("decode: lengths as a mask")
def _(cuda, device):
    lengths, x = torch.tensor([1, 3], device=device), torch.arange(8.0, device=device).view(2, 4)
    f = lambda: x.masked_fill(torch.arange(4, device=device) >= lengths[:, None], 0.0).sum(-1)  # noqa: E731
    f()
    made, seen = capture(cuda, f), []
    for new in ([1, 3], [4, 2]):
        lengths.copy_(torch.tensor(new))
        made.graph.replay()
        seen.append(made.out.tolist())
    return seen


@program("decode: paged gather")
def _(cuda, device):
    pages = torch.arange(12.0, device=device).view(6, 2)
    table = torch.tensor([[0, 1], [2, 3]], device=device)
    made, seen = capture(cuda, lambda: pages[table].flatten(1)), []
    for new in ([[0, 1], [2, 3]], [[5, 0], [4, 4]]):
        table.copy_(torch.tensor(new))
        made.graph.replay()
        seen.append(made.out.tolist())
    return seen
