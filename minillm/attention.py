"""Attention over a paged KV cache in plain PyTorch: gather a sequence's slots, then attend to them.

A slot is one token's place in the cache, slot = block × block_size + offset, so the cache can be read as one
long list of slots. The gather is the reference path, easy to read and easy to check; it reads as many slots
as the block table is wide, whatever the context, so real engines (and lesson 07) read the pages in place.
"""

from __future__ import annotations

import torch
from torch.nn import functional as F


def context_slots(
    block_tables: torch.Tensor, context_lens: torch.Tensor, block_size: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Which slots every sequence attends to: the same for all layers, so it is computed once a step.

    ``block_tables`` is [B, max_blocks], ``context_lens`` [B] counts tokens. Returns slots [B, max_context]
    int64 with max_context = max_blocks · block_size, and mask [B, 1, 1, max_context] bool, True where there
    is a token. The shapes follow from the width of the table and not from the lengths, so the step can be
    captured. Behind the last token a row repeats its own first slot: the mask alone would not do, since a
    masked NaN still turns the output into NaN (0 · NaN is NaN), and stale columns may name any block.
    """
    offsets = torch.arange(block_size, device=block_tables.device)
    slots = (block_tables.long()[:, :, None] * block_size + offsets).flatten(1)
    places = torch.arange(slots.shape[1], device=slots.device)
    mask = places < context_lens[:, None]
    slots = torch.where(mask, slots, slots[:, :1])
    return slots, mask[:, None, None, :]


def paged_attention(
    query: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    slots: torch.Tensor,
    mask: torch.Tensor,
) -> torch.Tensor:
    """Attention of N queries, those of each of B sequences together, to their sequence's slots.

    ``query`` is [N, heads, head_dim], the caches are those of one layer, [num_blocks, block_size, kv_heads,
    head_dim]; ``slots`` is [B, context] int64 and ``mask`` [B, 1, N / B, context] bool, True where a query
    may look. Returns [N, heads, head_dim]. A decode step has one query a sequence (N = B), prefill has B = 1.
    """
    batch, context = slots.shape
    tokens, heads, head_dim = query.shape
    every_slot = slots.flatten()

    def gather(cache: torch.Tensor) -> torch.Tensor:  # [B, kv_heads, context, head_dim]
        rows = cache.flatten(0, 1).index_select(0, every_slot)
        return rows.view(batch, context, -1, head_dim).transpose(1, 2)

    query = query.view(batch, tokens // batch, heads, head_dim).transpose(1, 2)
    attended = F.scaled_dot_product_attention(
        query, gather(key_cache), gather(value_cache), attn_mask=mask, enable_gqa=True
    )
    return attended.transpose(1, 2).reshape(tokens, heads, head_dim)
