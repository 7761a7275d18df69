"""Memory that has an address: a graph's pool, and what the graph borrows from the world outside.

A kernel in a CUDA graph remembers its operands as raw pointers.  So the emulator needs memory that
stays where it is, a way to hold "an address with a shape" that keeps nothing alive, and a pool that
hands out addresses as PyTorch's caching allocator does, since which tensor lands on whose old
address is half of what there is to learn.

Source of the rules: c10/cuda/CUDACachingAllocator.cpp, notes "block pools" and "private pools".
"""

import collections
import ctypes
import itertools
import mmap
import weakref

import torch

MiB = 1 << 20
POISON = 0xFF  # every byte of fresh memory: NaN in any float type, -1 in any signed integer


class Memory:
    """A stretch of bytes at a fixed address (``ptr``, ``size`` in bytes)."""

    def __init__(self, raw):
        self.raw, self.bytes = raw, torch.frombuffer(raw, dtype=torch.uint8)
        self.ptr, self.size = self.bytes.data_ptr(), self.bytes.numel()

    def alias(self, t):
        """A raw pointer with a shape: a tensor at ``t``'s address, with its shape, strides and
        dtype, that keeps neither ``t`` nor ``t``'s storage alive."""
        start = (t.data_ptr() - self.ptr) // t.itemsize
        return torch.empty(0, dtype=t.dtype).set_(self.bytes.untyped_storage(), start, t.size(), t.stride())


class Segment(Memory):
    """What one cudaMalloc returned, cut into blocks that tile it from end to end."""

    every = weakref.WeakSet()

    def __init__(self, size, kind):
        super().__init__(mmap.mmap(-1, size))  # page-aligned; costs nothing until it is touched
        self.kind, self.blocks = kind, [Block(0, size)]
        Segment.every.add(self)


class Block:
    """A piece of a segment: ``offset`` and ``size`` in bytes, free or in use."""

    def __init__(self, offset, size):
        self.offset, self.size, self.free = offset, size, True


class PoolHandle(tuple):
    """What ``graph_pool_handle()`` and ``g.pool()`` return: a name for a pool, not the pool itself.
    It keeps no memory; the pool lives as long as a graph or a tensor in it."""

    _numbers = itertools.count(1)

    @classmethod
    def new(cls):
        return cls((0, next(cls._numbers)))


class Pool:
    """A private pool with the rules of PyTorch's CUDACachingAllocator: sizes rounded up to 512
    bytes, small (<= 1 MiB) and large segments, best fit, split, coalesce, and no block passes from
    one stream to another."""

    every = weakref.WeakValueDictionary()  # PoolHandle -> Pool

    def __init__(self, handle=None):
        self.handle = PoolHandle.new() if handle is None else handle
        self.segments, self._dead = [], collections.deque()
        Pool.every[self.handle] = self

    @classmethod
    def named(cls, handle):
        """The pool that ``handle`` names, made now if it does not exist (any more)."""
        if not isinstance(handle, PoolHandle):
            raise TypeError(
                f"pool= got {type(handle).__name__}; expected the handle of a pool: "
                "pass what graph_pool_handle() or another graph's pool() returned"
            )
        return cls.every.get(handle) or cls(handle)

    def empty(self, size, stride, dtype, stream):
        """An uninitialised tensor.  Its block is free again when its storage dies, that is, with
        the last tensor or view that uses it."""
        if 0 in size:
            return torch.empty_strided(size, stride, dtype=dtype)
        nbytes = dtype.itemsize * (1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True)))
        segment, block = self._malloc(-(-nbytes // 512) * 512, stream)
        view = memoryview(segment.raw)[block.offset : block.offset + nbytes]
        # The finalizer holds this pool, so memory with a live tensor in it stays in the count.
        weakref.finalize(view, self._died, segment, block).atexit = False
        data = torch.frombuffer(view, dtype=torch.uint8).fill_(1 if dtype == torch.bool else POISON)
        return torch.empty(0, dtype=dtype).set_(data.untyped_storage(), 0, size, stride)

    def _died(self, segment, block):
        self._dead.append((segment, block))  # a queue, as a tensor may die while we are busy

    def _malloc(self, size, stream):
        """A block of at least ``size`` bytes: the smallest free one that fits, else a new segment."""
        self._reclaim()
        small = size <= MiB
        kind = ("small" if small else "large", stream)
        fits = [
            (s, b) for s in self.segments if s.kind == kind for b in s.blocks if b.free and b.size >= size
        ]
        if not fits:
            grow = 2 * MiB if small else 20 * MiB if size < 10 * MiB else -(-size // (2 * MiB)) * 2 * MiB
            self.segments.append(Segment(grow, kind))
            fits = [(self.segments[-1], self.segments[-1].blocks[0])]
        segment, block = min(fits, key=lambda fit: (fit[1].size, fit[0].ptr + fit[1].offset))
        if block.size - size >= (512 if small else MiB + 1):  # split off what is worth keeping
            rest = Block(block.offset + size, block.size - size)
            segment.blocks.insert(segment.blocks.index(block) + 1, rest)
            block.size = size
        block.free = False
        return segment, block

    def _reclaim(self):
        while self._dead:
            segment, block = self._dead.popleft()
            blocks, block.free = segment.blocks, True
            at = blocks.index(block)
            for i in (at, at - 1):  # coalesce with either neighbour
                if 0 <= i < len(blocks) - 1 and blocks[i].free and blocks[i + 1].free:
                    blocks[i].size += blocks.pop(i + 1).size

    def reserved(self):
        """Bytes taken from the device for good: what graphs that share the pool pay only once."""
        return sum(s.size for s in self.segments)

    def allocated(self):
        """Bytes of the blocks whose tensors are still alive."""
        self._reclaim()
        return sum(b.size for s in self.segments for b in s.blocks if not b.free)


class Borrowed(Memory):
    """Memory that a graph touches but does not own: weights, KV cache, static inputs.

    A real graph keeps only the address.  We secretly keep the storage too, so that a graph whose
    input was freed cannot crash this process; when nobody *else* holds it, it counts as freed.
    """

    every = weakref.WeakValueDictionary()  # StorageImpl -> Borrowed

    def __init__(self, storage):
        super().__init__((ctypes.c_char * storage.nbytes()).from_address(storage.data_ptr()))
        self.owner, self.poisoned = storage, False
        Borrowed.every[storage._cdata] = self

    def freed(self):
        if self.owner.data_ptr() != self.ptr:
            raise RuntimeError(
                "a static input was resized after capture, so its old address is gone; the emulator stops "
                "here, a GPU would read whatever lives there now: give the input its largest size before "
                "capture, and copy_ into slices of it"
            )
        return torch._C._storage_Use_Count(self.owner._cdata) == 1

    def poison(self):
        """On a GPU another tensor would soon live here.  Be that tensor, once."""
        if not self.poisoned:
            self.bytes.fill_(POISON)
        self.poisoned = True


def memory_of(t):
    """Who owns the address of ``t``: a segment of some pool, or the world outside."""
    for segment in Segment.every:
        if segment.ptr <= t.data_ptr() < segment.ptr + segment.size:
            return segment
    storage = t.untyped_storage()
    return Borrowed.every.get(storage._cdata) or Borrowed(storage)
