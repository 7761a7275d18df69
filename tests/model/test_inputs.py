"""DecodeInputs: what is built on the host, what a padding row holds, and what is refused before a step."""

import dataclasses

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from minillm.config import ModelConfig
from minillm.inputs import BUFFERS, DecodeInputs
from minillm.kv_cache import PagedKVCache

CONFIG = dataclasses.replace(ModelConfig.preset("reciter"), layers=1, max_context=64)
GOOD = {
    "last_tokens": [5, 6],
    "block_tables": [[3, 1], [2]],
    "context_lens": [7, 4],
    "block_size": 4,
    "max_blocks": 3,
    "device": "cpu",
    "config": CONFIG,
    "num_blocks": 8,
}


@settings(deadline=None, max_examples=40)
@given(data=st.data(), block_size=st.integers(1, 8), batch=st.integers(1, 4))
def test_rows_say_where_the_new_token_stands(data, block_size, batch):
    lengths = data.draw(st.lists(st.integers(1, 4 * block_size), min_size=batch, max_size=batch))
    blocks = data.draw(st.permutations(range(4 * batch)))
    tables = [blocks[4 * i : 4 * i + 1 + (length - 1) // block_size] for i, length in enumerate(lengths)]
    tokens = data.draw(st.lists(st.integers(0, 95), min_size=batch, max_size=batch))
    inputs = DecodeInputs.for_sequences(tokens, tables, lengths, block_size, max_blocks=4, device="cpu")
    assert inputs.batch == batch
    assert inputs.token_ids.tolist() == tokens
    assert inputs.context_lens.tolist() == lengths
    for row, length in enumerate(lengths):
        assert inputs.positions[row] == length - 1
        block, offset = divmod(inputs.slot_mapping[row].item(), block_size)
        # The last token of a sequence lies in its last block; that block is full up to and including it.
        assert block == tables[row][-1] and (len(tables[row]) - 1) * block_size + offset + 1 == length
        width = len(tables[row])
        assert inputs.block_tables[row].tolist() == tables[row] + [0] * (4 - width)
    inputs.validate(CONFIG, PagedKVCache(CONFIG, 4 * batch, block_size, device="cpu"))


def test_more_blocks_than_needed_are_kept():
    inputs = DecodeInputs.for_sequences([1], [[5, 6, 7]], [2], block_size=4, max_blocks=4, device="cpu")
    assert inputs.block_tables.tolist() == [[5, 6, 7, 0]] and inputs.slot_mapping.tolist() == [21]


def test_padding_rows_hold_the_documented_values_and_dtypes():
    padding = DecodeInputs.padding(3, max_blocks=5, device="cpu")
    assert {name: (t.dtype, tuple(t.shape)) for name, t in padding.tensors().items()} == {
        "token_ids": (torch.int64, (3,)),
        "positions": (torch.int64, (3,)),
        "slot_mapping": (torch.int64, (3,)),
        "block_tables": (torch.int32, (3, 5)),
        "context_lens": (torch.int32, (3,)),
    }
    assert padding.context_lens.tolist() == [1, 1, 1]
    assert not any(t.any() for name, t in padding.tensors().items() if name != "context_lens")
    assert len({t.data_ptr() for t in padding.tensors().values()}) == 5
    assert all(tensor is getattr(padding, name) for name, tensor in padding.tensors().items())


def test_the_table_of_buffers_names_every_tensor_and_is_what_padding_holds():
    names = [field.name for field in dataclasses.fields(DecodeInputs)]
    assert list(BUFFERS) == names == list(DecodeInputs.padding(1, 1, "cpu").tensors())
    padding = DecodeInputs.padding(2, 3, "cpu").tensors()
    for name, buffer in BUFFERS.items():
        assert padding[name].dtype == buffer.dtype and (padding[name] == buffer.padding).all()
        assert len(buffer.why.split()) > 5  # a reason, in words


def test_padding_follows_the_table(monkeypatch):
    changed = {name: buffer._replace(padding=20 + at) for at, (name, buffer) in enumerate(BUFFERS.items())}
    for name, buffer in changed.items():
        monkeypatch.setitem(BUFFERS, name, buffer)
    padding = DecodeInputs.padding(2, 3, "cpu").tensors()
    assert [tensor.unique().tolist() for tensor in padding.values()] == [[20], [21], [22], [23], [24]]


@pytest.mark.parametrize(
    "change, error, words",
    [
        ({"last_tokens": [5]}, ValueError, "1 tokens, 2 block tables, 2 lengths"),
        ({"last_tokens": [], "block_tables": [], "context_lens": []}, ValueError, "at least one sequence"),
        ({"last_tokens": [5, 96]}, ValueError, "sequence 1: token 96 does not exist; expected 0 to 95"),
        ({"last_tokens": [-1, 6]}, ValueError, "sequence 0: token -1 does not exist"),
        ({"last_tokens": [5.0, 6]}, TypeError, "sequence 0: token 5.0 is a float; expected an integer"),
        ({"context_lens": [7.5, 4]}, TypeError, "7.5 is a float"),
        ({"context_lens": [7, 0]}, ValueError, "sequence 1: the context is 0 tokens; expected 1 to"),
        ({"context_lens": [7, 65]}, ValueError, "sequence 1: the context is 65 tokens; expected 1 to .*64"),
        (
            {"context_lens": [9, 4]},
            ValueError,
            "sequence 0: 9 tokens need 3 blocks of 4, the block table has 2",
        ),
        ({"max_blocks": 1}, ValueError, "sequence 0 has 2 blocks; expected at most max_blocks, 1"),
        ({"block_tables": [[3, 3], [2]]}, ValueError, "sequence 0: a block stands twice"),
        ({"block_tables": [[3, 8], [2]]}, ValueError, "sequence 0: block 8 does not exist; expected 0 to 7"),
        ({"block_tables": [[3, -1], [2]]}, ValueError, "sequence 0: block -1 does not exist"),
        ({"block_tables": [[3, 2], [2]], "context_lens": [8, 4]}, ValueError, "would both write slot 11"),
    ],
)
def test_sequences_that_cannot_be_are_refused_by_row(change, error, words):
    DecodeInputs.for_sequences(**GOOD)
    with pytest.raises(error, match=words):
        DecodeInputs.for_sequences(**{**GOOD, **change})


def test_vocabulary_and_blocks_are_unknown_without_config_and_num_blocks():
    loose = {**GOOD, "config": None, "num_blocks": None}
    DecodeInputs.for_sequences(**{**loose, "last_tokens": [5, 96], "block_tables": [[3, 800], [2]]})
    with pytest.raises(ValueError, match="token -1 does not exist; expected 0 or more"):
        DecodeInputs.for_sequences(**{**loose, "last_tokens": [-1, 6]})


@pytest.mark.parametrize("name", DecodeInputs.padding(1, 1, "cpu").tensors())
def test_validate_refuses_each_tensor_of_the_wrong_kind(name):
    kv = PagedKVCache(CONFIG, num_blocks=8, block_size=4, device="cpu")
    inputs = DecodeInputs.padding(2, 3, device="cpu")
    inputs.validate(CONFIG, kv)
    good = getattr(inputs, name)
    wrong_dtype = torch.int32 if good.dtype == torch.int64 else torch.int64
    for bad, error, words in [
        (good.to(wrong_dtype), TypeError, f"{name} is {wrong_dtype}; expected {good.dtype}"),
        (good.float(), TypeError, f"{name} is torch.float32"),
        (good.to("meta"), ValueError, f"{name} is on meta, the KV cache on cpu"),
        (good[None], ValueError, "has shape"),
        (good[0], ValueError, "has shape"),
        (torch.cat((good, good)), ValueError, "has shape"),
    ]:
        with pytest.raises(error, match=words):
            dataclasses.replace(inputs, **{name: bad}).validate(CONFIG, kv)


@pytest.mark.parametrize("width, fits", [(0, False), (1, True), (16, True), (17, False)])
def test_block_table_is_as_wide_as_the_longest_context_at_most(width, fits):
    kv = PagedKVCache(CONFIG, num_blocks=8, block_size=4, device="cpu")  # 64 tokens are 16 blocks of 4
    inputs = DecodeInputs.padding(2, width, device="cpu")
    if fits:
        inputs.validate(CONFIG, kv)
    else:
        with pytest.raises(
            ValueError, match=rf"block_tables has shape \[2, {width}\]; expected \[2, 1 to 16\]"
        ):
            inputs.validate(CONFIG, kv)


def test_an_empty_batch_is_refused():
    kv = PagedKVCache(CONFIG, num_blocks=8, block_size=4, device="cpu")
    with pytest.raises(ValueError, match="at least 1"):
        DecodeInputs.padding(0, 3, device="cpu").validate(CONFIG, kv)
