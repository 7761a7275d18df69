"""The padding contract: what is in a row that stands for no sequence, whatever was there before."""

import dataclasses

import pytest
import torch
from helpers import CONFIG, DEVICE, PLACES, small_cache, small_model
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from minillm.engine import PADDING_CONTRACT, StaticBuffers
from minillm.engine.advance import advance, find_slots
from minillm.engine.buffers import NOTHING
from minillm.engine.sampling import sample
from minillm.engine.tables import BlockTables
from minillm.inputs import DecodeInputs

# Written out, so that a change of the contract has to be made twice.
PADDING = {
    "token_ids": (torch.int64, 0),
    "positions": (torch.int64, 0),
    "slot_mapping": (torch.int64, 0),
    "block_tables": (torch.int32, 0),
    "context_lens": (torch.int32, 1),
    "remaining": (torch.int64, 0),
    "stop_token": (torch.int64, -1),
    "temperature": (torch.float32, 0),
    "top_k": (torch.int64, 0),
}
COLUMNS = 5


def buffers(batch=4, columns=COLUMNS):
    return StaticBuffers.padding(batch, columns, CONFIG.vocab, small_cache(2))


def scribble(static):
    """Put numbers everywhere that no row should ever show again."""
    for tensor in static.rows().values():
        tensor.fill_(9)


def rows_of(static, first=0, last=None):
    return {name: tensor[first:last].tolist() for name, tensor in static.rows().items()}


def padded(count, columns=COLUMNS):
    return {
        name: [[value] * columns if name == "block_tables" else value] * count
        for name, (_, value) in PADDING.items()
    }


def test_the_contract_says_dtype_value_and_reason():
    assert {name: (it.dtype, it.padding) for name, it in PADDING_CONTRACT.items()} == PADDING
    assert all(len(buffer.why.split()) > 3 for buffer in PADDING_CONTRACT.values())


def test_new_buffers_are_padding_of_the_caches_device_and_dtype():
    static = buffers()
    assert rows_of(static) == padded(4) and list(static.rows()) == list(PADDING)
    for name, tensor in static.rows().items():
        assert tensor.dtype == PADDING[name][0]
    assert static.logits.shape == (4, CONFIG.vocab) and static.logits.dtype == torch.float32
    assert static.tokens.tolist() == [NOTHING] * 4 and NOTHING < 0
    tensors = static.tensors()
    assert set(tensors) == {*PADDING, "logits", "tokens"}
    assert all(tensor.device.type == torch.device(DEVICE).type for tensor in tensors.values())
    assert len({tensor.data_ptr() for tensor in tensors.values()}) == len(tensors)


def test_buffers_made_in_inference_mode_can_be_changed_outside_of_it():
    with torch.inference_mode():
        static = buffers()
    scribble(static)
    static.pad(0)
    assert rows_of(static) == padded(4)


class Reads(TorchDispatchMode):
    """The storages that operations read or write."""

    def __init__(self):
        super().__init__()
        self.seen = set()

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        flat = [*args, *(kwargs or {}).values()]
        for item in flat + [part for it in flat if isinstance(it, (list, tuple)) for part in it]:
            if isinstance(item, torch.Tensor):
                self.seen.add(item.untyped_storage().data_ptr())
        return operation(*args, **(kwargs or {}))


def test_every_buffer_that_a_step_touches_is_in_the_contract():
    model, kv = small_model(), small_cache()
    static, generator = buffers(), torch.Generator(DEVICE)
    # To look at: everything that the step of an engine is made of.
    with Reads() as reads, torch.inference_mode():
        find_slots(static, kv.block_size)
        static.logits.copy_(model.decode(static.inputs, kv))
        advance(static, sample(static.logits, static.temperature, static.top_k, generator))
    named = {name: t.untyped_storage().data_ptr() for name, t in static.tensors().items()}
    assert {name for name, place in named.items() if place in reads.seen} == {*PADDING, "logits", "tokens"}
    fields = {f.name for f in dataclasses.fields(StaticBuffers)} | set(static.inputs.tensors())
    assert fields - {"inputs"} == set(named)


