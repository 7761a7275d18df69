"""BucketedDecoder: any batch from a few graphs, what padding does, what is counted, captures that fail."""

import warnings

import pytest
import torch
from helpers import CONFIG, DEVICE, PLACES, is_greedy, prompts_of, sequences, small_cache, small_model
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from minillm import graphs
from minillm.engine import BucketedDecoder, GraphRunner, StaticBuffers, bucketed
from minillm.engine.tally import NOT_CAPTURED, OVER_THE_TOP, Tally
from minillm.inputs import DecodeInputs

BLOCKS = 24
SEGMENT = 2 << 20  # bytes: the least that torch takes from a GPU


def decoder_of(model=None, kv=None, max_batch=4, max_context=20, capture=True, **options):
    options = {"buckets": [1, 2, 4], "widths": [2, 5], **options}
    model = model or small_model()
    decoder = BucketedDecoder(model, kv or small_cache(BLOCKS), max_batch, max_context, **options)
    if capture:
        decoder.capture()
    return decoder


@pytest.fixture(scope="module")
def decoder():
    return decoder_of()


def fresh_copy(kv):
    copy = small_cache(kv.num_blocks, kv.block_size)
    for ours, theirs in zip(copy.tensors().values(), kv.tensors().values(), strict=True):
        ours.copy_(theirs)
    return copy


def restore(kv, copy):
    for ours, theirs in zip(kv.tensors().values(), copy.tensors().values(), strict=True):
        ours.copy_(theirs)


def padded(inputs, rows, columns):
    """The same sequences in a bundle of that size, made by hand."""
    whole = DecodeInputs.padding(rows, columns, DEVICE)
    for name, tensor in inputs.tensors().items():
        target = getattr(whole, name)[: inputs.batch]
        (target[:, : tensor.shape[1]] if name == "block_tables" else target).copy_(tensor)
    return whole


@settings(deadline=None, max_examples=50)
@given(data=st.data(), batch=st.integers(1, 4), seed=st.integers(0, 1000))
def test_logits_are_those_of_an_eager_step_of_the_same_size_and_padding_harms_nobody(
    decoder, data, batch, seed
):
    lengths = data.draw(st.lists(st.integers(1, 20), min_size=batch, max_size=batch), label="lengths")
    tokens = data.draw(st.lists(st.integers(0, 49), min_size=batch, max_size=batch), label="tokens")
    inputs = sequences(tokens, lengths, seed=seed, num_blocks=BLOCKS)
    kv, model = decoder.kv, decoder.model
    torch.manual_seed(seed)
    for tensor in kv.tensors().values():
        tensor.normal_()
    before = fresh_copy(kv)
    rows = min(size for size in (1, 2, 4) if size >= batch)
    columns = 2 if inputs.block_tables.shape[1] <= 2 else 5
    expected = model.decode(padded(inputs, rows, columns), kv)
    after_eager = fresh_copy(kv)
    loose = model.decode(inputs, kv)
    restore(kv, before)
    hits = decoder.tally.hits[(rows, columns)]
    logits = decoder.decode(inputs)
    assert logits.shape == (batch, CONFIG.vocab)
    assert torch.equal(logits, expected[:batch])
    torch.testing.assert_close(logits, loose, rtol=1e-4, atol=1e-5)
    assert decoder.tally.hits[(rows, columns)] == hits + 1
    written = torch.zeros(BLOCKS * 4, dtype=torch.bool)
    written[inputs.slot_mapping.cpu()] = True
    allowed = written.clone()
    allowed[:4] = True  # the null block
    for now, eager, then in zip(*(c.tensors().values() for c in (kv, after_eager, before)), strict=True):
        assert torch.equal(now, eager)
        changed = (now != then).any(-1).any(-1).flatten().cpu()
        assert changed[written].all() and not changed[~allowed].any()


def test_a_text_decoded_in_changing_company_is_the_text_alone(decoder):
    """A wide batch first, then narrow ones: stale rows or columns would show in the text."""
    prompts, kv, model = prompts_of(3, 9, 6, 11), decoder.kv, decoder.model
    tables = [[1, 9, 4, 22, 7], [3, 5, 17, 8, 2], [12, 6, 10, 13, 15], [14, 11, 18, 16, 19]]
    texts = [[model.prefill(p, kv, table).argmax().item()] for p, table in zip(prompts, tables, strict=True)]
    for company in ([0, 1, 2, 3], [0, 1, 2, 3], [2], [1, 3], [0], [3, 0, 2], [1], [2, 1, 0, 3]):
        inputs = DecodeInputs.for_sequences(
            [texts[i][-1] for i in company],
            [tables[i] for i in company],
            [len(prompts[i]) + len(texts[i]) for i in company],
            4,
            5,
            device=DEVICE,
        )
        for i, token in zip(company, decoder.decode(inputs).argmax(-1).tolist(), strict=True):
            texts[i].append(token)
    assert [len(text) for text in texts] == [6, 6, 6, 6]
    assert all(is_greedy(model, prompt, text) for prompt, text in zip(prompts, texts, strict=True))


