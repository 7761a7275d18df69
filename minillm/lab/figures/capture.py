"""What a replay costs the CPU and the GPU (lesson 02). Each figure takes what `lab.run` gave."""

from __future__ import annotations

import math

from ..results import Result
from ..wording import short
from .compare import draw_lines
from .launch import slope
from .show import show
from .style import figure, palette

FEW = 500  # eager submits are drawn up to here, and named in the title
LONG = 100  # from here on a chain is long enough for its slope to be a node's cost


def column(key: str, start: int = 0, stop: float = math.inf):
    """A function of the data of ``capture/replay-cost``: ``key`` of the rows with start … stop nodes."""
    return lambda data: [row[key] for row in data["rows"] if start <= row["nodes"] <= stop]


def at_nodes(key: str, nodes: int):
    """A function of the data: ``key`` of the longest chain that has at most so many nodes."""
    return lambda data: max((row for row in data["rows"] if row["nodes"] <= nodes), key=_nodes)[key]


def _nodes(row: dict) -> int:
    return row["nodes"]


def submit(result: Result) -> None:
    """Lines of ``capture/replay-cost``: CPU time to submit a chain, one by one and as one replay."""
    title = result.say(
        "One call replays {most:,} nodes and takes the CPU {replay} µs; "
        "launched one by one, {few:,} of them take {eager} µs",
        most=lambda data: data["rows"][-1]["nodes"],
        replay=lambda data: short(data["rows"][-1]["submit_us"]),
        few=at_nodes("nodes", FEW),
        eager=lambda data: short(at_nodes("eager_submit_us", FEW)(data)),
    )
    fig, ax = figure(title, result, size=(8, 3.6))
    lines = {  # label: (y, first node count, last node count, colour)
        "eager, submit": ("eager_submit_us", 0, FEW, palette.eager),
        "eager, until done": ("eager_wall_us", FEW, math.inf, palette.idle),
        "one replay, submit": ("submit_us", 0, math.inf, palette.graph),
    }
    if not result.missing:
        for label, (key, start, stop, color) in lines.items():
            x, y = column("nodes", start, stop), column(key, start, stop)
            draw_lines(ax, result, x, y, label=label, color=color, log_x=True, log_y=True)
        finish_axes(
            ax, f"nodes (beyond {FEW}, CUDA's launch queue may fill up and make the CPU wait)", "time (µs)"
        )
    show(fig, f"Lines over the number of nodes, both axes logarithmic. {title}.")


def finish_axes(ax, x: str, y: str) -> None:
    """Axes' names, ticks at powers of ten, colours explained above, live and recorded within."""
    from matplotlib.lines import Line2D

    ax.set(xlabel=x, ylabel=y)
    ax.set_xscale("log", base=10)
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    colors, sources = {}, {}
    for line in ax.lines:
        quantity, _, source = line.get_label().partition(" · ")
        colors.setdefault(quantity, Line2D([], [], linewidth=3, color=line.get_color(), label=quantity))
        if source and source not in sources:
            look = {"linestyle": line.get_linestyle(), "marker": line.get_marker()}
            look["markerfacecolor"] = "#555555" if source == "live" else "white"
            sources[source] = Line2D([], [], color="#555555", label=source, **look)
    if sources:
        ax.add_artist(ax.legend(handles=list(sources.values()), fontsize=9, frameon=False, handlelength=3))
    ax.legend(
        handles=list(colors.values()),
        loc="lower left",
        bbox_to_anchor=(0, 1),
        ncols=3,
        fontsize=9,
        frameon=False,
    )


def floor(result: Result) -> None:
    """Lines of ``capture/replay-cost``: GPU time of a replay for each node; the title has the slopes."""
    title = result.say(
        "A further node costs the GPU {add:.2f} µs; an empty one {empty:.2f} µs",
        add=lambda data: node_us(data, "gpu_us"),
        empty=lambda data: node_us(data, "empty_gpu_us"),
    )
    fig, ax = figure(title, result, size=(8, 3.2))
    looks = {
        "add_ on 1,024 floats": ("gpu_us", palette.graph),
        "empty kernel": ("empty_gpu_us", palette.limit),
    }
    if not result.missing:
        for label, (key, color) in looks.items():
            x, y = column("nodes"), per_node(key)
            draw_lines(ax, result, x, y, label=label, color=color, log_x=True, log_y=True)
        finish_axes(ax, "nodes in the graph", "GPU time ÷ nodes (µs)")
    show(fig, f"Lines of GPU time for each node over the number of nodes. {title}.")


def per_node(key: str):
    """A function of the data: ``key`` of each row, divided by its nodes."""
    return lambda data: [row[key] / row["nodes"] for row in data["rows"]]


def node_us(data: dict, key: str) -> float:
    """µs that each further node adds, from the chains of 100 nodes or more."""
    return slope(column("nodes", LONG)(data), column(key, LONG)(data))
