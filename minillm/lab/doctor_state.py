"""The doctor's checks of what is going on: memory, other processes, graphs. Each returns a list of rows."""

from __future__ import annotations

import os

import torch

from ..config import PRESETS
from . import fit, nvidia_smi
from .doctor import Row
from .doctor_gpu import EMULATE

GIB = 2**30


def memory() -> list[Row]:
    """Free memory, and the largest preset that fits it."""
    if not torch.cuda.is_available():
        return []
    free, total = torch.cuda.mem_get_info()
    found = f"{free / GIB:.1f} of {total / GIB:.1f} GiB free"
    try:
        limit = fit.memory_limit_bytes()
        largest = [name for name in PRESETS if fit.fits(name, batch=1, context=512, device="cuda")]
    except ValueError as error:
        return [Row("GPU memory", "fail", found, str(error))]
    found += f", this process's share is {limit / GIB:g} GiB" if limit else ""
    found += f"; largest preset that fits: {largest[-1]}" if largest else "; no preset fits"
    if free < total / 4 or not largest:
        advice = (
            "Shut down other notebooks and programs on this GPU. The lessons take smaller presets meanwhile, "
            "and show recorded figures where a claim needs a large one."
        )
        return [Row("GPU memory", "warn", found, advice)]
    return [Row("GPU memory", "ok", found)]


def other_processes() -> list[Row]:
    """Processes on this GPU beside this one, as nvidia-smi sees them (in a container it may see none)."""
    if not torch.cuda.is_available():
        return []
    mine = str(getattr(torch.cuda.get_device_properties(0), "uuid", ""))
    rows = [row for row in nvidia_smi.query("compute-apps", "gpu_uuid,pid,process_name") if len(row) == 3]
    here = [row for row in rows if not mine or mine in row[0]]
    others = [f"{os.path.basename(name)} ({pid})" for _, pid, name in here if pid != str(os.getpid())]
    if others:
        advice = "Timings will be noisy while others compute here. Shut down what is yours."
        return [Row("other processes", "warn", ", ".join(others), advice)]
    return [Row("other processes", "ok", "none seen on this GPU")]


def graph() -> list[Row]:
    """Capture one operation, replay it on other numbers, and look at the result."""
    try:
        from .. import graphs
    except (ValueError, RuntimeError):
        return []  # the row on the backend says it

    wrong = graphs.probe()
    if wrong:
        advice = (
            "Call minillm.graphs.recover(): an earlier failed capture can leave a kernel like this. If that "
            f"does not help, restart the kernel. {EMULATE}"
        )
        return [Row("a CUDA graph", "fail", wrong, advice)]
    where = "on the GPU" if graphs.backend == "cuda" else "emulated"
    return [Row("a CUDA graph", "ok", f"captured and replayed {where}")]


def backend() -> list[Row]:
    """Which cuda the lessons get, and why."""
    chosen = os.environ.get("MINILLM_BACKEND")
    try:
        from .. import graphs
    except (ValueError, RuntimeError) as error:  # MINILLM_BACKEND asks for what there is not
        return [Row("backend", "fail", f"MINILLM_BACKEND={chosen} cannot be", str(error))]
    found = "cuda is torch.cuda" if graphs.backend == "cuda" else "emulated: cuda is minillm.graphs.emulator"
    return [Row("backend", "ok", found + (f" (MINILLM_BACKEND={chosen})" if chosen else ""))]


CHECKS = (memory, other_processes, backend, graph)