def test_what_is_over_the_top_runs_eagerly_and_is_counted():
    decoder = decoder_of(buckets=[2], widths=[2])
    for tensor in decoder.kv.tensors().values():
        tensor.normal_()
    cases = [([5, 9], 2, 3, 2, 5), ([5, 3, 8], 3, 2, 3, 2), ([2], 1, 1, 2, 2), ([18, 2, 1], 3, 5, 3, 5)]
    for lengths, rows, blocks, ran_rows, ran_blocks in cases:
        inputs = sequences([7] * rows, lengths, num_blocks=BLOCKS)
        assert inputs.block_tables.shape == (rows, blocks)
        expected = decoder.model.decode(padded(inputs, ran_rows, ran_blocks), decoder.kv)[:rows].clone()
        assert torch.equal(decoder.decode(inputs), expected)
        assert decoder.run(rows, blocks) == (ran_rows, ran_blocks)
    assert decoder.tally.fallbacks == {OVER_THE_TOP: 6} and decoder.tally.hits == {(2, 2): 2}


def test_a_decoder_that_was_not_captured_decodes_eagerly():
    decoder = decoder_of(capture=False)
    assert decoder.why_eager == "nothing was captured yet: call capture()"
    inputs = sequences([3, 4, 5], [5, 2, 9], num_blocks=BLOCKS)
    expected = decoder.model.decode(padded(inputs, 3, 5), decoder.kv)
    assert torch.equal(decoder.decode(inputs), expected)
    assert decoder.tally.fallbacks == {NOT_CAPTURED: 1} and not decoder.tally.hits
    decoder.capture()
    assert decoder.why_eager is None
    decoder.decode(inputs)
    assert decoder.tally.fallbacks == {NOT_CAPTURED: 1} and decoder.tally.hits == {(4, 5): 1}


def test_the_tally_of_a_case_worked_by_hand():
    tally = Tally()
    for size, rows in [((4, 16), 3), ((4, 16), 4), ((1, 16), 1), ((8, 32), 5)]:
        tally.replayed(size, rows)
    assert tally.padded_rows == 1 + 0 + 0 + 3
    assert tally.table() == [
        {"rows": 1, "blocks": 16, "hits": 1, "padded_rows": 0, "padded_share": 0.0},
        {"rows": 4, "blocks": 16, "hits": 2, "padded_rows": 1, "padded_share": 1 / 8},
        {"rows": 8, "blocks": 32, "hits": 1, "padded_rows": 3, "padded_share": 3 / 8},
    ]
    assert Tally().table() == [] and Tally().padded_rows == 0


def test_ladders_left_out_reach_both_maxima():
    model, kv = small_model(max_context=64), small_cache(4, 1)
    decoder = BucketedDecoder(model, kv, 17, 50)
    assert decoder.buckets == [1, 2, 4, 8, 16, 17] and decoder.widths == [16, 32, 50]
    assert decoder.buffers.inputs.block_tables.shape == (17, 50)
    assert BucketedDecoder(model, kv, 1).max_blocks == 64  # the model's maximum


@pytest.mark.parametrize("place", PLACES)
def test_one_pool_one_stream_the_largest_first_and_one_output(place, monkeypatch):
    captured = []

    class Noted(GraphRunner):
        def __init__(self, fn, inputs, **options):
            super().__init__(fn, inputs, **options)
            shape = tuple(inputs["block_tables"].shape)
            captured.append((shape, options["stream"], options["pool"], graphs.pool_bytes(options["pool"])))

    monkeypatch.setattr(bucketed, "GraphRunner", Noted)
    with PLACES[place]():
        decoder = decoder_of(small_model(), small_cache(BLOCKS))
        sizes, streams, pools, taken = zip(*captured, strict=True)
        assert list(sizes) == [(4, 5), (4, 2), (2, 5), (2, 2), (1, 5), (1, 2)]
        assert {id(stream) for stream in streams} == {id(decoder.stream)}
        assert {tuple(pool) for pool in pools} == {tuple(decoder.pool)}
        assert decoder.captured == 6 and decoder.capture_seconds > 0
        # The largest came first, so what it has taken serves all the others.
        assert decoder.pool_bytes == graphs.pool_bytes(decoder.pool) == taken[-1] > 0
        assert taken[-1] <= taken[0] + (SEGMENT if graphs.backend == "cuda" else 0)
        for (rows, columns), runner in decoder.runners.items():
            assert tuple(runner.graph.pool()) == tuple(decoder.pool) and runner.output is None
            for name, tensor in runner.inputs.items():
                assert tensor.data_ptr() == decoder.buffers.rows()[name].data_ptr() and len(tensor) == rows
            assert runner.inputs["block_tables"].shape == (rows, columns)
        outside = decoder.buffers.logits.data_ptr()
        assert not any(s.address <= outside < s.address + s.size for s in graphs.pool_map(decoder.pool))
        for lengths in ([3], [3, 4], [3, 4, 5], [18]):
            inputs = sequences([1] * len(lengths), lengths, num_blocks=BLOCKS)
            assert decoder.decode(inputs).data_ptr() == outside
        if graphs.backend == "cuda":
            assert decoder.device_bytes >= decoder.pool_bytes
        else:
            assert decoder.device_bytes is None


