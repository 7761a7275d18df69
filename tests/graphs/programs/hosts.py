"""Between the CPU and the GPU inside a capture: what waits, what copies, what is frozen, what is fine."""

import copy
import io
import math
import pickle

import numpy as np
import torch

from . import table
from .helpers import inside

WAITS = {
    "item": lambda x: x.sum().item(),
    "float": lambda x: float(x[0]),
    "int": lambda x: int(x[0]),
    "bool": lambda x: bool(x[0]),
    "if": lambda x: x + 1 if x[0] > 0 else x - 1,
    "if of a whole tensor": lambda x: x + 1 if x > 0 else x - 1,
    "and": lambda x: x[0] and x[1],
    "not": lambda x: not x[0],
    "in": lambda x: 2.0 in x,
    "max of python": lambda x: max(x),
    "sum of python": lambda x: sum(x),
    "sorted": lambda x: sorted(x),
    "list": lambda x: list(x),
    "for row in": lambda x: [row * 2 for row in x],
    "len and shape": lambda x: x * len(x) + x.shape[0] + x.numel(),
    "equal": lambda x: torch.equal(x, x + 1),
    "x.equal": lambda x: x.equal(x),
    "allclose": lambda x: torch.allclose(x, x),
    "assert async": lambda x: torch._assert_async(x[0] > -1),
    "isfinite all": lambda x: x.isfinite().all(),
    "is_nonzero": lambda x: torch.is_nonzero(x[0]),
    "math.sqrt": lambda x: math.sqrt(x[0]),
    "math.isnan": lambda x: math.isnan(x[0]),
    "round": lambda x: round(x[0]),
    "range": lambda x: [x + i for i in range(int(x[2]))],
    "index by number": lambda x: [10, 20, 30, 40][x[1].long()],
    "multiply a list": lambda x: [0] * x[2].long(),
    "hash": lambda x: isinstance(hash(x), int),
    "str": lambda x: str(x),
    "repr": lambda x: repr(x),
    "f-string": lambda x: f"{x}",
    "f-string with a format": lambda x: f"{x[0]:.2f}",
    "print": lambda x: print(x, file=io.StringIO()),
    "print the shape": lambda x: print(x.shape, x.dtype, file=io.StringIO()),
    "arange of a tensor": lambda x: torch.arange(x[2].long(), device=x.device),
    "arange of an int": lambda x: torch.arange(3, device=x.device) + x[:3],
    "full of a tensor": lambda x: torch.full((2,), x[0], device=x.device),
    "full of a number": lambda x: torch.full((2,), 3.0, device=x.device),
    "linspace of tensors": lambda x: torch.linspace(x[3], x[0], 4),
    "fill_ with a tensor": lambda x: torch.zeros(2, device=x.device).fill_(x[0]),
    "clamp with tensors": lambda x: x.clamp(x[1], x[2]),
    "tensor of tensors": lambda x: torch.tensor([x[0], x[1]]),
    "stack of tensors": lambda x: torch.stack([x[0], x[1]]),
    "add with alpha": lambda x: x.add(x, alpha=2),
    "add with a tensor as alpha": lambda x: x.add(x, alpha=x[2]),
    "narrow at a tensor": lambda x: x.narrow(0, x[1].long(), 2),
    "view of a tensor's size": lambda x: x.view(x[1].long(), -1),
    "expand to a tensor's size": lambda x: x[:1].expand(x[2].long()),
    "split into tensor sizes": lambda x: x.split([x[1].long(), x[0].long()]),
    "tensor_split at a tensor": lambda x: x.tensor_split(x[1:3].long()),
    "manual_seed from a tensor": lambda x: torch.Generator().manual_seed(int(x[0])).initial_seed(),
    "numpy of a result": lambda x: (x + 1).numpy(force=True),
    "dlpack": lambda x: torch.from_dlpack(x) + 1,
    "version": lambda x: x._version,
    "data_ptr": lambda x: x.data_ptr() % 16,
    "is_contiguous": lambda x: x.view(2, 2).t().is_contiguous(),
}
table("waits", inside, WAITS)

