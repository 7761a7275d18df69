"""What a decode step reads, as one bundle of tensors: the single place to look for "what must be static"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import torch

from .config import ModelConfig, default_device
from .validation import check_context, check_decode_inputs, check_ids, check_table

if TYPE_CHECKING:
    from .kv_cache import PagedKVCache


class Buffer(NamedTuple):
    """One tensor of a step: its dtype, what a row that stands for no sequence holds in it, and why that."""

    dtype: torch.dtype
    padding: int
    why: str


# The padding contract: a captured step has a fixed number of rows, so some may stand for no sequence.
BUFFERS = {
    "token_ids": Buffer(torch.int64, 0, "any token will do: the row's logits are thrown away"),
    "positions": Buffer(torch.int64, 0, "it is looked up in the RoPE tables, so it must exist there"),
    "slot_mapping": Buffer(
        torch.int64, 0, "the row writes its KV somewhere: slot 0 is in the null block, and -1 the last slot"
    ),
    "block_tables": Buffer(torch.int32, 0, "the row reads what it wrote: block 0 is the null block"),
    "context_lens": Buffer(torch.int32, 1, "attention to nothing is NaN, so the row attends to one token"),
}


@dataclass(eq=False)
class DecodeInputs:
    """Everything that a decode step reads besides weights and KV cache: B sequences, one token each.

    A captured step reads these very tensors at every replay, so they are what must be static: change them
    in place (``copy_``), never by assignment. The names are vLLM's, and so is the idea of pages:
    https://arxiv.org/abs/2309.06180
    """

    token_ids: torch.Tensor  # [B] int64: the token that each sequence feeds in
    positions: torch.Tensor  # [B] int64: where in its sequence that token stands, counted from 0
    slot_mapping: torch.Tensor  # [B] int64: where its key and value go: block × block_size + offset
    block_tables: torch.Tensor  # [B, max_blocks] int32: the blocks that each sequence owns, in order
    context_lens: torch.Tensor  # [B] int32: tokens of each sequence, the one of this step included

    @property
    def batch(self) -> int:
        """Number of rows, padding included."""
        return self.token_ids.shape[0]

    def tensors(self) -> dict[str, torch.Tensor]:
        """The five tensors by name, in the order above."""
        return {name: getattr(self, name) for name in BUFFERS}

    def validate(self, config: ModelConfig, kv: PagedKVCache) -> None:
        """Refuse inputs of the wrong kind: TypeError for a dtype, ValueError for a shape or a device.

        Looks at metadata only, so it never waits for the device, and cannot see a wrong value.
        """
        check_decode_inputs(self.tensors(), {name: it.dtype for name, it in BUFFERS.items()}, config, kv)

    @staticmethod
    @torch.inference_mode(False)  # so that the tensors can be changed in place everywhere
    def padding(batch: int, max_blocks: int, device: str | torch.device | None = None) -> DecodeInputs:
        """``batch`` rows that stand for no sequence, as ``BUFFERS`` has it, with tables of ``max_blocks``.

        Such a row writes to slot 0 and reads it back, so block 0 must be the null block, which no sequence
        owns.
        """
        device = device or default_device()
        shapes = {name: (batch, max_blocks) if name == "block_tables" else (batch,) for name in BUFFERS}
        return DecodeInputs(
            **{
                name: torch.full(shapes[name], buffer.padding, dtype=buffer.dtype, device=device)
                for name, buffer in BUFFERS.items()
            }
        )

    @staticmethod
    @torch.inference_mode(False)  # so that the tensors can be changed in place everywhere
    def for_sequences(
        last_tokens: list[int],
        block_tables: list[list[int]],
        context_lens: list[int],
        block_size: int,
        max_blocks: int,
        device: str | torch.device | None = None,
        config: ModelConfig | None = None,
        num_blocks: int | None = None,
    ) -> DecodeInputs:
        """Inputs of one decode step, built and checked on the host.

        ``last_tokens[i]`` is the token that sequence i feeds in, ``context_lens[i]`` its tokens including
        that one, ``block_tables[i]`` its blocks (more than it needs is fine), which are filled up with block
        0 to ``max_blocks`` columns. ``config`` has tokens and lengths checked, ``num_blocks`` the block ids.

        Raises ValueError, naming the row, when lists differ in length or are empty, a table is too short for
        its context or longer than ``max_blocks``, holds a block twice or one outside the cache, a token is
        outside the vocabulary, a context is longer than ``max_context``, or two rows would write to one slot.
        """
        if not last_tokens or not len(last_tokens) == len(block_tables) == len(context_lens):
            raise ValueError(
                f"{len(last_tokens)} tokens, {len(block_tables)} block tables, {len(context_lens)} lengths; "
                "expected one of each for every sequence, and at least one sequence"
            )
        written: dict[int, int] = {}  # slot -> row
        sequences = zip(last_tokens, block_tables, context_lens, strict=True)
        for row, (token, blocks, context) in enumerate(sequences):
            where = f"sequence {row}"
            check_ids(f"{where}: token", [token], config and config.vocab)
            check_ids(f"{where}: context length", [context])
            check_context(where, context, len(blocks), block_size, config and config.max_context)
            check_table(where, blocks, context, block_size, num_blocks)
            if len(blocks) > max_blocks:
                raise ValueError(
                    f"{where} has {len(blocks)} blocks; expected at most max_blocks, {max_blocks}"
                )
            slot = blocks[(context - 1) // block_size] * block_size + (context - 1) % block_size
            if slot in written:
                raise ValueError(f"{where} and sequence {written[slot]} would both write slot {slot}")
            written[slot] = row
        rows = {
            "token_ids": last_tokens,
            "positions": [context - 1 for context in context_lens],
            "slot_mapping": list(written),
            "block_tables": [list(blocks) + [0] * (max_blocks - len(blocks)) for blocks in block_tables],
            "context_lens": context_lens,
        }
        device = device or default_device()
        return DecodeInputs(
            **{n: torch.tensor(v, dtype=BUFFERS[n].dtype, device=device) for n, v in rows.items()}
        )
