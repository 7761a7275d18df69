"""What a graph uses and does not own: weights, KV cache, static inputs.

A real graph keeps their addresses and nothing else, so it neither keeps them alive nor notices when they
are gone.
"""

import collections
import ctypes
import weakref

import torch

from .memory import POISON, Memory, Segment


class Borrowed(Memory):
    """Memory of an ordinary CPU tensor.

    We secretly keep its storage too, so that a graph whose input was freed cannot crash this process;
    when nobody *else* holds it, it counts as freed.
    """

    every = weakref.WeakValueDictionary()  # address of the StorageImpl -> Borrowed

    def __init__(self, storage):
        super().__init__((ctypes.c_char * storage.nbytes()).from_address(storage.data_ptr()))
        self.owner, self.poisoned = storage, False
        self.foreign = not storage.resizable()  # numpy's or dlpack's: no telling who else has it
        Borrowed.every[storage._cdata] = self

    def freed(self):
        if self.owner.data_ptr() != self.ptr:
            raise RuntimeError(
                "a static input was resized after capture, so its old address is gone; the emulator stops "
                "here, a GPU would read whatever lives there now: give the input its largest size before "
                "capture, and copy_ into slices of it"
            )
        return not self.foreign and torch._C._storage_Use_Count(self.owner._cdata) == 1

    def poison(self):
        """On a GPU another tensor would soon live here.  Be that tensor, once."""
        if not self.poisoned:
            self.bytes.fill_(POISON)
        self.poisoned = True


class Lease(collections.namedtuple("Lease", "segment block tenant")):
    """A block of another pool, or of a heap, that a graph uses.  It is freed with its tensor, and may have
    another one by now."""

    @classmethod
    def of(cls, t, segment):
        """The present tenancy of the block of ``segment`` in which ``t`` lies."""
        offset = t.data_ptr() - segment.ptr
        block = next(b for b in segment.blocks if b.offset <= offset < b.offset + b.size)
        return cls(segment, block, block.tenant)

    def freed(self):
        pool = self.segment.pool()
        if pool is None:
            return True
        pool.reclaim()
        return self.block.free or self.block.tenant != self.tenant


def memory_of(t):
    """Who owns the address of ``t``: a segment of some pool, or the world outside."""
    if segment := Segment.at(t.data_ptr()):
        return segment
    storage = t.untyped_storage()
    return Borrowed.every.get(storage._cdata) or Borrowed(storage)
