"""Memory that has an address, and pools that hand it out.

A kernel in a CUDA graph remembers its operands as raw pointers.  So the emulator needs memory that
stays where it is, a way to hold "an address with a shape" that keeps nothing alive, and a pool that
hands out addresses as PyTorch's caching allocator does, since which tensor lands on whose old
address is half of what there is to learn.

Source of the rules: c10/cuda/CUDACachingAllocator.cpp, notes "block pools" and "private pools".
"""

import bisect
import collections
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
        pointer = torch.empty(0, dtype=t.dtype)
        return like(t, pointer.set_(self.bytes.untyped_storage(), start, t.size(), t.stride()))


def like(t, other):
    """``other``, lazily conjugated and negated as ``t`` is."""
    other = other.conj() if t.is_conj() else other
    return torch._neg_view(other) if t.is_neg() else other


class Segment(Memory):
    """What one cudaMalloc returned, cut into blocks that tile it from end to end."""

    every = weakref.WeakValueDictionary()  # address -> Segment
    _sorted = []  # their addresses, in order

    def __init__(self, size, kind, pool):
        """``kind`` is ("small" or "large", stream), ``pool`` a weak reference to the pool."""
        try:
            memory = mmap.mmap(-1, size)  # page-aligned; costs nothing until it is touched
        except OSError as error:
            raise torch.OutOfMemoryError(f"no memory for {size:,} bytes (emulated: {error})") from None
        super().__init__(memory)
        self.kind, self.pool, self.blocks, self.touched = kind, pool, [Block(0, size)], 0
        Segment.every[self.ptr] = self
        Segment._sorted = sorted(Segment.every)

    @classmethod
    def at(cls, address):
        """The segment in which ``address`` lies, or None."""
        before = bisect.bisect_right(cls._sorted, address)
        segment = cls.every.get(cls._sorted[before - 1]) if before else None
        return segment if segment is not None and address < segment.ptr + segment.size else None

    def touch(self, stop, byte):
        """Up to ``stop`` the memory is in use from now on; what was not before is full of ``byte``."""
        if byte is not None and stop > self.touched:
            self.bytes[self.touched : stop] = byte
        self.touched = max(self.touched, stop)


class Block:
    """A piece of a segment: ``offset`` and ``size`` in bytes, ``free`` or not; ``tenant`` counts the tensors
    that have had it."""

    def __init__(self, offset, size):
        self.offset, self.size, self.free, self.tenant = offset, size, True, 0


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
    cached = []  # pools whose graphs are gone, until `empty_cache`

    def __init__(self, handle=None, eager=False):
        self.eager = eager  # not a graph's
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

    def empty(self, size, stride, dtype, stream, poison=True):
        """An uninitialised tensor: what the tensor before left there, and in fresh memory poison or zeros.
        Its block is free again when its storage dies, with the last tensor or view that uses it."""
        if 0 in size:  # it needs no address
            return torch.empty_strided(size, stride, dtype=dtype)
        nbytes = dtype.itemsize * (1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True)))
        segment, block = self._malloc(-(-nbytes // 512) * 512, stream)
        view = memoryview(segment.raw)[block.offset : block.offset + nbytes]
        # The finalizer holds this pool, so memory with a live tensor in it stays in the count.
        weakref.finalize(view, self._died, segment, block).atexit = False
        segment.touch(block.offset + nbytes, None if not poison else 1 if dtype == torch.bool else POISON)
        data = torch.frombuffer(view, dtype=torch.uint8)
        return torch.empty(0, dtype=dtype).set_(data.untyped_storage(), 0, size, stride)

    def _died(self, segment, block):
        self._dead.append((segment, block))  # a queue, as a tensor may die while we are busy

    def _malloc(self, size, stream):
        """A block of at least ``size`` bytes: the smallest free one that fits, else a new segment."""
        self.reclaim()
        small = size <= MiB
        kind = ("small" if small else "large", stream)
        fits = [
            (s, b) for s in self.segments if s.kind == kind for b in s.blocks if b.free and b.size >= size
        ]
        if not fits:
            grow = 2 * MiB if small else 20 * MiB if size < 10 * MiB else -(-size // (2 * MiB)) * 2 * MiB
            self.segments.append(Segment(grow, kind, weakref.ref(self)))
            fits = [(self.segments[-1], self.segments[-1].blocks[0])]
        segment, block = min(fits, key=lambda fit: (fit[1].size, fit[0].ptr + fit[1].offset))
        if block.size - size >= (512 if small else MiB + 1):  # split off what is worth keeping
            rest = Block(block.offset + size, block.size - size)
            segment.blocks.insert(segment.blocks.index(block) + 1, rest)
            block.size = size
        block.free, block.tenant = False, block.tenant + 1
        return segment, block

    def reclaim(self):
        while self._dead:
            segment, block = self._dead.popleft()
            blocks, block.free = segment.blocks, True
            at = blocks.index(block)
            for i in (at, at - 1):  # coalesce with either neighbour
                if 0 <= i < len(blocks) - 1 and blocks[i].free and blocks[i + 1].free:
                    blocks[i].size += blocks.pop(i + 1).size

    def allocated(self):
        """Bytes of the blocks whose tensors are still alive."""
        self.reclaim()
        return sum(b.size for s in self.segments for b in s.blocks if not b.free)


def empty_cache():
    """Give back what nobody uses any more: pools whose graphs and tensors are gone, and the free segments of
    a heap's pools, which no graph has a share in."""
    Pool.cached.clear()
    for pool in list(Pool.every.values()):
        if pool.eager:
            pool.reclaim()
            pool.segments = [s for s in pool.segments if not (len(s.blocks) == 1 and s.blocks[0].free)]
