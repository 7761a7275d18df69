"""The pieces of the picture of a captured step: boxes in rows, their legend, and a layer's nodes by name."""

from __future__ import annotations

import functools

from ..step_kinds import KINDS, runs
from ..step_parts import StepParts

# Light fills for the many small kernels, dark ones with white letters for what a layer is for. The letter
# says the same as the fill, and light and dark stay apart in print.
LOOKS = {
    "T": ("#EDEDED", "#1A1A1A"),
    "E": ("#CBCBCB", "#1A1A1A"),
    "N": ("#D6E6F5", "#1A1A1A"),
    "M": ("#2A5C8F", "white"),
    "R": ("#F7E5A6", "#1A1A1A"),
    "W": ("#26704F", "white"),
    "G": ("#A5DABF", "#1A1A1A"),
    "A": ("#7C3A6B", "white"),
    "+": ("#4A4A4A", "white"),
    "S": ("#F2C4B0", "#1A1A1A"),
    "?": ("white", "#1A1A1A"),
}
INK = "#1A1A1A"
WIDTH, LABELS = 9.6, 0.92  # inches: all of a row, and the words before its boxes
WIDEST, ROW = 0.2, 0.25  # inches: a box, and from one row to the next
LEGEND_COLUMNS, CELL_COLUMNS, CELL = 6, 4, 0.185


def draw_rows(ax, rows, kinds: list[str]) -> float:
    """A row a part; returns how far down they reach."""
    longest = max([len(nodes or []) for _, nodes in rows] + [1])
    width = min(WIDEST, (WIDTH - LABELS - 0.35) / longest)
    y = -ROW * 0.2
    for name, nodes in rows:
        middle, at = y - ROW * 0.4, 0
        ax.text(LABELS - 0.1, middle, name, ha="right", va="center", fontsize=8.5, color=INK)
        for kind, length in runs(kinds[k] for k in nodes or []):
            for place in range(at, at + length):
                _box(ax, LABELS + place * width, y, width, ROW * 0.8, kind)
            word = KINDS[kind]
            if _inches(word, 7.5) < length * width:
                _write(ax, LABELS + (at + length / 2) * width, middle, word, kind)
            elif _inches(kind, 7.5) < width:
                for place in range(at, at + length):
                    _write(ax, LABELS + (place + 0.5) * width, middle, kind, kind)
            at += length
        if nodes is not None:
            words = f"{at}" if at else "not found: no node holds the address of a weight or cache of it"
            end = LABELS + at * width + 0.06
            ax.text(end, middle, words, va="center", fontsize=8, color="#444444")
        y -= ROW
    return y - ROW * 0.2


def _box(ax, x: float, y: float, width: float, height: float, kind: str) -> None:
    from matplotlib.patches import Rectangle

    hatch = {"hatch": "////", "edgecolor": "#B5B5B5"} if kind == "?" else {"edgecolor": "white"}
    fill = LOOKS[kind][0]
    # add_patch would work out the axes' limits again for each of hundreds of boxes
    ax.add_artist(Rectangle((x, y - height), width, height, facecolor=fill, linewidth=0.8, **hatch))


def _write(ax, x: float, y: float, words: str, kind: str) -> None:
    """Words in the middle of boxes of one kind, on a plate that hides the borders between them."""
    fill, ink = LOOKS[kind]
    plate = {"facecolor": fill, "edgecolor": "none", "boxstyle": "square,pad=0.12"}
    ax.text(x, y, words, ha="center", va="center_baseline", fontsize=7.5, color=ink, bbox=plate)


@functools.lru_cache(2048)
def _inches(words: str, points: float, weight: str = "normal") -> float:
    """How wide words come out."""
    from matplotlib.backends.backend_agg import RendererAgg
    from matplotlib.font_manager import FontProperties

    font, dpi = FontProperties(size=points, weight=weight), 100
    return RendererAgg(1, 1, dpi).get_text_width_height_descent(words, font, ismath=False)[0] / dpi


def draw_legend(ax, legend: list[str], y: float) -> float:
    """A box and its meaning for each of these letters; returns how far down they reach."""
    step = (WIDTH - LABELS) / LEGEND_COLUMNS
    for at, kind in enumerate(legend):
        row, column = divmod(at, LEGEND_COLUMNS)
        x, top = LABELS + column * step, y - row * CELL
        _box(ax, x, top, 0.17, CELL * 0.88, kind)
        _write(ax, x + 0.085, top - CELL * 0.44, kind, kind)
        ax.text(x + 0.22, top - CELL * 0.44, KINDS[kind], va="center_baseline", fontsize=8, color=INK)
    return y - CELL * (-(-len(legend) // LEGEND_COLUMNS) + 0.6)


def draw_cells(ax, a, parts: StepParts, kinds, layer: int, chosen: list[int], y: float) -> None:
    """One layer, a line a node: index, name, and in bold the weight that it holds."""
    words = f"layer {layer}, node by node; bold: the tensor whose address the node holds"
    ax.text(0.02, y - CELL * 0.5, words, va="center", fontsize=9, weight="bold", color=INK)
    rows, step = -(-len(chosen) // CELL_COLUMNS), WIDTH / CELL_COLUMNS
    for at, k in enumerate(chosen):
        column, row = divmod(at, rows)
        x, top = 0.02 + column * step, y - CELL * (row + 1.3)
        _box(ax, x, top, 0.17, CELL, kinds[k])
        _write(ax, x + 0.085, top - CELL / 2, kinds[k], kinds[k])
        held = ", ".join(dict.fromkeys(span.name.removesuffix(".weight") for span in parts.holds[k]))
        room = step - 0.45 - _inches(held, 7.5, "bold")
        name = whole = f"#{k} {a.nodes[k].name.partition(' (')[0]}"
        while _inches(name, 7.5) > room:
            whole = whole[:-1]
            name = f"{whole}…"
        look = {"fontsize": 7.5, "color": INK, "parse_math": False}
        text = ax.text(x + 0.22, top - CELL / 2, name, va="center_baseline", **look)
        if held:  # behind the name, however wide that comes out at the picture's resolution
            place = {"xycoords": text, "xy": (1, 0), "xytext": (4, 0), "textcoords": "offset points"}
            ax.annotate(held, va="bottom", weight="bold", **look, **place)
