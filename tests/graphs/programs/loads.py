"""Feeding a static input: what reaches the graph, and what only looks as if it did."""

import torch

from . import table
from .helpers import attempt, capture


def step(load):
    """A program: capture y = x * 2 + 1; then ``load(box, new)`` must feed it.  ``box["x"]`` is the input."""

    def run(cuda, device):
        box = {"x": torch.zeros(4, device=device)}
        captured = box["x"]
        made = capture(cuda, lambda: box["x"] * 2 + 1)
        seen = []
        for i in (1.0, 2.0):
            done = attempt(load, box, torch.full((4,), i, device=device))
            made.graph.replay()
            seen.append([made.out.tolist(), done if isinstance(done, dict) and "raises" in done else None])
        return seen, box["x"].data_ptr() == captured.data_ptr(), captured.shape[0]

    return run


def keep_old(box):
    """What the graph reads stays alive, so that its bytes are defined."""
    box.setdefault("old", []).append(box["x"].detach())


LOADS = {
    "copy_": lambda box, new: box["x"].copy_(new),
    "rebind": lambda box, new: box.update(x=new),
    "rebind a clone": lambda box, new: box.update(x=new.clone()),
    "slice": lambda box, new: box["x"].__setitem__(slice(None), new),
    "half": lambda box, new: box["x"][:2].copy_(new[:2]),
    "broadcast": lambda box, new: box["x"].copy_(new[:1]),
    "too long": lambda box, new: box["x"].copy_(torch.cat([new, new])),
    "another dtype": lambda box, new: box["x"].copy_(new.double() + 0.5),
    "an int": lambda box, new: box["x"].fill_(int(new[0])),
    "from the host": lambda box, new: box["x"].copy_(new.cpu()),
    "from a list": lambda box, new: box["x"].copy_(torch.tensor(new.tolist())),
    "add_": lambda box, new: box["x"].add_(new),
    "x = x + new": lambda box, new: box.update(x=box["x"] + new),
    "data =": lambda box, new: [keep_old(box), setattr(box["x"], "data", new)],
    "data.copy_": lambda box, new: box["x"].data.copy_(new),
    "set_": lambda box, new: [keep_old(box), box["x"].set_(new)],
    "torch.add out": lambda box, new: torch.add(new, 0, out=box["x"]),
    "a view": lambda box, new: box["x"].view(2, 2).copy_(new.view(2, 2)),
}
table("load", step, LOADS)
