"""Optimizers within a capture: where they keep state, and what they ask of the device."""

import torch
from torch import nn

from . import table
from .modules import captured


def trained(optimizer):
    def make(x):
        layer = nn.Linear(4, 1, bias=False, device=x.device)
        with torch.no_grad():
            layer.weight.fill_(1)
        steps = optimizer(layer.parameters())

        def f(x):
            steps.zero_grad()
            layer(x).sum().backward()
            steps.step()
            return layer.weight.detach()

        return f

    return make


def stepped(optimizer):
    return captured(trained(optimizer))


OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.125),
    "SGD with momentum": lambda p: torch.optim.SGD(p, lr=0.125, momentum=0.5),
    "Adam": lambda p: torch.optim.Adam(p, lr=0.125),
    "Adam, capturable": lambda p: torch.optim.Adam(p, lr=0.125, capturable=True),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.125),
    "a rate in a tensor": lambda p: torch.optim.SGD(p, lr=torch.tensor(0.125)),
}
ITEM_10 = "item 10: torch.optim asks torch.cuda"
MARKS = dict.fromkeys(["Adam", "AdamW", "Adam, capturable"], ITEM_10)
MARKS["a rate in a tensor"] = "item 3: it was made before the capture"
table("optimizer", stepped, OPTIMIZERS, unfaithful=MARKS)
