"""One decode step on the GPU's clock (lesson 01): its kernels, its bubbles, the same as a graph."""

from __future__ import annotations

import statistics
from collections import Counter

from ..display import Markdown
from ..results import Result
from ..timeline import Timeline
from ..wording import percent
from .show import show
from .style import figure, palette
from .timeline import draw_timeline


def timeline_of(result: Result, name: str) -> Timeline | None:
    """The "eager" or "graph" timeline of a result, from its first launch on; None when it is missing."""
    if result.missing:
        return None
    line = Timeline.from_json(result.data[name])
    return line.between(line.launches[0].start_us, float("inf"))


def census(result: Result) -> None:
    """Histogram of the kernels of one decode step by their length."""
    line = timeline_of(result, "eager")
    title, lengths = result.say(""), []
    if line:
        lengths = [span.duration_us for span in line.kernels]
        median, longest = statistics.median(lengths), sorted(lengths, reverse=True)
        tenth = sum(longest[: len(longest) // 10]) / sum(longest)
        title = (
            f"{len(lengths):,} kernels in one step, median {median:.1f} µs; "
            f"the longest tenth holds {percent(tenth)} of the GPU's time"
        )
    fig, axes = figure(title, result, size=(8, 3.0), columns=2)
    if line:
        edges = [edge for k in range(24) if (edge := 0.5 * 2 ** (k / 2)) < 2 * max(lengths)]
        ways = {"kernels": None, "µs of GPU time": lengths}
        for ax, (label, weights) in zip(axes, ways.items(), strict=True):
            ax.hist(lengths, bins=edges, weights=weights, color=palette.eager, edgecolor="white")
            ax.set(xscale="log", xlabel="length of a kernel (µs)", ylabel=label)
            ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    show(fig, f"Two histograms over the length of a kernel: how many, and GPU time. {title}.")


def costliest(result: Result, rows: int = 5) -> Markdown:
    """A table: which kernels of one eager step hold most of the GPU's time; template arguments left out."""
    line = timeline_of(result, "eager")
    if line is None:
        return Markdown(result.origin.label)
    count, total = Counter(), Counter()
    for span in line.kernels:
        name = span.name.removeprefix("void ").split("<")[0].split("(")[0]
        count[name] += 1
        total[name] += span.duration_us
    lines = ["| kernel | how many | µs together | share |", "|---|---|---|---|"]
    for name, us in total.most_common(rows):
        lines.append(f"| `{name}` | {count[name]} | {us:,.0f} | {percent(us / line.busy_us)} |")
    return Markdown("\n".join([*lines, "", result.origin.label]))


def timeline(result: Result, window: int = 14) -> None:
    """About ``window`` launches from the middle of an eager step, CPU over GPU, idle time hatched."""
    line = timeline_of(result, "eager")
    title = result.say("")
    if line:
        title = f"{percent(1 - line.busy_fraction)} of this profiled step the GPU waits for the CPU"
    fig, ax = figure(title, result, size=(8, 2.6))
    if line:
        launches = line.launches[len(line.launches) // 2 :][: window + 1]
        start, end = launches[0].start_us, launches[-1].start_us
        draw_timeline(ax, {"eager, a part of the step; whole": line}, window_us=(start, end))
    show(fig, f"Timeline with a CPU lane and a GPU lane. {title}.")


def eager_over_graph(result: Result) -> None:
    """The whole step twice on one clock, profiled: launched one by one, and replayed as a graph."""
    title = result.say(
        "A graph makes the step {times:.1f} × shorter (unprofiled; drawn: both under the profiler)",
        times=lambda data: data["eager_us"] / data["graph_us"],
    )
    fig, ax = figure(title, result, size=(8, 3.4))
    if not result.missing:
        rows = {}
        for name in ("eager", "graph"):
            rows[f"{name}, profiled"] = timeline_of(result, name)
        draw_timeline(ax, rows)
    show(fig, f"Two timelines on one clock. {title}.")
