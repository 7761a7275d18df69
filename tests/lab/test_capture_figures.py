"""Lesson 02's figures: the finding in the title is the one that the numbers give, worked out by hand here."""

import pytest

from minillm.lab.figures import capture, making
from minillm.lab.results import Origin, Result

RUN = {"gpu": "NVIDIA Test", "torch": "2.11.0+cu130", "date": "2026-01-02"}


@pytest.fixture
def shown(monkeypatch):
    """The (figure, alternative text) pairs that were shown."""
    seen = []
    for module in (capture, making):
        monkeypatch.setattr(module, "show", lambda fig, alt: seen.append((fig, alt)))
    return seen


def result(name, data, kind="recorded", beside=()):
    origin = Origin.missing() if data is None else getattr(Origin, kind)(RUN)
    return Result(name, data, origin, list(beside))


def row(nodes):
    """8 µs a launch, 2 µs a node of the replay of which an empty kernel takes 1.5, 10 + 2 µs a node to make.

    The chain of one has times of its own, which no slope may take in.
    """
    return {
        "nodes": nodes,
        "eager_submit_us": 8.0 * nodes if nodes <= 500 else None,
        "eager_wall_us": 8.0 * nodes,
        "submit_us": 3.0 + nodes / 1000,
        "gpu_us": 99.0 if nodes == 1 else 7.0 + 2 * nodes,
        "wall_us": 2.0 * nodes,
        "empty_gpu_us": 99.0 if nodes == 1 else 7.0 + 1.5 * nodes,
        "capture_us": 10.0 * nodes,
        "instantiate_us": 2.0 * nodes,
    }


COST = result("capture/replay-cost", {"rows": [row(n) for n in (1, 100, 500, 1000, 4000)]})
STEP = {
    "nodes": 835,
    "capture_us": 21_000.0,
    "instantiate_us": 1_500.0,
    "eager_submit_us": 16_000.0,
    "eager_wall_us": 17_000.0,
    "submit_us": 29.4,
    "gpu_us": 2_230.0,
    "wall_us": 2_000.0,
}
CASES = [
    (capture.submit, ["replays 4,000 nodes", "takes the CPU 7 µs", "500 of them take 4,000 µs"]),
    (capture.floor, ["costs the GPU 2.00 µs", "an empty one 1.50 µs"]),
    (making.making, ["Making 1,000 nodes takes 12.0 ms", "which 2 replays pay back"]),
]


@pytest.mark.parametrize("figure, words", CASES, ids=[figure.__name__ for figure, _ in CASES])
def test_the_title_is_what_the_numbers_say(shown, figure, words):
    figure(COST)
    [(fig, alt)] = shown
    written = " ".join(text.get_text().replace("\n", " ") for text in fig.texts)
    for expected in words:
        assert expected in written and expected in alt
    assert "RECORDED" in written and "recorded on NVIDIA Test" in written
    [ax] = fig.axes
    assert "(µs" in ax.get_ylabel() or "(ms)" in ax.get_ylabel()


@pytest.mark.parametrize("figure, _", CASES, ids=[figure.__name__ for figure, _ in CASES])
def test_a_missing_result_is_a_placard_and_no_number(shown, figure, _):
    figure(result(COST.name, None))
    [(fig, _)] = shown
    [ax] = fig.axes
    assert "to be recorded on a GPU" in [text.get_text() for text in ax.texts]
    assert not ax.lines and not len(ax.get_xticks()) and not len(ax.get_yticks())


def test_a_submit_that_the_queue_may_have_held_up_is_not_drawn_as_one(shown):
    capture.submit(COST)
    eager, waited, graph = shown[0][0].axes[0].lines
    assert list(eager.get_xdata()) == [1, 100, 500] and list(eager.get_ydata()) == [8, 800, 4000]
    assert list(waited.get_xdata()) == [500, 1000, 4000] and list(waited.get_ydata()) == [4000, 8000, 32000]
    assert list(graph.get_xdata()) == [1, 100, 500, 1000, 4000]


def test_the_floor_is_drawn_for_each_node(shown):
    capture.floor(COST)
    add, empty = shown[0][0].axes[0].lines
    assert add.get_ydata()[1] == pytest.approx(2.07) and empty.get_ydata()[1] == pytest.approx(1.57)


def test_the_making_is_drawn_in_milliseconds(shown):
    making.making(COST)
    recorded, instantiated = shown[0][0].axes[0].lines
    assert recorded.get_ydata()[-1] == pytest.approx(40.0)
    assert instantiated.get_ydata()[-1] == pytest.approx(8.0)


@pytest.mark.parametrize("figure, _", CASES, ids=[figure.__name__ for figure, _ in CASES])
def test_a_live_run_and_the_record_beside_it_are_told_apart(shown, figure, _):
    live = result(COST.name, COST.data, "live", beside=[COST])
    figure(live)
    [ax] = shown[0][0].axes
    solid, broken = ({line.get_linestyle() for line in ax.lines[k::2]} for k in (0, 1))
    assert solid == {"-"} and broken == {"--"}
    legends = [one for one in ax.get_children() if type(one).__name__ == "Legend"]
    words = {text.get_text() for legend in legends for text in legend.get_texts()}
    assert {"live", "recorded on NVIDIA Test"} < words


@pytest.mark.parametrize(
    "eager, words",
    [(32.0, "which 1 replay pays back"), (20.5, "which 3 replays pay back"), (10.0, "no replay pays back")],
)
def test_when_the_making_is_paid_back(eager, words):
    times = {"capture_us": 18.0, "instantiate_us": 4.0, "eager_wall_us": eager, "wall_us": 10.0}
    assert words in making.paid_back(times)


def test_the_table_of_a_step():
    name = "capture/step-cost/llama-1b/B=1"
    live = result(name, STEP | {"nodes": None, "submit_us": 11.0}, "live", beside=[result(name, STEP)])
    text = repr(making.step_cost(live))
    assert (
        "| recorded on NVIDIA Test · 2026-01-02 · torch 2.11.0 | 835 | 21.0 ms | 1.5 ms | 16.0 ms | 29 µs |"
        in text
    )
    assert "| not counted | 21.0 ms | 1.5 ms | 16.0 ms | 11 µs | 2.23 ms |" in text
    assert "llama-1b, B=1" in text and "which 2 replays pay back" in text
    assert repr(making.step_cost(result(name, None))) == f"{name}: to be recorded on a GPU"
