"""Which kind of operation makes the CPU wait for the device: one that reads a value, or a shape."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode

aten = torch.ops.aten
VALUE = {aten._local_scalar_dense, aten.equal, aten.is_nonzero}
INDEXING = {aten.index, aten.index_put, aten.index_put_, aten._index_put_impl_}


class WaitsFor(TorchDispatchMode):
    """`first` is "value", "shape" or None: the first such operation while the mode was on.

    CUDA refuses both with the same words, so this is asked of the function outside of a capture.
    """

    first = None

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        op = func.overloadpacket
        if self.first is None and op in VALUE:
            self.first = "value"
        elif self.first is None and _shape_depends(func, op, args):
            self.first = "shape"
        return func(*args, **(kwargs or {}))


def _shape_depends(func, op, args) -> bool:
    """Also x[mask], and x[mask] = tensor; x[mask] = number is a fill, and waits for nothing."""
    if op not in INDEXING:
        return torch.Tag.dynamic_output_shape in func.tags
    if any(value.dim() == 0 for value in args[2:3]):
        return False
    return any(index is not None and index.dtype in (torch.bool, torch.uint8) for index in args[1])
