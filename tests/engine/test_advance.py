"""What a step makes of each row, against a model of one row in plain Python."""

import pytest
import torch
from helpers import CONFIG, DEVICE, PLACES, small_cache
from hypothesis import given, settings
from hypothesis import strategies as st

from minillm.engine import PADDING_CONTRACT, StaticBuffers
from minillm.engine.advance import advance, find_slots
from minillm.engine.buffers import NOTHING

COLUMNS = 6
KEPT = ("stop_token", "temperature", "top_k")  # a row keeps these, and its table, when it ends


class Row:
    """A sequence that produces at most ``remaining`` tokens more, or padding when that is 0."""

    def __init__(self, position, remaining, stop, table):
        self.position, self.remaining, self.stop, self.table = position, remaining, stop, table
        self.token = 1
        if not remaining:
            self.end()

    def end(self):
        self.remaining = self.token = self.position = 0

    def slot(self, block_size):
        if not self.remaining:
            return 0
        return self.table[self.position // block_size] * block_size + self.position % block_size

    def choose(self, token):
        """The token that the row shows to the host."""
        if not self.remaining:
            return NOTHING
        if token == self.stop or self.remaining == 1:
            self.end()
        else:
            self.token, self.position, self.remaining = token, self.position + 1, self.remaining - 1
        return token

    @property
    def length(self):
        return self.position + 1


@st.composite
def rows(draw, block_size):
    position = draw(st.integers(0, COLUMNS * block_size - 8))
    remaining = draw(st.sampled_from([0, 1, 2, 3, 8]))
    table = draw(st.lists(st.integers(1, 50), min_size=COLUMNS, max_size=COLUMNS))
    return Row(position, remaining, draw(st.sampled_from([-1, 0, 2])), table)


def buffers_of(batch):
    """Rows as the engine writes them, in a bucket with two rows of padding behind."""
    static = StaticBuffers.padding(len(batch) + 2, COLUMNS, CONFIG.vocab, small_cache(2))
    static.write(
        list(range(len(batch))),
        {
            "token_ids": [row.token for row in batch],
            "positions": [row.position for row in batch],
            "context_lens": [row.length for row in batch],
            "remaining": [row.remaining for row in batch],
            "stop_token": [row.stop for row in batch],
            "temperature": [0.5] * len(batch),
            "top_k": [3] * len(batch),
            "block_tables": torch.tensor([row.table for row in batch], dtype=torch.int32, device=DEVICE),
        },
    )
    return static


def run(batch, choices, block_size):
    static = buffers_of(batch)
    kept = {name: getattr(static, name).tolist() for name in KEPT}
    tables = static.inputs.block_tables.tolist()
    for chosen in choices:
        find_slots(static, block_size)
        assert static.inputs.slot_mapping.tolist() == [row.slot(block_size) for row in batch] + [0, 0]
        tokens = torch.tensor([*chosen, 4, 2], device=DEVICE)
        advance(static, tokens)
        shown = [row.choose(token) for row, token in zip(batch, chosen, strict=True)]
        assert static.tokens.tolist() == shown + [NOTHING] * 2
        found = {name: static.rows()[name].tolist() for name in static.rows()}
        assert found["token_ids"] == [row.token for row in batch] + [0, 0]
        assert found["positions"] == [row.position for row in batch] + [0, 0]
        assert found["context_lens"] == [row.length for row in batch] + [1, 1]
        assert found["remaining"] == [row.remaining for row in batch] + [0, 0]
        assert tokens.tolist() == [*chosen, 4, 2]
        for name in KEPT:
            assert found[name] == kept[name]
        assert found["block_tables"] == tables


@settings(deadline=None, max_examples=60)
@given(data=st.data(), block_size=st.sampled_from([2, 3, 4, 16]))
def test_rows_go_on_or_become_padding_as_the_model_says(data, block_size):
    batch = data.draw(st.lists(rows(block_size), min_size=1, max_size=4), label="rows")
    tokens = st.lists(st.integers(0, 4), min_size=len(batch), max_size=len(batch))
    run(batch, data.draw(st.lists(tokens, min_size=1, max_size=7), label="tokens"), block_size)


@pytest.mark.parametrize("place", PLACES)
def test_a_text_from_its_second_token_to_its_last(place):
    with PLACES[place]():
        table = [3, 9, 1, 5, 7, 2]
        batch = [
            Row(6, 3, -1, table),
            Row(3, 8, 2, table[::-1]),
            Row(0, 0, -1, [0] * 6),
            Row(7, 1, -1, table),
        ]
        run(batch, [[1, 3, 4, 2], [2, 2, 4, 4], [1, 1, 1, 1], [1, 1, 1, 1]], 4)


def test_a_row_that_has_ended_is_padding_but_for_what_nobody_reads():
    static = buffers_of([Row(5, 1, -1, [1, 2, 3, 4, 5, 6])])
    advance(static, torch.tensor([7, 0, 0], device=DEVICE))
    find_slots(static, 4)
    for name in ("token_ids", "positions", "slot_mapping", "context_lens", "remaining"):
        assert static.rows()[name].tolist() == [PADDING_CONTRACT[name].padding] * 3
