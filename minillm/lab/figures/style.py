"""The look of every figure: the finding as the title, where its numbers come from in the corner."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ..results import Result


class Palette(NamedTuple):
    """The course's colours by meaning; told apart under protanopia and deuteranopia, 3:1 or more on white."""

    eager: str = "#D55E00"
    graph: str = "#0072B2"
    idle: str = "#8F8F8F"
    memory_live: str = "#11703F"
    memory_dead: str = "#8B2FE0"
    limit: str = "#1A1A1A"
    cpu: str = "#3F566D"


palette = Palette()

TITLE_POINTS, LABEL_POINTS = 12.5, 8.0
STYLE = {
    "font.size": 10,
    "axes.labelsize": 10,
    "xtick.labelsize": 9.5,
    "ytick.labelsize": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#555555",
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": "#E4E4E4",
    "hatch.linewidth": 0.8,
    "legend.frameon": False,
}


def figure(title: str, result=None, size: tuple[float, float] = (8.0, 3.2), columns: int = 1, note: str = ""):
    """A figure and its axes (a list of them for ``columns`` > 1), in the course's style.

    ``title`` states the finding, with its number. ``result`` is the `Result` that is drawn, or several
    (a list, or a dict's values): their origin stands in the lower right corner, a recorded one gets a
    RECORDED tag, and where all are missing a placard says so. ``note`` is more text for the corner, such as
    "simulated". ``size`` is in inches; a title of several lines makes the figure higher.
    """
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    results = [result] if isinstance(result, Result) else _values(result)
    recorded = any(one.origin.kind == "recorded" for one in results)
    label = " · ".join(part for part in (note, _origin_label(results)) if part)
    with rc_context(STYLE):
        fig = Figure(figsize=size, facecolor="white", layout="constrained")
        FigureCanvasAgg(fig)
        title = wrapped(fig, title, size[0] - (1.5 if recorded else 0.4), TITLE_POINTS, "bold")
        label = wrapped(fig, label, size[0] - 0.2, LABEL_POINTS) if label else ""
        above = 0.12 + TITLE_POINTS / 72 * 1.3 * (title.count("\n") + 1)
        below = 0.06 + LABEL_POINTS / 72 * 1.3 * (label.count("\n") + 1)
        height = size[1] + TITLE_POINTS / 72 * 1.3 * title.count("\n")
        fig.set_size_inches(size[0], height)
        fig.get_layout_engine().set(rect=(0.005, below / height, 0.99, 1 - (above + below) / height))
        axes = fig.subplots(1, columns, squeeze=False)[0]
    at = {"parse_math": False, "linespacing": 1.2}
    fig.text(0.1 / size[0], 1 - 0.08 / height, title, size=TITLE_POINTS, weight="bold", va="top", **at)
    if label:
        right = {"ha": "right", "va": "bottom", "color": "#444444", "size": LABEL_POINTS}
        fig.text(1 - 0.1 / size[0], 0.05 / height, label, **right, **at)
    if recorded:
        frame = {
            "boxstyle": "round,pad=0.3",
            "linestyle": "--",
            "facecolor": "white",
            "edgecolor": palette.limit,
        }
        corner = {"ha": "right", "va": "top", "size": 9, "weight": "bold", "bbox": frame}
        fig.text(1 - 0.15 / size[0], 1 - 0.12 / height, "RECORDED", **corner)
    if results and all(one.missing for one in results):
        for ax in axes:
            placard(ax, results[0].origin.label)
    return fig, axes[0] if columns == 1 else list(axes)


def placard(ax, text: str) -> None:
    """Axes that have nothing to draw say why, instead of looking broken."""
    ax.grid(False)
    ax.set(xticks=[], yticks=[])
    for spine in ax.spines.values():
        spine.set(visible=True, linestyle="--", color=palette.idle)
    ax.text(
        0.5, 0.5, text, transform=ax.transAxes, ha="center", va="center", size=13, color="#555555", wrap=True
    )


def wrapped(fig, text: str, inches: float, points: float, weight: str = "normal") -> str:
    """``text`` broken at blanks into lines of at most ``inches``, measured in the font that is used."""
    from matplotlib.font_manager import FontProperties

    font, renderer = FontProperties(size=points, weight=weight), fig.canvas.get_renderer()

    def fits(line: str) -> bool:
        return renderer.get_text_width_height_descent(line, font, ismath=False)[0] <= inches * fig.dpi

    lines: list[str] = []
    for word in text.split(" "):  # not at a no-break space
        if lines and fits(f"{lines[-1]} {word}"):
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return "\n".join(lines)


def _values(results) -> list[Result]:
    if results is None:
        return []
    return list(results.values() if isinstance(results, Mapping) else _checked(results))


def _checked(results: Iterable) -> list[Result]:
    if isinstance(results, (str, bytes)) or not isinstance(results, Iterable):
        raise TypeError(f"result is {type(results).__name__}; expected what lab.run gave, or several of them")
    return list(results)


def _origin_label(results: list[Result]) -> str:
    """Each origin once; of several results only some may be missing."""
    there = [one for one in results if not one.missing]
    parts = list(dict.fromkeys(one.origin.label for one in there))
    if there and len(there) < len(results):
        parts.append(f"{len(results) - len(there)} of {len(results)} to be recorded on a GPU")
    notes = dict.fromkeys(one.note for one in results if one.note)
    return " · ".join([*notes, *parts])