def test_a_second_decoder_can_share_buffers_pool_and_stream():
    first = decoder_of()
    shared = {"buffers": first.buffers, "pool": first.pool, "stream": first.stream}
    second = decoder_of(first.model, first.kv, **shared)
    assert second.buffers is first.buffers and second.pool_bytes == first.pool_bytes
    inputs = sequences([3, 4], [5, 2], num_blocks=BLOCKS)
    one = first.decode(inputs).clone()
    assert torch.equal(second.decode(inputs), one)
    assert first.tally.hits == second.tally.hits == {(2, 2): 1}


def test_warming_up_harms_no_kv_but_that_of_the_null_block():
    kv = small_cache(BLOCKS, fill=5.0)
    decoder = decoder_of(kv=kv, buckets=[4], widths=[5])
    for _ in range(2):
        for tensor in kv.tensors().values():
            assert (tensor[1:] == 5).all() and tensor[0].isfinite().all()
        decoder.buffers.load(sequences([1, 2, 3], [5, 9, 2], num_blocks=BLOCKS), 4)
        decoder.capture()  # also not where rows were in use


def test_a_step_of_ones_own_is_what_is_captured():
    seen = []

    def step(rows: StaticBuffers):
        seen.append(tuple(rows.inputs.block_tables.shape))
        rows.tokens.copy_(rows.inputs.token_ids * 2)

    decoder = decoder_of(step=step, buckets=[2], widths=[5])
    assert set(seen) == {(2, 5)}
    decoder.buffers.inputs.token_ids.fill_(4)
    assert decoder.run(1, 1) == (2, 5) and decoder.buffers.tokens.tolist() == [8, 8, -1, -1]
    decoder.run(3, 1)
    assert decoder.buffers.tokens.tolist() == [8, 8, 8, -1] and seen[-1] == (3, 5)


@pytest.mark.parametrize(
    "tokens, lengths, words",
    [
        ([1] * 5, [1] * 5, "5 rows with tables of 1 blocks; expected at most 4 rows and 5 blocks"),
        ([1], [24], "1 rows with tables of 6 blocks; expected at most 4 rows and 5 blocks"),
    ],
)
def test_what_the_buffers_cannot_hold_is_refused(decoder, tokens, lengths, words):
    with pytest.raises(ValueError, match=words):
        decoder.decode(sequences(tokens, lengths, num_blocks=BLOCKS))


def test_inputs_of_the_wrong_kind_are_refused_before_anything_is_copied(decoder):
    inputs = sequences([3], [5], num_blocks=BLOCKS)
    decoder.decode(inputs)
    inputs.token_ids = inputs.token_ids.int() + 1
    with pytest.raises(TypeError, match="token_ids is torch.int32; expected torch.int64"):
        decoder.decode(inputs)
    assert decoder.buffers.inputs.token_ids[0].item() == 3


@pytest.mark.parametrize("sizes", [{"buckets": [0]}, {"buckets": [5]}, {"widths": [6]}, {"widths": [0, 2]}])
def test_sizes_beyond_the_buffers_are_refused(sizes):
    with pytest.raises(ValueError, match="expected one size or more, each from 1 to"):
        decoder_of(capture=False, **sizes)


def test_replaced_weights_and_caches_are_named():
    decoder = decoder_of(buckets=[2], widths=[2])
    decoder.check_addresses()
    old = decoder.model.layers[0].qkv.weight
    decoder.model.layers[0].qkv.weight = nn.Parameter(old.clone(), requires_grad=False)
    with pytest.raises(RuntimeError, match="^layers.0.qkv.weight was"):
        decoder.check_addresses()
    decoder.model.layers[0].qkv.weight = old
    decoder.check_addresses()
    decoder.kv.value[0] = decoder.kv.value[0].clone()
    with pytest.raises(RuntimeError, match=r"^kv.value\[0\] was"):
        decoder.check_addresses()
    decoder.capture()
    decoder.check_addresses()


