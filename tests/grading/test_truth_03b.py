"""What the checks of 3.4 to 3.6 take for right, and what they watch, against code that is not theirs."""

import random

import numpy
import pytest
import torch

from minillm.engine.addresses import place
from minillm.grading.checks.lesson03 import (
    guard_cases,
    stop_script,
    stop_truth,
    temperature,
    temperature_truth,
)
from minillm.grading.checks.lesson03.host_waits import HostWaits
from minillm.grading.checks.lesson03.temperature_watch import writes
from minillm.grading.device_memory import on_device
from minillm.grading.reference import lesson03
from minillm.grading.registry import Wrong
from minillm.graphs import cuda, device, heap


@pytest.fixture
def on_heap():
    with heap(), torch.no_grad():
        yield


def softmax(x):
    powers = numpy.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


# 3.4


@pytest.mark.parametrize("value", [0.3, 1.0, 2.7])
def test_the_oracle_divides_and_the_scale_is_found_again(rng, value):
    logits = torch.tensor([[rng.gauss(0, 2) for _ in range(17)] for _ in range(3)])
    found = temperature_truth.oracle(logits, value)
    assert numpy.allclose(found, softmax(logits.numpy().astype(float) / value), rtol=1e-4)
    assert temperature_truth.scale(logits, found) == pytest.approx(1 / value, rel=1e-3)
    assert temperature_truth.scale(logits, temperature_truth.oracle(logits, value, dim=0)) is None


def test_no_mistake_of_3_4_looks_like_another_or_like_none():
    """The temperatures, their inverses, their whole parts and the ones before differ."""
    seen, logits_seen = [], []

    def answer(logits):
        def run(value):
            seen.append(value)
            logits_seen.append(logits.cpu())
            return temperature_truth.oracle(logits, value)

        return run

    for seed in range(10):
        seen.clear()
        logits_seen.clear()
        with pytest.raises(Wrong) as error:  # it is eager
            temperature.check_capture_softmax(answer, random.Random(seed))
        assert error.value.key == "eager" and len(seen) == 7
        assert seen[5] == seen[4] and seen[6] == seen[0]  # for a result that is kept by its temperature
        for value, before in zip(seen[:5], seen[4:5] + seen[:4], strict=True):
            assert min(abs(value - other) for other in (1 / value, int(value), before, 1)) > 0.05
        assert not any(torch.equal(logits_seen[0], other) for other in logits_seen[1:])


def test_writing_in_place_is_known_by_name():
    for name in ("fill_", "copy_", "__setitem__", "__imul__", "__ior__"):
        assert writes(name), name
    for name in (
        "__init__",
        "__int__",
        "__index__",
        "__invert__",
        "__get__",
        "__set__",
        "add",
        "clone",
        "item",
    ):
        assert not writes(name), name


# 3.5


def cases():
    return [case for seed in range(5) for case in stop_script.make_cases(random.Random(seed))]


def test_the_rows_of_3_5_by_hand():
    for case in cases():
        for row, right in zip(case.rows, case.truth, strict=True):
            by_hand = []
            for token in row:
                if case.end_token not in by_hand:
                    by_hand.append(token)
            assert right == by_hand
        assert case.needed == max(map(len, case.truth)) <= case.max_steps == len(case.rows[0])


