"""Decode steps over batch sizes and presets (lesson 01): where launch-bound ends, and the floor below.

Each figure takes what `lab.run` gave; its title states the finding.
"""

from __future__ import annotations

from ..display import Markdown
from ..results import Result
from .compare import draw_bars
from .show import show
from .style import figure, palette

# One for each sweep: marker, line and colour, so that they are told apart by more than colour.
SWEEP_LOOKS = (("o", "-", palette.eager), ("s", "--", palette.graph), ("^", ":", palette.memory_live))


def batch_sweep(results: list[Result]) -> None:
    """Length of the eager step, and the share of it in which the GPU works, over batch size."""
    there = [result for result in results if not result.missing]
    parts = []
    for result in there:
        half, last = half_busy(result), result.data["rows"][-1]["batch"]
        parts.append(f"{preset_of(result)} " + (f"from batch {half}" if half else f"not up to {last}"))
    title = (
        f"GPU busy for half of an eager step: {', '.join(parts)}" if parts else "How busy eager keeps the GPU"
    )
    fig, (left, right) = figure(title, results, size=(8, 3.4), columns=2)
    for result, (marker, line, color) in zip(results, SWEEP_LOOKS, strict=False):
        for source in result.sources:
            rows = source.data["rows"]
            batches = [row["batch"] for row in rows]
            look = {"marker": marker, "linestyle": line, "color": color, **beside(source, result)}
            left.plot(batches, [row["wall_us"] / 1e3 for row in rows], **look)
            right.plot(batches, [100 * busy_share(row) for row in rows], **look)
    if there:
        left.set(ylabel="eager step (ms)", ylim=(0, None))
        right.legend(loc="upper left")
        right.axhline(50, color=palette.limit, linewidth=0.8)
        right.set(ylabel="GPU busy (% of the step)", ylim=(0, 105))
        for ax in (left, right):
            ax.set_xscale("log", base=2)
            ax.set_xlabel("batch size")
            ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    show(fig, f"Lines over batch size: length of the eager step, and GPU busy share. {title}.")


def busy_share(row: dict) -> float:
    """Share of the eager step in which the GPU works: profiled busy time over unprofiled wall time."""
    return min(1.0, row["busy_us"] / row["wall_us"])


def per_kernel(results: list[Result]) -> Markdown:
    """A table of what one kernel takes at each sweep's smallest batch: on the GPU, eager, and in a graph."""
    lines = ["| | kernels | GPU works | eager | graph |", "|---|---|---|---|---|"]
    for result in results:
        if result.missing:
            lines.append(f"| {preset_of(result)} | {result.origin.label} | | | |")
            continue
        row = result.data["rows"][0]
        each = [f"{row[key] / row['kernels']:.1f} µs" for key in ("busy_us", "wall_us", "graph_us")]
        lines.append(f"| {preset_of(result)} | {row['kernels']:,} | {' | '.join(each)} |")
    there = next((result.origin.label for result in results if not result.missing), "")
    return Markdown("\n".join([*lines, "", f"A step at batch 1, for each kernel · {there}" if there else ""]))


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
    """The preset that a ``step/batch-sweep/{preset}`` result is about."""
    return result.name.split("/")[-1]


def idle_against_kernel_length(alone: Result, sweeps: list[Result]) -> None:
    """Share of eager time that the GPU idles, over a kernel's length: one operation alone, and the sweeps."""
    title = alone.say(
        "With add_ alone, kernels shorter than {half:.0f} µs leave the GPU idle for half of the time",
        half=half_idle_us,
    )
    fig, ax = figure(title, [alone, *sweeps], size=(8, 3.4))
    if not alone.missing:
        us, eager = alone.data["graph_us"], alone.data["eager_us"]
        idle = [100 * max(0.0, 1 - short / long) for short, long in zip(us, eager, strict=True)]
        ax.plot(us, idle, "-", marker=".", color=palette.limit, label="add_ alone")
        ax.axvline(50, color=palette.idle, linewidth=0.8)
        ax.annotate("50 µs", (50, 92), xytext=(3, 0), textcoords="offset points", fontsize=9)
    for result, (marker, _, color) in zip(sweeps, SWEEP_LOOKS, strict=False):
        for source in result.sources:
            rows = source.data["rows"]
            x = [row["busy_us"] / row["kernels"] for row in rows]
            y = [100 * (1 - busy_share(row)) for row in rows]
            ax.plot(x, y, marker, color=color, **beside(source, result))
    if ax.lines:
        ax.set(
            xscale="log",
            xlabel="GPU time for each kernel (µs)",
            ylabel="GPU idle (% of the time)",
            ylim=(0, 105),
        )
        ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        ax.legend()
    show(fig, f"Idle share over kernel length. {title}.")


def half_idle_us(data: dict) -> float:
    """The kernel length, in µs, at which ``launch/kernel-length`` leaves the GPU idle for half of the time.

    Linear interpolation between the two measured lengths around it; the last one if it is never reached.
    """
    shares = [short / long for short, long in zip(data["graph_us"], data["eager_us"], strict=True)]
    points = list(zip(data["graph_us"], shares, strict=True))
    for (us, share), (next_us, next_share) in zip(points, points[1:], strict=False):
        if share < 0.5 <= next_share:
            return us + (next_us - us) * (0.5 - share) / (next_share - share)
    return points[0][0] if shares[0] >= 0.5 else points[-1][0]


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
