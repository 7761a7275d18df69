"""The doctor's checks of Python, packages and disk. Each check returns a list of rows."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
import shutil
import sys

import torch

from .doctor import Row

OLDEST_PYTHON = (3, 10)
OLDEST_TORCH = (2, 8)
EXTRAS = ("jupyterlab", "ipywidgets", "nbclient", "matplotlib")
GIB = 2**30


def python() -> list[Row]:
    """Whether this Python is new enough."""
    found = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] < OLDEST_PYTHON:
        return [
            Row("Python", "fail", found, "The course needs Python 3.10 or newer: make a new environment.")
        ]
    return [Row("Python", "ok", found)]


def torch_version() -> list[Row]:
    """Whether torch is there and new enough."""
    numbers = tuple(int(n) for n in re.findall(r"\d+", torch.__version__)[:2])
    build = f"built for CUDA {torch.version.cuda}" if torch.version.cuda else "CPU build"
    found = f"{torch.__version__} ({build})"
    if numbers < OLDEST_TORCH:
        advice = "The course needs torch 2.8 or newer: python -m pip install --upgrade torch"
        return [Row("torch", "fail", found, advice)]
    return [Row("torch", "ok", found)]


def extras() -> list[Row]:
    """What the notebooks need beside the base packages, by the installed version; nothing is imported."""
    versions = {name: _version(name) for name in EXTRAS}
    found = ", ".join(f"{name} {version or 'missing'}" for name, version in versions.items())
    missing = [name for name, version in versions.items() if version is None]
    if missing:
        return [Row("Jupyter extras", "warn", found, f"python -m pip install {' '.join(missing)}")]
    return [Row("Jupyter extras", "ok", found)]


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def triton() -> list[Row]:
    """Whether the fused kernels of a later lesson can be built."""
    if importlib.util.find_spec("triton") is None:
        return [Row("Triton", "ok", "not installed; only lesson 7's fused kernels use it, and only on a GPU")]
    return [Row("Triton", "ok", _version("triton") or "installed")]


def disk() -> list[Row]:
    """Whether there is room for executed notebooks and reports."""
    free = shutil.disk_usage(".").free
    found = f"{free / GIB:.1f} GiB free"
    if free < GIB // 10:
        return [
            Row("disk", "fail", found, "Executed notebooks and reports need about 100 MB: free some space.")
        ]
    if free < GIB:
        return [
            Row("disk", "warn", found, "Enough to run the course, not to install anything: free some space.")
        ]
    return [Row("disk", "ok", found)]


CHECKS = (python, torch_version, extras, triton, disk)
