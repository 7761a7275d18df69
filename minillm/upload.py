"""Numbers from the host to the device, without waiting for what the device is doing."""

from __future__ import annotations

import torch


@torch.inference_mode(False)  # so that the tensors can be changed in place everywhere
def upload(values: list, dtype: torch.dtype, device: str | torch.device) -> torch.Tensor:
    """``values``, a list or a list of lists, as a tensor on ``device``; the host goes on at once.

    ``torch.tensor(values, device="cuda")`` copies from pageable memory and waits for the stream. From pinned
    memory the copy is only put on the stream; torch's allocator of pinned memory notes that, and does not
    hand the memory out again before the copy has run:
    https://docs.pytorch.org/docs/stable/notes/cuda.html#use-pinned-memory-buffers
    """
    device = torch.device(device)
    if device.type != "cuda":
        return torch.tensor(values, dtype=dtype).to(device)
    return torch.tensor(values, dtype=dtype, pin_memory=True).to(device, non_blocking=True)
