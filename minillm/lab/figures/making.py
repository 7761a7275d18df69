"""What a graph costs before its first replay, and when that is paid back (lesson 02).

Each function takes what `lab.run` gave.
"""

from __future__ import annotations

import math

from ..display import Markdown
from ..results import Result
from .capture import at_nodes, column, finish_axes
from .compare import draw_lines
from .show import show
from .style import figure, palette


def making(result: Result) -> None:
    """Lines of ``capture/replay-cost``: CPU time to capture and to instantiate; when that is paid back."""
    title = result.say(
        "Making {nodes:,} nodes takes {ms:.1f} ms, {paid}",
        nodes=at_nodes("nodes", 1000),
        ms=lambda data: sum(at_nodes(key, 1000)(data) for key in ("capture_us", "instantiate_us")) / 1e3,
        paid=lambda data: paid_back({key: at_nodes(key, 1000)(data) for key in PAID}),
    )
    fig, ax = figure(title, result, size=(8, 3.4))
    looks = {"capture": palette.cpu, "instantiate": palette.memory_dead}
    if not result.missing:
        for label, color in looks.items():
            x, y = column("nodes"), _in_ms(f"{label}_us")
            draw_lines(ax, result, x, y, label=label, color=color, log_x=True, log_y=True)
        finish_axes(ax, "nodes in the graph", "CPU time, once (ms)")
    show(fig, f"Lines over the number of nodes, both axes logarithmic. {title}.")


def _in_ms(key: str):
    return lambda data: [row[key] / 1e3 for row in data["rows"]]


PAID = ("capture_us", "instantiate_us", "eager_wall_us", "wall_us")


def paid_back(times: dict) -> str:
    """After how many replays instead of eager runs the making is paid back, as the end of a sentence."""
    gain = times["eager_wall_us"] - times["wall_us"]
    if gain <= 0:
        return "which no replay pays back: eager is as fast"
    replays = math.ceil((times["capture_us"] + times["instantiate_us"]) / gain)
    return f"which {replays:,} replay{'s' if replays > 1 else ''} pay{'' if replays > 1 else 's'} back"


def step_cost(result: Result) -> Markdown:
    """A table of ``capture/step-cost``: what a decode step's graph costs once, and each time."""
    if result.missing:
        return Markdown(f"{result.name}: {result.origin.label}")
    lines = [
        "| | nodes | capture | instantiate | CPU: eager | CPU: replay | GPU: replay |",
        "|---|" + "---|" * 6,
    ]
    for source in result.sources:
        data = source.data
        nodes = "not counted" if data["nodes"] is None else f"{data['nodes']:,}"
        once = [f"{data[key] / 1e3:,.1f} ms" for key in ("capture_us", "instantiate_us")]
        each = [f"{data['eager_submit_us'] / 1e3:,.1f} ms", f"{data['submit_us']:,.0f} µs"]
        cells = [nodes, *once, *each, f"{data['gpu_us'] / 1e3:,.2f} ms"]
        lines.append(f"| {source.origin.label} | {' | '.join(cells)} |")
    preset, batch = result.name.split("/")[-2:]
    said = f"One decode step of {preset}, {batch}; capture and instantiation once, {paid_back(result.data)}."
    return Markdown("\n".join([*lines, "", said]))
