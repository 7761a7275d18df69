"""What one launch costs (lesson 01). Each figure takes what `lab.run` gave; its title states the finding."""

from __future__ import annotations

import statistics

from ..results import Result
from .compare import draw_bars, draw_lines
from .show import show
from .style import figure, palette


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
    """Lines of ``launch/chain``: µs for each kernel over the chain's length; the title has the slopes."""
    title = result.say(
        "A further kernel costs {eager:.1f} µs launched by itself, {graph:.2f} µs in a graph",
        eager=lambda data: slope(data["kernels"], data["wall_us"]),
        graph=lambda data: slope(data["kernels"], data["graph_wall_us"]),
    )
    fig, ax = figure(title, result, size=(8, 3.0))

    def each(key: str):
        return lambda data: [us / n for us, n in zip(data[key], data["kernels"], strict=True)]

    draw_lines(ax, result, "kernels", each("wall_us"), label="eager", color=palette.eager, log_x=True)
    draw_lines(ax, result, "kernels", each("graph_wall_us"), label="graph", color=palette.graph, log_x=True)
    if not result.missing:
        ax.set(xlabel="kernels in the chain", ylabel="total ÷ kernels (µs)", ylim=(0, None))
    show(fig, f"Two lines, time for each kernel over the length of a chain. {title}.")


LAYERS = {
    "empty Python call": ("python", None),
    "CUDA's launch": ("launch", "python"),
    "dispatcher": ("dispatcher", "launch"),
    "allocator": ("allocator", "dispatcher"),
    "module call": ("module", "allocator"),
}


def where(result: Result) -> None:
    """Bars of ``launch/where``: what each layer of PyTorch adds to one launch."""

    def added(name: str, below: str | None):
        return lambda data: data[name] - (data[below] if below else 0.0)

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
