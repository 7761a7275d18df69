"""Packed prefill: several prompts at once give what each gives alone, and a float64 forward with no cache."""

import dataclasses
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from minillm.config import ModelConfig
from minillm.graphs import device as DEVICE
from minillm.graphs import heap
from minillm.kv_cache import PagedKVCache
from minillm.model import Transformer
from minillm.prompts import Chunk, PackedPrompts
from minillm.upload import upload

sys.path.insert(0, str(Path(__file__).parent))
from test_model import cache_of_nan, dense_forward, random_norms  # noqa: E402

torch.set_num_threads(1)
CONFIG = dataclasses.replace(
    ModelConfig.preset("reciter"),
    layers=2,
    hidden=48,
    heads=4,
    kv_heads=2,
    head_dim=8,
    ffn=64,
    vocab=50,
    max_context=64,
    tied_head=False,
)


@pytest.fixture(scope="module")
def model():
    return random_norms(Transformer(CONFIG, device=DEVICE, dtype=torch.float32, seed=1), seed=1)


def tensors(kv):
    return (*kv.key, *kv.value)


def copied(kv):
    """A cache of its own with the same content."""
    copy = PagedKVCache(CONFIG, kv.num_blocks, kv.block_size, device=kv.device, dtype=kv.dtype)
    for ours, theirs in zip(tensors(copy), tensors(kv), strict=True):
        ours.copy_(theirs)
    return copy


def close(one, other):
    torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4, equal_nan=True)


