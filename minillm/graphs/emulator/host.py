"""Host memory during a capture: what a GPU would have to copy, and so refuses.

To torch every tensor of the emulator is on the CPU.  What shows that a tensor would be in *host* memory is
how it was made: from Python data, or by a factory function that was given no ``device=``.  And some
host traffic the dispatcher never sees, because for a CPU tensor there is none (``.cpu()``,
``.tolist()``, printing).  A TorchFunctionMode sits above the dispatcher and sees both.

Of tensors made before the capture only a ``heap`` knows where they are; without one they count as device
tensors.
"""

import torch
import torch.utils._device
from torch import Tensor
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack
from torch.utils._pytree import tree_leaves

from .branches import ON_A_GPU
from .messages import NO_COPY, NO_NUMPY, torch_error
from .streams import capturing, now


class DeviceName(str):
    """``device`` without a GPU: "cpu" to torch, but not to the emulator, for which a plain "cpu" is the
    host.  A torch.device, such as ``x.device``, means the device."""


device = DeviceName("cpu")

# What a function does, as far as host memory is concerned: waits for values, copies to the host, copies to
# where it is told, makes a tensor of what Python has, makes any tensor, makes one like another.
PRINTS = {Tensor.__repr__, Tensor.__format__}
DOWNLOADS = {Tensor.tolist, Tensor.numpy, Tensor.cpu, Tensor.new_tensor}
MOVES = {Tensor.to, Tensor.type_as, torch.as_tensor, torch.asarray}
FROM_PYTHON = {torch.tensor, torch.as_tensor, torch.asarray}
FACTORIES = {*torch.utils._device._device_constructors(), torch.normal} | FROM_PYTHON
MADE_LIKE = {
    *(Tensor.new_empty, Tensor.new_full, Tensor.new_ones, Tensor.new_zeros, torch.empty_like),
    *(torch.full_like, torch.ones_like, torch.zeros_like, torch.rand_like, torch.randn_like),
}


def place_named(func, args, kwargs):
    """Where the caller wants the result: "device", "host", or None for a call that does not say
    (``device=``, ``x.to(where)``, a default device do)."""
    named = [kwargs["device"]] if kwargs.get("device") is not None else []
    if func is Tensor.to:
        named += [a for a in args[1:] if isinstance(a, (str, torch.device))]
    if not named and func is not Tensor.to:
        modes = _get_current_function_mode_stack()
        named = [mode.device for mode in modes if isinstance(mode, torch.utils._device.DeviceContext)]
    for where in named:
        if isinstance(where, str) and not isinstance(where, DeviceName):
            return "host" if where.startswith("cpu") else None
        if where is not None and torch.device(where).type == "cpu":
            return "device"
    return None


class HostAccess(TorchFunctionMode):
    """Active during a capture, above the recorder's own mode."""

    def __init__(self, recorder):
        super().__init__()
        self.recorder = recorder

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs, subject = kwargs or {}, args[0] if args else None
        if self.recorder.mode == "relaxed" and not capturing(now.stream):
            return func(*args, **kwargs)
        given = [t for t in tree_leaves((args, kwargs)) if isinstance(t, Tensor)]
        place = place_named(func, args, kwargs)
        if func in MOVES and len(given) > 1:  # x.to(y), x.type_as(y)
            place = "host" if self.recorder.on_host(given[1]) else "device"
        if isinstance(subject, Tensor):
            if self.recorder.on_host(subject):
                return self.on_host(func, subject, args, kwargs, place)
            return self.on_device(func, args, kwargs, place)
        if func in FACTORIES:
            if not all(map(self.recorder.on_host, given)):  # torch.tensor([x[0], x[1]])
                raise self.recorder.broken_by(900, f"{func.__name__}() waits for the values of a tensor")
            return self.made(func, args, kwargs, place)
        return func(*args, **kwargs)

    def on_host(self, func, subject, args, kwargs, place):
        """A function of a host tensor."""
        if place == "device" and func in MOVES:
            if self.recorder.pinned(subject):
                return self.upload(subject, args[1:], kwargs)
            raise self.no_copy("this tensor was made in host memory")
        if place == "device" and func in MADE_LIKE:
            like = torch.empty(subject.shape, dtype=subject.dtype, device=device)
            return func(like, *args[1:], **kwargs)
        return func(*args, **kwargs)

    def on_device(self, func, args, kwargs, place):
        """A function of a device tensor."""
        if func in ON_A_GPU and (result := ON_A_GPU[func](*args, **kwargs)) is not NotImplemented:
            return result
        if func is Tensor.__deepcopy__:  # it would copy the storage behind our back
            return args[1].setdefault(id(args[0]), args[0].clone())
        if func in PRINTS:
            raise self.recorder.broken_by(900, "printing a tensor waits for its values")
        if func is Tensor.__array__ or func is Tensor.numpy and not kwargs.get("force"):
            raise TypeError(f"{NO_NUMPY} (emulated)")
        if func in DOWNLOADS or place == "host" and func in MOVES:
            raise self.no_copy(f"{func.__name__}() copies between host and device")
        return func(*args, **kwargs)

    def made(self, func, args, kwargs, place):
        """A tensor from Python data, or by a factory function."""
        if place != "device":
            return self.recorder.run_on_host(func, args, kwargs)
        if func in FROM_PYTHON and self.recorder.run_on_host(func, args, kwargs).numel():
            raise self.no_copy(f"{func.__name__}() makes a host tensor, then copies it to the device")
        return func(*args, **kwargs)

    def no_copy(self, why):
        """A copy between the two waits on a stream outside of the capture, and is not to be had in it."""
        return torch_error(NO_COPY, why) if capturing(now.stream) else self.recorder.broken_by(900, why)

    def upload(self, pinned, args, kwargs):
        """``pinned.to(device, …)``: memory of the pool, and a copy that every replay makes again."""
        dtypes = [a for a in (*args, kwargs.get("dtype")) if isinstance(a, torch.dtype)]
        target = torch.empty(pinned.shape, dtype=(dtypes or [pinned.dtype])[0], device=device)
        return target.copy_(pinned, non_blocking=True in (*args, kwargs.get("non_blocking")))
