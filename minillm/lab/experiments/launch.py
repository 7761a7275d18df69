"""Lesson 01: what one launch costs, and where the cost lies.

Every function here runs on a CUDA GPU only, and returns numbers that survive JSON.
"""

from __future__ import annotations

import statistics

import torch

from ...config import default_dtype
from ...graphs import cuda, warm_up
from ..profile import profile, timeline_from_trace
from ..timing import Stat, measure, submit_us
from . import experiment

CHAIN = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000)
SIZES = tuple(2**k for k in (10, 16, 18, 20, 21, 22, 23, 24, 25, 26))  # floats

# What makes a record stale when it changes, besides an experiment's own code: the instruments.
MEASURED, PROFILED = (measure, Stat), (profile, timeline_from_trace)


def captured(fn) -> torch.cuda.CUDAGraph:
    """``fn`` as a CUDA graph, warmed up first."""
    warm_up(fn)
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        fn()
    return graph


@experiment("launch/one-kernel", claim="C1", uses=[submit_us, *MEASURED, *PROFILED], own_process=True)
def one_kernel() -> dict:
    """One ``add_`` on 1,024 floats: µs of CPU to submit, of GPU to run, and until the result is there."""
    x = torch.zeros(1024, device="cuda")
    submit = submit_us(lambda: x.add_(1))
    wall = measure(lambda: x.add_(1), warmup=20, repeats=200).wall_us.median
    seen = profile(lambda: [x.add_(1) for _ in range(50)])  # last, since the profiler slows launches down
    return {"submit_us": submit, "kernel_us": statistics.median(seen.durations_us), "wall_us": wall}


@experiment("launch/unsynchronised", uses=MEASURED)
def unsynchronised() -> dict:
    """An 8192 × 8192 product timed by the host's clock, without and with ``synchronize``, and by events."""
    a = torch.randn(8192, 8192, device="cuda", dtype=default_dtype("cuda"))
    timing = measure(lambda: a @ a, warmup=5, repeats=20)
    return {
        "host_us": timing.submit_us.median,
        "synchronised_us": timing.wall_us.median,
        "events_us": timing.gpu_us.median,
    }


@experiment("launch/chain", claim="C1", uses=[captured, CHAIN, *MEASURED])
def chain() -> dict:
    """n dependent ``add_``s on 1,024 floats, launched one by one and as one graph."""
    x = torch.zeros(1024, device="cuda")
    rows = {"kernels": [], "submit_us": [], "wall_us": [], "graph_submit_us": [], "graph_wall_us": []}
    for n in CHAIN:

        def run(n=n):
            for _ in range(n):
                x.add_(1)

        graph = captured(run)
        eager, replay = measure(run, repeats=15), measure(graph.replay, repeats=15)
        rows["kernels"].append(n)
        rows["submit_us"].append(eager.submit_us.median)
        rows["wall_us"].append(eager.wall_us.median)
        rows["graph_submit_us"].append(replay.submit_us.median)
        rows["graph_wall_us"].append(replay.wall_us.median)
    return rows


@experiment("launch/kernel-length", claim="C11", uses=[captured, SIZES, *MEASURED])
def kernel_length() -> dict:
    """100 ``add_``s on ever larger tensors, launched one by one and as a graph: µs for each of them.

    The graph's time is the GPU's own, gaps between nodes included, taken without a profiler.
    """
    rows = {"floats": [], "eager_us": [], "graph_us": []}
    for size in SIZES:
        x = torch.zeros(size, device="cuda")

        def run(x=x):
            for _ in range(100):
                x.add_(1)

        eager, replay = measure(run, repeats=9), measure(captured(run).replay, repeats=9)
        rows["floats"].append(size)
        rows["eager_us"].append(eager.wall_us.median / 100)
        rows["graph_us"].append(replay.wall_us.median / 100)
    return rows


class Negate(torch.nn.Module):
    """The thinnest module there is: one kernel."""

    def forward(self, x):
        return x.neg()


@experiment("launch/where", claim="C1", uses=[submit_us, Negate])
def where() -> dict:
    """The same tiny kernel reached through more and more of PyTorch: µs of CPU a call.

    ``torch.cuda._sleep`` is a binding that does nothing but launch one kernel; ``neg_`` adds the
    dispatcher and TensorIterator; ``neg`` adds the allocator; a module adds ``Module.__call__``.
    """
    x, module = torch.zeros(1024, device="cuda"), Negate()
    calls = {
        "python": lambda: None,
        "launch": lambda: torch.cuda._sleep(0),
        "dispatcher": lambda: x.neg_(),
        "allocator": lambda: x.neg(),
        "module": lambda: module(x),
    }
    # Round after round over all of them: a host that is slow for a while is slow for each.
    with torch.inference_mode():
        rounds = [{name: submit_us(call, repeats=2) for name, call in calls.items()} for _ in range(9)]
    return {name: statistics.median(one[name] for one in rounds) for name in calls}


@experiment("launch/bandwidth", uses=MEASURED)
def bandwidth() -> dict:
    """GB/s that a device-to-device copy moves, bytes read plus bytes written."""
    size = min(4 << 30, torch.cuda.mem_get_info()[0] // 8)
    source = torch.empty(size, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    timing = measure(lambda: target.copy_(source), warmup=3, repeats=20)
    return {"bytes": 2 * size, "copy_gb_per_s": 2 * size / timing.gpu_us.median / 1e3}
