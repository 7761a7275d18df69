"""Mistakes that have nothing to do with graphs, made within a capture."""

import torch
import torch.nn.functional as F

from . import table
from .helpers import inside
from .layers import heads


def mistaken(op):
    """As ``inside``, but only the kind of the error counts: its words change with torch's version."""

    def run(cuda, device):
        outcome = inside(op)(cuda, device)
        return {k: v.partition(":")[0] if isinstance(v, str) else v for k, v in outcome.items()}

    return run


WORDS = {
    "broadcast": lambda x: x + x[:3],
    "matmul": lambda x: x.view(2, 2) @ x.view(1, 4),
    "copy_": lambda x: x.copy_(x[:3] * 1),
    "index": lambda x: x[7],
    "view": lambda x: x.view(3),
}
table("words", inside, WORDS)

MISTAKES = {
    "index out of range": lambda x: x[7],
    "view of another size": lambda x: x.view(3),
    "matmul of two dtypes": lambda x: x.view(2, 2).double() @ x.view(2, 2),
    "matmul of two shapes": lambda x: x.view(2, 2) @ x.view(1, 4),
    "no such name": lambda x: x.nothing,
    "broadcast": lambda x: x + x[:3],
    "broadcast in place": lambda x: (x[:3] * 1).add_(x),
    "copy_ of another shape": lambda x: x.copy_(x[:3] * 1),
    "cat of two ranks": lambda x: torch.cat([x, x.view(2, 2)]),
    "cat of two shapes": lambda x: torch.cat([x.view(2, 2), x.view(1, 4)]),
    "no such dimension": lambda x: x.sum(3),
    "float index": lambda x: x[x],
    "index_select by floats": lambda x: x.index_select(0, x),
    "expand": lambda x: x.expand(3),
    "argmax of nothing": lambda x: x[:0].argmax(),
    "add in place to ints": lambda x: x.long().add_(0.5),
    "softmax of ints": lambda x: x.long().softmax(0),
    "negative size": lambda x: torch.zeros(-1, device=x.device),
    "layer_norm of another shape": lambda x: F.layer_norm(x, (3,)),
    "attention of two head sizes": lambda x: F.scaled_dot_product_attention(
        heads(x, 2), heads(x, 2)[..., :1], x
    ),
    "reshape in place of a view": lambda x: x.t().view(2, 2).transpose(0, 1).view(4),
    "an argument too many": lambda x: torch.add(x, x, x, x),
    "two wheres": lambda x: torch.where(x, x, x),
    "topk beyond": lambda x: x.topk(9),
}
AT_REPLAY = ["matmul of two dtypes", "index_select by floats", "softmax of ints"]
ITEM_12 = "item 12: only a kernel finds it"
table("mistake", mistaken, MISTAKES, unfaithful=dict.fromkeys(AT_REPLAY, ITEM_12))
