"""What a GPU refuses during a capture, operation by operation, and in which words.

There are two kinds of refusal.  What makes the CPU wait for values on the device breaks the capture: PyTorch
tags most such operations, and the tables below have the rest.  A copy from or to pageable host memory is
refused before CUDA hears of it, and the capture goes on.
"""

import torch
from torch import Tag

from . import messages
from .messages import cuda_error, torch_error
from .streams import in_the_way

aten = torch.ops.aten
INDEXING = {aten.index, aten.index_put, aten.index_put_, aten._index_put_impl_}
READS_ITS_VALUE = {aten.masked_fill, aten.masked_fill_, aten.index_fill, aten.index_fill_}
LINEAR_ALGEBRA = {aten._linalg_check_errors, aten._linalg_eigh, aten.linalg_eig}
COPIES = {aten.bincount, aten._linalg_svd, aten.linalg_pinv}  # something back to the host
CHECKS_ITS_VALUES = {aten.linspace, aten.logspace, aten.normal}  # where an argument is a tensor
TAKES_NO_NUMBER = {  # of the host; pointwise operations do, and so do fill_, masked_fill_ and index_put_
    *(aten.addcdiv, aten.addcdiv_, aten.cat, aten.clamp, aten.clamp_, aten.clamp_min, aten.clamp_max),
    *(aten.embedding, aten.index_select, aten.scatter, aten.scatter_, aten.stack),
}


def refuse(capture, func, tensors, args, kwargs, written):
    """Raise if a GPU would not capture ``func``: ``tensors`` are all of its operands."""
    if capture.broken:
        raise cuda_error(901, f"nothing more can be captured after the first error: {capture.broken}")
    op = func.overloadpacket
    hosts = [t for t in tensors if capture.on_host(t) and not capture.is_constant(t)]
    if op is aten.copy_:
        refuse_pageable_copy(capture, args, hosts)
    elif op in INDEXING:  # where there is a mask, `waits` looks after what comes from the host
        if hosts and not has_device_mask(capture, args):
            raise torch_error(messages.NO_COPY, f"{op} with a tensor in host memory")
    elif any(t.dim() or op in TAKES_NO_NUMBER or is_one_of(t, written) for t in hosts):
        raise torch_error(messages.TWO_DEVICES, "a tensor made without device= is in host memory")
    elif op is aten.where and hosts or op in COPIES or op is aten.histc and has_no_range(*args[2:]):
        raise torch_error(messages.NO_COPY, f"{op} copies between host and device")
    if waits(capture, func, tensors, args, kwargs):
        raise capture.broken_by(900, f"{op} must wait for values on the device")
    if torch.initial_seed() != capture.seed:
        capture.seed = torch.initial_seed()
        raise torch_error(messages.SEED, "torch.manual_seed was called since the last operation")
    generator = kwargs.get("generator") or torch.default_generator
    if all(generator._cdata != g._cdata for g in [torch.default_generator, *capture.graph.generators]):
        raise torch_error(messages.GENERATOR_NOT_REGISTERED, "call register_generator_state before capture")


def refuse_unlike_others(tensors):
    """The emulator's own refusal: of tensors whose elements are not simply at an address."""
    for t in tensors:
        if t.layout != torch.strided or t.is_quantized:
            kind = "quantized" if t.is_quantized else str(t.layout).removeprefix("torch.")
            raise NotImplementedError(
                f"the emulator captures dense tensors only and met a {kind} one of shape {list(t.shape)}: "
                "make it dense before the capture, or run this on a GPU"
            )


def refuse_beside(capture, func, tensors, args, kwargs):
    """The same for an operation on a stream that is not part of the capture: it runs, but must not wait."""
    host = func.overloadpacket is aten.copy_ and any(map(capture.on_host, tensors))
    if in_the_way() and (host or waits(capture, func, tensors, args, kwargs)):
        raise capture.broken_by(900, "a capture is underway, if not on this stream: nothing may wait")


def refuse_pageable_copy(capture, args, hosts):
    """``copy_``: ``hosts`` are its operands in host memory, which has to be pinned."""
    if not all(map(capture.pinned, hosts)):
        raise torch_error(messages.NO_COPY, "copy_ with a tensor in host memory")
    if hosts and not args[2:]:
        raise capture.broken_by(900, "a copy without non_blocking=True waits for the device")


def waits(capture, func, tensors, args, kwargs):
    """Would the CPU have to wait: is a result or a shape to be read from the device?"""
    op = func.overloadpacket
    if op in INDEXING:
        number = any(capture.on_host(value) and value.dim() == 0 for value in args[2:3])
        # y[mask] = 7.0 is a masked_fill_, which has a fixed shape
        return has_device_mask(capture, args) and not number
    if op in READS_ITS_VALUE:
        return any(t.dim() == 0 and not capture.on_host(t) for t in tensors[1:])
    if op in CHECKS_ITS_VALUES:
        return bool(tensors)
    if op in LINEAR_ALGEBRA:  # torch.linalg says of each that it synchronizes on a GPU
        return True
    depends = Tag.data_dependent_output in func.tags or Tag.dynamic_output_shape in func.tags
    return depends and kwargs.get("output_size") is None


def has_no_range(low=0, high=0):
    """A histogram's bounds, which then come from the data."""
    return low == high


def has_device_mask(capture, args):
    """Whether one of the indices says yes or no for each place, so that a shape depends on its values."""
    masks = (i for i in args[1] if i is not None and i.dtype in (torch.bool, torch.uint8))
    return any(not capture.on_host(mask) for mask in masks)


def is_one_of(t, tensors):
    """``t in tensors``, which would compare elements."""
    return any(t is one for one in tensors)
