"""Decode steps of any batch size from a few captured ones: a graph for every bucket, one pool for all."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable
from functools import partial

import torch

from .. import graphs
from ..inputs import DecodeInputs
from ..kv_cache import PagedKVCache
from ..model import Transformer
from .addresses import Addresses
from .advance import logits_step
from .buffers import StaticBuffers
from .capture_all import CaptureFailed, capture_all
from .ladder import batch_ladder, checked_ladder, rung, width_ladder
from .runner import GraphRunner
from .tally import NOT_CAPTURED, OVER_THE_TOP, Tally


class BucketedDecoder:
    """Decodes up to ``max_batch`` sequences of up to ``max_context`` tokens with captured graphs.

    A step of n rows runs in the smallest bucket that holds them; the rows behind them are padding
    (`buffers.PADDING_CONTRACT`), which writes to block 0 of ``kv``: allocate with ``BlockAllocator``'s null
    block. ``buckets`` are batch sizes, ``widths`` block-table widths in blocks; left out, both ladders reach
    their maximum. What is over the top of ladders that do not runs eagerly and is counted (``tally``), and
    so is everything after a capture that failed: ``why_eager`` says why.

    Every graph reads the same static ``buffers``, was captured on one stream into one pool, the largest
    first, and leaves its logits in ``buffers.logits``, so no graph's output pins the pool. ``step`` is what
    is captured, a function of the `StaticBuffers` of a size; left out, it is the model's decode alone.
    ``pool_bytes`` is what the pool has taken, ``device_bytes`` what the device has lost to the captures,
    the graphs themselves included (None when emulated), ``capture_seconds`` how long they took.
    """

    def __init__(
        self,
        model: Transformer,
        kv: PagedKVCache,
        max_batch: int,
        max_context: int | None = None,
        *,
        buckets: Iterable[int] | None = None,
        widths: Iterable[int] | None = None,
        step: Callable[[StaticBuffers], None] | None = None,
        buffers: StaticBuffers | None = None,
        pool=None,
        stream=None,
        generators: tuple = (),
    ):
        max_blocks = -(-(max_context or model.config.max_context) // kv.block_size)
        self.model, self.kv = model, kv
        self.buckets = checked_ladder("buckets", buckets or batch_ladder(max_batch), max_batch)
        self.widths = checked_ladder("widths", widths or width_ladder(max_blocks), max_blocks)
        self.buffers = buffers or StaticBuffers.padding(max_batch, max_blocks, model.config.vocab, kv)
        self.max_batch, self.max_blocks = max_batch, max_blocks
        self.pool = pool or graphs.cuda.graph_pool_handle()
        self.stream = stream or graphs.cuda.Stream()
        self.tally, self.why_eager = Tally(), "nothing was captured yet: call capture()"
        self.captured, self.pool_bytes, self.device_bytes, self.capture_seconds = 0, 0, None, 0.0
        self._step, self._generators = step or partial(logits_step, model, kv), generators
        self.runners: dict[tuple[int, int], GraphRunner] = {}
        self._addresses: Addresses | None = None

    def capture(self) -> None:
        """Capture every size, the largest first. All rows are made padding, so warming up harms no KV.

        It is all or none: after a capture that failed the decoder runs eagerly, and says so in a
        RuntimeWarning and in ``why_eager``.
        """
        sizes = [(batch, width) for batch in reversed(self.buckets) for width in reversed(self.widths)]
        self.runners.clear()
        self._addresses, self.captured = None, 0
        self.why_eager = "the capture was broken off: call capture() again"
        self.buffers.pad(0)
        start, free = time.perf_counter(), graphs.free_bytes()
        try:
            self.runners |= capture_all(sizes, self._captured)
        except CaptureFailed as error:
            self.pool = graphs.cuda.graph_pool_handle()  # the other one may still believe in its capture
            self.why_eager = str(error)
            warnings.warn(f"decoding eagerly: {error}", RuntimeWarning, stacklevel=2)
            return
        self.why_eager, self.captured = None, len(self.runners)
        self.capture_seconds = time.perf_counter() - start
        self.pool_bytes = graphs.pool_bytes(self.pool)
        self.device_bytes = None if free is None else free - graphs.free_bytes()
        self._addresses = Addresses(partial(_used, self.model, self.kv))

    def _captured(self, batch: int, width: int) -> GraphRunner:
        rows, step = self.buffers.first(batch, width), self._step
        with torch.inference_mode():
            return GraphRunner(
                lambda **_: step(rows),  # no `self`: a cycle would keep the graphs until gc runs
                rows.rows(),
                pool=self.pool,
                stream=self.stream,
                warm_ups=1,
                generators=self._generators,
            )

    def check_addresses(self) -> None:
        """RuntimeError naming weights or KV tensors that were replaced since the capture; see `Addresses`."""
        if self._addresses:
            self._addresses.check()

    def run(self, rows: int, blocks: int) -> tuple[int, int]:
        """One step of the first ``rows`` rows of ``buffers``, whose tables have at most ``blocks`` blocks.

        The rows behind them must be padding. Returns the (rows, blocks) that were computed: a captured
        size, or what ran eagerly, which is not padded. Does not wait for the device.
        """
        bucket, width = rung(rows, self.buckets), rung(blocks, self.widths)
        runner = self.runners.get((bucket, width))
        if runner is not None:
            runner.graph.replay()
            self.tally.replayed((bucket, width), rows)
            return bucket, width
        self.tally.fallbacks[OVER_THE_TOP if self.runners else NOT_CAPTURED] += 1
        self.run_eagerly(rows, width or self.max_blocks)
        return rows, width or self.max_blocks

    def run_eagerly(self, rows: int, blocks: int) -> None:
        """What a graph of that size does, without a graph."""
        with torch.inference_mode():
            self._step(self.buffers.first(rows, blocks))

    def decode(self, inputs: DecodeInputs) -> torch.Tensor:
        """Logits [n, vocab] of a decode step of n sequences: a view of ``buffers.logits``, which the next
        step overwrites. Raises as ``DecodeInputs.validate`` does, and ValueError for more than ``max_batch``
        rows or a wider table than ``max_context`` needs.
        """
        inputs.validate(self.model.config, self.kv)
        rows, blocks = inputs.block_tables.shape
        if rows > self.max_batch or blocks > self.max_blocks:
            raise ValueError(
                f"{rows} rows with tables of {blocks} blocks; expected at most {self.max_batch} rows and "
                f"{self.max_blocks} blocks: make the decoder with a larger max_batch or max_context"
            )
        self.buffers.load(inputs, rung(rows, self.buckets) or rows)
        self.run(rows, blocks)
        return self.buffers.logits[:rows]


def _used(model: Transformer, kv: PagedKVCache) -> dict[str, torch.Tensor]:
    return model.state_dict() | dict(model.named_buffers()) | kv.tensors()
