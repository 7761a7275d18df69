"""The result of an experiment: measured here where there is a GPU, from a record where there is none."""

from __future__ import annotations

import gc
import json

from . import records
from .experiments import CannotMeasure, DoesNotFit, Experiment, find, source_hash
from .own_process import run_in_own_process
from .provenance import live_run, provenance
from .results import Origin, Result
from .timing import on_gpu

_live: dict[tuple[str, str], dict] = {}  # (name, source hash) -> what it gave in this process


def run(name: str, live: bool | None = None) -> Result:
    """The result of an experiment: live on a GPU, once a process; else its record, else a missing result.

    ``live=True`` measures again (RuntimeError without a GPU), ``live=False`` shows the record only. With
    MINILLM_RECORD set, a live result also goes into that record. An experiment that cannot be measured here
    (it does not fit the GPU's memory, its own process failed) shows its record, with the reason in ``note``;
    any other exception of it is raised, and all are while recording.
    """
    found, _ = find(name)
    source, gpu, note = source_hash(name), on_gpu(), ""
    if live and not gpu:
        raise RuntimeError(
            f"{name} cannot run live: there is no GPU in use; leave live out to see its record"
        )
    name_of_gpu = live_run()["gpu"] if gpu else ""
    if gpu and live is not False:
        try:
            if live or (name, source) not in _live:
                _live[name, source] = _measure(name, found)
            data, target = _live[name, source], records.recording_path(name_of_gpu)
            if target:
                records.write(target, name, source, data, provenance())
            others = [
                r
                for r in _recorded(name, source, name_of_gpu)[0]
                if not (target and r.origin.gpu == name_of_gpu)
            ]
            return Result(name, data, Origin.live(live_run()), others)
        except CannotMeasure as reason:
            if records.recording_path(name_of_gpu) and not isinstance(reason, DoesNotFit):
                raise
            note = str(reason)
    found_records, stale = _recorded(name, source, name_of_gpu)
    if not found_records:
        return Result(name, None, Origin.missing(stale), note=note)
    best, *others = found_records
    return Result(name, best.data, best.origin, others, note)


def _recorded(name: str, source: str, gpu: str) -> tuple[list[Result], bool]:
    fresh, stale = records.look_up(name, source, gpu)
    return [Result(name, data, Origin.recorded(run)) for run, data in fresh], stale


def _measure(name: str, found: Experiment) -> dict:
    """The function's data, from this process or, where the experiment asks for it, from one of its own."""
    import torch

    if not found.own_process:
        return measure_here(name)
    gc.collect()
    torch.cuda.empty_cache()  # what this process only keeps in reserve is room for the other one
    return run_in_own_process(name)


def measure_here(name: str) -> dict:
    """Calls the experiment's function: its data as a record would give them back. Frees the GPU's memory."""
    import torch

    found, parameters = find(name)
    try:
        data = found.function(**parameters)
    except torch.OutOfMemoryError as error:
        raise DoesNotFit(f"{name} ran out of GPU memory") from error
    finally:
        gc.collect()
        torch.cuda.empty_cache()
    if not isinstance(data, dict):
        raise TypeError(f"{name} returned {type(data).__name__}; expected a dict of what JSON can hold")
    try:
        return json.loads(json.dumps(data, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"{name} returned something that JSON cannot hold ({error}); use numbers and strings"
        ) from None
