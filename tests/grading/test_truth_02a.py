"""What the checks of 2.1 to 2.3 take for right, and their instruments, against code that is not theirs."""

import gc
import math
import random
import re
from pathlib import Path

import nbformat
import pytest
import torch

from minillm.grading import grade
from minillm.grading.checks.lesson02 import capturable, graph_runner
from minillm.grading.checks.lesson02.observed import Observed, judge_calls
from minillm.grading.checks.lesson02.occupancy import in_use, same, squat
from minillm.grading.checks.lesson02.penalty_truth import FORMULAS, probabilities
from minillm.grading.checks.lesson02.refused import name_refusal
from minillm.grading.checks.lesson02.waits import WaitsFor
from minillm.grading.device_memory import as_on_a_gpu, on_device
from minillm.grading.reference import lesson02
from minillm.grading.registry import Wrong
from minillm.graphs import backend, cuda, device, heap, warm_up

EXERCISES = Path(__file__).parents[2] / "exercises" / "02_stream_capture.ipynb"


def number_by_number(logits, seen, banned, penalty):
    """2.3 in plain Python."""
    rows = []
    for row, known in zip(logits.tolist(), seen.tolist(), strict=True):
        weights = []
        for score, was_seen, is_banned in zip(row, known, banned.tolist(), strict=True):
            if was_seen:
                score = score / penalty if score > 0 else score * penalty
            weights.append(0.0 if is_banned else math.exp(score))
        rows.append([weight / sum(weights) for weight in weights])
    return torch.tensor(rows, device=device)


def eager_of_the_task():
    """The function that the text of 2.3 shows."""
    cells = {cell.id: cell.source for cell in nbformat.read(EXERCISES, as_version=4).cells}
    names = {"torch": torch}
    exec(re.search(r"```python\n(.*?)```", cells["task-2-3"], re.DOTALL)[1], names)
    return names["eager_probabilities"]


@pytest.mark.parametrize("seed", range(6))
def test_probabilities_are_those_of_plain_python_and_of_the_function_to_rewrite(seed):
    case = capturable.make_case(random.Random(seed), 2 + seed % 3, 12)
    right = number_by_number(*case[:3], case[3].item())
    for function in (probabilities, eager_of_the_task(), lesson02.penalised_probabilities):
        assert torch.allclose(function(*case), right, rtol=1e-4)


@pytest.mark.parametrize("seed", range(6))
def test_every_case_of_2_3_tells_the_mistakes_apart(seed):
    case = capturable.make_case(random.Random(seed), 2, 17)
    results = [probabilities(*case), *(wrong for formula in FORMULAS.values() for wrong in formula(*case))]
    for i, one in enumerate(results):
        assert not any(same(one, other) for other in results[:i])


def test_the_function_to_rewrite_is_refused():
    outcome = grade("2.3", eager_of_the_task())
    assert outcome.misconception == "still-waits" and "At line 3" in outcome.message


def test_every_input_of_2_2_changes_every_row():
    rng = random.Random(0)
    fn, first, second = (
        graph_runner.make_fn(rng),
        graph_runner.make_values(rng, 4),
        graph_runner.make_values(rng, 4),
    )
    right = fn.compute(**first)
    for name in first:
        assert (fn.compute(**{**first, name: second[name]}) - right).abs().amax(1).min() > 1e-3


def test_a_block_is_in_use_until_its_tensor_dies():
    with as_on_a_gpu():
        x, like = torch.ones(5, 7, device=device), torch.zeros(5, 7, device=device)
        address = x.data_ptr()
        view = x[1:]
        assert in_use(address) and in_use(view.data_ptr()) and on_device(view)
        del x
        assert in_use(address)  # the view holds it
        del view
        assert in_use(address) is False
        squatters = squat(like, 40)
        assert address in [each.data_ptr() for each in squatters] and in_use(address)
        assert squatters[0].eq(77).all()


def test_the_garbage_collector_rests_and_comes_back():
    with pytest.raises(KeyError), as_on_a_gpu():
        assert not gc.isenabled()
        raise KeyError
    assert gc.isenabled()


def test_what_a_capture_makes_is_in_no_eager_block():
    with as_on_a_gpu():
        x, graph = torch.ones(4, device=device), cuda.CUDAGraph()
        warm_up(lambda: x + 1)
        with cuda.graph(graph):
            y = x + 1
        assert in_use(y.data_ptr()) is None and on_device(y)


