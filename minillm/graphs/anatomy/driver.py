"""CUDA's driver API, through NVIDIA's cuda-bindings package, with errors that say what to do."""

from __future__ import annotations

NEEDED = ("cuGraphGetNodes", "cuGraphGetEdges", "cuFuncGetName", "cuFuncGetParamInfo")
STILL_WORKS = (
    "Capture, replay and timing need none of it, and MINILLM_BACKEND=emulated shows the anatomy of the "
    "same code on the emulator"
)


class DriverError(RuntimeError):
    """The driver refused: ``code`` is its CUresult."""

    def __init__(self, function: str, status):
        super().__init__(f"{function} failed: {getattr(status, 'name', status)}")
        self.code = int(status)


class DriverTooOld(RuntimeError):
    """The GPU's driver lacks a function that reading a graph needs."""


# What says that a graph cannot be read on this machine, for want of a package or of a newer driver.
CANNOT_READ = (ImportError, DriverTooOld)


def load():
    """The module ``cuda.bindings.driver``; ImportError where it is missing or older than CUDA 12.4."""
    try:
        from cuda.bindings import driver
    except ImportError as error:
        raise ImportError(
            "reading a graph on CUDA needs the package cuda-bindings, which is not installed: "
            f"{how_to_install()}. {STILL_WORKS}"
        ) from error
    lacking = [name for name in NEEDED if not hasattr(driver, name)]
    if lacking:
        raise ImportError(
            f"the installed cuda-bindings is too old, it has no {lacking[0]}; expected 12.4 or newer: "
            f"{how_to_install()}. {STILL_WORKS}"
        )
    return driver


def how_to_install() -> str:
    """The command, for the CUDA that torch was built with."""
    import torch

    major = (torch.version.cuda or "12").split(".")[0]
    return f'run `pip install "cuda-bindings=={major}.*"` and restart the kernel'


def call(driver, name: str, *args):
    """What the driver's function returns after its status: nothing, one thing, or a tuple.

    Raises DriverError where the driver refuses, DriverTooOld where it lacks the function.
    """
    try:
        status, *results = getattr(driver, name)(*args)
    except RuntimeError as error:  # cuda-bindings: 'Function "cu…" not found'
        raise DriverTooOld(
            f"the GPU's driver is too old for {name}; expected one for CUDA 12.4 (550) or newer, and a "
            f"cuda-bindings of no newer major version: update the driver, or {how_to_install()}. "
            f"{STILL_WORKS}"
        ) from error
    if int(status):
        raise DriverError(name, status)
    return results[0] if len(results) == 1 else tuple(results)
