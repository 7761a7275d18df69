"""A decode step as the engine captures it: where rows write, the model, a token each, and what they become.

No number of it ever goes to the host, so one step follows the other without a wait. A row that has ended
turns itself into a padding row; the host learns of it a step later, which does no harm.
"""

from __future__ import annotations

import torch

from ..kv_cache import PagedKVCache
from ..model import Transformer
from .buffers import NOTHING, StaticBuffers
from .sampling import greedy, sample


def logits_step(model: Transformer, kv: PagedKVCache, rows: StaticBuffers) -> None:
    """The model alone: the rows' logits, from inputs that somebody else fills in."""
    rows.logits.copy_(model.decode(rows.inputs, kv))


def greedy_step(model: Transformer, kv: PagedKVCache, rows: StaticBuffers) -> None:
    """A whole decode step, that leaves the rows ready for the next one: what the engine captures."""
    advance(rows, greedy(_logits(model, kv, rows)))


def sampling_step(
    model: Transformer, kv: PagedKVCache, generator: torch.Generator, rows: StaticBuffers
) -> None:
    """The same for rows of which some draw their tokens, with random numbers from ``generator``."""
    logits = _logits(model, kv, rows)
    advance(rows, sample(logits, rows.temperature, rows.top_k, generator))


def _logits(model: Transformer, kv: PagedKVCache, rows: StaticBuffers) -> torch.Tensor:
    find_slots(rows, kv.block_size)
    logits_step(model, kv, rows)
    return rows.logits


def find_slots(rows: StaticBuffers, block_size: int) -> None:
    """Each row's slot from position and block table; slot 0, in the null block, for rows that ended."""
    inputs = rows.inputs
    column = inputs.positions // block_size
    block = inputs.block_tables.gather(1, column[:, None]).squeeze(1)
    slot = block * block_size + inputs.positions % block_size
    inputs.slot_mapping.copy_(slot * (rows.remaining > 0))


def advance(rows: StaticBuffers, chosen: torch.Tensor) -> None:
    """Feed the ``chosen`` tokens [B] int64 back: each row goes on by one token, or becomes padding.

    A row ends with its stop token or with the last token that it may produce. Multiplying by 0 or 1 does
    what an ``if`` would do on the host.
    """
    inputs, alive = rows.inputs, rows.remaining > 0
    rows.tokens.copy_(torch.where(alive, chosen, NOTHING))
    goes_on = (rows.remaining > 1) & (chosen != rows.stop_token)
    rows.remaining.sub_(1).mul_(goes_on)
    inputs.token_ids.copy_(chosen * goes_on)
    inputs.positions.add_(1).mul_(goes_on)
    inputs.context_lens.mul_(goes_on).add_(1)
