"""Lesson 02: what capturing, instantiating and replaying a graph cost, by the number of its nodes.

Every function here runs on a CUDA GPU only, and returns numbers that survive JSON.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable

import torch

from ...graphs import anatomy, cuda, device, warm_up
from ...graphs.anatomy.driver import CANNOT_READ
from ..decode_setup import decode_step
from ..timing import measure
from . import experiment
from .launch import MEASURED
from .step import MODEL, need

NODES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 4000)
# CUDA queues about 1,000 launches and then makes the CPU wait: in a longer chain a submit holds such waits.
FITS_THE_QUEUE = 500
CAPTURES = 5  # of each chain, of which the median counts


def do_nothing() -> None:
    """Launch a kernel that ends at once, through the thinnest binding there is."""
    torch.cuda._sleep(0)


def making_times(fn: Callable[[], object], captures: int = CAPTURES) -> tuple[dict, torch.cuda.CUDAGraph]:
    """µs of CPU that recording ``fn`` takes and that instantiating takes, and the last of the graphs.

    Without warming up, and without what ``with cuda.graph(...)`` does on entry (emptying caches).
    """
    side = cuda.Stream()
    warm_up(fn, stream=side)
    gc.collect()  # a graph that the collector finds within a capture would break that
    times: dict[str, list[float]] = {"capture_us": [], "instantiate_us": []}
    for _ in range(captures):
        graph = cuda.CUDAGraph(keep_graph=True)  # the one before goes here, for the same reason
        cuda.synchronize()
        with cuda.stream(side):
            begin = time.perf_counter_ns()
            graph.capture_begin()
            fn()
            graph.capture_end()
            captured = time.perf_counter_ns()
        graph.instantiate()
        times["instantiate_us"].append((time.perf_counter_ns() - captured) / 1e3)
        times["capture_us"].append((captured - begin) / 1e3)
    return {name: statistics.median(samples) for name, samples in times.items()}, graph


def chain(launch: Callable[[], object], n: int) -> Callable[[], None]:
    """A function that calls ``launch`` n times."""

    def run() -> None:
        for _ in range(n):
            launch()

    return run


@experiment(
    "capture/replay-cost",
    claim="C4",
    uses=[making_times, chain, do_nothing, NODES, FITS_THE_QUEUE, CAPTURES, *MEASURED],
)
def replay_cost() -> dict:
    """n dependent ``add_``s on 1,024 floats, launched one by one and as one graph; all in µs.

    ``eager_submit_us`` is None for a chain that CUDA's launch queue may not hold. ``gpu_us`` is from event
    to event around one replay, the launch's way to the GPU included; ``empty_gpu_us`` is the same of as
    many kernels that do nothing.
    """
    x = torch.zeros(1024, device=device)
    rows = []
    for n in NODES:
        run = chain(lambda: x.add_(1), n)
        making, graph = making_times(run)
        _, empty = making_times(chain(do_nothing, n), captures=1)
        eager, replay = measure(run, repeats=9), measure(graph.replay, repeats=25)
        row = {
            "nodes": n,
            "eager_submit_us": eager.submit_us.median if n <= FITS_THE_QUEUE else None,
            "eager_wall_us": eager.wall_us.median,
            "submit_us": replay.submit_us.median,
            "gpu_us": replay.gpu_us.median,
            "wall_us": replay.wall_us.median,
            "empty_gpu_us": measure(empty.replay, repeats=25).gpu_us.median,
        }
        rows.append(row | making)
    return {"rows": rows}


@experiment(
    "capture/step-cost/{preset}/B={batch}",
    claim="C23",
    uses=[making_times, *MODEL, *MEASURED],
    own_process=True,
)
def step_cost(preset: str, batch: int) -> dict:
    """What a decode step's graph costs to make and to replay; ``nodes`` is None where it cannot be read."""
    need(preset, batch)
    step = decode_step(preset, batch)
    making, graph = making_times(step, captures=3)
    eager, replay = measure(step, repeats=7), measure(graph.replay, repeats=15)
    try:
        nodes = len(anatomy(graph).nodes)
    except CANNOT_READ:
        nodes = None
    return {
        "nodes": nodes,
        **making,
        "eager_submit_us": eager.submit_us.median,
        "eager_wall_us": eager.wall_us.median,
        "submit_us": replay.submit_us.median,
        "gpu_us": replay.gpu_us.median,
        "wall_us": replay.wall_us.median,
    }
