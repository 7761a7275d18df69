"""Who has the memory at an address: the same questions on a GPU and on the emulator."""

import torch

from minillm.grading.device_memory import heap_in_use
from minillm.graphs import backend, cuda, pool_map


def in_use(address: int) -> bool | None:
    """Whether a tensor outside of graph pools lives at `address`; None if it is a graph's pool or unknown."""
    pool = (0, 0) if backend == "cuda" else heap_in_use().device.handle
    for segment in pool_map(pool):
        if segment.address <= address < segment.address + segment.size:
            return any(
                block.live and block.address <= address < block.address + block.size
                for block in segment.blocks
            )
    return None


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
