"""How much memory the graphs of several buckets take, by the way in which they share a pool or do not.

Works on both backends: the emulator hands out memory by the caching allocator's own rules, so its sizes are
the GPU's, but for two things that it lacks: cuBLAS's workspaces, and the driver's memory for a graph itself.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from .. import graphs

# strategy -> (largest bucket first, one pool for all, a new capture stream for each bucket)
STRATEGIES = {
    "private": (False, False, False),
    "stream-per-bucket": (False, True, True),
    "ascending": (False, True, False),
    "descending": (True, True, False),
}


@dataclass(frozen=True)
class BucketCapture:
    """One bucket's capture. ``pool_growth``: bytes that its pool took; ``graph_bytes``: by how many bytes the
    device's free memory fell, with the driver's own for the graph (None when emulated); ``ms`` it took."""

    batch: int
    pool_growth: int
    graph_bytes: int | None
    ms: float


@dataclass(frozen=True)
class PoolSizes:
    """The captures of one strategy in order, and bytes of all their pools: ``reserved``, of which
    ``workspaces`` are cuBLAS's (0 when emulated) and ``outputs`` are in blocks of live outputs."""

    strategy: str
    captures: tuple[BucketCapture, ...]
    reserved: int
    workspaces: int
    outputs: int

    @property
    def without_workspaces(self) -> int:
        """Bytes that the captured tensors account for: what the emulator predicts."""
        return self.reserved - self.workspaces


def pool_sizes(step_of: Callable[[int], Callable], buckets: Iterable[int], strategy: str) -> PoolSizes:
    """Captures ``step_of(bucket)`` for every bucket, outputs kept, and says what the pools took.

    On a GPU each step is warmed up first. There the figures are a fresh process's only if this runs in one:
    streams that captured a product before have their workspace already. ValueError for a strategy that is
    not in ``STRATEGIES``.
    """
    if strategy not in STRATEGIES:
        raise ValueError(f"strategy is {strategy!r}; expected one of {', '.join(STRATEGIES)}")
    largest_first, shared, new_streams = STRATEGIES[strategy]
    cuda, pool = graphs.cuda, graphs.cuda.graph_pool_handle()
    pools, kept, outputs, captures = [], [], [], []
    for batch in sorted(buckets, reverse=largest_first):
        step = step_of(batch)
        if graphs.backend == "cuda":  # the emulator has nothing to warm up
            graphs.warm_up(step)
        if not shared or not pools:
            pool = cuda.graph_pool_handle()
            pools.append(pool)
        before, free, start = graphs.pool_bytes(pool), graphs.free_bytes(), time.perf_counter()
        graph = cuda.CUDAGraph()
        with cuda.graph(graph, pool=pool, stream=cuda.Stream() if new_streams else None):
            outputs.append(step())
        ms = (time.perf_counter() - start) * 1e3
        kept.append(graph)
        growth, fall = graphs.pool_bytes(pool) - before, None if free is None else free - graphs.free_bytes()
        captures.append(BucketCapture(batch, growth, fall, ms))
    live = _live_bytes(pools)
    outputs.clear()
    gc.collect()
    workspaces = _live_bytes(pools)  # what stays live when no output does
    reserved = sum(map(graphs.pool_bytes, pools))
    return PoolSizes(strategy, tuple(captures), reserved, workspaces, live - workspaces)


def _live_bytes(pools) -> int:
    return sum(segment.live for pool in pools for segment in graphs.pool_map(pool))
