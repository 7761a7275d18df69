"""What the checks of 3.1 to 3.3 take for right, against code that is not theirs."""

import random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from minillm import graphs
from minillm.config import ModelConfig
from minillm.engine.buffers import StaticBuffers
from minillm.grading.checks.lesson03 import collect_judge, feed_judge, load_judge, watching
from minillm.grading.device_memory import as_on_a_gpu, on_device
from minillm.grading.reference import lesson03
from minillm.grading.registry import Wrong, find
from minillm.inputs import BUFFERS, DecodeInputs
from minillm.kv_cache import PagedKVCache
from minillm.model import Transformer


@pytest.fixture
def memory():
    with as_on_a_gpu():
        yield


# -- 3.1


@pytest.mark.parametrize("seed", range(4))
def test_the_watched_graph_gives_what_its_function_does_on_what_it_was_fed(memory, seed):
    rng = random.Random(seed)
    case = feed_judge.make_case(rng)
    poison, batch = (watching.random_tensor(rng, *case.static_input.shape) for _ in range(2))
    case.graph.begin(poison)
    assert not case.graph.fed
    assert torch.allclose(case.static_output.cpu(), case.step(poison).cpu())
    case.static_input.copy_(batch)
    case.graph.replay()
    assert torch.equal(case.graph.fed[0].cpu(), batch.cpu())
    assert torch.allclose(case.graph.gave[0].cpu(), case.step(batch).cpu())


def test_every_element_of_a_batch_shows_in_the_output(memory):
    case = feed_judge.make_case(random.Random(0))
    batch = case.static_input.clone()
    for row in range(batch.shape[0]):
        for column in range(batch.shape[1]):
            other = batch.clone()
            other[row, column] += 1
            changed = (case.step(other) != case.step(batch)).any(1).tolist()
            assert changed == [each == row for each in range(batch.shape[0])]


def test_a_static_input_that_is_moved_does_not_fool_the_notes(memory):
    case = feed_judge.make_case(random.Random(0))
    case.graph.begin(case.static_input.clone())
    before = case.static_input.clone()
    case.static_input.data = before + 1
    case.graph.replay()
    assert torch.equal(case.graph.fed[0].cpu(), before.cpu())


def test_an_iterator_puts_all_batches_into_one_tensor():
    batches = [torch.full((2, 3), float(n)) for n in range(3)]
    addresses = set()
    for number, batch in enumerate(feed_judge.reused(batches)):
        assert torch.equal(batch, batches[number])
        addresses.add(batch.data_ptr())
    assert len(addresses) == 1 and addresses.isdisjoint(each.data_ptr() for each in batches)


# -- 3.2


def bundles(seed, rows, columns, n, w):
    """Static tensors full of live numbers, and a smaller batch; both as the check makes them."""
    rng = random.Random(seed)
    return load_judge.make_batch(rng, rows, columns), load_judge.make_batch(rng, n, w)


sizes = st.tuples(st.integers(2, 8), st.integers(1, 7)).flatmap(
    lambda most: st.tuples(st.just(most), st.tuples(st.integers(1, most[0]), st.integers(1, most[1])))
)


@given(st.integers(0, 999), sizes)
@settings(deadline=None, max_examples=40)
def test_the_truth_is_what_the_engine_loads(seed, shapes):
    (rows, columns), (n, w) = shapes
    static, batch = bundles(seed, rows, columns, n, w)
    config = ModelConfig.preset("reciter")
    buffers = StaticBuffers.padding(rows, columns, config.vocab, PagedKVCache(config, 2))
    for name, tensor in buffers.inputs.tensors().items():
        tensor.copy_(getattr(static, name))
    buffers.load(batch, rows)
    truth = load_judge.padded(load_judge.values(batch), rows, columns)
    for name, tensor in buffers.inputs.tensors().items():
        assert truth[name].tolist() == tensor.tolist() and truth[name].dtype == tensor.dtype


def test_the_truth_by_hand():
    batch = DecodeInputs.for_sequences([7, 9], [[3, 5], [6]], [20, 2], 16, 2, device=graphs.device)
    truth = load_judge.padded(load_judge.values(batch), 4, 3)
    assert {name: tensor.tolist() for name, tensor in truth.items()} == {
        "token_ids": [7, 9, 0, 0],
        "positions": [19, 1, 0, 0],
        "slot_mapping": [5 * 16 + 3, 6 * 16 + 1, 0, 0],
        "block_tables": [[3, 5, 0], [6, 0, 0], [0, 0, 0], [0, 0, 0]],
        "context_lens": [20, 2, 1, 1],
    }


@given(st.integers(0, 999), sizes, st.sampled_from(list(BUFFERS)), st.data())
@settings(deadline=None, max_examples=60)
def test_a_single_wrong_number_is_found_and_none_where_all_are_right(seed, shapes, name, data):
    (rows, columns), (n, w) = shapes
    static, batch = bundles(seed, rows, columns, n, w)
    before, own = load_judge.values(static), load_judge.values(batch)
    after = load_judge.padded(own, rows, columns)
    assert load_judge.explain(before, after, own) is None
    flat = after[name].view(-1)
    flat[data.draw(st.integers(0, len(flat) - 1))] += data.draw(st.sampled_from([-1, 1, 5]))
    key, shown = load_judge.explain(before, after, own)
    exercise = find("3.2")
    assert exercise.explain(key) and shown == name


def test_no_live_number_can_be_taken_for_padding():
    for seed in range(20):
        static, _ = bundles(seed, 8, 1 + seed % 7, 1, 1)
        for name, tensor in static.tensors().items():
            assert int(tensor.min()) > 1, name
            assert name == "block_tables" or len(set(tensor.tolist())) == 8


