"""The static buffers of the engine: what a captured decode step reads and writes, one row a sequence.

They are made once, at the size of the largest batch, and never move. A graph for a smaller batch reads the
first rows of the same buffers, so what the host writes is there for whichever graph runs next.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ..inputs import BUFFERS, Buffer, DecodeInputs
from ..kv_cache import PagedKVCache
from ..upload import upload

# What choosing a token reads, a row each, beside the five tensors of a DecodeInputs.
CHOICE = {
    "remaining": Buffer(torch.int64, 0, "tokens that the row may still produce: with 0 it produces none"),
    "stop_token": Buffer(torch.int64, -1, "the token that ends the row: -1 is no token"),
    "temperature": Buffer(torch.float32, 0, "0 is greedy, so no random number matters"),
    "top_k": Buffer(torch.int64, 0, "0 is no limit"),
}
PADDING_CONTRACT = {**BUFFERS, **CHOICE}
NOTHING = -1  # in `tokens`: the row produced no token in this step


@dataclass(eq=False)
class StaticBuffers:
    """B rows. What a row that stands for no sequence holds is in ``PADDING_CONTRACT``, and why.

    ``logits`` and ``tokens`` are what a step leaves behind: the next step overwrites them.
    """

    inputs: DecodeInputs
    remaining: torch.Tensor  # [B] int64
    stop_token: torch.Tensor  # [B] int64
    temperature: torch.Tensor  # [B] float32
    top_k: torch.Tensor  # [B] int64
    logits: torch.Tensor  # [B, vocab], in the model's dtype
    tokens: torch.Tensor  # [B] int64: the token that each row produced, or NOTHING

    @staticmethod
    @torch.inference_mode(False)  # so that the tensors can be changed in place everywhere
    def padding(batch: int, max_blocks: int, vocab: int, kv: PagedKVCache) -> StaticBuffers:
        """Buffers of ``batch`` padding rows with block tables of ``max_blocks`` columns, beside the cache."""
        choice = {
            name: torch.full((batch,), buffer.padding, dtype=buffer.dtype, device=kv.device)
            for name, buffer in CHOICE.items()
        }
        return StaticBuffers(
            inputs=DecodeInputs.padding(batch, max_blocks, kv.device),
            **choice,
            logits=torch.zeros(batch, vocab, dtype=kv.dtype, device=kv.device),
            tokens=torch.full((batch,), NOTHING, dtype=torch.int64, device=kv.device),
        )

    def rows(self) -> dict[str, torch.Tensor]:
        """The tensors that the padding contract speaks of, by name."""
        return {**self.inputs.tensors(), **{name: getattr(self, name) for name in CHOICE}}

    def tensors(self) -> dict[str, torch.Tensor]:
        """All tensors by name."""
        return {**self.rows(), "logits": self.logits, "tokens": self.tokens}

    def first(self, batch: int, max_blocks: int) -> StaticBuffers:
        """Views of the first ``batch`` rows and ``max_blocks`` columns: the same memory, no copy."""
        inputs = {name: tensor[:batch] for name, tensor in self.inputs.tensors().items()}
        inputs["block_tables"] = inputs["block_tables"][:, :max_blocks]
        rest = {name: t[:batch] for name, t in self.tensors().items() if name not in BUFFERS}
        return StaticBuffers(inputs=DecodeInputs(**inputs), **rest)

    def load(self, inputs: DecodeInputs, bucket: int) -> None:
        """Copy ``inputs`` into the first rows, and make the rest of the first ``bucket`` rows padding.

        Nothing of an earlier, larger batch is left in those rows: neither rows nor columns of the table.
        """
        for name, source in inputs.tensors().items():
            target, padding = getattr(self.inputs, name)[:bucket], BUFFERS[name].padding
            if name == "block_tables":
                target[: inputs.batch, source.shape[1] :].fill_(padding)
                target[: inputs.batch, : source.shape[1]].copy_(source, non_blocking=True)
            else:
                target[: inputs.batch].copy_(source, non_blocking=True)
            target[inputs.batch :].fill_(padding)

    def write(self, rows: list[int], values: dict[str, list | torch.Tensor]) -> None:
        """Set ``values`` of some buffers: a number for each of ``rows``, in their order. Does not wait."""
        buffers, where = self.rows(), upload(rows, torch.int64, self.tokens.device)
        for name, new in values.items():
            if not isinstance(new, torch.Tensor):
                new = upload(new, PADDING_CONTRACT[name].dtype, where.device)
            buffers[name].index_copy_(0, where, new)

    def move(self, source: int, target: int) -> None:
        """Put what is in row ``source`` into row ``target``."""
        for buffer in self.rows().values():
            buffer[target].copy_(buffer[source])

    def pad(self, first: int, last: int | None = None) -> None:
        """Make the rows ``first`` … ``last`` − 1 (to the end, when left out) padding."""
        for name, buffer in self.rows().items():
            buffer[first:last].fill_(PADDING_CONTRACT[name].padding)
