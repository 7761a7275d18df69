"""Lesson 02's experiments, on whatever backend there is: clock and timer are stand-ins that count."""

import json
import types

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from minillm.graphs import anatomy, cuda, device, probe
from minillm.graphs.anatomy.driver import CANNOT_READ
from minillm.lab.experiments import capture, find, source_hash
from minillm.lab.timing import Stat, Timing


class Launches(TorchDispatchMode):
    """How many additions were launched while this was active."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += func._schema.name.startswith("aten::add")
        return func(*args, **(kwargs or {}))


def counting_measure(fn, warmup=3, repeats=20):
    """In place of `measure`: submit 1,000 + n, GPU 2,000 + n, wall 3,000 + n for n launches, of a replay a
    million more."""
    replayed = getattr(fn, "__self__", None)
    with Launches() as seen:
        fn()
    n = seen.count if replayed is None else 1_000_000 + len(anatomy(replayed).nodes)
    submit, gpu, wall = (Stat(thousands * 1000.0 + n, 0.0, 1) for thousands in (1, 2, 3))
    return Timing(submit, gpu, wall, 0, "a GPU")


@pytest.fixture
def small(monkeypatch):
    """The stand-ins; what an empty kernel is here: two additions, so that it is told apart."""
    y = torch.zeros(4, device=device)
    monkeypatch.setattr(capture, "measure", counting_measure)
    monkeypatch.setattr(capture, "NODES", (1, 3, 7))
    monkeypatch.setattr(capture, "FITS_THE_QUEUE", 5)
    monkeypatch.setattr(capture, "do_nothing", lambda: y.add_(1).add_(1))


def test_each_row_is_about_its_own_chain(small):
    rows = json.loads(json.dumps(capture.replay_cost(), allow_nan=False))["rows"]
    assert [row["nodes"] for row in rows] == [1, 3, 7]
    assert [row["eager_submit_us"] for row in rows] == [1001, 1003, None]
    assert [row["eager_wall_us"] for row in rows] == [3001, 3003, 3007]
    assert [row["submit_us"] - 1_001_000 for row in rows] == [1, 3, 7]
    assert [row["gpu_us"] - 1_002_000 for row in rows] == [1, 3, 7]
    assert [row["wall_us"] - 1_003_000 for row in rows] == [1, 3, 7]
    assert [row["empty_gpu_us"] - 1_002_000 for row in rows] == [2, 6, 14]
    assert all(row["capture_us"] > 0 and row["instantiate_us"] > 0 for row in rows)
    assert probe() is None


def test_making_is_timed_from_begin_to_end_and_to_the_instantiation(monkeypatch):
    ticks = iter([0, 3000, 3700, 10_000, 15_000, 15_900, 20_000, 29_000, 29_100])  # ns
    monkeypatch.setattr(capture, "time", types.SimpleNamespace(perf_counter_ns=lambda: next(ticks)))
    x, calls = torch.zeros(4, device=device), []

    def fn():
        calls.append(cuda.is_current_stream_capturing())
        x.add_(1)

    times, graph = capture.making_times(fn, captures=3)
    assert times == {"capture_us": 5.0, "instantiate_us": 0.7}
    assert calls[-3:] == [True] * 3 and calls[:-3] and not any(calls[:-3])  # warmed up, then three captures
    before = x[0].item()
    graph.replay()
    assert x[0].item() == before + 1 and len(anatomy(graph).nodes) == 1
    assert probe() is None


@pytest.mark.parametrize("unreadable", [None, *CANNOT_READ])
def test_the_cost_of_a_step(small, monkeypatch, unreadable):
    def refuse(graph):
        raise unreadable("no cuda-bindings")

    graphs = []
    monkeypatch.setattr(capture, "anatomy", lambda g: graphs.append(g) or anatomy(g))
    if unreadable:
        monkeypatch.setattr(capture, "anatomy", refuse)
    data = json.loads(json.dumps(capture.step_cost("tiny", 1), allow_nan=False))
    nodes = data["submit_us"] - 1_001_000
    assert data["nodes"] == (None if unreadable else nodes) and nodes > 100
    assert data["gpu_us"] == 1_002_000 + nodes and data["wall_us"] == 1_003_000 + nodes
    assert 1000 < data["eager_submit_us"] < 1_001_000 < 1_000 * data["eager_wall_us"]
    assert data["capture_us"] > data["instantiate_us"] > 0


def test_a_step_that_does_not_fit_is_refused(monkeypatch):
    def refuse(preset, batch):
        raise capture_error(f"{preset} {batch}")

    capture_error = type("Refused", (Exception,), {})
    monkeypatch.setattr(capture, "need", refuse)
    with pytest.raises(capture_error, match="llama-1b 1"):
        capture.step_cost("llama-1b", 1)


def test_the_lesson_finds_its_experiments():
    assert find("capture/replay-cost")[0].function is capture.replay_cost
    found, parameters = find("capture/step-cost/llama-1b/B=1")
    assert found.function is capture.step_cost and parameters == {"preset": "llama-1b", "batch": 1}
    assert len(source_hash("capture/replay-cost")) == 64
