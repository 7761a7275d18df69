"""What a figure shows, measured on the drawn figure: colours, texts, boxes, tags, alternative text."""

import base64
import io
import itertools

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.text import Text

from minillm import lab
from minillm.lab.figures import show as showing
from minillm.lab.figures.compare import draw_bars, draw_lines
from minillm.lab.figures.style import figure, palette, wrapped
from minillm.lab.figures.timeline import draw_schedule, draw_timeline
from minillm.lab.results import Origin, Result
from minillm.lab.timeline import Span, Timeline

LONG = "72 % of the step the GPU is idle, and a title that goes on so long that it needs a second line"


def result(kind="recorded", gpu="NVIDIA H200", data=None, others=()):
    run = {"gpu": gpu, "torch": "2.11.0+cu130", "date": "2026-11-29"}
    if kind == "missing":
        return Result("toy/a", None, Origin.missing())
    return Result(
        "toy/a", data or {"eager": 5591.0, "graph": 837.0}, getattr(Origin, kind)(run), list(others)
    )


def texts(fig):
    """The texts that are really drawn; an axis also keeps labels of ticks that are out of sight."""
    drawn = []
    with pytest.MonkeyPatch.context() as patch:
        draw = Text.draw
        patch.setattr(
            Text, "draw", lambda self, *args, **more: (drawn.append(self), draw(self, *args, **more))
        )
        fig.canvas.draw()
    return list(dict.fromkeys(t for t in drawn if t.get_text().strip() and t.get_visible()))


def words(fig):
    return [t.get_text() for t in texts(fig)]


def assert_legible(fig):
    """No text lies over another or leaves the figure; none is smaller than 8 points."""
    inside, shown = fig.bbox, texts(fig)
    boxes = [(t.get_text(), t.get_window_extent()) for t in shown]
    for text, box in boxes:
        assert box.x0 >= -1 and box.y0 >= -1 and box.x1 <= inside.x1 + 1 and box.y1 <= inside.y1 + 1, text
    for (one, a), (other, b) in itertools.combinations(boxes, 2):
        over = min(a.x1, b.x1) - max(a.x0, b.x0), min(a.y1, b.y1) - max(a.y0, b.y0)
        assert min(over) <= 1, f"{one!r} and {other!r} overlap"
    assert min(t.get_fontsize() for t in shown) >= 8


# ---- colours


def linear(color):
    c = np.array(to_rgb(color))
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
# Viénot, Brettel, Mollon 1999 (Color Research & Application 24, 243), in linear RGB
SIGHT = {
    "usual": np.eye(3),
    "protanopia": np.array([[0.1120, 0.8853, -0.0005], [0.1126, 0.8897, -0.0001], [0.0045, -0.0045, 1.0]]),
    "deuteranopia": np.array([[0.2927, 0.7072, -0.0003], [0.2927, 0.7072, 0.0003], [-0.0224, 0.0224, 1.0]]),
}


