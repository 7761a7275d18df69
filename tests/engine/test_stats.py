"""What an engine says of its work, against counts made by hand."""

import pytest
from helpers import alone, finish, prompts_of, small_engine, small_model

from minillm import graphs
from minillm.engine import stats as module
from minillm.engine.clock import Clock
from minillm.engine.record import Record
from minillm.engine.request import Request
from minillm.engine.sampling import Sampling
from minillm.engine.stats import Latency
from minillm.engine.tally import NOT_CAPTURED, OVER_THE_TOP


@pytest.fixture(scope="module")
def model():
    return small_model()


def numbers(stats):
    return {
        "requests": stats.requests,
        "tokens": stats.tokens,
        "decode_tokens": stats.decode_tokens,
        "decode_steps": stats.decode_steps,
        "preemptions": stats.preemptions,
        "hits": dict(stats.tally.hits),
        "padded": stats.tally.padded_rows,
        "fallbacks": dict(stats.tally.fallbacks),
    }


NOTHING = dict(
    requests=0, tokens=0, decode_tokens=0, decode_steps=0, preemptions=0, hits={}, padded=0, fallbacks={}
)


def test_counts_worked_out_by_hand(model):
    engine = small_engine(model, buckets=[1, 2, 3], widths=[2, 16], sampling=False)
    assert numbers(engine.stats()) == NOTHING
    # Three prompts of 3 tokens: 6, 4 and 2 tokens. The first of each comes from the prefill, the others from
    # 5 decode steps. A step is launched before the last tokens of the one before it are looked at, so a row
    # is given up one step after its last token: 3 rows in steps 1 and 2, 2 in 3 and 4, 1 in step 5.
    for prompt, most in zip(prompts_of(3, 3, 3), (6, 4, 2), strict=True):
        engine.add(prompt, max_tokens=most)
    finish(engine)
    stats = engine.stats()
    found = numbers(stats)
    # Two blocks of 4 hold 8 tokens: the first feeds in 3 + 5, the last of which needs no third block.
    assert found == NOTHING | dict(
        requests=3,
        tokens=12,
        decode_tokens=9,
        decode_steps=5,
        hits={(3, 2): 2, (2, 2): 2, (1, 2): 1},
        padded=0,
    )
    assert stats.captured == 6 and stats.capture_seconds > 0
    assert stats.pool_bytes == graphs.pool_bytes(engine.batch.greedy.pool) > 0
    assert stats.tokens_per_second == 12 / stats.seconds
    assert stats.decode_tokens_per_second == 9 / (stats.seconds - stats.prefill_seconds)
    assert 0 < stats.prefill_seconds < stats.seconds


def test_padding_and_eager_steps_are_counted(model):
    engine = small_engine(model, buckets=[2], widths=[2], sampling=False, ahead=0)
    engine.generate(prompts_of(3), max_tokens=4)  # one row in a bucket of two, three times
    engine.generate(prompts_of(3, 3, 3), max_tokens=3)  # three rows, twice, over the top
    engine.generate(prompts_of(7), max_tokens=4)  # the second and third token need a third block
    found = numbers(engine.stats())
    assert found["hits"] == {(2, 2): 4} and found["padded"] == 4
    assert found["fallbacks"] == {OVER_THE_TOP: 4}
    assert (found["decode_steps"], found["tokens"], found["decode_tokens"]) == (8, 17, 12)
    eager = small_engine(model, use_graphs=False)
    eager.generate(prompts_of(3), max_tokens=4)
    assert numbers(eager.stats())["fallbacks"] == {NOT_CAPTURED: 3} and eager.stats().captured == 0


def test_a_stop_token_is_no_token_of_the_text(model):
    engine, (prompt,) = small_engine(model, use_graphs=False), prompts_of(4)
    text = alone(model, prompt, 8)
    at = next(i for i in range(1, 8) if text[i] not in text[:i])
    (request,) = engine.generate([prompt], max_tokens=30, stop_token=text[at])
    assert request.finish == "stop" and request.tokens == text[:at]
    found = numbers(engine.stats())
    # One step more than is needed: it was launched before the stop token was looked at.
    assert (found["tokens"], found["decode_tokens"], found["decode_steps"]) == (at, at - 1, at + 1)


def test_preemptions_are_counted_and_cost_no_token(model):
    engine = small_engine(model, num_blocks=8, use_graphs=False)
    requests = engine.generate(prompts_of(5, 6, 7), max_tokens=16)
    found = numbers(engine.stats())
    assert found["preemptions"] == sum(request.preemptions for request in requests) > 0
    # Each time that a request is computed again its next token comes from a prefill.
    assert found["tokens"] == 48 and found["decode_tokens"] == 48 - 3 - found["preemptions"]