@pytest.mark.skipif(backend == "cuda", reason="on a GPU heap() does nothing")
def test_it_works_within_a_heap_of_the_learners():
    with heap():
        assert grade("2.1", lesson02.capture_and_replay, accept_reference=True).passed
    assert not on_device_outside()


def on_device_outside():
    with as_on_a_gpu():
        return on_device(torch.ones(3))


def test_executions_are_counted_on_the_device():
    with as_on_a_gpu():
        fn, x, graph = Observed(lambda x: x + 1), torch.ones(3, device=device), cuda.CUDAGraph()
        warm_up(lambda: fn(x), times=3)
        assert (fn.replays, len(fn.eager), len(fn.captured)) == (0, 3, 0)
        assert not any(call.on_default_stream for call in fn.calls)
        with cuda.graph(graph):
            out = fn(x)
        assert (fn.replays, len(fn.eager), len(fn.captured)) == (0, 3, 1)
        for _ in range(4):
            graph.replay()
        assert fn.replays == 4
        call = judge_calls(fn)
        assert call.inputs == {"x": x.data_ptr()} and call.output == out.data_ptr()


OPERATIONS = {
    "value": [
        lambda x, mask: x.sum().item(),
        lambda x, mask: bool(mask.any()),
        lambda x, mask: torch.equal(x, x + 1),
    ],
    "shape": [
        lambda x, mask: x[mask],
        lambda x, mask: mask.nonzero(),
        lambda x, mask: torch.masked_select(x, mask).sum().item(),
        lambda x, mask: x.index_put_((mask,), x[:1].clone()),
    ],
    None: [
        lambda x, mask: torch.where(mask, x, 0.0),
        lambda x, mask: x[torch.arange(2, device=device)],
        lambda x, mask: x.index_put_((mask,), torch.tensor(7.0)),
    ],
}


@pytest.mark.parametrize("kind, operation", [(k, op) for k, ops in OPERATIONS.items() for op in ops])
def test_what_an_operation_waits_for(kind, operation):
    x, waits = torch.arange(4.0, device=device), WaitsFor()
    mask = x > 1
    with waits:
        operation(x, mask)
    assert waits.first == kind


def test_the_first_refusal_counts():
    try:
        try:
            raise RuntimeError("Cannot copy between CPU and CUDA tensors during CUDA graph capture unless")
        finally:
            raise RuntimeError("CUDA error: operation failed due to a previous error during capture\nmore")
    except RuntimeError as caught:
        error = caught
    keys = {"wait": "waits", "host copy": "copies"}
    with pytest.raises(Wrong, match="copies"):
        name_refusal(error, keys)
    name_refusal(error, {"early replay": "early"})  # not among those that this exercise names
    name_refusal(ValueError("something else"), keys)
    name_refusal(Wrong("key", "operation not permitted when stream is capturing"), keys)


def test_the_expected_outcomes_are_what_the_solutions_give():
    x = torch.ones(3, device=device)
    graph, static_input, static_output = lesson02.capture_and_replay(lambda x: x + 1, x)
    assert static_output.tolist() == [2] * 3
    static_input.fill_(5)
    graph.replay()
    assert static_output.tolist() == [6] * 3 and x.tolist() == [1] * 3

    a, b = (torch.full((4,), value, device=device) for value in (1.0, 2.0))
    runner = lesson02.GraphRunner(lambda a, b: a + b, {"a": a, "b": b})
    assert runner(a=b * 10, b=b).tolist() == [22] * 4
    assert runner(a=a).tolist() == [3] * 4
    for values in ({"c": a}, {"a": a[:1]}, {"a": a.double()}):
        with pytest.raises((TypeError, ValueError)):
            runner(**values)

    logits = torch.tensor([[2.0, -2.0, 1.0]], device=device)
    seen = torch.tensor([[True, True, False]], device=device)
    banned = torch.tensor([False, False, True], device=device)
    for penalty, expected in ((2.0, [0.993, 0.007, 0]), (1.0, [0.982, 0.018, 0])):
        found = lesson02.penalised_probabilities(logits, seen, banned, torch.tensor(penalty, device=device))
        assert found[0].tolist() == pytest.approx(expected, abs=5e-4)
