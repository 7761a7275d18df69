"""Lesson 01's figures: the finding in the title is the one that the numbers give, worked out by hand here."""

import pytest

from minillm.lab.figures import launch as draw
from minillm.lab.results import Origin, Result
from minillm.lab.timeline import Span, Timeline

RUN = {"gpu": "NVIDIA Test", "torch": "2.11.0+cu130", "date": "2026-01-02"}


@pytest.fixture
def shown(monkeypatch):
    """The (figure, alternative text) pairs that were shown."""
    seen = []
    monkeypatch.setattr(draw, "show", lambda fig, alt: seen.append((fig, alt)))
    return seen


def result(name, data, kind="recorded", beside=()):
    origin = Origin.missing() if data is None else getattr(Origin, kind)(RUN)
    return Result(name, data, origin, list(beside))


def sweep(preset, walls, busy, kernels=100):
    rows = [
        {
            "batch": batch,
            "submit_us": wall,
            "wall_us": wall,
            "graph_us": wall / 4,
            "busy_us": work,
            "kernels": kernels,
            "floor_us": wall / 10,
        }
        for batch, wall, work in zip((1, 8, 64, 256), walls, busy, strict=True)
    ]
    return result(f"launch/batch-sweep/{preset}", {"rows": rows})


def step_timeline():
    """Four launches of 10 µs each and kernels of 1, 1, 1 and 7 µs behind them: busy 10 of 47 µs."""
    launches = [Span("cudaLaunchKernel", 10.0 * k, 10.0 * k + 10) for k in range(4)]
    kernels = [Span("k", 10.0 * k + 10, 10.0 * k + 10 + us) for k, us in enumerate((1, 1, 1, 7))]
    return Timeline(launches, kernels, wall_us=47.0)


def timeline_result():
    line = step_timeline().to_json()
    times = {"eager_us": 47.0, "graph_us": 12.0, "graph_submit_us": 3.0}
    return result("launch/timeline/tiny/B=1", {**times, "eager": line, "graph": line})


SWEEPS = [
    sweep("tiny", (1000, 1000, 1000, 1000), (100, 200, 300, 400)),
    sweep("llama-1b", (2000, 2000, 2000, 2000), (500, 999, 1000, 1900)),
    sweep("llama3-8b", (4000, 4000, 4000, 4000), (3000, 3900, 4000, 4000)),
]
CASES = [
    (
        draw.one_kernel,
        result("launch/one-kernel", {"submit_us": 9.0, "kernel_us": 1.5, "wall_us": 20.0}),
        ["CPU 6 × as long"],
    ),
    (
        draw.unsynchronised,
        result("launch/x", {"host_us": 50.0, "synchronised_us": 1010.0, "events_us": 1000.0}),
        ["misses 95 %"],
    ),
    (
        draw.chain,
        result(
            "launch/chain",
            {"kernels": [1, 11, 21], "wall_us": [20, 100, 180], "graph_wall_us": [10, 22, 34]},
        ),
        ["8.0 µs launched by itself", "1.20 µs in a graph"],
    ),
    (
        draw.where,
        result(
            "launch/where",
            {"python": 0.5, "launch": 4.5, "dispatcher": 6.5, "allocator": 8.5, "module": 10.0},
        ),
        ["4.0 of the 10.0 µs"],
    ),
    (draw.census, timeline_result(), ["4 kernels", "median 1.0 µs"]),
    (draw.timeline, timeline_result(), ["79\N{NO-BREAK SPACE}%"]),
    (draw.eager_over_graph, timeline_result(), ["47 µs eager", "12 µs as a graph"]),
    (draw.batch_sweep, SWEEPS, ["tiny not up to 256", "llama-1b from batch 64", "llama3-8b from batch 1"]),
    (draw.idle_against_kernel_length, SWEEPS, ["launch, 20 µs"]),
    (draw.floor, SWEEPS, ["llama-1b: eager 10 ×, graph 2.5 × the floor"]),
]


@pytest.mark.parametrize("figure, data, words", CASES, ids=[figure.__name__ for figure, _, _ in CASES])
def test_the_title_is_what_the_numbers_say(shown, figure, data, words):
    figure(data)
    [(fig, alt)] = shown
    written = " ".join(text.get_text().replace("\n", " ") for text in fig.texts)
    for words_expected in words:
        assert words_expected in written and words_expected in alt
    assert "RECORDED" in written and "recorded on NVIDIA Test" in written


@pytest.mark.parametrize("figure, data, _", CASES, ids=[figure.__name__ for figure, _, _ in CASES])
def test_a_missing_result_is_a_placard_and_no_number(shown, figure, data, _):
    many = isinstance(data, list)
    figure([result(one.name, None) for one in data] if many else result(data.name, None))
    [(fig, _)] = shown
    assert "to be recorded on a GPU" in [text.get_text() for text in fig.axes[0].texts]
    assert not fig.axes[0].lines and not fig.axes[0].patches


def test_a_live_sweep_is_drawn_beside_the_recorded_one(shown):
    recorded = SWEEPS[0]
    live = result(recorded.name, recorded.data, "live", beside=[recorded])
    draw.batch_sweep([live, *SWEEPS[1:]])
    labels = [line.get_label() for line in shown[0][0].axes[0].lines]
    assert "tiny" in labels and "tiny, recorded on NVIDIA Test" in labels


def test_a_gpu_without_a_datasheet_has_no_floor(shown):
    unknown = sweep("tiny", (1000,) * 4, (100,) * 4)
    for row in unknown.data["rows"]:
        row["floor_us"] = None
    draw.floor([unknown])
    assert "floor" not in shown[0][0].texts[0].get_text()
