"""Lesson 01's figures: the finding in the title is the one that the numbers give, worked out by hand here."""

import pytest

from minillm.lab.figures import launch, step, sweep
from minillm.lab.results import Origin, Result
from minillm.lab.timeline import Span, Timeline

RUN = {"gpu": "NVIDIA Test", "torch": "2.11.0+cu130", "date": "2026-01-02"}


@pytest.fixture
def shown(monkeypatch):
    """The (figure, alternative text) pairs that were shown."""
    seen = []
    for module in (launch, step, sweep):
        monkeypatch.setattr(module, "show", lambda fig, alt: seen.append((fig, alt)))
    return seen


def result(name, data, kind="recorded", beside=()):
    origin = Origin.missing() if data is None else getattr(Origin, kind)(RUN)
    return Result(name, data, origin, list(beside))


def swept(preset, walls, busy, kernels=100):
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
    return result(f"step/batch-sweep/{preset}", {"rows": rows})


def step_timeline():
    """Four launches of 10 µs each and kernels of 1, 1, 1 and 7 µs behind them: busy 10 of 47 µs."""
    launches = [Span("cudaLaunchKernel", 10.0 * k, 10.0 * k + 10) for k in range(4)]
    kernels = [Span("k", 10.0 * k + 10, 10.0 * k + 10 + us) for k, us in enumerate((1, 1, 1, 7))]
    return Timeline(launches, kernels, wall_us=47.0)


def timeline_result():
    line = step_timeline().to_json()
    times = {"eager_us": 47.0, "graph_us": 12.0, "graph_submit_us": 3.0}
    return result("step/timeline/tiny/B=1", {**times, "eager": line, "graph": line})


SWEEPS = [
    swept("tiny", (1000, 1000, 1000, 1000), (100, 200, 300, 400)),
    swept("llama-1b", (2000, 2000, 2000, 2000), (500, 999, 1000, 1900)),
    swept("llama3-8b", (4000, 4000, 4000, 4000), (3000, 3900, 4000, 4000)),
]
# Half idle where graph ÷ eager crosses 0.5: half way from 4 µs (0.4) to 10 µs (0.6).
ALONE = result(
    "launch/kernel-length", {"floats": [1, 2, 3], "eager_us": [10, 10, 16.7], "graph_us": [1, 4, 10]}
)


def length_figure(results):
    sweep.idle_against_kernel_length(results[0], results[1:])


CASES = [
    (
        launch.one_kernel,
        result("launch/one-kernel", {"submit_us": 9.0, "kernel_us": 1.5, "wall_us": 20.0}),
        ["CPU 6 × as long"],
    ),
    (
        launch.unsynchronised,
        result("launch/x", {"host_us": 50.0, "synchronised_us": 1010.0, "events_us": 1000.0}),
        ["misses 95 %"],
    ),
    (
        launch.chain,
        result(
            "launch/chain",
            {"kernels": [1, 11, 21], "wall_us": [20, 100, 180], "graph_wall_us": [10, 22, 34]},
        ),
        ["8.0 µs launched by itself", "1.20 µs in a graph"],
    ),
    (
        launch.where,
        result(
            "launch/where",
            {"python": 0.5, "launch": 4.5, "dispatcher": 6.5, "allocator": 8.5, "module": 10.0},
        ),
        ["4.0 of the 10.0 µs"],
    ),
    (step.census, timeline_result(), ["4 kernels", "median 1.0 µs"]),
    (step.timeline, timeline_result(), ["79\N{NO-BREAK SPACE}%"]),
    (step.eager_over_graph, timeline_result(), ["3.9 × shorter"]),
    (sweep.batch_sweep, SWEEPS, ["tiny not up to 256", "llama-1b from batch 64", "llama3-8b from batch 1"]),
    (length_figure, [ALONE, *SWEEPS], ["shorter than 7 µs"]),
    (sweep.floor, SWEEPS, ["llama-1b: eager 10 ×, graph 2.5 × the floor"]),
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
    for ax in fig.axes:
        assert "to be recorded on a GPU" in [text.get_text() for text in ax.texts]
        assert not ax.lines and not ax.patches


def test_a_live_sweep_is_drawn_beside_the_recorded_one(shown):
    recorded = SWEEPS[0]
    live = result(recorded.name, recorded.data, "live", beside=[recorded])
    sweep.batch_sweep([live, *SWEEPS[1:]])
    labels = [line.get_label() for line in shown[0][0].axes[1].lines]
    assert "tiny" in labels and "tiny, recorded on NVIDIA Test" in labels


def test_a_gpu_without_a_datasheet_has_no_floor(shown):
    unknown = swept("tiny", (1000,) * 4, (100,) * 4)
    for row in unknown.data["rows"]:
        row["floor_us"] = None
    sweep.floor([unknown])
    assert "floor" not in shown[0][0].texts[0].get_text()


def test_the_table_has_what_one_kernel_takes():
    missing = result("step/batch-sweep/llama3-8b", None)
    text = repr(sweep.per_kernel([SWEEPS[0], missing]))
    assert "| tiny | 100 | 1.0 µs | 10.0 µs | 2.5 µs |" in text
    assert "| llama3-8b | to be recorded on a GPU |" in text and "recorded on NVIDIA Test" in text


@pytest.mark.parametrize(
    "graph, eager, half",
    [([1, 4, 10], [10, 10, 12.5], 5.5), ([5, 9], [10, 10], 5), ([1, 2], [10, 10], 2)],
)
def test_where_the_gpu_idles_half_of_the_time(graph, eager, half):
    assert sweep.half_idle_us({"graph_us": graph, "eager_us": eager}) == pytest.approx(half)


def test_kernels_of_one_kind_stand_in_one_row():
    names = ["void at::add<int>(int)", "void at::add<float>(float)", "gemm", "gemm"]
    kernels = [
        Span(name, 10.0 * k, 10.0 * k + us)
        for k, (name, us) in enumerate(zip(names, (1, 1, 3, 5), strict=True))
    ]
    line = Timeline([Span("cudaLaunchKernel", 0, 1)], kernels, wall_us=35.0).to_json()
    text = repr(step.costliest(result("step/timeline/tiny/B=1", {"eager": line})))
    assert "| `gemm` | 2 | 8 | 80" in text and "| `at::add` | 2 | 2 | 20" in text
    assert "to be recorded" in repr(step.costliest(result("step/timeline/tiny/B=1", None)))
