"""The engine end to end: every text is what its prompt gives alone, whatever runs beside it."""

import warnings

import pytest
import torch
from helpers import (
    DEVICE,
    PLACES,
    alone,
    dense_forward,
    finish,
    is_greedy,
    no_leak,
    prompts_of,
    small_engine,
    small_model,
)
from test_sampling import fits
from torch import nn

from minillm import graphs
from minillm.engine import Sampling
from minillm.engine.outbox import Outbox
from minillm.engine.request import Status

PROMPTS = prompts_of(7, 1, 12, 4, 2, 9, 3)
MOST = 14


@pytest.fixture(scope="module")
def model():
    return small_model(seed=2)


@pytest.fixture(scope="module")
def texts(model):
    found = [alone(model, prompt, MOST) for prompt in PROMPTS]
    assert len(set(map(tuple, found))) == 7 and max(len(set(text)) for text in found) > 5
    assert all(is_greedy(model, prompt, text) for prompt, text in zip(PROMPTS, found, strict=True))
    return found


SETTINGS = {
    "plain": {},
    "waits for every step": {"ahead": 0},
    "two steps ahead": {"ahead": 2},
    "eager": {"use_graphs": False},
    "one row": {"max_batch": 1, "buckets": [1]},
    "a ladder": {"buckets": None, "widths": [2, 4, 16]},
    "over the top": {"buckets": [1], "widths": [3]},
    "chunks": {"prefill_budget": 5},
    "a token at a time": {"prefill_budget": 1},
    "few blocks": {"num_blocks": 8},
    "few blocks and chunks, far ahead": {"num_blocks": 8, "prefill_budget": 3, "ahead": 2},
    "blocks of one token": {"block_size": 1, "num_blocks": 90, "widths": [64]},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_texts_are_those_of_each_prompt_alone(name, model, texts):
    engine = small_engine(model, **{"sampling": False, **SETTINGS[name]})
    for _ in range(2):  # the second time in rows and blocks that were used before
        requests = engine.generate(PROMPTS, max_tokens=MOST)
        assert [request.tokens for request in requests] == texts
        assert {request.finish for request in requests} == {"length"}
        assert all(r.preemptions == 0 for r in requests) == (not name.startswith("few blocks"))
        assert no_leak(engine)


@pytest.mark.parametrize("change", [{}, {"num_blocks": 8, "prefill_budget": 5, "widths": [2, 8]}])
def test_the_same_where_device_and_host_memory_are_apart(change):
    with PLACES["heap"]():
        model = small_model(seed=2)
        engine = small_engine(model, **change)
        requests = engine.generate(PROMPTS[:4], max_tokens=8)
        drawn = engine.generate(PROMPTS[:3], max_tokens=5, temperature=1.0, top_k=9)
        assert engine.mode == "graphs" and no_leak(engine)
        for request in requests:
            assert len(request.tokens) == 8 and is_greedy(model, request.prompt, request.tokens)
        assert all(among_the_likeliest(model, request, 9) for request in drawn)


# ---- how a text ends
def test_a_stop_token_ends_a_text_and_is_not_part_of_it(model, texts):
    for stop in {texts[0][3], texts[2][0], texts[5][-1]}:
        engine = small_engine(model, sampling=False)
        for text, request in zip(
            texts, engine.generate(PROMPTS, max_tokens=MOST, stop_token=stop), strict=True
        ):
            if stop in text:
                assert request.tokens == text[: text.index(stop)] and request.finish == "stop"
            else:
                assert request.tokens == text and request.finish == "length"
        assert no_leak(engine)


def test_each_request_has_a_stop_token_of_its_own(model, texts):
    engine = small_engine(model, sampling=False)
    stops = [text[at] for text, at in zip(texts, (3, 0, 5, 2, 1, 6, 4), strict=True)]
    requests = [
        engine.add(prompt, max_tokens=MOST, stop_token=stop)
        for prompt, stop in zip(PROMPTS, stops, strict=True)
    ]
    finish(engine)
    for request, text, stop in zip(requests, texts, stops, strict=True):
        assert request.tokens == text[: text.index(stop)] and request.finish == "stop"


@pytest.mark.parametrize("most", [1, 2, 3])
def test_so_many_tokens_and_no_more(most, model, texts):
    engine = small_engine(model, sampling=False)
    requests = engine.generate(PROMPTS, max_tokens=most)
    assert [request.tokens for request in requests] == [text[:most] for text in texts]
    assert {request.finish for request in requests} == {"length"} and no_leak(engine)
    # A first token comes from the prefill; three rows are served at a time.
    assert engine.stats().decode_steps == 0 if most == 1 else engine.stats().decode_steps >= most - 1


@pytest.mark.parametrize("ahead", [0, 1, 2])
@pytest.mark.parametrize("max_context, block_size", [(16, 4), (18, 4), (13, 1), (5, 8), (64, 16)])
def test_a_text_goes_on_to_exactly_the_maximum_context(max_context, block_size, ahead, model):
    """The last token is not fed in, so it is one more than the cache must hold."""
    engine = small_engine(
        model,
        max_context=max_context,
        block_size=block_size,
        widths=[-(-max_context // block_size)],
        use_graphs=ahead < 2,
        sampling=False,
        ahead=ahead,
    )
    lengths = (max_context, max_context - 1, 1, max_context // 2)
    requests = engine.generate(prompts_of(*lengths))
    for request, length in zip(requests, lengths, strict=True):
        assert len(request.tokens) == max_context + 1 - length and request.finish == "context"
        assert is_greedy(model, request.prompt, request.tokens)
    assert no_leak(engine)


def test_max_tokens_beyond_the_context_ends_with_the_context_and_equal_to_it_with_the_length(model):
    engine = small_engine(model, max_context=16, widths=[4], sampling=False)
    prompts = prompts_of(6, 6, 6)
    requests = [
        engine.add(prompt, max_tokens=most) for prompt, most in zip(prompts, (10, 11, 12), strict=True)
    ]
    finish(engine)
    assert [len(request.tokens) for request in requests] == [10, 11, 11]
    assert [request.finish for request in requests] == ["length", "length", "context"]


def test_a_prompt_whose_only_token_comes_with_the_prefill_does_not_reach_behind_the_tables(model):
    """Its token would stand in a block that it has not, and in a column that the graph has not."""
    engine = small_engine(model, widths=[1, 16], sampling=False)
    full, short = prompts_of(4, 1)
    requests = [engine.add(full, max_tokens=1), engine.add(short, max_tokens=3)]
    finish(engine)
    assert [len(request.tokens) for request in requests] == [1, 3] and engine.stats().tally.hits == {
        (3, 1): 2
    }
    assert all(is_greedy(model, request.prompt, request.tokens) for request in requests)


# ---- drawn tokens
def among_the_likeliest(model, request, top_k):
    logits = dense_forward(model, request.prompt + request.tokens[:-1])[len(request.prompt) - 1 :]
    own = logits.gather(1, torch.tensor(request.tokens)[:, None])
    return bool(((logits > own + 1e-3).sum(1) < top_k).all())


@pytest.mark.parametrize("use_graphs", [True, False])
def test_draws_follow_the_softmax_in_the_prefill_and_in_the_steps(use_graphs, model):
    """One prompt 1,500 times: its first token, and the second after the commonest first."""
    engine = small_engine(model, max_batch=50, buckets=[50], num_blocks=101, use_graphs=use_graphs)
    prompt, sampling = PROMPTS[3], Sampling(max_tokens=2, temperature=1.5, top_k=6)
    requests = engine.generate([prompt] * 1500, sampling)
    first = torch.tensor([request.tokens[0] for request in requests])
    assert fits(first, expected(model, prompt, sampling))
    common = first.mode().values.item()
    second = torch.tensor([r.tokens[1] for r in requests if r.tokens[0] == common])
    assert len(second) > 200 and fits(second, expected(model, [*prompt, common], sampling))


def expected(model, tokens, sampling):
    logits = dense_forward(model, tokens)[-1] / sampling.temperature
    logits[logits.argsort(descending=True)[sampling.top_k :]] = -torch.inf
    return logits.softmax(0)


def test_greedy_requests_are_not_disturbed_by_others_that_draw(model, texts):
    engine = small_engine(model)
    requests = []
    for row, prompt in enumerate(PROMPTS):
        choices = ({}, {"temperature": 2.0, "top_k": 5}, {"temperature": 0.8, "top_k": 1})[row % 3]
        requests.append(engine.add(prompt, max_tokens=MOST, **choices))
    finish(engine)
    assert engine.mode == "graphs" and not engine.stats().tally.fallbacks
    for row, request in enumerate(requests):
        if row % 3 == 1:
            assert len(request.tokens) == MOST and among_the_likeliest(model, request, 5)
        else:
            assert request.tokens == texts[row]


def test_a_seed_names_the_texts(model):
    def drawn(seed):
        engine = small_engine(model, seed=seed, use_graphs=False)
        return [r.tokens for r in engine.generate(PROMPTS[:3], max_tokens=MOST, temperature=1.0)]

    first = drawn(1)
    assert first == drawn(1) != drawn(2)
    assert len({tuple(text) for text in first}) == 3


def test_without_graphs_for_them_drawn_requests_run_eagerly_and_greedy_ones_do_not(model, texts):
    engine = small_engine(model, sampling=False)
    assert engine.mode == "graphs, but eager with a temperature: no graphs were asked for"
    (request,) = engine.generate(PROMPTS[:1], max_tokens=6, temperature=1.0, top_k=3)
    assert among_the_likeliest(model, request, 3) and not engine.stats().tally.hits
    assert engine.generate(PROMPTS[:1], max_tokens=MOST)[0].tokens == texts[0]
    assert sum(engine.stats().tally.hits.values()) == MOST - 1


# ---- by hand
@pytest.mark.parametrize("ahead", [0, 1, 2])
def test_what_step_returns_is_every_token_once_and_in_order(ahead, model, texts):
    engine = small_engine(model, sampling=False, ahead=ahead, num_blocks=9)
    requests, heard = [], {}
    for turn in range(200):
        if turn % 3 == 0 and len(requests) < len(PROMPTS):  # they come while others run
            requests.append(engine.add(PROMPTS[len(requests)], max_tokens=MOST))
        if turn == 7:
            engine.cancel(requests[1])
        for request, token in engine.step():
            heard.setdefault(request, []).append(token)
        assert all(heard.get(request, []) == request.tokens for request in requests)
        if engine.idle and len(requests) == len(PROMPTS):
            break
    assert no_leak(engine)
    for row, request in enumerate(requests):
        assert heard.get(request, []) == request.tokens == texts[row][: len(request.tokens)]
        assert request.finish == ("cancelled" if row == 1 else "length")


def test_a_request_can_be_cancelled_wherever_it_stands(model, texts):
    engine = small_engine(model, max_batch=2, buckets=[2], prefill_budget=6, sampling=False)
    running, ending, prefilling, waiting = (
        engine.add(PROMPTS[row], max_tokens=most) for row, most in ((0, MOST), (1, 2), (2, MOST), (3, MOST))
    )
    while prefilling.status is not Status.PREFILLING:
        engine.step()
    assert waiting.status is Status.WAITING and running.status is Status.RUNNING and ending.finish
    before = (ending.tokens[:], ending.finish)
    for request in (waiting, prefilling, ending, waiting):
        engine.cancel(request)
    assert (ending.tokens, ending.finish) == before == (texts[1][:2], "length")
    assert waiting.finish == prefilling.finish == "cancelled"
    assert waiting.tokens == prefilling.tokens == [] and not prefilling.blocks
    late = engine.add(PROMPTS[4], max_tokens=MOST)
    for _ in range(3):
        engine.step()
    assert running.status is Status.RUNNING and running.tokens
    engine.cancel(running)
    kept = list(running.tokens)
    finish(engine)
    assert running.tokens == kept == texts[0][: len(kept)] and 0 < len(kept) < MOST
    assert late.tokens == texts[4] and no_leak(engine)
    assert engine.stats().requests == 2  # `ending` and `late`: those that were cancelled do not count


def test_cancelling_a_row_in_the_middle_leaves_the_others_right(model, texts):
    engine = small_engine(model, sampling=False)
    requests = [engine.add(prompt, max_tokens=MOST) for prompt in PROMPTS[:5]]
    for _ in range(4):
        engine.step()
    engine.cancel(requests[0])  # the last row moves to its place, and the fourth request joins
    finish(engine)
    assert [request.tokens for request in requests[1:]] == texts[1:5] and no_leak(engine)


def test_who_joins_may_need_a_wider_table_or_drawn_tokens(model, texts):
    """Which graph is wanted must be found out anew for a request that takes a free row, also in a turn in
    which no block is given."""
    engine = small_engine(model, widths=[3, 16], sampling=False)
    for turns in range(1, 5):
        engine.reset_stats()
        short = engine.add(PROMPTS[1], max_tokens=MOST)
        for _ in range(turns):
            engine.step()
        long = engine.add(PROMPTS[2], max_tokens=MOST)  # four blocks at once
        for _ in range(turns):
            engine.step()
        assert not engine.stats().tally.fallbacks
        engine.add(PROMPTS[3], max_tokens=3, temperature=1.0)
        finish(engine)
        assert short.tokens == texts[1] and long.tokens == texts[2]
        # Two steps with drawn tokens, for which there are no graphs here, and one that was launched ahead.
        assert sum(engine.stats().tally.fallbacks.values()) == 3


def test_an_idle_engine_has_nothing_to_say(model):
    engine = small_engine(model, use_graphs=False)
    assert engine.idle and engine.step() == [] and engine.step() == []
    assert engine.generate(PROMPTS[:1], max_tokens=2)[0].finish == "length" and engine.step() == []


def test_ladders_may_be_any_iterable(model, texts):
    engine = small_engine(model, buckets=iter([3]), widths=iter([4, 16]))
    assert engine.stats().captured == 4
    assert engine.generate(PROMPTS[:2], max_tokens=MOST)[1].tokens == texts[1]


def test_mode_and_repr(model):
    engine = small_engine(model)
    where = torch.device(DEVICE).type
    assert engine.mode == "graphs" and repr(engine) == f"<engine of reciter on {where}, 3 rows, graphs>"
    assert small_engine(model, use_graphs=False).mode == "eager: no graphs were asked for"


# ---- what goes wrong
def test_a_capture_that_fails_leaves_an_engine_that_decodes_eagerly(texts, monkeypatch):
    model = small_model(seed=2)
    decode = model.decode

    def waits(inputs, kv):
        inputs.token_ids.sum().item()
        return decode(inputs, kv)

    monkeypatch.setattr(model, "decode", waits)
    with pytest.warns(RuntimeWarning, match="decoding eagerly: the capture for 3 rows, 16 blocks failed"):
        engine = small_engine(model)
    assert engine.mode.startswith("eager: the capture for 3 rows, 16 blocks failed: ")
    assert graphs.probe() is None
    assert [r.tokens for r in engine.generate(PROMPTS, max_tokens=MOST)] == texts
    assert "eager: graphs are off" in str(engine.stats())


def test_a_model_that_fails_in_a_step_breaks_no_other_and_no_later_request(texts, monkeypatch):
    model = small_model(seed=2)
    engine = small_engine(model, sampling=False)
    request = engine.add(PROMPTS[0], max_tokens=MOST)
    engine.step()
    prefill = model.prefill_packed
    monkeypatch.setattr(model, "prefill_packed", lambda *args: prefill(*args) / 0 + None)
    with pytest.raises(TypeError):
        engine.generate(PROMPTS[1:3], max_tokens=MOST)
    monkeypatch.setattr(model, "prefill_packed", prefill)
    assert list(engine.core.requests.values()) == [request]
    assert [r.tokens for r in engine.generate(PROMPTS[1:3], max_tokens=MOST)] == texts[1:3]
    finish(engine)
    assert request.tokens == texts[0] and no_leak(engine)


def test_a_replaced_weight_is_named_before_anything_is_generated(model):
    own = small_model(seed=2)
    engine = small_engine(own, sampling=False)
    kept = own.layers[0].qkv.weight
    own.layers[0].qkv.weight = nn.Parameter(kept.clone(), requires_grad=False)
    with pytest.raises(RuntimeError, match="layers.0.qkv.weight was .*the graph still uses the old memory"):
        engine.generate(PROMPTS)
    assert engine.idle
    own.layers[0].qkv.weight = kept
    engine.kv.key[0] = engine.kv.key[0].clone()
    with pytest.raises(RuntimeError, match=r"kv.key\[0\] was"):
        engine.check_addresses()


def test_nothing_is_warned_of_in_a_good_run(model):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        small_engine(model).generate(PROMPTS, max_tokens=3, temperature=0.5)


# ---- the host waits for nothing but the step before
WAITS = ("item", "tolist", "cpu", "numpy", "__bool__", "__int__", "__float__", "nonzero")


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("use_graphs", [True, False])
def test_a_steady_step_waits_once_for_the_step_before(temperature, use_graphs, model, monkeypatch):
    engine = small_engine(model, use_graphs=use_graphs)
    requests = [engine.add(prompt, max_tokens=40, temperature=temperature) for prompt in PROMPTS[:3]]
    while not all(len(request.tokens) > 2 for request in requests):
        engine.step()
    calls = []

    def counted(owner, name, note):
        original = getattr(owner, name)

        def call(*args, **kwargs):
            calls.append(note)
            return original(*args, **kwargs)

        monkeypatch.setattr(owner, name, call)

    for name in WAITS:
        counted(torch.Tensor, name, name)
    for name in ("synchronize", "set_stream"):
        counted(graphs.cuda, name, name)
    counted(graphs.cuda.Event, "synchronize", "wait for an event")
    counted(graphs.cuda.Stream, "synchronize", "wait for a stream")
    counted(type(engine.batch), "step", "launch")
    counted(Outbox, "wait", "wait")
    own = [] if graphs.backend == "cuda" else ["wait for an event"]  # there the outbox has torch.Events
    underway = []
    wait = Outbox.wait
    monkeypatch.setattr(Outbox, "wait", lambda box, event: (underway.append(len(box)), wait(box, event)))
    if graphs.backend == "cuda":
        torch.cuda.set_sync_debug_mode("error")  # what waits without being asked to raises
    try:
        for _ in range(12):  # blocks are given in some of them
            before = len(calls)
            assert len(engine.step()) == 3
            assert calls[before:] == ["launch", "wait", *own]
    finally:
        if graphs.backend == "cuda":
            torch.cuda.set_sync_debug_mode("default")
    assert underway == [1] * 12  # the step that was launched last is not the one that is waited for
    monkeypatch.undo()
    finish(engine)


@pytest.mark.parametrize("ahead", [0, 1, 2, 3])
def test_a_token_arrives_so_many_turns_after_it_was_chosen(ahead, model):
    engine = small_engine(model, sampling=False, ahead=ahead)
    request = engine.add(PROMPTS[0], max_tokens=20)
    # Turn 1 launches the prefill and step 1. With `ahead` copies underway, of a turn's two the older comes.
    heard = [len(engine.step()) for _ in range(8)]
    assert sum(heard) == len(request.tokens) == 9 - ahead
    finish(engine)
    assert len(request.tokens) == 20


def test_tokens_that_arrive_while_another_is_cancelled_come_with_the_next_turn(model, texts):
    engine = small_engine(model, sampling=False)
    kept, dropped = (engine.add(prompt, max_tokens=MOST) for prompt in PROMPTS[:2])
    heard = [pair for _ in range(4) for pair in engine.step()]
    engine.cancel(dropped)
    while not engine.idle:
        heard += engine.step()
    assert [token for request, token in heard if request is kept] == kept.tokens == texts[0]
    assert [token for request, token in heard if request is dropped] == dropped.tokens


@pytest.mark.parametrize("ahead", [0, 1, 2])
def test_a_loop_until_idle_hears_what_came_in_with_the_last_cancellation(ahead, model, texts):
    engine, heard = small_engine(model, sampling=False, ahead=ahead), []
    request = engine.add(PROMPTS[0], max_tokens=MOST)
    for _ in range(5):
        heard += engine.step()
    engine.cancel(request)
    while not engine.idle:
        heard += engine.step()
    assert [token for _, token in heard] == request.tokens == texts[0][:6]
    assert no_leak(engine) and engine.step() == []


def test_an_idle_engine_has_nothing_underway(model, texts):
    engine = small_engine(model, sampling=False, ahead=2)
    request = engine.add(PROMPTS[0], max_tokens=MOST, stop_token=texts[0][9])
    while not engine.idle:
        engine.step()
    assert request.finish == "stop"  # the steps launched before that was known chose for nobody
    assert no_leak(engine)


def test_an_interrupted_generate_leaves_an_idle_engine(model, monkeypatch):
    engine, turns = small_engine(model, sampling=False), []
    step = engine.core.step

    def interrupted():
        turns.append(1)
        if len(turns) == 5:
            raise KeyboardInterrupt
        return step()

    monkeypatch.setattr(engine.core, "step", interrupted)
    with pytest.raises(KeyboardInterrupt):
        engine.generate(PROMPTS[:2], max_tokens=MOST)
    assert engine.idle and no_leak(engine)
