"""The figures of lesson 01. Each takes what `lab.run` gave and states its finding in the title."""

from __future__ import annotations

import statistics

from ..results import Result
from ..timeline import Timeline
from ..wording import percent
from .compare import draw_bars, draw_lines
from .show import show
from .style import figure, palette
from .timeline import draw_timeline

# One for each sweep: marker, line and colour, so that they are told apart by more than colour.
SWEEP_LOOKS = (("o", "-", palette.eager), ("s", "--", palette.graph), ("^", ":", palette.memory_live))


def one_kernel(result: Result) -> None:
    """Bars of ``launch/one-kernel``: µs to submit, µs to run, µs until the result is there."""
    title = result.say(
        "Launching takes the CPU {times:.0f} × as long as the GPU takes to run it",
        times=lambda data: data["submit_us"] / data["kernel_us"],
    )
    fig, ax = figure(title, result, size=(8, 2.2))
    bars = {"CPU launches": "submit_us", "GPU runs": "kernel_us", "launch, run, wait": "wall_us"}
    colors = {"CPU launches": palette.cpu, "GPU runs": palette.eager, "launch, run, wait": palette.idle}
    draw_bars(ax, result, bars, colors=colors)
    ax.set_xlabel("time of one add_ on 1,024 floats (µs)")
    show(fig, f"Bar chart. {title}.")


def unsynchronised(result: Result) -> None:
    """Bars of ``launch/unsynchronised``: the wrong timing beside the right ones."""
    title = result.say(
        "Without a synchronise the clock misses {missed:.0f} % of the work",
        missed=lambda data: 100 - 100 * data["host_us"] / data["events_us"],
    )
    fig, ax = figure(title, result, size=(8, 2.2))
    bars = {
        "clock, no synchronise": "host_us",
        "clock, then synchronise": "synchronised_us",
        "CUDA events": "events_us",
    }
    colors = {name: palette.graph for name in bars} | {"clock, no synchronise": palette.eager}
    draw_bars(ax, result, bars, colors=colors)
    ax.set_xlabel("8192 × 8192 product (µs)")
    show(fig, f"Bar chart. {title}.")


def slope(x: list[float], y: list[float]) -> float:
    """Least-squares slope of y over x: µs for each further kernel."""
    return statistics.linear_regression(x, y).slope


def chain(result: Result) -> None:
    """Lines of ``launch/chain``: total time over the number of kernels, and their slopes."""
    title = result.say(
        "A further kernel costs {eager:.1f} µs launched by itself, {graph:.2f} µs in a graph",
        eager=lambda data: slope(data["kernels"], data["wall_us"]),
        graph=lambda data: slope(data["kernels"], data["graph_wall_us"]),
    )
    fig, ax = figure(title, result, size=(8, 3.4))
    draw_lines(ax, result, "kernels", "wall_us", label="eager", color=palette.eager)
    draw_lines(ax, result, "kernels", "graph_wall_us", label="graph", color=palette.graph)
    ax.set(xscale="log", yscale="log", xlabel="kernels in the chain", ylabel="time until done (µs)")
    show(fig, f"Two lines of total time over the length of a chain. {title}.")


LAYERS = {
    "Python": ("python", None),
    "CUDA's launch": ("launch", "python"),
    "dispatcher": ("dispatcher", "launch"),
    "allocator": ("allocator", "dispatcher"),
    "module call": ("module", "allocator"),
}


def where(result: Result) -> None:
    """Bars of ``launch/where``: what each layer of PyTorch adds to one launch."""

    def added(name: str, below: str | None):
        return lambda data: max(0.0, data[name] - (data[below] if below else 0.0))

    layers = {label: added(*names) for label, names in LAYERS.items()}
    title = result.say(
        "CUDA's own launch is {launch:.1f} of the {total:.1f} µs that a small module call costs",
        launch=layers["CUDA's launch"],
        total=lambda data: data["module"],
    )
    fig, ax = figure(title, result, size=(8, 2.8))
    draw_bars(ax, result, layers, colors={label: palette.cpu for label in layers})
    ax.set_xlabel("added CPU time for one launch (µs)")
    show(fig, f"Bar chart of what each layer adds to a launch. {title}.")


def eager_timeline(result: Result) -> Timeline | None:
    """The eager timeline of a ``launch/timeline/…`` result; None when it is missing."""
    return None if result.missing else Timeline.from_json(result.data["eager"])


