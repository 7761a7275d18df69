"""Which functions of torch need a device tensor's values on the host, told by their names."""

from contextlib import suppress

import torch

from minillm import graphs
from minillm.grading.device_memory import on_device

# Names of torch functions that need a device tensor's values on the host, and so wait for them.
READS = {
    *("item", "tolist", "cpu", "numpy", "equal", "allclose", "nonzero", "is_nonzero", "unique"),
    *(
        "masked_select",
        "__bool__",
        "__int__",
        "__float__",
        "__index__",
        "__array__",
        "__repr__",
        "__format__",
    ),
}


def by_mask(name: str, args) -> bool:
    """Whether a mask says where: how many there are is known on the device only. One number may go there."""
    if name not in ("__getitem__", "__setitem__") or (len(args) > 2 and not on_device(args[2])):
        return False
    index = args[1] if isinstance(args[1], (tuple, list)) else [args[1]]
    return any(isinstance(each, torch.Tensor) and each.dtype == torch.bool for each in index)


def goes_to_host(name: str, func, args, kwargs) -> bool:
    if name != "to":
        return False
    if graphs.backend != "cuda":
        return graphs.emulator.host.place_named(func, args, kwargs) == "host"
    named = kwargs.get("device", args[1] if len(args) > 1 else None)
    with suppress(TypeError, RuntimeError):  # a dtype, or another tensor
        return torch.device(named).type == "cpu"
    return isinstance(named, torch.Tensor) and not named.is_cuda
