"""One surface for CUDA graphs: torch.cuda's own where there is a GPU, the emulator's elsewhere.

    from minillm.graphs import cuda, device

    g = cuda.CUDAGraph()
    with cuda.graph(g):
        out = f(x)          # x was made with device=device
    g.replay()

With a GPU ``cuda is torch.cuda``.  Without one, or with MINILLM_BACKEND=emulated, ``cuda`` is
``minillm.graphs.emulator``, which says in its docstring what it does not imitate.
"""

import contextlib
import os

import torch

from . import emulator
from .anatomy import anatomy, races
from .limits import limits
from .pools import free_bytes, pool_bytes, pool_map
from .probe import probe, recover

__all__ = [
    "anatomy",
    "backend",
    "choose_backend",
    "cuda",
    "device",
    "free_bytes",
    "heap",
    "limits",
    "pool_bytes",
    "pool_map",
    "probe",
    "races",
    "recover",
    "warm_up",
]


def choose_backend(wanted, gpu):
    """ "cuda" or "emulated".

    wanted: the value of MINILLM_BACKEND, or None or "" where it is not set.
    gpu:    whether torch can use a CUDA device.
    Raises ValueError for an unknown value, RuntimeError for "cuda" without a GPU.
    """
    if not wanted:
        return "cuda" if gpu else "emulated"
    if wanted not in ("cuda", "emulated"):
        raise ValueError(
            f"MINILLM_BACKEND is {wanted!r}; expected 'cuda' or 'emulated': set it to one of them, or unset "
            "it to use the GPU where there is one"
        )
    if wanted == "cuda" and not gpu:
        raise RuntimeError(
            "MINILLM_BACKEND is 'cuda', but torch.cuda.is_available() is False on this machine: run "
            "`python -m minillm doctor` to see why, or unset MINILLM_BACKEND to use the emulator"
        )
    return wanted


backend = choose_backend(os.environ.get("MINILLM_BACKEND"), torch.cuda.is_available())
cuda = torch.cuda if backend == "cuda" else emulator
device = "cuda" if backend == "cuda" else emulator.device  # what to pass as device= when making a tensor


@contextlib.contextmanager
def heap():
    """Context manager: device memory apart from host memory, and handed out again, as on a GPU.

    For cells about what becomes of freed inputs, and about copies between host and device. On a GPU it
    does nothing, since that is how things are there; without one it is ``emulator.heap``. Gives None.
    """
    with emulator.heap() if cuda is emulator else contextlib.nullcontext():
        yield


def warm_up(fn, times=2, stream=None):
    """Call ``fn()`` ``times`` times on a side stream, before its capture; ``stream``, or a new one.

    Libraries initialise lazily (a cuBLAS handle and workspace, autotuning, a kernel's module), and
    some of what they do then is refused inside a capture.  The side stream is torch's advice:
    https://docs.pytorch.org/docs/stable/notes/cuda.html#whole-network-capture.  Who warms up often passes
    the stream of the captures: cuBLAS takes a workspace (32 MiB on Hopper) for every stream that it meets.
    TypeError where ``fn`` is no function, such as the result of one, or ``times`` is no number.
    """
    if not callable(fn) or not isinstance(times, int):
        raise TypeError(
            f"warm_up() got {type(fn).__name__} and {type(times).__name__}; expected a function that it can "
            "call without arguments, and how often: write warm_up(lambda: fn(x)) instead of warm_up(fn(x)) "
            "or warm_up(fn, x)"
        )
    side = cuda.Stream() if stream is None else stream
    side.wait_stream(cuda.current_stream())
    with cuda.stream(side):
        for _ in range(times):
            fn()
    cuda.current_stream().wait_stream(side)
