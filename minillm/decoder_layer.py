"""One layer of the Transformer: attention over the paged KV cache, then the MLP.

The queries, keys and values of a layer are one product, as serving engines have them.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import nn

from .attention import paged_attention
from .config import ModelConfig
from .kv_cache import PagedKVCache
from .layers import RMSNorm, SwiGLU, apply_rope


class Step(NamedTuple):
    """What all layers of one step share: N tokens of B sequences."""

    cos: torch.Tensor  # [N, 1, head_dim / 2] float32
    sin: torch.Tensor  # [N, 1, head_dim / 2] float32
    slot_mapping: torch.Tensor  # [N] int64: the slots to write
    slots: torch.Tensor  # [B, context] int64: the slots to read
    mask: torch.Tensor  # [B, 1, Q, context] bool: which slots each query may look at; N is B · Q, unless
    # the prefill is packed and some of the B sequences have fewer tokens than Q:
    queries: torch.Tensor | None = None  # [B · Q] int64: the token of each query
    tokens: torch.Tensor | None = None  # [N] int64: the query of each token

    def attend(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        """Paged attention of ``query`` [N, heads, head_dim] over one layer's cache; as large as ``query``.

        Attention has equally many queries for every sequence; nothing else in a layer has.
        """
        if self.queries is None:
            return paged_attention(query, key, value, self.slots, self.mask)
        query = query.index_select(0, self.queries)
        attended = paged_attention(query, key, value, self.slots, self.mask)
        return attended.index_select(0, self.tokens)


class DecoderLayer(nn.Module):
    """Attention and MLP, each behind an RMSNorm, each added to what came in."""

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.config = config
        self.attention_norm = RMSNorm(config.hidden, config.norm_eps)
        qkv_heads = config.heads + 2 * config.kv_heads
        self.qkv = nn.Linear(config.hidden, qkv_heads * config.head_dim, bias=False)
        self.output = nn.Linear(config.heads * config.head_dim, config.hidden, bias=False)
        self.mlp_norm = RMSNorm(config.hidden, config.norm_eps)
        self.mlp = SwiGLU(config.hidden, config.ffn)

    def forward(self, hidden: torch.Tensor, step: Step, kv: PagedKVCache, layer: int) -> torch.Tensor:
        """[N, hidden] to [N, hidden]; writes this layer's keys and values of the N tokens into ``kv``."""
        heads, kv_heads = self.config.heads, self.config.kv_heads
        qkv = self.qkv(self.attention_norm(hidden)).view(len(hidden), -1, self.config.head_dim)
        query, key, value = qkv.split([heads, kv_heads, kv_heads], dim=1)
        query = apply_rope(query, step.cos, step.sin)
        key = apply_rope(key, step.cos, step.sin)
        # Written before it is read: a token also attends to itself.
        kv.write(layer, step.slot_mapping, key, value)
        attended = step.attend(query, kv.key[layer], kv.value[layer])
        hidden = hidden + self.output(attended.flatten(1))
        return hidden + self.mlp(self.mlp_norm(hidden))
