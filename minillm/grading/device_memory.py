"""Device memory in checks: as it is on a GPU, whichever the backend, and told apart from the host's."""

import contextlib
import gc

import torch

from minillm import graphs


@contextlib.contextmanager
def as_on_a_gpu():
    """Device memory is apart from the host's and handed out again when a tensor dies, on the emulator too.

    It may stand in a `graphs.heap()` of the learner's. The garbage collector rests meanwhile: should it find
    an old answer's graph during a capture, that capture would break
    (https://github.com/pytorch/pytorch/issues/161037).
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        with contextlib.nullcontext() if heap_in_use() else graphs.heap():
            yield
    finally:
        if collects:
            gc.enable()


def heap_in_use():
    """The emulator's heap; None outside of one, and on a GPU."""
    return None if graphs.backend == "cuda" else graphs.emulator.streams.now.heap


def on_device(tensor) -> bool:
    """Whether it is a tensor in device memory; without a GPU this can be told within `as_on_a_gpu` only."""
    if not isinstance(tensor, torch.Tensor):
        return False
    if graphs.backend == "cuda":
        return tensor.is_cuda
    heap = heap_in_use()
    return heap is None or heap.on_device(tensor)
