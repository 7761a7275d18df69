"""A recital by hand: what a decode loop needs around the model, so that a lesson's cell holds the loop alone.

The reciter prefills eagerly and decodes through a graph that the lesson captured, rightly or wrongly. What it
should have written is known beforehand (`reciter.continuation`), so a mistake shows as a wrong character.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import torch

from ..graphs import cuda, device, warm_up
from ..inputs import DecodeInputs
from ..kv_cache import BlockAllocator, PagedKVCache
from ..model import Transformer
from ..reciter import continuation, tokenizer

NUM_BLOCKS, BLOCK_SIZE = 64, 16


@dataclass(eq=False)
class Row:
    """One request: its prompt, its tokens so far (the prompt's too), and the blocks that it owns."""

    prompt: str
    ids: list[int]
    blocks: list[int]


class Recital:
    """Requests that decode together, one row each, and the host's bookkeeping of them.

    Every prompt begins one of the reciter's texts. A request gets the blocks for its prompt and ``room``
    tokens more when it begins; the block freed last is given out first.
    """

    def __init__(self, model: Transformer, *prompts: str, room: int = 64):
        self.model, self.room = model, room
        weight = model.embedding.weight
        self.kv = PagedKVCache(model.config, NUM_BLOCKS, BLOCK_SIZE, device=device, dtype=weight.dtype)
        self.allocator = BlockAllocator(NUM_BLOCKS)
        self.rows: list[Row] = []
        for prompt in prompts:
            self.begin(prompt)

    @torch.no_grad()
    def begin(self, prompt: str) -> None:
        """Prefill ``prompt`` in a new last row, eagerly, and choose the first token behind it."""
        continuation(prompt)  # raises ValueError for what begins no text
        ids = tokenizer.encode(prompt)
        blocks = self.allocator.allocate(-(-(len(ids) + self.room) // BLOCK_SIZE))
        first = self.model.prefill(ids, self.kv, blocks).argmax().item()
        self.rows.append(Row(prompt, [*ids, first], blocks))

    def end(self, row: int = 0) -> None:
        """The request in ``row`` is done: its blocks are free, and the rows below move up."""
        self.allocator.free(self.rows.pop(row).blocks)

    def batch(self) -> DecodeInputs:
        """What the next decode step must read, in new tensors, the table as wide as the widest row needs."""
        return DecodeInputs.for_sequences(
            last_tokens=[row.ids[-1] for row in self.rows],
            block_tables=[row.blocks for row in self.rows],
            context_lens=[len(row.ids) for row in self.rows],
            block_size=BLOCK_SIZE,
            max_blocks=max(len(row.blocks) for row in self.rows),
            device=device,
        )

    def write(self, logits: torch.Tensor) -> None:
        """Give every row its most likely token of ``logits`` [B or more, vocab]. Waits for the device."""
        for row, token in zip(self.rows, logits.argmax(-1).tolist(), strict=False):  # False: padding rows
            row.ids.append(token)

    def text(self, row: int = 0) -> str:
        """What the row wrote behind its prompt, up to the first end."""
        written = self.rows[row].ids[len(self.rows[row].prompt) :]
        written = written[: written.index(tokenizer.end)] if tokenizer.end in written else written
        return tokenizer.decode(written)

    def right(self, row: int = 0) -> str:
        """What the row should have written in as many tokens: the text itself, not the model's doing."""
        one = self.rows[row]
        return continuation(one.prompt)[: len(one.ids) - len(one.prompt)]


def capture(step: Callable[[], torch.Tensor]) -> tuple:
    """(graph, output) of ``step()``, warmed up and captured as lesson 02 has it."""
    stream = _capture_stream()
    warm_up(step, stream=stream)
    graph = cuda.CUDAGraph()
    with cuda.graph(graph, stream=stream):
        output = step()
    return graph, output


@functools.cache
def _capture_stream():
    return cuda.Stream()  # one for all captures: cuBLAS keeps a workspace for each stream


def copy_rows(static: DecodeInputs, batch: DecodeInputs) -> None:
    """Copy ``batch`` into the first rows of ``static``, a narrower block table into its first columns."""
    for name, new in batch.tensors().items():
        rows = getattr(static, name)[: batch.batch]
        if name == "block_tables":
            rows = rows[:, : new.shape[1]]
        rows.copy_(new)


def stale(static: DecodeInputs, batch: DecodeInputs) -> dict[str, int]:
    """How many values of each static input are neither the batch's nor padding; names without any left out.

    A guard for debugging: it reads values, so it waits for the device.
    """
    wanted = DecodeInputs.padding(*static.block_tables.shape, device=device)
    copy_rows(wanted, batch)
    counts = {name: int((getattr(static, name) != right).sum()) for name, right in wanted.tensors().items()}
    return {name: count for name, count in counts.items() if count}


def agrees(step: Callable[[], torch.Tensor], graph, output: torch.Tensor) -> bool:
    """Whether a replay gives what ``step()`` gives eagerly on what the static inputs hold now.

    ``output`` is the replay's. Both write the same KV into the same slots, so neither disturbs the other.
    """
    graph.replay()
    replayed = output.clone()
    return torch.allclose(replayed.float(), step().float(), rtol=1e-2, atol=1e-2)


def recite(recital: Recital, static: DecodeInputs, graph, logits: torch.Tensor, steps: int = 40) -> None:
    """The right loop, for any number of rows that does not change: copy, replay, use the output at once."""
    for _ in range(steps):
        copy_rows(static, recital.batch())
        graph.replay()
        recital.write(logits)