def census(result: Result) -> None:
    """Histogram of the kernels of one decode step by their length."""
    line = eager_timeline(result)
    title, lengths = result.say(""), []
    if line:
        lengths = line.durations_us
        median, longest = statistics.median(lengths), sorted(lengths, reverse=True)
        tenth = sum(longest[: len(longest) // 10]) / sum(longest)
        title = (
            f"{len(lengths):,} kernels in one step, median {median:.1f} µs; "
            f"the longest tenth holds {percent(tenth)} of the GPU's time"
        )
    fig, ax = figure(title, result, size=(8, 3.0))
    if line:
        steps = [0.5 * 2 ** (k / 2) for k in range(24)]
        ax.hist(
            lengths, bins=[s for s in steps if s < 2 * max(lengths)], color=palette.eager, edgecolor="white"
        )
        ax.set(xscale="log", xlabel="length of a kernel (µs)", ylabel="kernels")
        ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    show(fig, f"Histogram. {title}.")


def timeline(result: Result, window: int = 14) -> None:
    """About ``window`` launches from the middle of an eager step, CPU over GPU, idle time hatched."""
    line = eager_timeline(result)
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
        "The same kernels take {eager_us:,.0f} µs eager and {graph_us:,.0f} µs as a graph (not profiled)"
    )
    fig, ax = figure(title, result, size=(8, 3.4))
    if not result.missing:
        rows = {}
        for name in ("eager", "graph"):
            line = Timeline.from_json(result.data[name])
            first = line.launches[0].start_us
            rows[f"{name}, profiled"] = line.between(first, float("inf"))
        draw_timeline(ax, rows)
    show(fig, f"Two timelines on one clock. {title}.")


def batch_sweep(results: list[Result]) -> None:
    """Share of the eager step in which the GPU works, over batch size, one line a preset."""
    there = [result for result in results if not result.missing]
    parts = []
    for result in there:
        half, last = half_busy(result), result.data["rows"][-1]["batch"]
        parts.append(f"{preset_of(result)} " + (f"from batch {half}" if half else f"not up to {last}"))
    title = (
        f"GPU busy for half of an eager step: {', '.join(parts)}" if parts else "How busy eager keeps the GPU"
    )
    fig, ax = figure(title, results, size=(8, 3.4))
    for result, (marker, line, color) in zip(results, SWEEP_LOOKS, strict=True):
        for source in result.sources:
            rows = source.data["rows"]
            share = [min(1.0, row["busy_us"] / row["wall_us"]) * 100 for row in rows]
            look = {"color": color, **beside(source, result)}
            ax.plot([row["batch"] for row in rows], share, marker=marker, linestyle=line, **look)
    if there:
        ax.axhline(50, color=palette.limit, linewidth=0.8)
        ax.set_xscale("log", base=2)
        ax.set(xlabel="batch size", ylabel="GPU busy (% of the step)", ylim=(0, 105))
        ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        ax.legend()
    show(fig, f"Lines of GPU busy share over batch size. {title}.")


def half_busy(result: Result) -> int | None:
    """The smallest batch of a sweep at which the GPU works for half of the eager step or more."""
    return next((r["batch"] for r in result.data["rows"] if r["busy_us"] >= r["wall_us"] / 2), None)


def beside(source: Result, result: Result) -> dict:
    """How a sweep's own line is told apart from a record that is drawn beside it: hollow, thin, named."""
    if source is result:
        return {"label": preset_of(result)}
    label = f"{preset_of(result)}, recorded on {source.origin.gpu}"
    return {"label": label, "markerfacecolor": "white", "linewidth": 0.8}


def preset_of(result: Result) -> str:
    """The preset that a ``launch/batch-sweep/{preset}`` result is about."""
    return result.name.split("/")[-1]


def idle_against_kernel_length(results: list[Result]) -> None:
    """Idle share of every run of the sweeps over the mean length of its kernels, and the model's curve."""
    rows = [(r, row) for r in results if not r.missing for row in r.data["rows"]]
    title, launch = "Idle time against the length of a kernel", 0.0
    if rows:
        launch = statistics.median(row["submit_us"] / row["kernels"] for _, row in rows)
        title = f"Kernels shorter than this host's launch, {launch:.0f} µs, leave the GPU idle"
    fig, ax = figure(title, results, size=(8, 3.4))
    for result, (marker, _, color) in zip(results, SWEEP_LOOKS, strict=True):
        for source in result.sources:
            own = source.data["rows"]
            x = [row["busy_us"] / row["kernels"] for row in own]
            y = [max(0.0, 1 - row["busy_us"] / row["wall_us"]) * 100 for row in own]
            ax.plot(x, y, marker, color=color, **beside(source, result))
    if rows:
        curve = [launch * k / 50 for k in range(1, 151)]
        ideal = [max(0.0, 1 - us / launch) * 100 for us in curve]
        ax.plot(curve, ideal, "--", color=palette.idle, label=f"launch queue, {launch:.0f} µs a launch")
        ax.axvline(50, color=palette.limit, linewidth=0.8)
        ax.annotate("50 µs", (50, 92), xytext=(3, 0), textcoords="offset points", fontsize=9)
        ax.set(
            xscale="log",
            xlabel="mean length of a kernel (µs)",
            ylabel="GPU idle (% of the step)",
            ylim=(0, 105),
        )
        ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        ax.legend()
    show(fig, f"Scatter of idle share over kernel length. {title}.")


def floor(results: list[Result]) -> None:
    """Eager, graph and bandwidth floor of one step at the smallest batch of each sweep."""
    steps = {preset_of(result): result for result in results}
    finding = "; ".join(
        f"{preset}: eager {first['wall_us'] / first['floor_us']:.0f} ×, "
        f"graph {first['graph_us'] / first['floor_us']:.1f} × the floor"
        for preset, step in steps.items()
        if not step.missing and (first := step.data["rows"][0])["floor_us"]
    )
    title = finding or "One decode step, eager and as a graph"
    fig, ax = figure(title, results, size=(8, 3.2))

    def of_first(key: str):
        return lambda data: data["rows"][0][key]

    keys = {"eager": "wall_us", "graph": "graph_us"} | ({"floor": "floor_us"} if finding else {})
    draw_bars(ax, steps, {name: of_first(key) for name, key in keys.items()}, colors={"floor": palette.limit})
    ax.set_xlabel("one decode step at batch 1, context 400 (µs); floor: bytes ÷ datasheet bandwidth")
    show(fig, f"Bar chart. {title}.")
