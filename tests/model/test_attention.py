"""Paged attention against float64 attention without pages, over shuffled blocks in a cache full of NaN."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from minillm.attention import context_slots, paged_attention

torch.set_num_threads(1)
MODEST = settings(deadline=None, max_examples=60)
TOLERANCE = {torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}


def dense_attention(query, key, value):
    """[heads, head_dim] over [context, kv_heads, head_dim] in float64, KV heads repeated for the queries."""
    query, key, value = query.double(), key.double(), value.double()
    repeats = query.shape[0] // key.shape[1]
    key, value = key.repeat_interleave(repeats, dim=1), value.repeat_interleave(repeats, dim=1)
    scores = torch.einsum("hd,chd->hc", query, key) / query.shape[-1] ** 0.5
    return torch.einsum("hc,chd->hd", scores.softmax(-1), value)


@st.composite
def batches(draw):
    """Shapes, lengths, a block table in random order, stale columns behind each sequence's blocks."""
    block_size = draw(st.sampled_from([1, 2, 3, 8, 16]))
    max_blocks = draw(st.integers(1, 5))
    batch = draw(st.integers(1, 4))
    lengths = draw(st.lists(st.integers(1, max_blocks * block_size), min_size=batch, max_size=batch))
    num_blocks = batch * max_blocks + draw(st.integers(1, 3))
    order = draw(st.permutations(range(num_blocks)))
    needed = [-(-length // block_size) for length in lengths]
    tables, owned = [], set()
    for row in range(batch):
        mine = [order.pop() for _ in range(needed[row])]
        owned |= {(block, offset) for block in mine for offset in range(block_size)}
        tables.append(mine)
    for row in range(batch):  # stale: any block of the cache, one's own or another's
        tables[row] += draw(
            st.lists(
                st.integers(0, num_blocks - 1),
                min_size=max_blocks - needed[row],
                max_size=max_blocks - needed[row],
            )
        )
    return block_size, num_blocks, tables, lengths


@MODEST
@given(
    batch=batches(),
    kv_heads=st.sampled_from([1, 2, 3]),
    ratio=st.sampled_from([1, 2, 4, 7]),
    head_dim=st.sampled_from([4, 16, 64]),
    dtype=st.sampled_from(list(TOLERANCE)),
    seed=st.integers(0, 2**31),
)
def test_paged_attention_is_dense_attention(batch, kv_heads, ratio, head_dim, dtype, seed):
    block_size, num_blocks, tables, lengths = batch
    generator = torch.Generator().manual_seed(seed)
    key_cache = torch.full((num_blocks, block_size, kv_heads, head_dim), float("nan"), dtype=dtype)
    value_cache = key_cache.clone()
    query = torch.randn(len(lengths), kv_heads * ratio, head_dim, generator=generator).to(dtype)
    expected = []
    for row, length in enumerate(lengths):
        key = torch.randn(length, kv_heads, head_dim, generator=generator).to(dtype)
        value = torch.randn(length, kv_heads, head_dim, generator=generator).to(dtype)
        for place in range(length):  # token by token, so that the test's idea of a slot is its own
            block, offset = tables[row][place // block_size], place % block_size
            key_cache[block, offset], value_cache[block, offset] = key[place], value[place]
        expected.append(dense_attention(query[row], key, value))
    slots, mask = context_slots(
        torch.tensor(tables, dtype=torch.int32), torch.tensor(lengths, dtype=torch.int32), block_size
    )
    attended = paged_attention(query, key_cache, value_cache, slots, mask)
    assert attended.dtype == dtype and attended.shape == query.shape
    error = TOLERANCE[dtype]
    torch.testing.assert_close(attended.double(), torch.stack(expected), rtol=error, atol=error)


@MODEST
@given(batch=batches())
def test_context_slots_never_leave_the_sequence(batch):
    block_size, _, tables, lengths = batch
    slots, mask = context_slots(
        torch.tensor(tables, dtype=torch.int32), torch.tensor(lengths, dtype=torch.int32), block_size
    )
    width = len(tables[0]) * block_size
    assert slots.shape == (len(lengths), width) and slots.dtype == torch.int64
    assert mask.shape == (len(lengths), 1, 1, width) and mask.dtype == torch.bool
    for row, length in enumerate(lengths):
        own = [tables[row][place // block_size] * block_size + place % block_size for place in range(length)]
        assert slots[row].tolist() == own + [own[0]] * (width - length)
        assert mask[row, 0, 0].tolist() == [True] * length + [False] * (width - length)


@MODEST
@given(
    tokens=st.integers(1, 9),
    before=st.integers(0, 9),
    ratio=st.sampled_from([1, 3]),
    seed=st.integers(0, 2**31),
)
def test_several_queries_of_one_sequence_each_look_as_far_as_their_mask(tokens, before, ratio, seed):
    generator = torch.Generator().manual_seed(seed)
    context = before + tokens
    key_cache = torch.randn(context + 3, 1, 2, 8, generator=generator)
    value_cache = torch.randn(context + 3, 1, 2, 8, generator=generator)
    query = torch.randn(tokens, 2 * ratio, 8, generator=generator)
    slots = torch.randperm(context + 3, generator=generator)[:context]
    mask = torch.ones(tokens, context, dtype=torch.bool).tril(before)
    attended = paged_attention(query, key_cache, value_cache, slots[None], mask[None, None])
    for i in range(tokens):
        seen = slots[: before + i + 1]
        expected = dense_attention(query[i], key_cache[seen, 0], value_cache[seen, 0])
        torch.testing.assert_close(attended[i].double(), expected, rtol=1e-5, atol=1e-5)
