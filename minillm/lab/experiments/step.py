"""Lesson 01: what a decode step pays for its launches: its timeline, and its time over batch sizes.

Every function here runs on a CUDA GPU only, and returns numbers that survive JSON.
"""

from __future__ import annotations

import statistics

import torch

from ... import attention, decoder_layer, layers
from ... import model as model_file
from ...config import ModelConfig
from ...model import Transformer
from ..decode_setup import decode_step
from ..devices import device_named
from ..fit import fits
from ..profile import profile
from ..roofline import bandwidth_floor_us
from ..timing import measure
from . import DoesNotFit, experiment
from .launch import MEASURED, PROFILED, captured

BATCHES, ROUNDS = (1, 8, 32, 64, 128, 256), 3
CONTEXT, MAX_CONTEXT = 400, 512  # tokens; the plain attention reads the whole width of its block tables
MODEL = (model_file, decoder_layer, layers, attention, decode_step, CONTEXT, MAX_CONTEXT)  # what a step does


def need(preset: str, batch: int) -> None:
    """Refuse a shape that this GPU cannot hold: a claim is never tested on another shape."""
    if not fits(preset, batch, MAX_CONTEXT):
        raise DoesNotFit(f"{preset} at batch {batch} does not fit this GPU's free memory")


@experiment(
    "step/timeline/{preset}/B={batch}",
    claim="C2",
    uses=[captured, *MODEL, *MEASURED, *PROFILED],
    own_process=True,
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
    """One decode step eager and as a graph; µs."""
    eager, replay = measure(step, repeats=3), measure(captured(step).replay, repeats=3)
    return {
        "submit_us": eager.submit_us.median,
        "wall_us": eager.wall_us.median,
        "graph_submit_us": replay.submit_us.median,
        "graph_us": replay.wall_us.median,
    }


@experiment(
    "step/batch-sweep/{preset}",
    claim="C11",
    uses=[step_times, captured, BATCHES, ROUNDS, bandwidth_floor_us, *MODEL, *MEASURED, *PROFILED],
    own_process=True,
)
def batch_sweep(preset: str) -> dict:
    """A decode step (context 400, block tables 512 wide) over batch sizes, as far as they fit.

    Times are medians over rounds of medians. All of them are taken before the profiler runs, since a process
    that has used it launches more slowly ever after. ``floor_us`` is bytes ÷ the datasheet's bandwidth at
    that batch, or None for a GPU that is not in `lab.devices`.
    """
    need(preset, BATCHES[0])
    batches = [batch for batch in BATCHES if fits(preset, batch, MAX_CONTEXT)]
    card, config = device_named(torch.cuda.get_device_name()), ModelConfig.preset(preset)
    model = Transformer(config)
    # Round after round over all batches: a host that is slow for a while is slow for each of them.
    rounds = [[step_times(decode_step(preset, b, model=model)) for b in batches] for _ in range(ROUNDS)]
    rows = []
    for at, batch in enumerate(batches):
        times = {key: statistics.median(one[at][key] for one in rounds) for key in rounds[0][at]}
        seen = profile(decode_step(preset, batch, model=model))
        floor = card and bandwidth_floor_us(config, batch, CONTEXT, card.bandwidth_gb_per_s)
        used = {"busy_us": seen.busy_us, "kernels": len(seen.kernels)}
        rows.append({"batch": batch, **times, **used, "floor_us": floor})
    return {"rows": rows}
