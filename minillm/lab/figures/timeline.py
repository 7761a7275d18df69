"""The CPU's launches over the GPU's kernels on one clock, the GPU's idle time hatched."""

from __future__ import annotations

from collections.abc import Mapping

from ..wording import percent, short
from .style import palette

LANE, GAP, HEADER = 0.8, 0.25, 1.0  # heights: a lane, between the two lanes of a row, the line above a row
WAITS = {"facecolor": "white", "edgecolor": palette.cpu, "hatch": "....", "linewidth": 0.6}
IDLE = {"facecolor": "white", "edgecolor": palette.idle, "hatch": "////", "linewidth": 0.6}
FEW = 16  # up to so many kernels, a line leads from each launch to its kernel


def draw_schedule(ax, schedule, label: str = "") -> None:
    """Draw one ``Schedule`` of `lab.launch_queue`: a CPU lane over a GPU lane, the idle time hatched."""
    draw_timeline(ax, {label: schedule})


def draw_timeline(
    ax, rows, window_us: tuple[float, float] | None = None, colors: Mapping | None = None
) -> None:
    """Draw a ``Timeline`` or a ``Schedule``, or several of them one below the other.

    ``rows`` is one of them, or a dict label -> one of them, such as {"eager": …, "graph": …}: a row is
    headed by its label, its length and how much of it the GPU is idle. All rows share one clock.
    ``window_us`` shows only a part of it; the numbers remain those of the whole. ``colors`` maps labels to
    colours of the kernels; labels with "graph" in them have the graph's, others the eager one.
    """
    rows = rows if isinstance(rows, Mapping) else {"": rows}
    if not rows:
        raise ValueError("rows is empty; expected at least one Timeline or Schedule")
    left, right = window_us or (0.0, max(_total(row) for row in rows.values()))
    top, ticks, used = 0.0, [], set()
    for label, row in rows.items():
        usual = palette.graph if "graph" in str(label).lower() else palette.eager
        color = (colors or {}).get(label, usual)
        ax.text(
            left, top - HEADER * 0.4, _header(label, row), va="center", weight="bold", size=10, clip_on=False
        )
        cpu, gpu = top - HEADER - LANE, top - HEADER - 2 * LANE - GAP
        used |= _draw_lanes(ax, row, cpu, gpu, color, (left, right))
        ticks += [(cpu + LANE / 2, "CPU"), (gpu + LANE / 2, "GPU")]
        top = gpu - 2 * GAP
    ax.set(xlim=(left, right), ylim=(top, 0.0), xlabel="time (µs)")
    ax.set_yticks([at for at, _ in ticks], [name for _, name in ticks])
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
    ax.grid(False, axis="y")
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    _legend(ax, used)


def _draw_lanes(ax, row, cpu: float, gpu: float, color: str, shown: tuple) -> set[str]:
    """One row's boxes, of which the times ``shown`` are seen; returns which kinds of box were drawn."""
    pixel = (shown[1] - shown[0]) / 700 or 1.0  # about one dot
    launches, kernels = _pairs(row, "cpu", "launches"), _pairs(row, "gpu", "kernels")
    waits = _pairs(row, "waits")
    _boxes(ax, launches, cpu, pixel, facecolor=palette.cpu)
    _boxes(ax, waits, cpu, pixel, narrow="#C3CDD6", **WAITS)
    # What the kernels leave uncovered of the hatching is the idle time.
    ax.broken_barh([(0.0, _total(row))], (gpu, LANE), **IDLE)
    _boxes(ax, kernels, gpu, pixel, facecolor=color)
    if len(launches) == len(kernels):  # one kernel a launch, so that it is known which is whose
        pairs = [(launch[1], kernel[0]) for launch, kernel in zip(launches, kernels, strict=True)]
        inside = [pair for pair in pairs if shown[0] <= pair[0] and pair[1] <= shown[1]]
        for pair in inside if len(inside) <= FEW else []:
            ax.plot(pair, [cpu, gpu + LANE], color=palette.cpu, linewidth=0.9)
    kernel = {palette.eager: {"kernel"}, palette.graph: {"kernel in a graph"}}.get(color, set())
    waiting = {"CPU waits"} if waits else set()
    return {"launch"} | kernel | waiting | ({"GPU idle"} if row.busy_us < _total(row) else set())


def _boxes(
    ax, spans: list[tuple[float, float]], bottom: float, pixel: float, narrow: str | None = None, **look
) -> None:
    """Spans as boxes; a white outline parts neighbours where they are wide enough to have one.

    ``narrow`` is the colour of those that are not. A few are drawn a dot wide at least, so that none is
    lost; of hundreds below a dot the renderer is left to shade by how much of a dot they cover.
    """
    outlined = {"edgecolor": "white", "linewidth": 0.8, **look}
    bare = {"facecolor": narrow or look.get("edgecolor", look["facecolor"]), "linewidth": 0}
    few = len(spans) <= 100
    if not few:
        bare["snap"] = False
    for style, some in (
        (outlined, [span for span in spans if span[1] - span[0] >= 4 * pixel]),
        (bare, [span for span in spans if 0 < span[1] - span[0] < 4 * pixel]),
    ):
        if some:
            boxes = [(start, max(end - start, pixel if few else 0.0)) for start, end in some]
            ax.broken_barh(boxes, (bottom, LANE), **style)


def _pairs(row, *names: str) -> list[tuple[float, float]]:
    """(start, end) of a lane, which a Schedule calls cpu or gpu and a Timeline launches or kernels."""
    spans = next((getattr(row, name) for name in names if hasattr(row, name)), [])
    return [(span[-2], span[-1]) for span in spans]


def _total(row) -> float:
    return row.total_us if hasattr(row, "total_us") else row.wall_us


def _header(label, row) -> str:
    total = _total(row)
    idle = 1 - row.busy_us / total if total else 0.0
    return f"{label}{': ' if label else ''}{short(total)} µs, GPU idle {percent(idle)}"


def _legend(ax, used: set[str]) -> None:
    """On the line of the first header; for axes side by side once, in the corner opposite to the origin's."""
    from matplotlib.patches import Patch

    looks = {
        "launch": {"facecolor": palette.cpu},
        "kernel": {"facecolor": palette.eager},
        "kernel in a graph": {"facecolor": palette.graph},
        "CPU waits": WAITS,
        "GPU idle": IDLE,
    }
    fig = ax.figure
    alone = len(fig.axes) == 1
    for earlier in [] if alone else fig.legends:
        used = used | {text.get_text() for text in earlier.get_texts()}
        earlier.remove()
    handles = [Patch(label=kind, **look) for kind, look in looks.items() if kind in used]
    place = (
        {"loc": "upper right", "bbox_to_anchor": (1.0, 1.02)}
        if alone
        else {"loc": "lower left", "bbox_to_anchor": (0.01, 0)}
    )
    style = {
        "fontsize": 9,
        "frameon": False,
        "handlelength": 1.4,
        "columnspacing": 1.2,
        "ncols": len(handles),
    }
    (ax if alone else fig).legend(handles=handles, borderaxespad=0, borderpad=0.3, **place, **style)