# ---- captures that fail: three sizes, each with a call to warm up and one that is captured
class Failing:
    """The model's decode, which in its n-th call does something else as well."""

    def __init__(self, model, at, what):
        self.decode, self.calls, self.at, self.what = model.decode, 0, at, what

    def __call__(self, inputs, kv):
        logits = self.decode(inputs, kv)
        self.calls += 1
        if self.calls == self.at:
            self.what(logits)
        return logits


def waits(logits):
    logits.sum().item()


def runs_out(logits):
    torch.empty(1 << 50, dtype=torch.uint8, device=logits.device)


def fails_in_two_lines(logits):
    raise RuntimeError("the first line\nthe second line")


def presses_ctrl_c(logits):
    raise KeyboardInterrupt


def three_sizes(model, **options):
    return decoder_of(model, small_cache(BLOCKS), buckets=[1, 2, 4], widths=[5], **options)


def works_eagerly(decoder):
    assert not decoder.runners and graphs.probe() is None
    inputs = sequences([3, 4], [5, 2], num_blocks=BLOCKS)
    expected = decoder.model.decode(inputs, decoder.kv)
    torch.testing.assert_close(decoder.decode(inputs), expected, rtol=1e-4, atol=1e-5)
    assert decoder.tally.fallbacks == {NOT_CAPTURED: 1} and not decoder.tally.hits
    decoder.check_addresses()  # nothing is captured, so nothing can be stale
    return True


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    "what, at, words",
    [
        (waits, 2, "the capture for 4 rows, 5 blocks failed: .*Error: "),
        (waits, 6, "the capture for 1 rows, 5 blocks failed: .*Error: "),
        (runs_out, 6, "the capture for 1 rows, 5 blocks failed: OutOfMemoryError: "),
        (fails_in_two_lines, 3, "the capture for 2 rows, 5 blocks failed: RuntimeError: the first line$"),
    ],
)
def test_a_capture_that_fails_leaves_a_decoder_that_says_why_and_decodes(place, what, at, words, monkeypatch):
    with PLACES[place]():
        model = small_model()
        decoder = three_sizes(model, capture=False)
        monkeypatch.setattr(model, "decode", Failing(model, at, what))
        with pytest.warns(RuntimeWarning, match="^decoding eagerly: " + words) as caught:
            decoder.capture()
        assert len(caught) == 1 and str(caught[0].message) == "decoding eagerly: " + decoder.why_eager
        assert works_eagerly(decoder)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            decoder.capture()  # what was wrong is over
        assert decoder.why_eager is None and decoder.captured == 3


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("at", [1, 2, 4])
def test_ctrl_c_in_a_capture_comes_through_and_the_process_can_go_on(place, at, monkeypatch):
    with PLACES[place]():
        model = small_model()
        decoder = three_sizes(model, capture=False)
        monkeypatch.setattr(model, "decode", Failing(model, at, presses_ctrl_c))
        with pytest.raises(KeyboardInterrupt):
            decoder.capture()
        assert decoder.why_eager and works_eagerly(decoder)
        decoder.capture()
        assert decoder.why_eager is None and decoder.captured == 3


def test_after_a_failed_capture_the_stream_of_before_is_current_and_random_numbers_come(monkeypatch):
    model, stream = small_model(), graphs.cuda.Stream()
    decoder = three_sizes(model, capture=False)
    monkeypatch.setattr(model, "decode", Failing(model, 4, waits))
    with graphs.cuda.stream(stream):
        with pytest.warns(RuntimeWarning, match="decoding eagerly"):
            decoder.capture()
        assert graphs.cuda.current_stream() == stream
        torch.rand(3, device=DEVICE)
    assert works_eagerly(decoder)


def test_a_second_capture_that_is_broken_off_leaves_no_claim_that_there_are_graphs(monkeypatch):
    model = small_model()
    decoder = three_sizes(model)
    monkeypatch.setattr(model, "decode", Failing(model, 4, presses_ctrl_c))
    with pytest.raises(KeyboardInterrupt):
        decoder.capture()
    assert decoder.why_eager and not decoder.captured and works_eagerly(decoder)


def test_a_process_that_cannot_capture_any_more_says_so(monkeypatch):
    model = small_model()
    decoder = three_sizes(model, capture=False)
    monkeypatch.setattr(model, "decode", Failing(model, 1, fails_in_two_lines))
    monkeypatch.setattr(graphs, "recover", lambda: "it is broken")
    with pytest.warns(RuntimeWarning, match="and this process cannot capture any more: it is broken"):
        decoder.capture()
    assert "it is broken" in decoder.why_eager
