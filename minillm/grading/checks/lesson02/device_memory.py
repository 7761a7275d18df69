"""Who has the memory at an address: the same questions on a GPU and on the emulator."""

import contextlib
import gc

import torch

from minillm.graphs import backend, cuda, heap, pool_map


@contextlib.contextmanager
def as_on_a_gpu():
    """Device memory that is handed out again when a tensor dies, on the emulator too.

    The garbage collector rests meanwhile: should it find an old answer's graph during a capture, that
    capture would break (https://github.com/pytorch/pytorch/issues/161037).
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        with contextlib.nullcontext() if _heap_in_use() else heap():
            yield
    finally:
        if collects:
            gc.enable()


def _heap_in_use():
    return None if backend == "cuda" else cuda.streams.now.heap


def in_use(address: int) -> bool | None:
    """Whether a tensor outside of graph pools lives at `address`; None if it is a graph's pool or unknown."""
    pool = (0, 0) if backend == "cuda" else _heap_in_use().device.handle
    for segment in pool_map(pool):
        if segment.address <= address < segment.address + segment.size:
            return any(
                block.live and block.address <= address < block.address + block.size
                for block in segment.blocks
            )
    return None


def on_device(tensor: torch.Tensor) -> bool:
    """Whether it lies in device memory, a graph's pool included."""
    return tensor.is_cuda if backend == "cuda" else _heap_in_use().on_device(tensor)


def squat(like: torch.Tensor, count: int = 8) -> list[torch.Tensor]:
    """Tensors of that shape, full of 77: they take over addresses that nobody holds any more."""
    return [torch.full_like(like, 77) for _ in range(count)]


def same(value: torch.Tensor, right: torch.Tensor) -> bool:
    """Equal up to rounding, in shape and dtype too. Waits for the device."""
    cuda.synchronize()
    alike = (value.shape, value.dtype, value.device) == (right.shape, right.dtype, right.device)
    return alike and torch.allclose(value, right, rtol=1e-4, atol=1e-5)


def poison(tensor: torch.Tensor) -> None:
    """Fill it with NaN, so that what a replay does not write stays visible; tensors of inference mode too."""
    with torch.inference_mode():
        tensor.fill_(float("nan"))