@pytest.mark.parametrize("pads", [True, False])
def test_only_a_load_without_leftovers_spares_the_blocks_of_others(pads):
    """The reason for the exercise, on a model: which slots of the cache a step changes."""
    config = ModelConfig.preset("tiny")
    model, kv = Transformer(config), PagedKVCache(config, 8)
    static = DecodeInputs.for_sequences([5, 6, 7], [[1, 2], [3], [4]], [20, 9, 3], 16, 2)
    batch = DecodeInputs.for_sequences([8], [[5]], [4], 16, 1)
    if pads:
        lesson03.load(static, batch)
    else:
        for name, source in batch.tensors().items():
            getattr(static, name)[tuple(slice(size) for size in source.shape)].copy_(source)
    with torch.inference_mode():
        model.decode(static, kv)
    written = kv.key[0].flatten(1).any(1).nonzero()[:, 0].tolist()  # the cache was all zeros
    assert written == ([0, 5] if pads else [3, 4, 5])


# -- 3.3


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_no_two_steps_leave_the_same_logits(memory, dtype):
    for seed in range(4):
        rng = random.Random(seed)
        case, seen = collect_judge.make_case(rng, dtype), []
        assert case.logits.dtype == dtype
        case.state.copy_(watching.random_tensor(rng, *case.state.shape))
        for _ in range(5):
            case.graph.replay()
            seen.append(case.logits.clone())
        for i, each in enumerate(seen):
            assert not any(watching.same(each, other) for other in seen[:i])


# -- what an answer is watched for


def read_all(x):
    return [
        lambda: x.tolist(),
        lambda: x[0].item(),
        lambda: x.cpu(),
        lambda: float(x[0]),
        lambda: bool(x[0] > 0),
        lambda: x.to("cpu"),
        lambda: x.to(device="cpu"),
        lambda: torch.equal(x, x),
        lambda: torch.empty(3).copy_(x),
        lambda: torch.empty(2, 3).__setitem__(0, x),
        lambda: str(x),
        lambda: graphs.cuda.synchronize(),
        lambda: graphs.cuda.current_stream().synchronize(),
        lambda: asked_until_done(),
        lambda: x[x > 0],
        lambda: torch.empty(3, device=graphs.device).__setitem__(x > 0, x),
    ]


def asked_until_done():
    event = graphs.cuda.Event()
    event.record()
    while not event.query():
        pass


@pytest.mark.parametrize("number", range(16))
def test_waits_are_noted(memory, number):
    watch, x = watching.Watch(), torch.ones(3, device=graphs.device)
    with watch.on():
        read_all(x)[number]()
    assert len(watch.waits) >= 1


def test_what_does_not_wait_is_not_noted_and_nothing_stays_behind(memory):
    x, host = torch.ones(3, device=graphs.device), torch.arange(3.0)
    originals = [owner.synchronize for owner in (graphs.cuda, graphs.cuda.Stream, graphs.cuda.Event)]
    watch = watching.Watch()
    with pytest.raises(KeyError), watch.on():
        x[:2].copy_(x[1:].clone())
        x.copy_(host)
        x.to(x.device), x.to(torch.float16), x.shape, len(x), x.data_ptr(), x.fill_(2.0)
        host.tolist(), host[0].item(), host.numpy()
        x[x > 0] = 2.0
        raise KeyError
    assert watch.waits == [] and len(watch.written) == 4
    assert originals == [owner.synchronize for owner in (graphs.cuda, graphs.cuda.Stream, graphs.cuda.Event)]


def test_device_memory_may_be_asked_for_twice(memory):
    with as_on_a_gpu():
        assert on_device(torch.ones(1, device=graphs.device))
        assert not on_device(torch.ones(1))
        assert not on_device([1])


# -- what the notebook says


def test_the_expected_outcomes_are_what_the_solutions_give(memory):
    x, ones = torch.zeros(1, 3, device=graphs.device), torch.ones(1, 3, device=graphs.device)
    graph, y = watching.captured(lambda x: 2 * x, x)
    found = lesson03.feed(graph, x, y, [ones, 3 * ones])
    lesson03.feed(graph, x, y, [5 * ones])
    assert [each.tolist() for each in (*found, y)] == [[[2.0] * 3], [[6.0] * 3], [[10.0] * 3]]
    with pytest.raises(ValueError, match="expected"):
        lesson03.feed(graph, x, y, [ones[:, :1]])
    static, batch = DecodeInputs.padding(3, 4), DecodeInputs.for_sequences([8], [[2]], [5], 16, 1)
    lesson03.load(static, DecodeInputs.for_sequences([1, 2, 3], [[4], [5], [6]], [9, 9, 9], 16, 4))
    lesson03.load(static, batch)
    assert static.context_lens.tolist() == [5, 1, 1] and static.block_tables[0].tolist() == [2, 0, 0, 0]
    logits = torch.ones(1, 1, device=graphs.device)
    kept = lesson03.collect_logits(lambda: logits.mul_(2), logits, 3)
    assert kept.flatten().tolist() == [2, 4, 8]


def test_an_answer_that_moves_a_tensor_is_told_so_even_where_the_emulator_refuses(memory):
    case = feed_judge.make_case(random.Random(0))
    batches = [case.static_input.clone() + 1]

    def answer(graph, static_input, static_output, batches):
        static_input.set_(batches[0])
        graph.replay()
        return [static_output.clone()]

    with pytest.raises(Wrong) as wrong:
        feed_judge.judge_call(case, answer, batches, case.static_input.clone())
    assert wrong.value.key == "moved-static"