@settings(deadline=None, max_examples=40)
@given(data=st.data(), block_size=st.sampled_from([1, 3, 4, 16]), seed=st.integers(0, 2**31))
def test_packed_is_each_alone_and_the_dense_forward(model, data, block_size, seed):
    count = data.draw(st.integers(1, 4), label="chunks")
    starts = data.draw(st.lists(st.integers(0, 9), min_size=count, max_size=count), label="starts")
    lengths = data.draw(st.lists(st.integers(1, 11), min_size=count, max_size=count), label="lengths")
    generator = torch.Generator().manual_seed(seed)
    sequences = [
        torch.randint(50, (start + length,), generator=generator).tolist()
        for start, length in zip(starts, lengths, strict=True)
    ]
    blocks = [-(-len(tokens) // block_size) for tokens in sequences]
    spare = data.draw(st.lists(st.integers(0, 2), min_size=count, max_size=count), label="spare blocks")
    owned = sum(blocks) + sum(spare)
    order = iter((torch.randperm(owned + 2, generator=generator) + 1).tolist())
    tables = [[next(order) for _ in range(n + more)] for n, more in zip(blocks, spare, strict=True)]
    kv = cache_of_nan(CONFIG, owned + 3, block_size)  # NaN wherever nothing was written, block 0 too
    for tokens, table, start in zip(sequences, tables, starts, strict=True):
        if start:
            model.prefill(tokens[:start], kv, table)
    alone, before = copied(kv), copied(kv)
    expected = [
        model.prefill(tokens[start:], alone, table, start)
        for tokens, table, start in zip(sequences, tables, starts, strict=True)
    ]
    chunks = [
        Chunk(tokens[start:], table, start)
        for tokens, table, start in zip(sequences, tables, starts, strict=True)
    ]
    logits = model.prefill_packed(PackedPrompts.pack(chunks, kv, CONFIG), kv)
    assert logits.shape == (count, CONFIG.vocab)
    for row, tokens in enumerate(sequences):
        close(logits[row], expected[row])
        close(logits[row].double().cpu(), dense_forward(model, tokens)[-1])
    written = torch.zeros(kv.num_blocks * block_size, dtype=torch.bool)
    for tokens, table, start in zip(sequences, tables, starts, strict=True):
        for place in range(start, len(tokens)):
            written[table[place // block_size] * block_size + place % block_size] = True
    for packed, single, old in zip(tensors(kv), tensors(alone), tensors(before), strict=True):
        close(packed, single)
        packed, old = packed.flatten(0, 1).cpu(), old.flatten(0, 1).cpu()
        assert torch.equal(packed[~written].nan_to_num(7), old[~written].nan_to_num(7))
        assert packed[written].isfinite().all() and old[written].isnan().all()


@pytest.mark.parametrize("size", [1, 4, 5, 11, 30])
def test_prompts_in_chunks_give_what_they_give_whole(model, size):
    generator = torch.Generator().manual_seed(2)
    prompts = [torch.randint(50, (length,), generator=generator).tolist() for length in (30, 17, 9)]
    tables = [[7, 2, 12, 1, 9, 4, 15, 11], [3, 14, 5, 8, 10], [6, 13, 16]]
    whole, parts = cache_of_nan(CONFIG, 17, 4), cache_of_nan(CONFIG, 17, 4)
    chunks = [Chunk(prompt, table) for prompt, table in zip(prompts, tables, strict=True)]
    expected = model.prefill_packed(PackedPrompts.pack(chunks, whole, CONFIG), whole)
    last = {}
    for start in range(0, 30, size):
        rows = [row for row, prompt in enumerate(prompts) if start < len(prompt)]
        chunks = [Chunk(prompts[row][start : start + size], tables[row], start) for row in rows]
        logits = model.prefill_packed(PackedPrompts.pack(chunks, parts, CONFIG), parts)
        last |= dict(zip(rows, logits, strict=True))
    for row in range(3):
        close(last[row], expected[row])
    for one, other in zip(tensors(whole), tensors(parts), strict=True):
        close(one, other)


def test_the_tensors_of_a_small_example():
    kv = PagedKVCache(CONFIG, 9, 4, device=DEVICE, dtype=torch.float32)
    packed = PackedPrompts.pack([Chunk([10, 11, 12], [5, 2, 8], 3), Chunk([20], [7, 6])], kv, CONFIG)
    found = {field.name: getattr(packed, field.name) for field in dataclasses.fields(packed)}
    assert {name: tensor.tolist() for name, tensor in found.items()} == {
        "token_ids": [10, 11, 12, 20],
        "positions": [3, 4, 5, 0],
        "slot_mapping": [5 * 4 + 3, 2 * 4, 2 * 4 + 1, 7 * 4],
        "block_tables": [[5, 2], [7, 0]],  # as wide as is needed: blocks 8 and 6 hold nothing yet
        "context_lens": [6, 1],
        "queries": [0, 1, 2, 3, 3, 3],
        "tokens": [0, 1, 2, 3],
        "last": [2, 3],
    }
    narrow = {name for name, tensor in found.items() if tensor.dtype == torch.int32}
    assert narrow == {"block_tables", "context_lens"}
    assert all(t.dtype == torch.int64 for name, t in found.items() if name not in narrow)
    assert all(tensor.device == kv.device for tensor in found.values())
    slots, mask = packed.slots_and_mask(4)
    assert slots.tolist() == [[20, 21, 22, 23, 8, 9, 20, 20], [28] * 8]
    assert mask[0, 0].sum(-1).tolist() == [4, 5, 6] and mask[1, 0].sum(-1).tolist() == [1, 1, 1]


GOOD = [Chunk([1, 2, 3], [4, 1]), Chunk([5], [2, 3], 6)]


@pytest.mark.parametrize(
    "chunks, error, words",
    [
        ([], ValueError, "no chunk to pack; expected one or more"),
        ([Chunk([], [4])], ValueError, "chunk 1: 0 tokens from position 0; expected 1 or more, from 0 on"),
        ([Chunk([1], [4], -1)], ValueError, "chunk 1: 1 tokens from position -1"),
        ([Chunk([1, 50], [4])], ValueError, "chunk 1: token 50 does not exist; expected 0 to 49"),
        ([Chunk([1, -1], [4])], ValueError, "chunk 1: token -1 does not exist"),
        ([Chunk([1.0], [4])], TypeError, "chunk 1: token 1.0 is a float; expected an integer"),
        ([Chunk([1] * 65, list(range(17)))], ValueError, "chunk 1: the context is 65 tokens; .*1 to .*64"),
        ([Chunk([1], list(range(17)), 64)], ValueError, "chunk 1: the context is 65 tokens"),
        ([Chunk([1] * 5, [4])], ValueError, "chunk 1: 5 tokens need 2 blocks of 4, the block table has 1"),
        ([Chunk([1], [], 0)], ValueError, "chunk 1: 1 tokens need 1 blocks of 4, the block table has 0"),
        ([Chunk([1], [6])], ValueError, "chunk 1: block 6 does not exist; expected 0 to 5"),
        ([Chunk([1], [-1])], ValueError, "chunk 1: block -1 does not exist"),
        ([Chunk([1], [1.0])], TypeError, "chunk 1: block 1.0 is a float"),
        ([Chunk([1] * 5, [4, 4])], ValueError, r"chunk 1: a block stands twice in the table \[4, 4\]"),
    ],
)
def test_what_cannot_be_packed_is_refused_by_chunk(chunks, error, words):
    kv = PagedKVCache(CONFIG, 6, 4, device=DEVICE, dtype=torch.float32)
    PackedPrompts.pack(GOOD, kv, CONFIG)
    with pytest.raises(error, match=words):
        PackedPrompts.pack(GOOD[:1] + chunks if chunks else [], kv, CONFIG)


def test_without_a_config_vocabulary_and_maximum_are_unknown():
    kv = PagedKVCache(CONFIG, 20, 4, device=DEVICE, dtype=torch.float32)
    PackedPrompts.pack([Chunk([99] * 66, list(range(1, 18)))], kv)
    with pytest.raises(ValueError, match="token -1 does not exist; expected 0 or more"):
        PackedPrompts.pack([Chunk([-1], [1])], kv)


def test_a_cache_of_another_model_is_refused(model):
    kv = PagedKVCache(dataclasses.replace(CONFIG, layers=3), 6, 4, device=DEVICE, dtype=torch.float32)
    with pytest.raises(ValueError, match="the KV cache was made for"):
        model.prefill_packed(PackedPrompts.pack(GOOD, kv, CONFIG), kv)
    assert not any(tensor.any() for tensor in tensors(kv))


def test_it_works_where_device_and_host_memory_are_apart():
    with heap():
        model = random_norms(Transformer(CONFIG, device=DEVICE, dtype=torch.float32, seed=1), seed=1)
        kv = cache_of_nan(CONFIG, 9, 4)
        prompts = [[3, 1, 4, 1, 5, 9, 2], [6, 5, 3]]
        tables = [[8, 3], [5]]
        model.prefill(prompts[0][:2], kv, tables[0])
        chunks = [Chunk(prompts[0][2:], tables[0], 2), Chunk(prompts[1], tables[1])]
        logits = model.prefill_packed(PackedPrompts.pack(chunks, kv, CONFIG), kv)
        for row, prompt in enumerate(prompts):
            close(logits[row].double().cpu(), dense_forward(model, prompt)[-1])


@pytest.mark.parametrize("values", [[1, 2], [[1, 2], [3, 4]], [[]], [0.5]])
@pytest.mark.parametrize("mode", [torch.inference_mode, torch.no_grad, torch.enable_grad])
def test_an_upload_is_a_tensor_of_its_own_that_can_be_changed_everywhere(values, mode):
    with mode():
        tensor = upload(values, torch.float64, DEVICE)
    assert tensor.device.type == torch.device(DEVICE).type and tensor.dtype == torch.float64
    assert tensor.tolist() == values
    tensor.add_(1)