COPIES = {
    "tolist": lambda x: x.tolist(),
    "cpu": lambda x: x.cpu(),
    "numpy": lambda x: x.numpy(),
    "cpu numpy": lambda x: x.cpu().numpy(),
    "np.asarray": lambda x: np.asarray(x),
    "add a numpy array": lambda x: x + np.ones(4, dtype=np.float32),
    "add a numpy number": lambda x: x + np.float32(2),
    "numpy number first": lambda x: np.float64(2) * x,
    "python number first": lambda x: 2 * x - 1 / (x + 1),
    "from_numpy": lambda x: torch.from_numpy(np.ones(4, dtype=np.float32)).sum(),
    "from_numpy to": lambda x: torch.from_numpy(np.ones(4, dtype=np.float32)).to(x.device),
    "as_tensor of a list": lambda x: torch.as_tensor([1.0], device=x.device),
    "as_tensor of a tensor": lambda x: torch.as_tensor(x, device=x.device) + 1,
    "asarray": lambda x: torch.asarray([1.0], device=x.device),
    "tensor on the device": lambda x: torch.tensor([1.0], device=x.device),
    "empty list on the device": lambda x: torch.tensor([], device=x.device),
    "number on the device": lambda x: torch.tensor(1.0, device=x.device),
    "tensor of a tensor": lambda x: torch.tensor(x),
    "new_tensor": lambda x: x.new_tensor([1.0]),
    "new_zeros": lambda x: x.new_zeros(2),
    "new_full": lambda x: x.new_full((2,), 7.0),
    "scalar_tensor": lambda x: torch.scalar_tensor(7.0, device=x.device) + x,
    "ones then to": lambda x: torch.ones(4).to(x.device),
    "arange then to": lambda x: torch.arange(4).to(x.device),
    "randn then to": lambda x: torch.randn(4).to(x.device),
    "zeros_like of a host tensor": lambda x: torch.zeros_like(torch.ones(2)).to(x.device),
    "to without copy": lambda x: x.to(x.device) + 1,
    "to like another": lambda x: torch.ones(4).to(x),
    "to a dtype": lambda x: x.to(torch.bfloat16).float(),
    "to device and dtype": lambda x: x.to(x.device, torch.float64),
    "type_as": lambda x: torch.arange(4).type_as(x),
    "host number": lambda x: x * torch.tensor(3.0),
    "host number first": lambda x: torch.tensor(3.0) - x,
    "host number computed": lambda x: x * (torch.tensor([3.0, 4.0]).sum() + torch.tensor(1)),
    "host number in place": lambda x: x.mul_(torch.tensor(3.0)),
    "host number of one element": lambda x: x * torch.tensor([3.0]),
    "host number in where": lambda x: torch.where(x > 1, x, torch.tensor(-1.0)),
    "host number in clamp": lambda x: x.clamp(max=torch.tensor(1.0)),
    "host number in lerp": lambda x: x.lerp(x + 1, torch.tensor(0.5)),
    "host number in masked_fill": lambda x: x.masked_fill(x > 1, torch.tensor(-1.0)),
    "host number in fill_": lambda x: x.fill_(torch.tensor(5.0)),
    "host number in maximum": lambda x: torch.maximum(x, torch.tensor(1.5)),
    "host number in pow": lambda x: torch.pow(torch.tensor(2.0), x),
    "host number in stack": lambda x: torch.stack([x[0], torch.tensor(1.0)]),
    "host vector": lambda x: x + torch.ones(4),
    "device number plus host vector": lambda x: x[0] + torch.ones(4),
    "host mask": lambda x: torch.where(torch.tensor([True, False, True, False]), x, 0.0),
    "host weights": lambda x: torch.nn.functional.linear(x, torch.ones(2, 4)),
    "host cat": lambda x: torch.cat([x, torch.ones(1)]),
    "host computed": lambda x: x[: int(torch.tensor([2, 1]).max())] * 2,
    "host printed": lambda x: x * len(str(torch.tensor([1, 2]))),
    "copy_ from host": lambda x: x.copy_(torch.ones(4)),
    "copy_ a host number": lambda x: x.copy_(torch.tensor(2.0)),
    "copy_ to host": lambda x: torch.zeros(4).copy_(x),
    "copy_ non_blocking": lambda x: x.copy_(torch.ones(4), non_blocking=True),
    "copy_ across dtypes": lambda x: torch.zeros(4, dtype=torch.int64, device=x.device).copy_(x),
    "copy.copy": lambda x: copy.copy(x) + 1,
    "deepcopy": lambda x: copy.deepcopy(x),
    "pickle": lambda x: len(pickle.dumps(x)) > 0,
    "torch.save": lambda x: torch.save(x, io.BytesIO()),
    "with torch.device zeros": lambda x: within(x.device, lambda: torch.zeros(4) + x),
    "with torch.device tensor": lambda x: within(x.device, lambda: torch.tensor([1.0]) + x),
    "with torch.device cpu": lambda x: within("cpu", lambda: x * int(torch.arange(4).sum())),
}


def within(device, f):
    with torch.device(device):
        return f()


ITEM_3 = "item 3, in a heap too: pickling needs no copy, a default device is the GPU"
DEFAULTS = ["pickle", "torch.save", "with torch.device cpu"]
table("copies", inside, COPIES, unfaithful=dict.fromkeys(DEFAULTS, ITEM_3))
