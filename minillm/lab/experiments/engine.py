"""Lesson 06: what graphs gain when requests are served, and what a step costs beside its graph."""

from __future__ import annotations

from dataclasses import asdict

from ... import attention, decoder_layer, layers
from ... import model as model_file
from ...config import ModelConfig
from ...engine import (
    advance,
    bucketed,
    buffers,
    core,
    device_batch,
    ladder,
    outbox,
    sampling,
    scheduler,
    tables,
)
from ...model import Transformer
from .. import serving
from .. import step_cost as step_cost_file
from ..fit import fits
from ..serving import MAX_CONTEXT, REQUESTS, requests_of, serve, serving_engine
from ..step_cost import step_cost
from . import DoesNotFit, experiment

ROUNDS = 2
MODEL = (model_file, decoder_layer, layers, attention)
ENGINE = (advance, bucketed, buffers, core, device_batch, ladder, outbox, sampling, scheduler, tables)


def need(preset: str, batch: int) -> None:
    """Refuse a shape that this GPU cannot hold: a claim is never tested on another shape."""
    if not fits(preset, batch, MAX_CONTEXT):
        raise DoesNotFit(f"{preset} with {batch} requests does not fit this GPU's free memory")


@experiment(
    "engine/throughput/{preset}/rows={rows}",
    claim="C13",
    uses=[*MODEL, *ENGINE, serving, ROUNDS],
    own_process=True,
)
def throughput(preset: str, rows: int) -> dict:
    """64 requests, ``rows`` of them at a time, served by the same engine eagerly and with graphs, in turn.

    Of each the faster round.
    """
    need(preset, rows)
    config, model = ModelConfig.preset(preset), Transformer(ModelConfig.preset(preset))
    requests = requests_of(config.vocab)
    engines = {use: serving_engine(model, rows, use_graphs=use) for use in (False, True)}
    rounds: dict[bool, list[dict]] = {False: [], True: []}
    for engine in engines.values():  # the first run of a shape loads kernels
        serve(engine, [(prompt, 20) for prompt, _ in requests])
    for _ in range(ROUNDS):
        for use, engine in engines.items():
            rounds[use].append(serve(engine, requests))
    eager, graph = (min(rounds[use], key=lambda it: it["seconds"]) for use in (False, True))
    return {"requests": REQUESTS, "rows": rows, "eager": eager, "graph": graph}


@experiment(
    "engine/step-cost/{preset}/B={batch}", uses=[*MODEL, *ENGINE, serving, step_cost_file], own_process=True
)
def cost_of_a_step(preset: str, batch: int) -> dict:
    """What a steady decode step costs beside its graph: `lab.step_cost.StepCost`."""
    need(preset, batch)
    config = ModelConfig.preset(preset)
    engine = serving_engine(Transformer(config), batch, use_graphs=True)
    return asdict(step_cost(engine, requests_of(config.vocab, batch)))
