"""The layers of a decode step, and ``out=``, views and in-place operations within a capture."""

import torch
import torch.nn.functional as F

from . import table
from .helpers import inside
from .operations import whole


def heads(x, n):
    """[1, n, 2, 2] from x."""
    return torch.stack([x.view(2, 2) * (i + 1) for i in range(n)])[None]


def attend(x, **options):
    q = heads(x, options.pop("q", 2))
    return F.scaled_dot_product_attention(q, heads(x, 2), heads(x, 2), **options)


LAYERS = {
    "embedding": lambda x: F.embedding(whole(x), x[:, None] * 2),
    "embedding padding_idx": lambda x: F.embedding(whole(x), x[:, None] * 2, padding_idx=0),
    "embedding max_norm": lambda x: F.embedding(whole(x), x[:, None] * 2, max_norm=1.0),
    "embedding_bag": lambda x: F.embedding_bag(whole(x).view(2, 2), x[:, None] * 2, mode="sum"),
    "attention": lambda x: attend(x),
    "attention causal": lambda x: attend(x, is_causal=True),
    "attention scale": lambda x: attend(x, scale=0.5),
    "attention bool mask": lambda x: attend(x, attn_mask=x.view(2, 2) < 3),
    "attention float mask": lambda x: attend(x, attn_mask=x.view(2, 2)),
    "attention gqa": lambda x: attend(x, q=4, enable_gqa=True),
    "attention host mask": lambda x: attend(x, attn_mask=torch.ones(2, 2, dtype=torch.bool)),
    "attention triu of ones": lambda x: attend(x, attn_mask=torch.ones(2, 2, device=x.device).tril() > 0),
    "matmul": lambda x: x.view(2, 2) @ x.view(2, 2),
    "linear": lambda x: F.linear(x, x.view(1, 4), x[:1]),
    "einsum": lambda x: torch.einsum("ij,kj->ik", x.view(2, 2), x.view(2, 2)),
    "bmm": lambda x: torch.bmm(x.view(1, 2, 2), x.view(1, 2, 2)),
    "rms_norm": lambda x: F.rms_norm(x, (4,)),
    "layer_norm": lambda x: F.layer_norm(x, (4,), x, x),
    "batch_norm training": lambda x: F.batch_norm(x.view(2, 2), None, None, training=True),
    "softmax of a mask": lambda x: x.masked_fill(x > 2, float("-inf")).softmax(0),
    "cross_entropy": lambda x: F.cross_entropy(x.view(2, 2), whole(x)[:2] % 2),
    "nll_loss ignore_index": lambda x: F.nll_loss(x.view(2, 2), whole(x)[:2] % 2, ignore_index=0),
    "rotary": lambda x: torch.cat([-x[2:], x[:2]]) * x.cos() + x * x.sin(),
    "swiglu": lambda x: F.silu(x[:2]) * x[2:],
    "gather last": lambda x: x.view(2, 2).gather(1, whole(x)[:2, None] % 2).squeeze(1),
    "argmax": lambda x: x.view(2, 2).argmax(-1),
    "finite": lambda x: torch.isfinite(x.log()).sum(),
    "nan_to_num": lambda x: x.log().nan_to_num(neginf=-9.0),
    "cast and back": lambda x: x.half().bfloat16().double().int(),
    "autocast": lambda x: autocast(x),
    "module with weights of ones": lambda x: linear_of_ones(x),
}


def autocast(x):
    with torch.autocast(x.device.type, dtype=torch.bfloat16, cache_enabled=False):
        y = x.view(2, 2) @ x.view(2, 2)
    return y.dtype == torch.bfloat16, y


def linear_of_ones(x):
    layer = torch.nn.Linear(2, 1, bias=False, device=x.device)
    torch.nn.init.ones_(layer.weight)
    return layer(x.view(2, 2)).detach()


table("layer", inside, LAYERS)
