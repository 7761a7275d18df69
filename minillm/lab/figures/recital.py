"""What the reciter wrote beside what it should have written, the first wrong character marked (lesson 03)."""

from __future__ import annotations

import torch

from ... import graphs
from ..provenance import live_run
from ..results import Origin, plain_version
from .show import show
from .style import figure, palette

COLUMN, GAP = 36, 4  # characters of a column, and between the two
LINE_INCHES, POINTS = 0.21, 10.5
END, NEWLINE = "\N{END OF PROOF}", "\N{DOWNWARDS ARROW WITH CORNER LEFTWARDS}"
BLOCK = "\N{FULL BLOCK}"


def first_wrong(written: str, right: str) -> int | None:
    """Where ``written`` first differs from ``right``, counted from 0, an end that is elsewhere included."""
    if written == right:
        return None
    pairs = zip(written, right, strict=False)  # False: one may end before the other
    return next((place for place, (a, b) in enumerate(pairs) if a != b), min(len(written), len(right)))


def finding(written: str, right: str) -> str:
    """The figure's title: "All 40 characters are right", or from where on what stands instead of what."""
    place = first_wrong(written, right)
    if place is None:
        return f"All {len(right)} characters are right"
    return f"Wrong from character {place + 1} on: {_name(written, place)} instead of {_name(right, place)}"


def beside(written: str, right: str) -> None:
    """Show ``written`` beside ``right``, character for character, the first wrong one on a dark ground.

    Both also stand, as plain text, in the alternative text.
    """
    place, title = first_wrong(written, right), finding(written, right)
    sides = {"written": _lines(written, place), "right": _lines(right, place)}
    height = 1 + max(len(lines) for lines in sides.values())
    fig, ax = figure(title, size=(8.0, 0.45 + LINE_INCHES * height), note=_where())
    ax.set(xlim=(0, 2 * COLUMN + GAP), ylim=(height, 0))
    ax.axis("off")
    for (name, lines), colour in zip(sides.items(), (palette.eager, palette.graph), strict=True):
        x = 0 if name == "written" else COLUMN + GAP
        _put(ax, x, 0, name, "#555555", style="italic")
        for row, line in enumerate(lines, start=1):
            _put_line(ax, x, row, line, place, colour)
    show(fig, f"Two texts side by side. {title}. Written: {written!r}. Right: {right!r}.")


def _lines(text: str, place: int | None) -> list[list[tuple[int, str]]]:
    """The text's lines of (place, glyph): broken at new lines and after COLUMN characters."""
    lines: list[list[tuple[int, str]]] = [[]]
    for index, character in enumerate(text):
        if len(lines[-1]) == COLUMN:
            lines.append([])
        lines[-1].append((index, NEWLINE if character == "\n" else character))
        if character == "\n":
            lines.append([])
    if place == len(text):  # it ends where the other goes on
        lines[-1].append((place, END))
    return lines


def _put_line(ax, x: float, row: int, line: list[tuple[int, str]], place: int | None, colour: str) -> None:
    """One line in up to four layers of the same width: right, marked, wrong, new lines."""
    before = "".join(g if (place is None or i < place) and g != NEWLINE else " " for i, g in line)
    behind = "".join(g if place is not None and i > place and g != NEWLINE else " " for i, g in line)
    marked = "".join(g if i == place else " " for i, g in line)
    breaks = "".join(g if g == NEWLINE and i != place else " " for i, g in line)
    _put(ax, x, row, before, palette.limit)
    _put(ax, x, row, behind, colour)
    _put(ax, x, row, breaks, palette.idle)
    if marked.strip() or any(i == place for i, _ in line):
        _put(ax, x, row, "".join(BLOCK if i == place else " " for i, _ in line), colour)
        _put(ax, x, row, marked, "white", weight="bold")


def _put(ax, x: float, row: float, text: str, colour: str, **style) -> None:
    font = {"family": "DejaVu Sans Mono", "size": POINTS, "color": colour, "va": "center"}
    ax.text(x, row + 0.5, text.rstrip(), parse_math=False, **font | style)


def _name(text: str, place: int) -> str:
    if place >= len(text):
        return "the end"
    return {"\n": "a new line", " ": "a blank"}.get(text[place], f"'{text[place]}'")


def _where() -> str:
    if graphs.backend == "cuda":
        return Origin.live(live_run()).label
    return f"emulated on a CPU · torch {plain_version(torch.__version__)}"
