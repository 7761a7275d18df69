"""On what a measurement was made, so that a number can be read: GPU, driver, versions, the host's speed."""

from __future__ import annotations

import datetime
import functools
import hashlib
import json
import platform
from pathlib import Path

import torch

from .nvidia_smi import query
from .timing import submit_us


@functools.cache
def provenance() -> dict:
    """This process's run, collected once: what a record and a recorded cell say about where they were made.

    Keys: gpu, compute_capability ("9.0"), driver, torch, cuda, python, cpu (the host's processor), add_us
    (µs of CPU to submit one eager ``add_``: eager timings say as much about the host as about the GPU),
    date (UTC, YYYY-MM-DD). RuntimeError without a GPU.
    """
    if not torch.cuda.is_available():
        raise RuntimeError("a record needs a CUDA GPU and there is none; run with --record on a GPU machine")
    return {
        **live_run(),
        "compute_capability": "{}.{}".format(*torch.cuda.get_device_capability()),
        "driver": _driver(),
        "cuda": torch.version.cuda or "unknown",
        "python": platform.python_version(),
        "cpu": _cpu(),
        "add_us": _add_us(),
    }


def live_run() -> dict:
    """The part of the provenance that costs nothing: GPU, torch and date."""
    today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    return {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "date": today}


def run_id(run: dict) -> str:
    """A name for a run: its date and a few digits that tell runs of one day apart."""
    digits = hashlib.sha256(json.dumps(run, sort_keys=True).encode()).hexdigest()[:6]
    return f"{run['date']}-{digits}"


def _add_us() -> float:
    x = torch.zeros(1024, device="cuda")
    return round(submit_us(lambda: x.add_(1), calls=100, repeats=21), 2)


def _driver() -> str:
    answer = query("gpu", "driver_version", patience=20)
    return answer[0][0] if answer else "unknown"


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:  # not Linux
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "") or platform.processor() or platform.machine() or "unknown"
