"""What a packed prefill reads: the tokens of several prompts, one prompt behind the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch

from .attention import context_slots
from .config import ModelConfig
from .kv_cache import PagedKVCache
from .upload import upload
from .validation import check_context, check_ids, check_table


class Chunk(NamedTuple):
    """Some tokens of one prompt, those from position ``start`` on, and the sequence's block table."""

    token_ids: list[int]
    block_table: list[int]
    start: int = 0


@dataclass(eq=False)
class PackedPrompts:
    """The N tokens of S chunks without padding between them. Chunk s has T_s tokens, Q is the largest T_s."""

    token_ids: torch.Tensor  # [N] int64
    positions: torch.Tensor  # [N] int64: where in its sequence a token stands
    slot_mapping: torch.Tensor  # [N] int64: where its key and value go
    block_tables: torch.Tensor  # [S, max_blocks] int32, filled up with block 0
    context_lens: torch.Tensor  # [S] int32: tokens of a sequence, those of its chunk included
    queries: torch.Tensor  # [S · Q] int64: which token is behind each query; a short chunk repeats its last
    tokens: torch.Tensor  # [N] int64: which query each token is
    last: torch.Tensor  # [S] int64: the last token of each chunk

    @staticmethod
    def pack(
        chunks: list[Chunk],
        kv: PagedKVCache,
        config: ModelConfig | None = None,
    ) -> PackedPrompts:
        """The chunks, checked on the host and put on the cache's device, without waiting for it.

        What is before a chunk's ``start`` must be in the cache already. Raises ValueError or TypeError,
        naming the chunk, for no chunk at all, an empty one, a token outside the vocabulary of ``config``, a
        context over its maximum, too few blocks, or a block that does not exist or stands twice.
        """
        if not chunks:
            raise ValueError("no chunk to pack; expected one or more")
        block_size, longest = kv.block_size, max(len(chunk.token_ids) for chunk in chunks)
        ids, positions, slots, lengths, queries, tokens, last = [], [], [], [], [], [], []
        for at, (chunk_ids, table, start) in enumerate(chunks):
            who, count, first = f"chunk {at}", len(chunk_ids), len(ids)
            if start < 0 or not count:
                raise ValueError(
                    f"{who}: {count} tokens from position {start}; expected 1 or more, from 0 on"
                )
            check_ids(f"{who}: token", chunk_ids, config and config.vocab)
            check_context(who, start + count, len(table), block_size, config and config.max_context)
            check_table(who, table, start + count, block_size, kv.num_blocks)
            ids += chunk_ids
            positions += range(start, start + count)
            slots += [
                table[place // block_size] * block_size + place % block_size
                for place in range(start, start + count)
            ]
            lengths.append(start + count)
            queries += [first + min(query, count - 1) for query in range(longest)]
            tokens += range(at * longest, at * longest + count)
            last.append(len(ids) - 1)
        used = [-(-length // block_size) for length in lengths]
        tables = [
            list(chunk.block_table[:count]) + [0] * (max(used) - count)
            for chunk, count in zip(chunks, used, strict=True)
        ]
        wide = [upload(values, torch.int64, kv.device) for values in (ids, positions, slots)]
        narrow = [upload(values, torch.int32, kv.device) for values in (tables, lengths)]
        places = [upload(values, torch.int64, kv.device) for values in (queries, tokens, last)]
        return PackedPrompts(*wide, *narrow, *places)

    def slots_and_mask(self, block_size: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The slots [S, context] int64 that each sequence reads, and the causal mask [S, 1, Q, context]."""
        slots, _ = context_slots(self.block_tables, self.context_lens, block_size)
        positions = self.positions.index_select(0, self.queries).view(len(self.last), -1)
        places = torch.arange(slots.shape[1], device=slots.device)
        return slots, (places <= positions[:, :, None])[:, None]