def test_views_of_the_first_rows_are_the_same_memory():
    static = buffers()
    view = static.first(2, 3)
    assert view.inputs.block_tables.shape == (2, 3) and view.logits.shape == (2, CONFIG.vocab)
    for name, tensor in view.tensors().items():
        whole = static.tensors()[name]
        assert tensor.data_ptr() == whole.data_ptr() and tensor.dtype == whole.dtype
        assert tensor.shape[0] == 2 and tensor.stride() == whole.stride()
        tensor.fill_(3)
    assert static.inputs.block_tables.tolist() == [[3, 3, 3, 0, 0]] * 2 + [[0] * 5] * 2
    assert rows_of(static, 2) == padded(2)


@st.composite
def batches(draw):
    """Tokens of 1 to 4 rows, as five lists, with a table of 1 to 5 columns."""
    count, columns = draw(st.integers(1, 4)), draw(st.integers(1, COLUMNS))
    number = st.integers(10, 99)
    rows = {
        name: draw(st.lists(number, min_size=count, max_size=count))
        for name in PADDING
        if name in DecodeInputs.padding(1, 1, "cpu").tensors()
    }
    row = st.lists(number, min_size=columns, max_size=columns)
    rows["block_tables"] = draw(st.lists(row, min_size=count, max_size=count))
    return rows


@settings(deadline=None, max_examples=40)
@given(history=st.lists(st.tuples(batches(), st.integers(0, 3)), min_size=1, max_size=4))
def test_load_leaves_nothing_of_earlier_batches_in_the_bucket(history):
    static = buffers()
    scribble(static)
    addresses = {name: tensor.data_ptr() for name, tensor in static.tensors().items()}
    for rows, more in history:
        before, count = rows_of(static), len(rows["token_ids"])
        bucket = min(4, count + more)
        tensors = {n: torch.tensor(v, dtype=PADDING[n][0], device=DEVICE) for n, v in rows.items()}
        static.load(DecodeInputs(**tensors), bucket)
        after, none = rows_of(static), padded(bucket - count)
        for name in before:
            if name not in rows:  # how tokens are chosen is not among the inputs of a decode step
                assert after[name] == before[name]
                continue
            new = rows[name]
            if name == "block_tables":
                new = [row + [0] * (COLUMNS - len(row)) for row in new]
            assert after[name] == new + none[name] + before[name][bucket:]
    assert addresses == {name: tensor.data_ptr() for name, tensor in static.tensors().items()}


def test_write_sets_some_buffers_of_some_rows_in_the_order_of_their_numbers():
    static = buffers()
    scribble(static)
    values = {name: [20 + at, 40 + at] for at, name in enumerate(PADDING) if name != "block_tables"}
    static.write([3, 1], {**values, "token_ids": torch.tensor([20, 40], device=DEVICE)})
    static.write([0], {"top_k": [5], "temperature": [0.5]})
    for name, rows in rows_of(static).items():
        first = {"top_k": 5, "temperature": 0.5}.get(name, 9)
        if name == "block_tables":
            assert rows == [[9] * COLUMNS] * 4
        else:
            assert rows == [first, values[name][1], 9, values[name][0]]


@pytest.mark.parametrize("source, target", [(3, 1), (1, 3), (2, 2)])
def test_move_copies_a_row_and_changes_no_other(source, target):
    static = buffers()
    for tensor in static.rows().values():
        tensor.copy_(torch.arange(tensor.numel(), device=DEVICE).view(tensor.shape))
    before = rows_of(static)
    static.move(source, target)
    for name, rows in rows_of(static).items():
        rows_before = list(before[name])
        rows_before[target] = rows_before[source]
        assert rows == rows_before


