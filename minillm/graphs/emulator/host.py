"""Host memory during a capture: what a GPU would have to copy, and so refuses.

To the emulator every tensor is on the CPU.  What shows that a tensor would be in *host* memory is
how it was made: from Python data, or by a factory function that was given no ``device=``.  And some
host traffic the dispatcher never sees, because for a CPU tensor there is none (``.cpu()``,
``.tolist()``, printing).  A TorchFunctionMode sits above the dispatcher and sees both.
"""

import torch
import torch.utils._device
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from .messages import NO_COPY, torch_error

PRINTS = {Tensor.__repr__, Tensor.__format__}
DOWNLOADS = {Tensor.tolist, Tensor.numpy, Tensor.cpu, Tensor.__array__}
FROM_PYTHON = {torch.tensor, torch.as_tensor, torch.asarray, torch.from_numpy, torch.frombuffer}
FILLED = {
    *(torch.arange, torch.empty, torch.eye, torch.full, torch.linspace, torch.ones, torch.zeros),
    *(torch.rand, torch.randint, torch.randn, torch.randperm, torch.scalar_tensor),
}


def a_device_is_named(args, kwargs):
    """Did the caller say where the result should be (``device=``, ``x.to(where)``, a default device)?"""
    named = kwargs.get("device") is not None or any(isinstance(a, (str, torch.device)) for a in args[1:])
    return named or getattr(torch.utils._device, "CURRENT_DEVICE", None) is not None


class HostAccess(TorchFunctionMode):
    """Active during a capture, above the recorder's own mode."""

    def __init__(self, recorder):
        super().__init__()
        self.recorder = recorder

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        subject = args[0] if args else None
        if isinstance(subject, Tensor) and self.recorder.on_host(subject):
            if func in (Tensor.to, torch.as_tensor, torch.asarray) and a_device_is_named(args, kwargs):
                raise torch_error(NO_COPY, "this tensor was made in host memory")
        elif func in PRINTS:
            raise self.recorder.broken_by(900, "printing a tensor waits for its values")
        elif func in DOWNLOADS or func is Tensor.new_tensor:
            raise torch_error(NO_COPY, f"{func.__name__}() copies between host and device")
        elif func in FROM_PYTHON | FILLED and not any(isinstance(a, Tensor) for a in tree_leaves(args)):
            if not a_device_is_named(args, kwargs):
                return self.recorder.run_on_host(func, args, kwargs)
            if func in FROM_PYTHON:
                raise torch_error(
                    NO_COPY, f"{func.__name__}() makes a host tensor, then copies it to the device"
                )
        return func(*args, **kwargs)
