"""Lesson 03's decode loops: right where they should be, wrong where they should be, by the verse itself."""

import pytest
import torch

from minillm.graphs import backend, heap
from minillm.inputs import BUFFERS, DecodeInputs
from minillm.lab import recital_mistakes as mistakes
from minillm.lab.recital import Recital, agrees, capture, copy_rows, recite, stale
from minillm.reciter import load_reciter, texts, tokenizer

STAR, HUMPTY = "The Star\nTwinkle, tw", "Humpty Dumpty\nHumpty"


@pytest.fixture(scope="module")
def model():
    return load_reciter()


def captured(recital):
    static = recital.batch()
    return static, *capture(lambda: recital.model.decode(static, recital.kv))


@pytest.mark.parametrize("prompts", [[STAR], [HUMPTY, STAR], ["Count up\n1 2", STAR, "Months\nThirty"]])
def test_the_right_loop_recites_every_row(model, prompts):
    recital = Recital(model, *prompts)
    recite(recital, *captured(recital), steps=30)
    for row, prompt in enumerate(prompts):
        [text] = [text for text in texts().values() if text.startswith(prompt)]
        assert recital.text(row) == recital.right(row) == text[len(prompt) :][:31]


def test_a_text_ends_at_its_end(model):
    prompt = texts()["Months"][:-5]
    recital = Recital(model, prompt)
    recite(recital, *captured(recital), steps=10)
    assert recital.text() == recital.right() == texts()["Months"][-5:]


def test_what_begins_no_text_is_refused_and_takes_no_block(model):
    recital = Recital(model, STAR)
    free = recital.allocator.num_free
    with pytest.raises(ValueError, match="no text begins"):
        recital.begin("Nobody wrote this")
    assert recital.allocator.num_free == free and len(recital.rows) == 1


def test_rows_move_up_and_blocks_are_given_out_again(model):
    recital = Recital(model, STAR, HUMPTY)
    blocks = recital.rows[0].blocks
    recital.end()
    assert [row.prompt for row in recital.rows] == [HUMPTY]
    recital.begin(STAR)
    assert recital.rows[1].blocks == blocks


def filled(batch, width, value):
    rows = DecodeInputs.padding(batch, width)
    for tensor in rows.tensors().values():
        tensor.fill_(value)
    return rows


def test_copy_rows_touches_nothing_behind_the_batch():
    static, batch = filled(3, 4, 7), filled(2, 3, 5)
    addresses = [tensor.data_ptr() for tensor in static.tensors().values()]
    copy_rows(static, batch)
    assert static.positions.tolist() == [5, 5, 7]
    assert static.block_tables.tolist() == [[5, 5, 5, 7], [5, 5, 5, 7], [7] * 4]
    assert addresses == [tensor.data_ptr() for tensor in static.tensors().values()]


@pytest.mark.parametrize("name", BUFFERS)
@pytest.mark.parametrize("row", [0, 2])
def test_a_stale_value_is_found_in_a_row_of_the_batch_and_behind_it(name, row):
    static, batch = DecodeInputs.padding(3, 4), filled(2, 3, 5)
    copy_rows(static, batch)
    assert stale(static, batch) == {}
    getattr(static, name)[row] = 9
    assert stale(static, batch) == {name: 4 if name == "block_tables" else 1}


def test_a_replay_agrees_with_eager_until_a_number_is_frozen(model):
    recital = Recital(model, STAR)
    static, factor = recital.batch(), 1.0

    def step():
        return model.decode(static, recital.kv) * factor

    made = capture(step)
    assert agrees(step, *made)
    factor = 2.0
    assert not agrees(step, *made)


@pytest.mark.parametrize("keep, right", [(True, True), (False, False)])
def test_a_freed_block_table_is_another_requests(keep, right):
    with heap():
        recital = mistakes.constant_table(keep, steps=20)
        assert (recital.text() == recital.right()) is right
        assert recital.text()[0] == recital.right()[0]  # prefill is eager


def test_an_address_that_is_not_free_is_never_taken():
    with heap():
        x = torch.zeros(4)
        with pytest.raises(RuntimeError, match="is it free"):
            mistakes.take_address(x.data_ptr(), like=x, most=3)


@pytest.mark.parametrize("shared, wrong", [(True, [12]), (False, [])])
def test_a_shared_pinned_buffer_feeds_anothers_token(shared, wrong):
    with heap():
        recital, fed = mistakes.staged(shared, steps=20)
        chosen = recital.rows[0].ids[len(STAR) :]
        assert [n for n, token in enumerate(fed) if token != chosen[n]] == wrong
        assert (recital.text() == recital.right()) is (not wrong)
        if shared:
            assert fed[12] == tokenizer.encode("H")[0] and recital.text()[:13] == recital.right()[:13]


@pytest.mark.parametrize("wait", [False, True])
def test_a_busy_device_gets_what_was_written_after_its_copy_was_ordered(wait):
    with heap():
        assert mistakes.overtaken(wait) == (2 if backend == "cuda" and not wait else 1)


def test_who_has_learnt_nothing_is_everywhere_the_same_and_recites_nothing():
    one, two = mistakes.untrained_reciter(), mistakes.untrained_reciter()
    assert torch.equal(one.layers[1].qkv.weight, two.layers[1].qkv.weight)
    recital = Recital(one, STAR)
    recite(recital, *captured(recital), steps=10)
    assert recital.text() != recital.right()
