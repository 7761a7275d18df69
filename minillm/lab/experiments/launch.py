"""Lesson 01: what a kernel launch costs, and what a decode step pays for a thousand of them.

Every function here runs on a CUDA GPU only, and returns numbers that survive JSON.
"""

from __future__ import annotations

import statistics
import time

import torch

from ...config import ModelConfig, default_dtype
from ...graphs import cuda, warm_up
from ...model import Transformer
from ..decode_setup import decode_step
from ..devices import device_named
from ..fit import fits
from ..profile import profile
from ..roofline import bandwidth_floor_us
from ..timing import measure
from . import DoesNotFit, experiment

CHAIN = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000)
BATCHES = (1, 8, 64, 256)
CONTEXT, MAX_CONTEXT = 400, 512  # tokens; the plain attention reads the whole width of its block tables


def submit_us(call, calls: int = 500, repeats: int = 9) -> float:
    """µs of CPU that one ``call`` takes when nothing waits: median over repeats of the mean over calls."""
    per_call = []
    for _ in range(repeats + 1):  # the first repeat warms up and is dropped
        torch.cuda.synchronize()
        start = time.perf_counter_ns()
        for _ in range(calls):
            call()
        per_call.append((time.perf_counter_ns() - start) / 1e3 / calls)
    torch.cuda.synchronize()
    return statistics.median(per_call[1:])


def captured(fn) -> torch.cuda.CUDAGraph:
    """``fn`` as a CUDA graph, warmed up first."""
    warm_up(fn)
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        fn()
    return graph


@experiment("launch/one-kernel", claim="C1", uses=[submit_us], own_process=True)
def one_kernel() -> dict:
    """One ``add_`` on 1,024 floats: µs of CPU to submit, of GPU to run, and until the result is there."""
    x = torch.zeros(1024, device="cuda")
    submit = submit_us(lambda: x.add_(1))
    wall = measure(lambda: x.add_(1), warmup=20, repeats=200).wall_us.median
    seen = profile(lambda: [x.add_(1) for _ in range(50)])  # last, since the profiler slows launches down
    return {"submit_us": submit, "kernel_us": statistics.median(seen.durations_us), "wall_us": wall}


@experiment("launch/unsynchronised")
def unsynchronised() -> dict:
    """An 8192 × 8192 product timed by the host's clock, without and with ``synchronize``, and by events."""
    a = torch.randn(8192, 8192, device="cuda", dtype=default_dtype("cuda"))
    timing = measure(lambda: a @ a, warmup=5, repeats=20)
    return {
        "host_us": timing.submit_us.median,
        "synchronised_us": timing.wall_us.median,
        "events_us": timing.gpu_us.median,
    }


@experiment("launch/chain", claim="C1", uses=[captured, CHAIN])
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
    with torch.inference_mode():
        return {
            "python": submit_us(lambda: None),
            "launch": submit_us(lambda: torch.cuda._sleep(0)),
            "dispatcher": submit_us(lambda: x.neg_()),
            "allocator": submit_us(lambda: x.neg()),
            "module": submit_us(lambda: module(x)),
        }


def need(preset: str, batch: int) -> None:
    """Refuse a shape that this GPU cannot hold: a claim is never tested on another shape."""
    if not fits(preset, batch, MAX_CONTEXT):
        raise DoesNotFit(f"{preset} at batch {batch} does not fit this GPU's free memory")


@experiment(
    "launch/timeline/{preset}/B={batch}", claim="C2", uses=[need, captured, decode_step], own_process=True
)
def timeline(preset: str, batch: int) -> dict:
    """One decode step on the profiler's timeline, eager and as a graph; and µs of each without profiler."""
    need(preset, batch)
    step = decode_step(preset, batch)
    graph = captured(step)
    eager, replay = measure(step, repeats=7), measure(graph.replay, repeats=7)
    times = {
        "eager_us": eager.wall_us.median,
        "graph_us": replay.wall_us.median,
        "graph_submit_us": replay.submit_us.median,
    }
    return {**times, "eager": profile(step).to_json(), "graph": profile(graph.replay).to_json()}


def step_times(step) -> dict:
    """One decode step eager and as a graph: medians and interquartile ranges, µs."""
    eager, replay = measure(step, repeats=7), measure(captured(step).replay, repeats=7)
    return {
        "submit_us": eager.submit_us.median,
        "wall_us": eager.wall_us.median,
        "wall_iqr_us": eager.wall_us.iqr,
        "graph_submit_us": replay.submit_us.median,
        "graph_us": replay.wall_us.median,
        "graph_iqr_us": replay.wall_us.iqr,
    }


@experiment(
    "launch/batch-sweep/{preset}",
    claim="C11",
    uses=[need, step_times, captured, decode_step, BATCHES],
    own_process=True,
)
def batch_sweep(preset: str) -> dict:
    """A decode step (context 400, block tables 512 wide) over batch sizes, as far as they fit.

    Everything is timed first and profiled afterwards, since a process that has used the profiler
    launches more slowly ever after. ``floor_us`` is bytes ÷ the datasheet's bandwidth at that batch, or
    None for a GPU that is not in `lab.devices`.
    """
    need(preset, BATCHES[0])
    batches = [batch for batch in BATCHES if fits(preset, batch, MAX_CONTEXT)]
    card, config = device_named(torch.cuda.get_device_name()), ModelConfig.preset(preset)
    model = Transformer(config)
    rows = [{"batch": batch, **step_times(decode_step(preset, batch, model=model))} for batch in batches]
    for row in rows:
        seen = profile(decode_step(preset, row["batch"], model=model))
        row |= {"busy_us": seen.busy_us, "kernels": len(seen.kernels)}
        row["floor_us"] = card and bandwidth_floor_us(config, row["batch"], CONTEXT, card.bandwidth_gb_per_s)
    return {"rows": rows}


@experiment("launch/bandwidth")
def bandwidth() -> dict:
    """GB/s that a device-to-device copy moves, bytes read plus bytes written."""
    size = min(4 << 30, torch.cuda.mem_get_info()[0] // 8)
    source = torch.empty(size, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    timing = measure(lambda: target.copy_(source), warmup=3, repeats=20)
    return {"bytes": 2 * size, "copy_gb_per_s": 2 * size / timing.gpu_us.median / 1e3}
