"""A heap: device memory apart from host memory, for a whole program and not only for its captures.

On a GPU three things hold of every tensor that the emulator alone cannot see, since to torch all of its
tensors are on the CPU.  While a heap is active they hold here too:

  a tensor is on the device or on the host; ``.cpu()`` copies, ``.numpy()`` is for the host only, and the two
  do not mix, except that numbers (0-dim tensors) ride along;
  memory is handed out again: the address of a freed tensor belongs to the next one of its size, so a graph
  whose input was freed reads whatever lives there now, and nobody is told;
  a pinned host tensor can be copied from inside a capture, and is read again by every replay.

It costs about a hundred microseconds an operation, hence it is not always on.  A dispatch mode moves results
into the heap, a function mode above it sees the calls that name a device.
"""

import contextlib

import torch
from torch import Tensor
from torch._C._functorch import is_functorch_wrapped_tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

from . import messages
from .host import MOVES, place_named
from .memory import Pool, PoolHandle, Segment
from .messages import torch_error
from .recorder import tensors_in
from .streams import capturing, now

aten = torch.ops.aten
MIXES = {  # of operations, those that take device and host tensors together
    *(aten.copy_, aten.index, aten.index_put, aten.index_put_, aten._index_put_impl_),
    aten._has_compatible_shallow_copy_type,  # what Module.to() asks of the old weight and the new
}


@contextlib.contextmanager
def heap():
    """Within it, tensors made with ``device=`` are in emulated device memory, all others on the host.

    Gives the Heap; its ``device.handle`` is the eager pool's, for ``pool_map``.  A tensor made before
    counts as the host's: make model and inputs inside.  RuntimeError inside another heap or a capture.
    """
    if now.heap is not None or now.capture is not None:
        raise RuntimeError(
            f"heap() inside {'a capture' if now.capture else 'another heap'}: one heap is for a whole "
            "program, so enter it first and once"
        )
    now.heap = memory = Heap()
    try:
        with memory.results, memory:
            try:
                yield memory
            finally:
                if now.capture is not None:  # its modes lie on top of the heap's: leave them first
                    now.capture.graph._stop_recording()
    finally:
        now.heap = None


class Heap(TorchFunctionMode):
    """The pools ``device`` and ``pinned``, and the calls that move tensors between them and the host."""

    def __init__(self):
        super().__init__()
        self.device, self.pinned = Pool(PoolHandle((0, 0)), eager=True), Pool(eager=True)
        self.results = Results(self)

    def on_device(self, t):
        """Whether ``t`` is in device memory: the heap's, or a graph's pool."""
        segment = Segment.at(t.data_ptr()) if is_plain(t) else None
        return segment is not None and segment.pool() is not self.pinned

    def on_host(self, t):
        return is_plain(t) and t.numel() > 0 and not self.on_device(t)

    def is_pinned(self, t):
        segment = Segment.at(t.data_ptr()) if is_plain(t) else None
        return segment is not None and segment.pool() is self.pinned

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs, subject = dict(kwargs or {}), args[0] if args else None
        place, pin = place_named(func, args, kwargs), kwargs.get("pin_memory", False)
        here = isinstance(subject, Tensor)
        if here and func is Tensor.is_pinned:
            return self.is_pinned(subject)
        if here and func is Tensor.pin_memory or pin:
            host = subject if func is Tensor.pin_memory else func(*args, **kwargs | {"pin_memory": False})
            return self.move(host, self.pinned)
        if capturing(now.stream):  # the recorder has seen to it
            return func(*args, **kwargs)
        operands = tensors_in((args, kwargs))
        if func in MOVES and len(operands) > 1:  # x.to(y)
            place = "device" if self.on_device(operands[1]) else "host"
        if here and func in (Tensor.numpy, Tensor.__array__) and self.on_device(subject):
            if not kwargs.get("force"):
                raise TypeError(f"{messages.NO_NUMPY} (emulated)")
            with self.results.go("host"):
                return subject.detach().clone().numpy()
        if place == "host" or func is Tensor.cpu:
            with self.results.go("host"):  # to torch there is nothing to copy, unless .to() changes the dtype
                done = func(*args, **kwargs)
                return tree_map_only(Tensor, lambda t: self.move(t, "host") if self.on_device(t) else t, done)
        if place is None and not any(map(self.on_device, operands)):
            return func(*args, **kwargs)
        with self.results.go("device"):
            result = func(*args, **kwargs)
        given = {t.untyped_storage()._cdata for t in operands if is_plain(t)}

        def settle(t):  # what no dispatched operation made: from Python data, by deepcopy
            if not self.on_host(t):
                return t
            was_given = t.untyped_storage()._cdata in given
            return self.move(t, self.device, was_given) if place or not was_given else t

        return tree_map_only(Tensor, settle, result)

    def move(self, t, pool, was_given=True):
        """``t`` copied into ``pool``, or to the "host": differentiable, but for a tensor that was just made,
        which is a leaf again."""
        if was_given:
            return Move.apply(t, self, pool)
        with self.results.go(pool):
            return t.detach().clone().requires_grad_(t.requires_grad)


class Move(torch.autograd.Function):
    """A copy to another memory; the gradient goes back to where the tensor came from."""

    @staticmethod
    def forward(ctx, t, heap, there):
        ctx.heap, ctx.back = heap, heap.device if heap.on_device(t) else "host"
        with heap.results.go(there):
            return t.clone()

    @staticmethod
    def backward(ctx, gradient):
        with ctx.heap.results.go(ctx.back):
            return gradient.clone(), None, None


class Results(TorchDispatchMode):
    """Gives results of operations on device tensors an address in the heap."""

    def __init__(self, heap):
        super().__init__()
        self.heap, self.going = heap, None  # None: to where the operands are

    @contextlib.contextmanager
    def go(self, where):
        """Results go to ``where``: "device", "host", a Pool, or None."""
        before, self.going = self.going, where
        try:
            yield
        finally:
            self.going = before

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if capturing(now.stream):
            return func(*args, **kwargs)
        operands = tensors_in((args, kwargs))
        on_device = any(map(self.heap.on_device, operands))
        if on_device and func.overloadpacket not in MIXES:
            if any(t.dim() and self.heap.on_host(t) for t in operands):
                raise torch_error(messages.TWO_DEVICES, "a tensor made without device= is in host memory")
        if on_device and func.overloadpacket is aten.index and self.heap.on_host(args[0]):
            raise torch_error(messages.INDEX_ON_DEVICE)
        result = func(*args, **kwargs)
        pool = self.going if isinstance(self.going, Pool) else self.heap.device
        if self.going == "host" or not (on_device or self.going):
            return result
        given = {t.untyped_storage()._cdata for t in operands if is_plain(t)}
        uninitialised = "empty" in func._schema.name

        def place(t):
            if not is_plain(t) or t.numel() == 0 or t.untyped_storage()._cdata in given:
                return t
            new = pool.empty(t.size(), t.stride(), t.dtype, now.stream, poison=False)
            return new if uninitialised else new.copy_(t)

        return tree_map_only(Tensor, place, result)


def is_plain(t):
    """Whether ``t`` has memory of its own on the CPU, which the emulator can hand out."""
    strided = t.device.type == "cpu" and t.layout == torch.strided
    return strided and not is_functorch_wrapped_tensor(t)
