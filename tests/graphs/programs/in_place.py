"""``out=``, views, and in-place operations within a capture."""

import torch

from . import table
from .helpers import inside
from .operations import whole


def chain(x):
    y = x.view(2, 2)
    y[0].mul_(2)
    y.t()[0].add_(10)
    return y.flatten() + x


def out_of(x, *size):
    return torch.full(size, -1.0, device=x.device)


PLACES = {
    "chain of views": chain,
    "add out": lambda x: torch.add(x, 1, out=out_of(x, 4)),
    "out is the input": lambda x: torch.add(x, 1, out=x),
    "out is a view": lambda x: torch.mul(x[:2], 3, out=x[2:]),
    "out too small": lambda x: torch.add(x, 1, out=out_of(x, 2)),
    "out too large": lambda x: torch.add(x, 1, out=out_of(x, 8)),
    "out empty": lambda x: torch.add(x, 1, out=torch.empty(0, device=x.device)),
    "out of another dtype": lambda x: torch.add(x, 1, out=torch.zeros(4, dtype=torch.int64, device=x.device)),
    "out on the host": lambda x: torch.add(x, 1, out=torch.zeros(4)),
    "matmul out": lambda x: torch.matmul(x.view(2, 2), x.view(2, 2), out=out_of(x, 2, 2)),
    "topk out": lambda x: torch.topk(x, 2, out=(out_of(x, 2), out_of(x, 2).long())),
    "sum out": lambda x: torch.sum(x, 0, out=out_of(x, 1)[0]),
    "cat out": lambda x: torch.cat([x, x], out=out_of(x, 8)),
    "index_select out": lambda x: torch.index_select(x, 0, whole(x), out=out_of(x, 4)),
    "resize_": lambda x: (x + 1).resize_(2),
    "resize_ larger": lambda x: (x + 1).resize_(8)[:4],
    "set_": lambda x: torch.empty(0, device=x.device).set_(x) + 1,
    "set_ into": lambda x: (x + 1).set_(x * 2),
    "data =": lambda x: assign_data(x),
    "detach in place": lambda x: x.detach().add_(1),
    "unsqueeze_": lambda x: (x + 1).unsqueeze_(0),
    "t_": lambda x: (x + 1).view(2, 2).t_(),
    "squeeze_": lambda x: (x[:1] + 1).squeeze_(),
    "zero_ a view": lambda x: x[1:3].zero_(),
    "add_ itself": lambda x: x.add_(x),
    "swap halves": lambda x: x.copy_(torch.cat([x[2:], x[:2]])),
    "shift in place": lambda x: x[1:].copy_(x[:-1].clone()),
    "expand then add": lambda x: x[:1].expand(4) + x,
    "as_strided": lambda x: torch.as_strided(x, (2, 2), (1, 1)) * 1,
    "contiguous of a transpose": lambda x: x.view(2, 2).t().contiguous(),
    "reshape that copies": lambda x: x.view(2, 2).t().reshape(4).add_(1),
    "reshape that does not": lambda x: x.view(2, 2).reshape(4).add_(1),
    "view of another dtype": lambda x: x.view(torch.int32) + 0,
    "unbind in place": lambda x: [row.add_(i) for i, row in enumerate(x.view(2, 2).unbind())],
    "split in place": lambda x: [part.add_(1) for part in x.split(3)],
    "chunk": lambda x: [part * 2 for part in x.chunk(2)],
    "foreach": lambda x: torch._foreach_add([x, x[:2]], 1.0),
    "foreach in place": lambda x: torch._foreach_add_([x, x[:2] * 1], 1.0),
    "+= on a slice": lambda x: x[:2].__iadd__(5),
    "lerp_": lambda x: x.lerp_(x + 10, 0.5),
    "empty is not a kernel": lambda x: torch.empty(4, device=x.device).copy_(x),
    "numel 0": lambda x: x[:0] + 1,
    "sum of numel 0": lambda x: x[:0].sum(),
}


def assign_data(x):
    y = x + 1
    y.data = x * 2
    return y


table("place", inside, PLACES)
