"""When does an answer make the host wait for the device? Seen above and below torch's dispatcher."""

from contextlib import ExitStack
from unittest.mock import patch

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from minillm.grading.checks.lesson03.polls import Polls
from minillm.grading.device_memory import on_device
from minillm.graphs import cuda

# What a dispatched operation does not show when the device is emulated: there, the values are on the host.
READS = {Tensor.tolist, Tensor.numpy, Tensor.__array__, Tensor.__repr__, Tensor.__format__}


def tensors_in(tree) -> list[Tensor]:
    """The tensors anywhere in nested lists, tuples and dicts."""
    return [each for each in tree_leaves(tree) if isinstance(each, Tensor)]


class HostWaits(TorchFunctionMode):
    """``with HostWaits(noted):`` calls ``noted()`` at every wait, inside ``as_on_a_gpu()``.

    A wait is what needs the device's values on the host (`.item()`, `bool`, `.tolist()`, a copy to the
    host, a shape that depends on data), `synchronize()` of the device, a stream or an event, and a loop that
    asks `query()` until it is done. A copy that does not wait is remembered: `too_early` is True once its
    target was read before anything waited.
    """

    def __init__(self, noted):
        super().__init__()
        self.noted, self.too_early = noted, False
        self._under_way = {}  # address of host memory -> the tensor that a copy to it returned
        self._below, self._patches, self._polls = Dispatched(self), ExitStack(), Polls(self.wait)

    def __enter__(self):
        self._below.__enter__()
        self._patches.enter_context(self._polls.on())
        for owner in (cuda, cuda.Event, cuda.Stream):
            self._watch(owner, "synchronize", lambda result: True)
        for owner in (cuda.Event, cuda.Stream):
            self._watch(owner, "query", bool, waits=False)
        return super().__enter__()

    def __exit__(self, *error):
        super().__exit__(*error)
        self._patches.close()
        self._below.__exit__(*error)

    def _watch(self, owner, name, is_done, waits=True):
        original = getattr(owner, name)

        def watched(*args, **kwargs):
            result = original(*args, **kwargs)
            if waits:
                self.wait()
            elif is_done(result):
                self._under_way.clear()
            return result

        self._patches.enter_context(patch.object(owner, name, watched))

    def wait(self):
        self._under_way.clear()
        self.noted()

    def read(self, tensor):
        """`tensor`'s values are used on the host."""
        if on_device(tensor):
            self.wait()
        elif tensor.untyped_storage().data_ptr() in self._under_way:
            self.too_early = True

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        self._polls.something_done()
        if func in READS:
            self.read(args[0])
        result = func(*args, **kwargs)
        arrived = [each for each in tensors_in(result) if not on_device(each) and each.numel()]
        if arrived and any(map(on_device, tensors_in((args, kwargs)))):
            for made in arrived:
                at_once = kwargs.get("non_blocking") or any(each is True for each in args[1:])
                self._copied(func, made, at_once)
        return result

    def _copied(self, func, made, at_once):
        """To the host. A copy into memory that is not pinned waits, whatever it was asked."""
        if at_once and (func is not Tensor.copy_ or made.is_pinned()):
            self._under_way[made.untyped_storage().data_ptr()] = made
        else:
            self.wait()


class Dispatched(TorchDispatchMode):
    """The operations that look at values: `_local_scalar_dense` (`.item()`, `bool`), `equal`, `nonzero`..."""

    def __init__(self, waits):
        super().__init__()
        self.waits = waits

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        operands = tensors_in((args, kwargs))
        waits = bool({torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape} & set(func.tags))
        if func.overloadpacket is torch.ops.aten.index:  # by numbers its shape is known, by a mask it is not
            waits = any(each.dtype in (torch.bool, torch.uint8) for each in operands[1:])
        if func.overloadpacket is torch.ops.aten.index_put_:  # one number goes where the mask is, without it
            by_mask = any(each.dtype in (torch.bool, torch.uint8) for each in operands[1:-1])
            waits = by_mask and on_device(operands[-1])
        if waits:
            for each in operands[:1]:
                self.waits.read(each)
        return func(*args, **(kwargs or {}))
