"""The pointers in a kernel node's parameters.

CUDA keeps a kernel's parameters as bytes: ``kernelParams`` points to one pointer a parameter, or, as in
cuBLAS's launches, ``extra`` to one buffer with all of them.  torch passes structs with arrays of pointers in
them, so every aligned word is looked at, and what lies in memory that torch's allocator holds counts as a
pointer.  Nobody clears the unused slots of such a struct: they may hold pointers of an earlier launch.
"""

from __future__ import annotations

import bisect
import ctypes

from .driver import DriverError, call

INVALID_VALUE = 1  # CUDA_ERROR_INVALID_VALUE
BUFFER_POINTER, BUFFER_SIZE = 1, 2  # CU_LAUNCH_PARAM_BUFFER_…
MOST_BYTES = 32_764  # of parameters that a kernel can have
WORD = 8  # bytes of a pointer, and its alignment


class DeviceMemory:
    """The address ranges that torch's allocator holds: [(first, one after the last)]."""

    def __init__(self, ranges):
        self.ranges = sorted(ranges)

    @classmethod
    def of_torch(cls):
        """As ``torch.cuda.memory_snapshot()`` has it now, private pools included."""
        import torch

        segments = torch.cuda.memory_snapshot()
        return cls((s["address"], s["address"] + s["total_size"]) for s in segments)

    def __contains__(self, address: int) -> bool:
        i = bisect.bisect_right(self.ranges, (address, float("inf"))) - 1
        return i >= 0 and self.ranges[i][0] <= address < self.ranges[i][1]


def pointers(params, sizes: list[int], memory: DeviceMemory) -> tuple[int, ...]:
    """The device addresses in the parameters of one launch, in their order.

    params: CUDA_KERNEL_NODE_PARAMS;  sizes: bytes of each parameter.
    """
    found = []
    for data in parameter_bytes(params, sizes):
        words = (
            int.from_bytes(data[at : at + WORD], "little") for at in range(0, len(data) - WORD + 1, WORD)
        )
        found += [word for word in words if word in memory]
    return tuple(found)


def parameter_bytes(params, sizes: list[int]) -> list[bytes]:
    """One bytes object a parameter; one for all of them where the launch passed a buffer instead."""
    if params.kernelParams:
        table = int(params.kernelParams)
        return [ctypes.string_at(_word(table + WORD * i), size) for i, size in enumerate(sizes)]
    if not params.extra:
        return []
    at, extra = int(params.extra), {}
    while (name := _word(at)) in (BUFFER_POINTER, BUFFER_SIZE):  # each is followed by its value
        extra[name] = _word(at + WORD)
        at += 2 * WORD
    if len(extra) < 2:
        return []
    return [ctypes.string_at(extra[BUFFER_POINTER], min(_word(extra[BUFFER_SIZE]), MOST_BYTES))]


def _word(address: int) -> int:
    return ctypes.c_uint64.from_address(address).value


def parameter_sizes(driver, params) -> list[int]:
    """Bytes of each parameter of the kernel; CUDA shows where they end by refusing to describe one more."""
    ask, function = "cuFuncGetParamInfo", params.func
    if not int(function):
        ask, function = "cuKernelGetParamInfo", params.kern
    sizes = []
    while True:
        try:
            _, size = call(driver, ask, function, len(sizes))  # offset, size
        except DriverError as error:
            if error.code == INVALID_VALUE:
                return sizes
            raise
        sizes.append(int(size))