def test_the_cases_of_3_5_tell_the_mistakes_apart():
    at_checks, between, open_end, every_step, at_most_one = stop_script.make_cases(random.Random(0))
    assert not any(end % at_checks.check_every for end in at_checks.ends)
    assert all(end % between.check_every for end in between.ends)
    for case in (at_checks, between):
        last_late = case.needed + 2 * case.check_every
        assert last_late <= case.block <= case.max_steps - 2 * case.check_every + 1
        columns = list(zip(*case.rows, strict=True))
        together = [step for step, column in enumerate(columns) if set(column) == {case.end_token}]
        assert together == list(range(case.block - 1, case.block - 1 + case.check_every))
    starts_ended = [
        end for end, t in zip(between.ends, between.prompt, strict=True) if t == between.end_token
    ]
    others = [end for end, t in zip(between.ends, between.prompt, strict=True) if t != between.end_token]
    rounded = -(-max(others) // between.check_every) * between.check_every
    assert starts_ended == [between.needed] and rounded < between.needed
    assert open_end.needed == open_end.max_steps and open_end.max_steps % open_end.check_every
    assert every_step.check_every == 1 and at_most_one.check_every > at_most_one.max_steps


def test_the_step_writes_the_script_and_ends_with_it(on_heap):
    for case in stop_script.make_cases(random.Random(1)):
        step = stop_script.ScriptedStep(case)
        assert step.tokens.tolist() == case.prompt
        found = []
        for _ in range(case.max_steps):
            step()
            found.append(step.tokens.tolist())
        assert [list(row) for row in zip(*found, strict=True)] == case.rows
        with pytest.raises(Wrong) as error:
            step()
        assert error.value.key == "beyond-max"


def test_what_3_5_allows_and_no_more():
    """Every number of steps and waits, judged by the words of the task."""
    for case in cases():
        for steps in range(1, case.max_steps + 1):
            in_time = steps <= case.needed + case.check_every - 1
            enough = steps >= case.needed
            for waits in range(steps + 1):
                key = stop_truth.judge(case, steps, waits, case.truth)
                few = waits <= -(-steps // case.check_every) + 1
                assert (key is None) == (enough and in_time and few), (str(case), steps, waits, key)


WAITS = {
    "item": lambda x: x.sum().item(),
    "bool": lambda x: bool((x > 0).all()),
    "int": lambda x: int(x[0]),
    "if": lambda x: 1 if x[0] else 0,
    "tolist": lambda x: x.tolist(),
    "cpu": lambda x: x.cpu(),
    "to": lambda x: x.to("cpu"),
    "numpy": lambda x: x.cpu().numpy(),
    "equal": lambda x: torch.equal(x, x + 1),
    "nonzero": lambda x: x.nonzero(),
    "mask": lambda x: x[x > 0],
    "masked_select": lambda x: x.masked_select(x > 0),
    "unique": lambda x: x.unique(),
    "print": lambda x: f"{x}",
    "iteration": lambda x: [int(each) for each in x],
    "copy_ to the host": lambda x: torch.zeros(4).copy_(x),
    "copy_ to pageable memory that asks not to wait": lambda x: torch.zeros(4).copy_(x, non_blocking=True),
    "synchronize": lambda x: cuda.synchronize(),
    "stream": lambda x: cuda.current_stream().synchronize(),
    "event": lambda x: recorded().synchronize(),
    "a loop of queries": lambda x: until_reached(),
    "a mask on the left": lambda x: x.__setitem__(x > 0, x[:1].clone()),
}
NO_WAITS = {
    "arithmetic": lambda x: (x + 1).clone().sum(),
    "in place": lambda x: x.mul_(2),
    "compare": lambda x: (x == 1).all(),
    "where": lambda x: torch.where(x > 0, x, 0),
    "masked fill": lambda x: x.masked_fill_(x > 0, 1),
    "shape": lambda x: (x.shape, x.dtype, x.device, x.data_ptr(), x.stride(), len(x), x.numel()),
    "stack": lambda x: torch.stack([x, x]),
    "index": lambda x: x[x.long().clamp(0, 3)],
    "upload": lambda x: x.copy_(torch.ones(4)),
    "host values": lambda x: (torch.ones(3).sum().item(), torch.ones(3).tolist()),
    "pinned": lambda x: torch.zeros(4).pin_memory().copy_(x, non_blocking=True),
    "not blocking": lambda x: x.to("cpu", non_blocking=True),
    "event": lambda x: recorded().query(),
    "a number where a mask is": lambda x: x.__setitem__(x > 0, 1.0),
    "now and then a query": lambda x: asked_between(x),
}


def recorded():
    event = cuda.Event()
    event.record()
    return event


def asked_between(x):
    event = recorded()
    assert not event.query()  # as on a device that is busy
    x.add_(1)
    assert event.query()


def noted(op):
    x, seen = torch.tensor([1.0, 0, 2, 3]).to(device), []
    with HostWaits(lambda: seen.append(1)) as waits:
        op(x)
    return len(seen), waits.too_early


@pytest.mark.parametrize("name", WAITS)
def test_this_waits(name, on_heap):
    assert noted(WAITS[name])[0] > 0


@pytest.mark.parametrize("name", NO_WAITS)
def test_this_does_not_wait(name, on_heap):
    assert noted(NO_WAITS[name]) == (0, False)


def flag_of(x, then):
    flag = torch.zeros(4).pin_memory()
    flag.copy_(x, non_blocking=True)
    then()
    return flag.tolist()


def until_reached():
    event = recorded()
    while not event.query():
        pass


@pytest.mark.parametrize(
    "then", [until_reached, lambda: recorded().synchronize(), lambda: cuda.synchronize()]
)
def test_a_copy_may_be_read_after_a_wait(then, on_heap):
    assert noted(lambda x: flag_of(x, then))[1] is False


def test_a_copy_that_is_read_at_once_is_noticed(on_heap):
    assert noted(lambda x: flag_of(x, lambda: None))[1] is True
    assert noted(lambda x: x.to("cpu", non_blocking=True)[0].item())[1] is True


def test_afterwards_nothing_is_watched(on_heap):
    before = cuda.synchronize, cuda.Event.synchronize, cuda.Stream.synchronize, cuda.Event.query
    record = cuda.Event.record
    with pytest.raises(ZeroDivisionError):
        noted(lambda x: 1 / 0)
    assert record is cuda.Event.record
    assert before == (cuda.synchronize, cuda.Event.synchronize, cuda.Stream.synchronize, cuda.Event.query)


# 3.6


@pytest.mark.parametrize("key", guard_cases.UNCHANGED)
def test_what_a_guard_must_pass_is_where_it_was(key, on_heap):
    for seed in range(5):
        tensors = guard_cases.buffers(random.Random(seed))
        before = {name: place(tensor) for name, tensor in tensors.items()}
        current, _ = guard_cases.UNCHANGED[key](dict(tensors))
        assert {name: place(current[name]) for name in tensors} == before


FACTS = {
    "ignores-address": {0},
    "compares-values": {0},
    "ignores-shape": {1},
    "ignores-strides": {2},
    "ignores-dtype": {3},
}


@pytest.mark.parametrize("key", guard_cases.CHANGES)
def test_what_a_guard_must_find_differs_in_one_thing(key, on_heap):
    for seed in range(5):
        rng = random.Random(seed)
        tensors = guard_cases.buffers(rng)
        current, names, _ = guard_cases.CHANGES[key](dict(tensors), rng)
        differ = {}
        for name, tensor in tensors.items():
            now = place(current[name]) if name in current else ()
            facts = {i for i, fact in enumerate(place(tensor)) if not now or fact != now[i]}
            differ |= {name: facts} if facts else {}
        assert sorted(differ) == sorted(names)
        if key in FACTS:
            assert list(differ.values()) == [FACTS[key]]
        equal = [name for name in names if name in current and torch.equal(tensors[name], current[name])]
        assert equal == (names if key == "compares-values" else equal)


def test_the_buffers_are_on_the_device_and_no_name_is_part_of_another(on_heap, rng):
    tensors = guard_cases.buffers(rng)
    assert all(map(on_device, tensors.values()))
    assert not any(a != b and a in b for a in tensors for b in tensors)


def test_freed_memory_is_handed_out_and_held_memory_is_not(on_heap, rng):
    tensors = guard_cases.buffers(rng)
    held = tensors["block_tables"]
    about = held.shape, held.dtype, held.data_ptr()
    assert guard_cases.in_freed_memory(*about) is None
    view = held[0]  # it holds the memory as well
    del tensors, held
    assert guard_cases.in_freed_memory(*about) is None
    del view
    assert guard_cases.in_freed_memory(*about) is not None


# What the tasks promise


def test_the_expected_outcomes_are_what_the_solutions_give(on_heap):
    run = lesson03.capture_softmax(torch.tensor([[0.0, 1.0]]).to(device))
    for value, first in ((1.0, 0.269), (0.5, 0.119), (2.0, 0.378)):
        assert run(value)[0].tolist() == pytest.approx([first, 1 - first], abs=5e-4)

    ends, script = (3, 14, 7), torch.ones(15, 3, dtype=torch.int64)
    for row, end in enumerate(ends):
        script[end - 1, row] = 0
    script, tokens, steps, waits = script.to(device), torch.ones_like(script[0]).to(device), [], []

    def step():
        tokens.copy_(script[len(steps)])
        steps.append(1)

    with HostWaits(lambda: waits.append(len(steps))):
        rows = lesson03.decode_until_done(step, tokens, 0, 100, 5)
    assert [len(row) for row in rows] == list(ends) and all(row[-1] == 0 for row in rows)
    assert len(steps) == 15 and sorted(set(waits)) == [5, 10, 15]

    a, b = torch.ones(4, device=device), torch.ones(4, device=device)
    guard = lesson03.make_guard({"token_ids": a, "positions": b})
    b.fill_(7)
    guard({"token_ids": a, "positions": b})
    with pytest.raises(RuntimeError, match="token_ids, positions"):
        guard({"token_ids": a.clone(), "positions": b[:1]})
    with pytest.raises(RuntimeError, match="token_ids"):
        guard({"positions": b})
