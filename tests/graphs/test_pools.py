"""What a pool holds, block by block, on both backends."""

import gc

import pytest
import torch

from minillm import graphs
from minillm.graphs import emulator

MiB = 1 << 20


def block_of(t, segments):
    return next(b for s in segments for b in s.blocks if b.address <= t.data_ptr() < b.address + b.size)


def test_a_small_and_a_large_output(device, grab):
    x, y = torch.ones(100, device=device), torch.ones(3 * MiB // 4, device=device)
    g, (a, b) = grab(lambda: (x + 1, y + 1))
    small, large = sorted(graphs.pool_map(g.pool()), key=lambda segment: segment.size)
    assert [(c.size, c.live) for c in small.blocks] == [(512, True), (2 * MiB - 512, False)]
    assert [(c.size, c.live) for c in large.blocks] == [(3 * MiB, True), (17 * MiB, False)]
    assert small.blocks[0].address == small.address == a.data_ptr() and large.address == b.data_ptr()
    assert small.stream == large.stream == 0 and (small.live, large.live) == (512, 3 * MiB)
    assert graphs.pool_bytes(g.pool()) == small.size + large.size == 22 * MiB


def test_blocks_tile_their_segments_and_die_with_their_tensors(device, grab):
    x = torch.ones(1000, device=device)
    g, outputs = grab(lambda: [x + k for k in range(4)])
    (segment,) = before = graphs.pool_map(g.pool())
    addresses = [block.address for block in segment.blocks]
    assert addresses == [segment.address + at for at in (0, 4096, 8192, 12288, 16384)]
    assert sum(block.size for block in segment.blocks) == segment.size == 2 * MiB
    assert all(block_of(t, before).live for t in outputs)
    third = outputs.pop(2).data_ptr()
    (segment,) = graphs.pool_map(g.pool())
    assert [b.address for b in segment.blocks if not b.live] == [third, segment.address + 16384]
    outputs.clear()
    (segment,) = graphs.pool_map(g.pool())  # neighbours become one block, and the segment stays
    assert [(b.size, b.live) for b in segment.blocks] == [(2 * MiB, False)] and segment.live == 0


def test_streams_are_told_apart(cuda, device, grab):
    pool, x = cuda.graph_pool_handle(), torch.ones(1000, device=device)
    one, two = cuda.Stream(), cuda.Stream()
    kept = [grab(lambda: x + 1, pool=pool, stream=stream) for stream in (one, two, one)]
    streams = [s.stream for s in graphs.pool_map(pool)]
    assert streams == [0, 1] and graphs.pool_bytes(pool) == 4 * MiB
    homes = [
        next(s.stream for s in graphs.pool_map(pool) if s.address <= y.data_ptr() < s.address + s.size)
        for _, y in kept
    ]
    assert homes[0] == homes[2] != homes[1]


def test_a_pool_that_holds_nothing(cuda, device, grab):
    assert graphs.pool_map(cuda.graph_pool_handle()) == []
    g, out = grab(lambda: torch.ones(4, device=device))
    pool = g.pool()
    assert graphs.pool_bytes(pool) == 2 * MiB
    del g, out
    gc.collect()
    assert graphs.pool_bytes(pool) == 2 * MiB  # the allocator keeps it until it is asked, or captures again
    cuda.empty_cache()
    assert graphs.pool_map(pool) == [] and graphs.pool_bytes(pool) == 0


@pytest.mark.parametrize("pool", [None, 0, "pool", (1, 2, 3), emulator.CUDAGraph()])
def test_what_is_no_pool(pool):
    with pytest.raises(TypeError, match="expected the handle of a pool"):
        graphs.pool_map(pool)


def test_the_eager_pool_of_a_heap():
    with emulator.heap() as heap:
        x = torch.ones(3 * MiB // 4, device=emulator.device)
        (segment,) = graphs.pool_map(heap.device.handle)
        assert [(b.size, b.live) for b in segment.blocks] == [(3 * MiB, True), (17 * MiB, False)]
        assert segment.address == x.data_ptr() and heap.device.handle == (0, 0)


def test_unfaithful_no_workspaces(cuda, device, side):
    """Item 4: a stream's first captured product gives cuBLAS a workspace in the pool, which stays live."""
    a = torch.ones(16, 16, device=device)
    graphs.warm_up(lambda: a @ a)
    g = cuda.CUDAGraph()
    with cuda.graph(g, stream=side):
        y = a @ a
    pool = g.pool()
    del y
    live = [block.size for segment in graphs.pool_map(pool) for block in segment.blocks if block.live]
    assert live == [] if cuda is emulator else sum(live) in (0, 32 * MiB, 8 * MiB + 128 * 1024)