def test_reset_counts_from_zero_also_in_the_middle(model):
    engine = small_engine(model, sampling=False)
    (prompt,) = prompts_of(3)
    engine.generate([prompt], max_tokens=5)
    before = engine.stats()
    engine.reset_stats()
    after = engine.stats()
    assert numbers(after) == NOTHING and after.seconds == 0 and after.tokens_per_second is None
    assert after.decode_tokens_per_second is None and after.time_to_first_token.p50 is None
    assert (after.captured, after.pool_bytes) == (before.captured, before.pool_bytes)
    request = engine.add(prompt, max_tokens=5)
    for _ in range(3):
        engine.step()
    seen = len(request.tokens)
    engine.reset_stats()
    finish(engine)
    assert 0 < seen < 5 and numbers(engine.stats())["tokens"] == 5 - seen
    assert engine.stats().requests == 1 and engine.stats().seconds > 0


def test_time_stands_still_when_nothing_is_to_do(model):
    engine = small_engine(model, use_graphs=False)
    engine.generate(prompts_of(3), max_tokens=3)
    assert engine.stats().seconds == engine.stats().seconds > 0
    request = engine.add(prompts_of(3)[0], max_tokens=9)
    engine.step()
    assert engine.stats().seconds < engine.stats().seconds  # it goes on while there is work
    engine.cancel(request)
    assert engine.stats().seconds == engine.stats().seconds


def test_printed_it_can_be_read(model):
    engine = small_engine(model, buckets=[2, 3], widths=[2], sampling=False)
    assert "end to end              -" in str(engine.stats())
    engine.generate(prompts_of(3, 3), max_tokens=5)
    engine.generate(prompts_of(9), max_tokens=3)
    text = str(engine.stats())
    lines = text.splitlines()
    assert all(len(line) < 110 for line in lines)
    for words in (
        "finished                3 requests, 13 tokens, 0 preemptions",
        "graphs, but eager with a temperature",
        "time to first token",
        "ms (99th percentile)",
        "capture                 2 graphs in ",
        "         2 × 2                 4         0 (0%)",
        "eager: over the largest bucket        2",
    ):
        assert words in text, text
    assert len(lines) == 11
    assert ("emulated" in lines[0]) == (graphs.backend != "cuda")


def test_percentiles_of_a_hundred_and_one_durations():
    seconds = [n / 1000 for n in range(101, 0, -1)]
    assert Latency.of(seconds) == Latency(p50=51.0, p99=100.0)
    assert Latency.of([0.25]) == Latency(250.0, 250.0)
    assert Latency.of([0.001, 0.003]) == Latency(2.0, 3.0)
    assert str(Latency.of([])) == "-"
    assert str(Latency.of([1.5])) == "1,500.00 ms (median), 1,500.00 ms (99th percentile)"


def test_latencies_of_a_request_by_hand():
    record, request = Record(), Request(0, [1], Sampling(), limit=9, arrived=10.0)
    record.began(request, 10.5)
    record.began(request, 99.0)  # again, after a preemption: the client has had its first token
    request.tokens += [1, 2, 3, 4, 5]
    record.ended(request, 12.5)
    assert record.first == [0.5] and record.between == [0.5]  # 2 seconds for the four tokens after it
    short = Request(1, [1], Sampling(), limit=9, arrived=1.0)
    record.began(short, 3.0)
    short.tokens.append(1)
    record.ended(short, 3.0)
    never = Request(2, [1], Sampling(), limit=9, arrived=1.0)
    record.ended(never, 5.0)
    assert record.first == [0.5, 2.0] and record.between == [0.5] and record.requests == 3


def test_a_clock_adds_up_its_working_time(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("minillm.engine.clock.time.perf_counter", lambda: now[0])
    monkeypatch.setattr(graphs, "backend", "emulated")
    clock = Clock()
    assert clock.busy_seconds == clock.prefill_seconds == 0
    for moment, act in [
        (1, clock.start),
        (2, clock.start),
        (5, clock.stop),
        (7, clock.stop),
        (8, clock.start),
    ]:
        now[0] = moment
        act()
    now[0] = 10.0
    assert clock.busy_seconds == 4 + 2
    with clock.prefill():
        now[0] = 13.0
    assert clock.prefill_seconds == 3


def test_where_names_the_gpu_or_says_that_it_is_none(model):
    engine = small_engine(model, use_graphs=False)
    where = module.stats_of(engine).where
    assert where.startswith("a CPU, graphs emulated") == (graphs.backend != "cuda")
