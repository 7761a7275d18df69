"""Host and device without any capture: what is a copy, what is refused, where a result is."""

import copy

import numpy as np
import torch

from . import table
from .helpers import plain


def eagerly(op):
    """A program: ``op(x, host)``, then ``x`` and ``host``, both of four floats."""

    def run(cuda, device):
        x, host = torch.tensor([3.0, 1, 2, 0], device=device), torch.arange(4.0)
        try:
            result = plain(op(x, host))
        except Exception as error:
            result = type(error).__name__
        return [result, x.tolist(), host.tolist()]

    return run


def then(made, x):
    """What ``made`` holds after ``x`` changed: a copy, or the same memory?"""
    x.add_(100)
    return made


EAGER = {
    "cpu": lambda x, host: then(x.cpu(), x),
    "cpu of host": lambda x, host: then(host.cpu(), host),
    "to cpu": lambda x, host: then(x.to("cpu"), x),
    "to device": lambda x, host: then(x.to(x.device), x),
    "host to device": lambda x, host: then(host.to(x.device), host),
    "host to like": lambda x, host: then(host.to(x), host),
    "numpy": lambda x, host: x.numpy(),
    "numpy force": lambda x, host: then(x.numpy(force=True), x),
    "numpy of host": lambda x, host: then(host.numpy(), host),
    "np.asarray": lambda x, host: np.asarray(x),
    "from_numpy to device": lambda x, host: torch.from_numpy(np.ones(2)).to(x.device) * 2,
    "add": lambda x, host: x + host,
    "add a number": lambda x, host: x + host[1],
    "add to a number": lambda x, host: x[1] + host,
    "copy_ from host": lambda x, host: x.copy_(host),
    "copy_ to host": lambda x, host: host.copy_(x),
    "index by host": lambda x, host: x[host.long()],
    "index host by device": lambda x, host: host[x.long()],
    "write by host": lambda x, host: x.__setitem__(host.long()[:2], 7.0),
    "write host into slice": lambda x, host: x.__setitem__(slice(0, 2), host[:2]),
    "mask of host": lambda x, host: x[host > 1],
    "cat": lambda x, host: torch.cat([x, host]),
    "stack": lambda x, host: torch.stack([x, host]),
    "where": lambda x, host: torch.where(x > 1, x, host),
    "embedding": lambda x, host: torch.nn.functional.embedding(host.long(), x[:, None]),
    "out on the host": lambda x, host: torch.add(x, 1, out=host),
    "equal": lambda x, host: torch.equal(x, host),
    "allclose": lambda x, host: torch.allclose(x, host),
    "tolist": lambda x, host: then(x.tolist(), x),
    "tensor of a device tensor": lambda x, host: then(x.detach().clone(), x),
    "as_tensor": lambda x, host: then(torch.as_tensor(x), x),
    "as_tensor to device": lambda x, host: then(torch.as_tensor(host, device=x.device), host),
    "deepcopy": lambda x, host: then(copy.deepcopy(x), x),
    "zeros_like": lambda x, host: torch.zeros_like(x) + x,
    "new_tensor": lambda x, host: x.new_tensor([1.0, 2, 3, 4]) + x,
    "new_zeros of host": lambda x, host: host.new_zeros(4) + x,
    "full and arange": lambda x, host: (
        torch.arange(4, device=x.device) + torch.full((4,), 2.0, device=x.device) + x
    ),
    "no device named": lambda x, host: torch.ones(4) + x,
    "with torch.device": lambda x, host: within(x.device, lambda: torch.ones(4) + x),
    "module": lambda x, host: torch.nn.Linear(4, 1)(x),
    "module to": lambda x, host: torch.nn.LayerNorm(4).to(x.device)(x),
    "state_dict": lambda x, host: loaded(x, host),
    "multiply in place by host": lambda x, host: x.mul_(host),
    "host in place by device": lambda x, host: host.mul_(x),
    "maximum": lambda x, host: torch.maximum(x, host),
    "item": lambda x, host: x[0].item() + host[1],
    "set data": lambda x, host: setattr(x, "data", host),
}


def within(device, f):
    with torch.device(device):
        return f()


def loaded(x, host):
    layer = torch.nn.Linear(4, 1, bias=False, device=x.device)
    layer.load_state_dict({"weight": host[None]})
    return then(layer.weight, host)


ITEM_3 = "item 3: without a heap, device and host are one"
# fmt: off
AS_ONE = [
    "cpu", "to cpu", "host to device", "host to like", "numpy", "numpy force", "np.asarray", "add",
    "add to a number", "index host by device", "cat", "stack", "where", "embedding",
    "out on the host", "equal", "allclose", "as_tensor to device", "new_zeros of host",
    "no device named", "module", "multiply in place by host", "host in place by device", "maximum",
]
# fmt: on
table("eager", eagerly, EAGER, unfaithful=dict.fromkeys(AS_ONE, ITEM_3))
