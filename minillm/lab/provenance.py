"""On what a measurement was made, so that a number can be read: GPU, driver, versions, the host's speed."""

from __future__ import annotations

import datetime
import functools
import hashlib
import json
import platform
import statistics
import subprocess
import time
from pathlib import Path

import torch


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
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
    }


def live_run() -> dict:
    """The part of the provenance that costs nothing: GPU and torch."""
    return {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__}


def run_id(run: dict) -> str:
    """A name for a run: its date and a few digits that tell runs of one day apart."""
    digits = hashlib.sha256(json.dumps(run, sort_keys=True).encode()).hexdigest()[:6]
    return f"{run['date']}-{digits}"


def _add_us(calls: int = 100, repeats: int = 21) -> float:
    """Median µs of CPU for one eager ``add_`` on a small tensor, in runs that fit into the launch queue."""
    x = torch.zeros(1024, device="cuda")
    per_call = []
    for _ in range(repeats + 1):  # the first warms up
        torch.cuda.synchronize()
        begin = time.perf_counter_ns()
        for _ in range(calls):
            x.add_(1)
        per_call.append((time.perf_counter_ns() - begin) / 1e3 / calls)
    return round(statistics.median(per_call[1:]), 2)


def _driver() -> str:
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        answer = subprocess.run(
            command, capture_output=True, text=True, timeout=20, check=True
        ).stdout.split()
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return answer[0] if answer else "unknown"


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:  # not Linux
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "") or platform.processor() or platform.machine() or "unknown"
