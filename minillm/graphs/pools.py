"""What a graph memory pool holds: segments, cut into blocks, live or dead. The same on both backends."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from . import emulator


@dataclass(frozen=True)
class Block:
    """A piece of a segment: its address, its size in bytes, and whether a tensor lives in it.

    A dead block of a graph's pool is not free: replays go on writing there. It is free for the next capture
    into that pool on the segment's stream.
    """

    address: int
    size: int
    live: bool


@dataclass(frozen=True)
class Segment:
    """What the allocator took from the device in one piece: address, size in bytes, the blocks in order.

    ``stream`` numbers the streams of one map from 0: blocks are handed out again within a stream only.
    """

    address: int
    size: int
    stream: int
    blocks: tuple[Block, ...]

    @property
    def live(self) -> int:
        """Bytes in live blocks."""
        return sum(block.size for block in self.blocks if block.live)


def pool_map(pool) -> list[Segment]:
    """The segments of a memory pool, stream by stream, by address.

    pool: what ``cuda.graph_pool_handle()`` or a graph's ``pool()`` returned; empty for a pool that holds
    nothing yet, or no longer. On a GPU it reads ``torch.cuda.memory_snapshot``, and shows what the emulator
    lacks: a live block of 32 MiB (8 MiB before Hopper) for every stream on which a product was captured is
    cuBLAS's workspace. TypeError for what is no pool handle.
    """
    if not isinstance(pool, tuple) or len(pool) != 2:
        raise TypeError(
            f"pool is a {type(pool).__name__}; expected the handle of a pool: pass what graph_pool_handle() "
            "or a graph's pool() returned"
        )
    if not isinstance(pool, emulator.memory.PoolHandle) and not torch.cuda.is_available():
        raise TypeError(f"{tuple(pool)} is the handle of a GPU's pool, and no GPU is here: capture again")
    found = sorted(_emulated(pool) if isinstance(pool, emulator.memory.PoolHandle) else _on_cuda(pool))
    numbers = {stream: n for n, stream in enumerate(dict.fromkeys(stream for *_, stream in found))}
    segments = [
        Segment(address, sum(block.size for block in blocks), numbers[stream], blocks)
        for address, blocks, stream in found
    ]
    return sorted(segments, key=lambda segment: segment.stream)


def pool_bytes(pool) -> int:
    """Bytes that a graph memory pool has taken from the device, dead blocks included; ``pool`` as above."""
    return sum(segment.size for segment in pool_map(pool))


def free_bytes() -> int | None:
    """Bytes of device memory that nobody has, torch's reserve given back first; None when emulated.

    What it falls by during a capture includes what the driver takes for the graph itself. Waits for the
    device.
    """
    from . import backend

    if backend != "cuda":
        return None
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    return torch.cuda.mem_get_info()[0]


def _emulated(pool) -> list[tuple]:
    """(address, blocks, stream) of each segment."""
    known = emulator.memory.Pool.every.get(pool)
    if known is None:
        return []
    known.reclaim()
    return [
        (s.ptr, tuple(Block(s.ptr + b.offset, b.size, not b.free) for b in s.blocks), id(s.kind[1]))
        for s in known.segments
    ]


def _on_cuda(pool) -> list[tuple]:
    """(address, blocks, stream) of each segment."""
    found = []
    for segment in torch.cuda.memory_snapshot():
        if tuple(segment["segment_pool_id"]) == tuple(pool):
            address, blocks = segment["address"], []
            for block in segment["blocks"]:  # in the order of their addresses; they tile the segment
                blocks.append(Block(address, block["size"], block["state"] == "active_allocated"))
                address += block["size"]
            found.append((segment["address"], tuple(blocks), segment["stream"]))
    return found
