"""Lesson 01: what a decode step pays for its launches: its timeline, and its time over batch sizes.

Every function here runs on a CUDA GPU only, and returns numbers that survive JSON.
"""

from __future__ import annotations

import torch

from ...config import ModelConfig
from ...model import Transformer
from ..decode_setup import decode_step
from ..devices import device_named
from ..fit import fits
from ..profile import profile
from ..roofline import bandwidth_floor_us
from ..timing import measure
from . import DoesNotFit, experiment
from .launch import captured

BATCHES = (1, 8, 32, 64, 128, 256)
CONTEXT, MAX_CONTEXT = 400, 512  # tokens; the plain attention reads the whole width of its block tables


def need(preset: str, batch: int) -> None:
    """Refuse a shape that this GPU cannot hold: a claim is never tested on another shape."""
    if not fits(preset, batch, MAX_CONTEXT):
        raise DoesNotFit(f"{preset} at batch {batch} does not fit this GPU's free memory")


@experiment(
    "step/timeline/{preset}/B={batch}", claim="C2", uses=[need, captured, decode_step], own_process=True
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
    "step/batch-sweep/{preset}",
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
