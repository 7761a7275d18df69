"""The device's side of the engine: the running batch in static buffers, and the step that moves it on."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import torch

from ..kv_cache import PagedKVCache
from ..model import Transformer
from ..prompts import Chunk, PackedPrompts
from ..upload import upload
from .advance import greedy_step, sampling_step
from .bucketed import BucketedDecoder
from .buffers import NOTHING
from .request import Request
from .sampling import greedy, sample
from .tables import BlockTables
from .tally import Tally


class DeviceBatch:
    """A row for each running request. Nothing here waits for the device or reads a value from it.

    ``ahead``: how many steps may be underway when the next one is launched.

    Two sets of graphs share buffers, pool and stream: greedy steps, and steps that can draw tokens, which
    cost a few kernels more. Random numbers come from a generator of its own, seeded with ``seed``.
    """

    def __init__(
        self,
        model: Transformer,
        kv: PagedKVCache,
        max_batch: int,
        max_context: int,
        ahead: int,
        seed: int,
        buckets: Iterable[int] | None,
        widths: Iterable[int] | None,
    ):
        self.model, self.kv, self.seed = model, kv, seed
        self.generator = torch.Generator(kv.device).manual_seed(seed)
        ladders = {"buckets": buckets and tuple(buckets), "widths": widths and tuple(widths)}
        steps = {
            "greedy": partial(greedy_step, model, kv),
            "sampling": partial(sampling_step, model, kv, self.generator),
        }
        sizes = (model, kv, max_batch, max_context)
        self.greedy = BucketedDecoder(*sizes, step=steps["greedy"], **ladders)
        shared = {name: getattr(self.greedy, name) for name in ("buffers", "pool", "stream")}
        self.sampling = BucketedDecoder(
            *sizes, step=steps["sampling"], generators=(self.generator,), **ladders, **shared
        )
        self.decoders, self.buffers = (self.greedy, self.sampling), self.greedy.buffers
        self.tables = BlockTables(self.buffers.inputs.block_tables, underway=ahead + 1)
        self._needs: tuple[BucketedDecoder, int] | None = None  # of a step; None: the rows have changed

    def capture(self, greedy: bool, sampling: bool) -> None:
        """Capture the graphs that are wanted. Random numbers then start from the seed."""
        for decoder, wanted in ((self.greedy, greedy), (self.sampling, sampling)):
            if wanted:
                decoder.pool = self.greedy.pool  # which a failed capture has made anew
                decoder.capture()
            else:
                decoder.why_eager = "no graphs were asked for"
        self.generator.manual_seed(self.seed)

    @property
    def mode(self) -> str:
        """ "graphs", or what runs eagerly, and why."""
        if why := self.greedy.why_eager:
            return f"eager: {why}"
        why = self.sampling.why_eager
        return f"graphs, but eager with a temperature: {why}" if why else "graphs"

    def reset_tally(self) -> None:
        """Count steps from zero."""
        for decoder in self.decoders:
            decoder.tally = Tally()

    def step(self, running: list[Request]) -> torch.Tensor:
        """One decode step of the first ``len(running)`` rows; returns the tokens [max_batch] int64."""
        if self._needs is None:
            drawn = any(request.sampling.temperature for request in running)
            self._needs = (
                self.sampling if drawn else self.greedy,
                max(len(request.blocks) for request in running),
            )
        self.tables.upload()
        decoder, blocks = self._needs
        decoder.run(len(running), blocks)
        return self.buffers.tokens

    def prefill(self, chunks: list[tuple[Request, int]]) -> torch.Tensor:
        """The next tokens of each request's prompt, so many, packed; logits [S, vocab] after the last."""
        parts = [Chunk(r.known[r.prefilled :][:count], r.blocks, r.prefilled) for r, count in chunks]
        return self.model.prefill_packed(PackedPrompts.pack(parts, self.kv), self.kv)

    def choose(self, logits: torch.Tensor, places: list[int], requests: tuple[Request, ...]) -> torch.Tensor:
        """The first token of each request after its prefill: [S] int64. Its logits are at its place."""
        logits = logits.index_select(0, upload(places, torch.int64, logits.device))
        temperature = [request.sampling.temperature for request in requests]
        if not any(temperature):
            return greedy(logits)
        temperatures = upload(temperature, torch.float32, logits.device)
        top_k = upload([request.sampling.top_k or 0 for request in requests], torch.int64, logits.device)
        return sample(logits, temperatures, top_k, self.generator)

    def join(self, first_row: int, requests: tuple[Request, ...], tokens: torch.Tensor) -> None:
        """Write ``requests`` into the rows from ``first_row`` on; ``tokens`` [S] int64 are their newest."""
        stop = upload([request.stop for request in requests], torch.int64, tokens.device)
        left = [request.limit - request.length for request in requests]
        values = {
            "token_ids": tokens,
            # Of one that may produce no more the token is not fed in: its place may lie behind every table.
            "positions": [r.length - 1 if more else 0 for r, more in zip(requests, left, strict=True)],
            "slot_mapping": [0] * len(requests),  # the step finds it
            "context_lens": [request.length for request in requests],
            "remaining": upload(left, torch.int64, tokens.device) * (tokens != stop),
            "stop_token": stop,
            "temperature": [request.sampling.temperature for request in requests],
            "top_k": [request.sampling.top_k or 0 for request in requests],
        }
        rows = range(first_row, first_row + len(requests))
        for row, request in zip(rows, requests, strict=True):
            self.tables.set_row(row, request.blocks)
        self.buffers.write(list(rows), values)
        self._needs = None

    def grow(self, row: int, column: int, block: int) -> None:
        """The row's request was given a block, for this column of its table."""
        self.tables.set_block(row, column, block)
        if self._needs is not None and column >= self._needs[1]:
            self._needs = None

    def follow(self, moves: list[tuple[int, int]]) -> None:
        """Give rows up, in the order of ``moves``: the row that moves takes the place of one that left."""
        if moves:
            self._needs = None
        for source, target in moves:
            self.tables.move_row(source, target)
            if source != target:
                self.buffers.move(source, target)
            self.buffers.pad(source, source + 1)
        moves.clear()

    def clear(self) -> None:
        """Make every row padding."""
        self._needs = None
        self.tables.clear()
        self.buffers.pad(0)
        self.buffers.tokens.fill_(NOTHING)