def cielab(rgb):
    ratio = TO_XYZ @ np.clip(rgb, 0, 1) / (TO_XYZ @ np.ones(3))
    x, y, z = np.where(ratio > 0.008856, np.cbrt(ratio), 7.787 * ratio + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("sight", SIGHT)
def test_colours_are_told_apart(sight):
    seen = {name: cielab(SIGHT[sight] @ linear(color)) for name, color in palette._asdict().items()}
    for (one, a), (other, b) in itertools.combinations(seen.items(), 2):
        assert np.linalg.norm(a - b) >= 18, (one, other)


def test_colours_stand_out_on_white():
    for name, color in palette._asdict().items():
        assert 1.05 / (TO_XYZ[1] @ linear(color) + 0.05) >= 3, name  # WCAG 2.1, 1.4.11


def test_the_oracle_sees_what_it_should():
    red, green = (cielab(SIGHT["deuteranopia"] @ linear(c)) for c in ("#D55E00", "#8F8F00"))
    assert np.linalg.norm(red - green) < 18  # a pair that a deuteranope confuses


# ---- title, origin, tag


def test_a_recorded_figure_says_so_in_a_dashed_frame():
    fig, _ = figure(LONG, result("recorded"))
    (tag,) = (t for t in texts(fig) if t.get_text() == "RECORDED")
    assert tag.get_bbox_patch().get_linestyle() in ("--", "dashed")
    assert "recorded on NVIDIA H200 · 2026-11-29 · torch 2.11.0" in words(fig)
    assert_legible(fig)


def test_a_live_figure_has_no_tag():
    fig, _ = figure(LONG, result("live"))
    assert "live · NVIDIA H200 · 2026-11-29 · torch 2.11.0" in words(fig) and "RECORDED" not in words(fig)
    assert_legible(fig)


def test_the_origin_stands_in_the_lower_right_corner():
    fig, _ = figure("Title", result("live"))
    (label,) = (t for t in texts(fig) if t.get_text().startswith("live"))
    box = label.get_window_extent()
    assert box.x1 > 0.97 * fig.bbox.x1 and box.y1 < 0.1 * fig.bbox.y1


def test_a_missing_result_has_a_placard():
    fig, ax = figure("Title", result("missing"))
    assert [t.get_text() for t in ax.texts] == ["to be recorded on a GPU"] and "RECORDED" not in words(fig)
    draw_bars(ax, result("missing"), {"eager": "eager"})
    draw_lines(ax, {1: result("missing")}, None, "eager")
    assert not ax.patches and not ax.lines
    assert_legible(fig)


def test_several_results_some_of_them_missing():
    fig, ax = figure("Title", {1: result(), 2: result("missing")})
    assert any("recorded on NVIDIA H200" in w and "1 of 2 to be recorded" in w for w in words(fig))
    assert not ax.texts


def test_a_note_and_columns():
    fig, axes = figure(LONG, columns=3, size=(9, 2.5), note="simulated")
    assert len(axes) == 3 and "simulated" in words(fig)
    assert_legible(fig)


def test_a_result_of_the_wrong_kind():
    with pytest.raises(TypeError, match="lab.run"):
        figure("Title", "toy/a")


def test_lines_break_at_blanks_and_fit():
    fig, _ = figure("x")
    text = wrapped(fig, LONG * 3, 4.0, 12.5, "bold")
    assert text.replace("\n", " ") == LONG * 3 and text.count("\n") >= 5
    assert "no\N{NO-BREAK SPACE}break" in wrapped(fig, "word " * 20 + "no\N{NO-BREAK SPACE}break", 1.0, 12.5)


# ---- timelines


def schedule(launch=6.0, kernel=2.0, n=8, every=None):
    return lab.launch_queue(launch, kernel, n, every)


def boxes(ax):
    """(x0, x1, y0) of each box, with its facecolour and whether it is hatched."""
    found = []
    for collection in ax.collections:
        for path in collection.get_paths():
            (x0, y0), (x1, _) = path.vertices.min(axis=0), path.vertices.max(axis=0)
            found.append((x0, x1, y0, tuple(collection.get_facecolor()[0][:3]), bool(collection.get_hatch())))
    return found


def test_boxes_are_where_the_schedule_says():
    fig, ax = figure("Title")
    drawn = schedule()
    draw_schedule(ax, drawn)
    kernels = sorted(b[:2] for b in boxes(ax) if b[3] == to_rgb(palette.eager))
    launches = sorted(b[:2] for b in boxes(ax) if b[3] == to_rgb(palette.cpu))
    assert np.allclose(kernels, drawn.gpu) and np.allclose(launches, drawn.cpu)
    lanes = {b[3]: b[2] for b in boxes(ax)}
    assert lanes[to_rgb(palette.cpu)] > lanes[to_rgb(palette.eager)]  # the CPU above the GPU
    (idle,) = (b for b in boxes(ax) if b[4])  # one hatched lane that the kernels leave uncovered
    assert idle[:2] == (0.0, 50.0) and idle[2] == lanes[to_rgb(palette.eager)]
    assert any("50 µs, GPU idle 68\N{NO-BREAK SPACE}%" in w for w in words(fig))
    assert ax.get_xlim() == (0.0, 50.0)
    assert_legible(fig)


def test_waits_are_drawn_and_named():
    fig, ax = figure("Title")
    draw_schedule(ax, schedule(4, 4, 6, 2))
    waiting = [b[:2] for b in boxes(ax) if b[4] and b[3] == to_rgb("white") and b[2] > -2]
    assert np.allclose(sorted(waiting), [(8, 12), (20, 24), (32, 36)])
    assert {"launch", "CPU waits", "GPU idle"} <= set(words(fig))


def timeline(n, gap, length):
    spans = [(gap * i, gap * i + length) for i in range(n)]
    return Timeline.starting_at_zero(
        launches=[Span("cudaLaunchKernel", start, start + 3) for start, _ in spans],
        kernels=[Span("k", start + 4, end + 4) for start, end in spans],
    )


def test_several_rows_share_one_clock_and_keep_their_colours():
    fig, ax = figure(LONG, result())
    draw_timeline(ax, {"eager": timeline(400, 12, 2), "graph": timeline(400, 3, 2)})
    assert ax.get_xlim() == (0.0, pytest.approx(399 * 12 + 6))
    assert {to_rgb(palette.eager), to_rgb(palette.graph)} <= {b[3] for b in boxes(ax)}
    heads = [w for w in words(fig) if "GPU idle " in w]
    assert heads == [
        "eager: 4,794 µs, GPU idle 83\N{NO-BREAK SPACE}%",
        "graph: 1,203 µs, GPU idle 33\N{NO-BREAK SPACE}%",
    ]
    assert_legible(fig)


def test_a_window_shows_a_part_and_keeps_the_numbers():
    fig, ax = figure("Title", size=(8, 2.2))
    draw_timeline(ax, {"eager": timeline(400, 12, 2)}, window_us=(1200, 1320))
    assert ax.get_xlim() == (1200, 1320) and any(w.startswith("eager: 4,794 µs") for w in words(fig))
    assert 9 <= len(ax.lines) <= 11  # from each launch that is seen to its kernel
    assert_legible(fig)


def test_columns_share_a_legend_that_names_everything():
    fig, axes = figure("Title", columns=2, size=(9, 2.5), note="simulated")
    draw_schedule(axes[0], schedule(4, 4, 6, 2), "a")
    draw_schedule(axes[1], schedule(), "b")
    assert sorted(w for w in words(fig) if w in ("launch", "CPU waits", "GPU idle")) == [
        "CPU waits",
        "GPU idle",
        "launch",
    ]
    assert_legible(fig)


def test_no_rows():
    with pytest.raises(ValueError, match="rows is empty"):
        draw_timeline(figure("Title")[1], {})


# ---- live beside recorded


def test_bars_of_every_source_with_their_numbers():
    other = result("recorded", data={"eager": 6000.0, "graph": 900.0})
    fig, ax = figure("Title", result("live"))
    draw_bars(ax, result("live", "NVIDIA A100", others=[other]), {"eager": "eager", "graph": "graph"})
    assert [(round(bar.get_width()), bool(bar.get_hatch())) for bar in ax.patches] == [
        (5591, False), (6000, True), (837, False), (900, True)
    ]  # fmt: skip
    assert {"5,591 µs", "6,000 µs", "837 µs", "900 µs", "live", "recorded on NVIDIA H200"} <= set(words(fig))
    assert ax.patches[0].get_facecolor()[:3] == to_rgb(palette.eager)
    assert ax.patches[3].get_edgecolor()[:3] == to_rgb(palette.graph)
    assert_legible(fig)


def test_bars_by_category():
    results = {"1B": result(), "8B": result(data={"eager": 9.0, "graph": None}), "70B": result("missing")}
    fig, ax = figure("Title", results, size=(8, 3.6))
    draw_bars(ax, results, {"eager": "eager", "graph": "graph", "ratio": lambda d: 3.0}, unit="ms")
    assert [t.get_text() for t in ax.get_yticklabels()] == ["1B", "8B"]
    assert [round(bar.get_width()) for bar in ax.patches] == [5591, 837, 3, 9, 3]
    assert all(bar.get_hatch() for bar in ax.patches)  # recorded, although it is the only source
    assert ax.get_xlabel() == "ms"
    assert_legible(fig)


def test_two_recorded_gpus_look_different():
    main = result("recorded", others=[result("recorded", "Tesla T4")])
    _, ax = figure("Title", main)
    draw_bars(ax, main, {"eager": "eager"})
    assert len({bar.get_hatch() for bar in ax.patches}) == 2
    _, ax = figure("Title", main)
    draw_lines(ax, {1: main, 2: main}, None, "eager")
    assert (
        len({line.get_linestyle() for line in ax.lines}) == len({line.get_marker() for line in ax.lines}) == 2
    )


SWEEP = {"rows": [{"batch": b, "us": 100.0 * b} for b in (1, 2, 4, 8, 16)]}


def test_lines_of_every_source():
    main = result("live", data=SWEEP, others=[result("recorded", data=SWEEP)])
    fig, ax = figure("Title", main)
    draw_lines(ax, main, "rows.batch", "rows.us", label="eager", log_x=True, log_y=True)
    draw_lines(
        ax,
        main,
        "rows.batch",
        lambda d: [r["us"] / 7 for r in d["rows"]],
        label="graph",
        log_x=True,
        log_y=True,
    )
    live, recorded, graph, _ = ax.lines
    assert list(live.get_ydata()) == [100, 200, 400, 800, 1600] and list(live.get_xdata()) == [1, 2, 4, 8, 16]
    assert live.get_linestyle() == "-" and recorded.get_linestyle() != "-"
    assert recorded.get_markerfacecolor() == "white" and live.get_color() == palette.eager
    assert graph.get_color() == palette.graph
    assert {"eager · live", "graph · recorded on NVIDIA H200", "16"} <= set(words(fig))
    assert_legible(fig)


def test_lines_over_results():
    fig, ax = figure("Title", result())
    draw_lines(ax, {8: result(data={"us": 3}), 16: result("missing"), 32: result(data={"us": 5})}, None, "us")
    assert ax.lines[0].get_xydata().tolist() == [[8, 3], [32, 5]]
    with pytest.raises(ValueError, match="x is None"):
        draw_lines(ax, result(data=SWEEP), None, "rows.us")


# ---- showing


@pytest.fixture
def shell(monkeypatch):
    """An IPython without a terminal that keeps what is displayed."""
    import IPython
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    monkeypatch.setattr(IPython, "get_ipython", lambda: shell)
    shown = []
    monkeypatch.setattr(
        shell.display_pub, "publish", lambda data, metadata=None, **_: shown.append((data, metadata or {}))
    )
    yield shown
    InteractiveShell.clear_instance()


def test_show_publishes_a_png_with_words(shell):
    fig, ax = figure("Title", result())
    draw_bars(ax, result(), {"eager": "eager"})
    assert lab.show(fig, "Two bars, one <long> & one short.") is None
    ((data, metadata),) = shell
    assert data["text/plain"] == "Two bars, one <long> & one short."
    assert metadata["image/png"]["alt"] == data["text/plain"]
    assert base64.b64decode(data["image/png"]).startswith(b"\x89PNG")


def test_the_words_are_where_nbconvert_looks_for_alt(shell):
    get_metadata = pytest.importorskip("nbconvert.filters.metadata").get_metadata

    lab.show(figure("Title")[0], "A title & nothing")
    ((data, metadata),) = shell
    assert get_metadata({"data": data, "metadata": metadata}, "alt", "image/png") == "A title & nothing"


def test_the_png_is_small_white_and_sharp_on_a_dense_screen():
    from PIL import Image

    fig, ax = figure("Title", result(), size=(8, 3.2))
    draw_bars(ax, result(), {"eager": "eager", "graph": "graph"})
    png = showing.png_bytes(fig)
    image = Image.open(io.BytesIO(png)).convert("RGB")
    assert len(png) <= 60_000 and image.size == (1600, 640) and image.getpixel((1, 1)) == (255, 255, 255)
    seen = set(image.get_flattened_data() if hasattr(image, "get_flattened_data") else image.getdata())
    eager = np.array(to_rgb(palette.eager)) * 255
    assert (
        min(np.abs(np.array(color) - eager).max() for color in seen) <= 4
    )  # fewer colours, but ours are kept


def test_a_large_figure_is_made_small():
    fig, ax = figure("Noise", size=(4, 3))
    ax.imshow(np.random.default_rng(0).random((150, 200, 3)), aspect="auto", interpolation="nearest")
    raw = io.BytesIO()
    fig.savefig(raw, dpi=100)
    assert raw.tell() > 60_000 >= len(showing.png_bytes(fig))


@pytest.mark.parametrize("alt", ["", "  \n", None])
def test_words_are_required(alt):
    with pytest.raises(ValueError, match="alt is empty"):
        lab.show(figure("Title")[0], alt)


def test_outside_ipython_the_words_are_printed_and_the_figure_is_closed(capsys):
    import matplotlib.pyplot as plt

    fig = plt.figure()
    lab.show(fig, "A description.")
    assert capsys.readouterr().out == "A description.\n"
    assert not plt.fignum_exists(fig.number)