@pytest.mark.parametrize("first, last", [(0, None), (2, None), (1, 3), (4, None), (2, 2)])
def test_pad_makes_rows_padding_and_leaves_the_others(first, last):
    static = buffers()
    scribble(static)
    before, end = rows_of(static), 4 if last is None else last
    static.pad(first, last)
    assert rows_of(static, first, end) == padded(end - first)
    assert rows_of(static, 0, first) == {name: rows[:first] for name, rows in before.items()}
    assert rows_of(static, end) == {name: rows[end:] for name, rows in before.items()}


@pytest.mark.parametrize("place", PLACES)
def test_the_same_where_device_and_host_memory_are_apart(place):
    with PLACES[place]():
        static = buffers()
        static.write([0], {name: [5] for name in PADDING if name != "block_tables"})
        static.inputs.block_tables[0].fill_(3)
        static.move(0, 2)
        static.pad(0, 1)
        assert rows_of(static, 0, 2) == padded(2) and rows_of(static, 3) == padded(1)
        assert static.inputs.block_tables[2].tolist() == [3] * COLUMNS and static.top_k[2].item() == 5


ROW, COLUMN, BLOCK = st.integers(0, 3), st.integers(0, COLUMNS - 1), st.integers(1, 99)
CHANGES = st.one_of(
    st.tuples(st.just("set_row"), ROW, st.lists(BLOCK, max_size=COLUMNS)),
    st.tuples(st.just("set_block"), ROW, COLUMN, BLOCK),
    st.tuples(st.just("move_row"), ROW, ROW),
    st.tuples(st.just("clear")),
    st.tuples(st.just("upload")),
)


@settings(deadline=None, max_examples=60)
@example(changes=[("set_row", 3, [7, 8]), ("move_row", 3, 1), ("upload",)], underway=1, place="as it is")
@example(changes=[("set_row", 2, [7, 8]), ("upload",), ("clear",), ("upload",)], underway=1, place="as it is")
@given(changes=st.lists(CHANGES, max_size=25), underway=st.integers(1, 3), place=st.sampled_from([*PLACES]))
def test_block_tables_reach_the_device_with_the_next_upload_and_not_before(changes, underway, place):
    with PLACES[place]():
        device_tables = torch.zeros(4, COLUMNS, dtype=torch.int32, device=DEVICE)
        tables, address = BlockTables(device_tables, underway), device_tables.data_ptr()
        wanted = [[0] * COLUMNS for _ in range(4)]
        there, changed = [list(row) for row in wanted], False
        for change, *values in changes:
            getattr(tables, change)(*values)
            if change == "set_row":
                wanted[values[0]] = values[1] + [0] * (COLUMNS - len(values[1]))
            elif change == "set_block":
                wanted[values[0]][values[1]] = values[2]
            elif change == "move_row":
                moved, wanted[values[0]] = wanted[values[0]], [0] * COLUMNS
                if values[0] != values[1]:
                    wanted[values[1]] = moved
            elif change == "clear":
                wanted = [[0] * COLUMNS for _ in range(4)]
            elif changed:
                there = [list(row) for row in wanted]
            changed = change != "upload"
            assert device_tables.tolist() == there
        assert device_tables.data_ptr() == address


@pytest.mark.parametrize("underway", [1, 2, 3])
def test_an_upload_that_may_still_be_read_is_not_written_over(underway):
    class Slow:
        """Device tables whose copies happen when they are asked for, as on a GPU that is behind."""

        shape, device, waiting = (2, 3), torch.device("cpu"), []

        def copy_(self, source, non_blocking):
            assert non_blocking
            self.waiting.append(source)

    tables = BlockTables(Slow(), underway)
    for block in range(1, 20):
        tables.set_block(1, 2, block)
        tables.upload()
        late = Slow.waiting[-underway - 1 :]
        assert [copy[1, 2].item() for copy in late] == list(range(max(1, block - underway), block + 1))
