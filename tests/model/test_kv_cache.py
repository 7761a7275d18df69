"""The cache's layout and writes, and an allocator that is watched through random histories."""

import dataclasses

import pytest
import torch
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

from minillm.config import ModelConfig
from minillm.kv_cache import BlockAllocator, OutOfBlocks, PagedKVCache

CONFIG = dataclasses.replace(ModelConfig.preset("reciter"), layers=3)


def test_cache_has_its_documented_layout_and_starts_as_zeros():
    kv = PagedKVCache(CONFIG, num_blocks=5, block_size=4, device="cpu", dtype=torch.float16)
    assert len(kv.key) == len(kv.value) == 3
    for tensor in (*kv.key, *kv.value):
        assert tensor.shape == (5, 4, 2, 32) and tensor.dtype == torch.float16 and not tensor.any()
    assert (kv.num_blocks, kv.block_size, kv.dtype, kv.device) == (5, 4, torch.float16, torch.device("cpu"))
    assert kv.bytes == sum(tensor.nbytes for tensor in (*kv.key, *kv.value))
    assert len({tensor.data_ptr() for tensor in (*kv.key, *kv.value)}) == 6


def test_write_fills_the_named_slots_of_one_layer_and_no_other():
    kv = PagedKVCache(CONFIG, num_blocks=5, block_size=4, device="cpu", dtype=torch.float32)
    key, value = torch.randn(3, 2, 32), torch.randn(3, 2, 32)
    kv.write(1, torch.tensor([19, 0, 6]), key, value)  # block 4 offset 3, block 0 offset 0, block 1 offset 2
    expected_key, expected_value = torch.zeros(5, 4, 2, 32), torch.zeros(5, 4, 2, 32)
    for row, (block, offset) in enumerate([(4, 3), (0, 0), (1, 2)]):
        expected_key[block, offset], expected_value[block, offset] = key[row], value[row]
    assert torch.equal(kv.key[1], expected_key) and torch.equal(kv.value[1], expected_value)
    assert not any(kv.key[layer].any() or kv.value[layer].any() for layer in (0, 2))


@pytest.mark.parametrize("sizes", [(0, 16), (4, 0), (-1, 16)])
def test_cache_without_a_slot_is_refused(sizes):
    with pytest.raises(ValueError, match="expected 1 or more"):
        PagedKVCache(CONFIG, *sizes, device="cpu")


class AllocatorHistory(RuleBasedStateMachine):
    """Every block is free or owned by one holder; the test keeps its own books."""

    holdings = Bundle("holdings")

    @initialize(num_blocks=st.integers(2, 12), null_block=st.booleans())
    def start(self, num_blocks, null_block):
        self.allocator = BlockAllocator(num_blocks, null_block=null_block)
        self.everything = set(range(1 if null_block else 0, num_blocks))
        self.owned = set()

    @rule(target=holdings, data=st.data())
    def allocate(self, data):
        count = data.draw(st.integers(0, len(self.everything - self.owned)))
        blocks = self.allocator.allocate(count)
        assert len(blocks) == count == len(set(blocks))
        assert set(blocks) <= self.everything - self.owned
        self.owned |= set(blocks)
        return blocks

    @rule(blocks=consumes(holdings))
    def free(self, blocks):
        self.allocator.free(blocks)
        self.owned -= set(blocks)

    @rule(extra=st.integers(1, 3))
    def ask_for_too_many(self, extra):
        free = len(self.everything - self.owned)
        with pytest.raises(OutOfBlocks, match=f"{free + extra} blocks wanted, {free} free") as error:
            self.allocator.allocate(free + extra)
        assert (error.value.wanted, error.value.free) == (free + extra, free)
        assert error.value.owned == len(self.owned)

    @rule(blocks=holdings, block=st.integers(-2, 14), at=st.integers(0, 12))
    def free_what_is_not_owned(self, blocks, block, at):
        if block not in self.owned:
            # One bad block among good ones: the good ones must not be freed either.
            with pytest.raises(ValueError, match=f"block {block} is not owned"):
                self.allocator.free(blocks[:at] + [block] + blocks[at:])

    @rule(blocks=holdings)
    def free_a_block_twice_in_one_call(self, blocks):
        if blocks:
            with pytest.raises(ValueError, match="stands twice"):
                self.allocator.free(blocks + blocks[:1])

    @invariant()
    def books_agree(self):
        if hasattr(self, "allocator"):
            assert self.allocator.num_free == len(self.everything - self.owned)

    def teardown(self):
        if hasattr(self, "allocator"):  # whatever happened, all that is free can be had, and no more
            rest = self.allocator.allocate(self.allocator.num_free)
            assert set(rest) == self.everything - self.owned


TestAllocatorHistory = AllocatorHistory.TestCase
TestAllocatorHistory.settings = settings(deadline=None, max_examples=60, stateful_step_count=25)


def test_double_free_is_refused():
    allocator = BlockAllocator(4)
    blocks = allocator.allocate(2)
    allocator.free(blocks)
    with pytest.raises(ValueError, match="freed before"):
        allocator.free(blocks)
    assert allocator.num_free == 3


def test_the_null_block_belongs_to_nobody():
    allocator = BlockAllocator(4)
    assert 0 not in allocator.allocate(3)
    with pytest.raises(ValueError, match="null block"):
        allocator.free([0])
    assert sorted(BlockAllocator(4, null_block=False).allocate(4)) == [0, 1, 2, 3]


@pytest.mark.parametrize("num_blocks, null_block", [(1, True), (0, True), (0, False)])
def test_allocator_without_a_block_to_give_is_refused(num_blocks, null_block):
    with pytest.raises(ValueError, match="num_blocks"):
        BlockAllocator(num_blocks, null_block)


def test_a_negative_number_of_blocks_is_refused():
    with pytest.raises(ValueError, match="-1 blocks wanted"):
        BlockAllocator(4).allocate(-1)
