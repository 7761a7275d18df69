"""A learner's own result beside the recorded ones, as bars or as lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..results import Result
from ..wording import short
from .style import palette

CYCLE = (palette.eager, palette.graph, palette.memory_live, palette.memory_dead, palette.cpu)
# Live is filled, or a solid line with full dots; each recorded GPU has one of these, in order.
HATCHES, DASHES, MARKERS = ("////", "....", "xxxx"), ("--", ":", "-."), ("s", "^", "D")


def draw_bars(
    ax, results, values: Mapping[str, str | Callable], unit: str = "µs", colors: Mapping | None = None
):
    """Horizontal bars of ``values`` (label -> path in the data, or a function of it), each with its number.

    ``results`` is one `Result`, then each value is a category; or a dict category -> Result. A value has
    one bar for each source: live ones are filled, recorded ones hatched. ``colors`` maps the values' labels
    to colours; "eager" and "graph" have their own. Missing results and None draw nothing.
    """
    one = isinstance(results, Result)
    groups = (
        {label: (results, [label]) for label in values}
        if one
        else {k: (r, values) for k, r in results.items()}
    )
    chosen = {label: color_of(label, at, colors) for at, label in enumerate(values)}
    sources = _sources([results] if one else results.values())
    top, ticks = 0.0, {}
    for category, (result, labels) in groups.items():
        found = [
            (label, source, source.value(values[label])) for label in labels for source in result.sources
        ]
        bars = [bar for bar in found if bar[2] is not None]
        for at, (label, source, value) in enumerate(bars):
            bar = ax.barh(top - at, value, height=0.86, **_fill(chosen[label], sources[_name(source)]))
            ax.bar_label(bar, [f"{short(value)} {unit}"], padding=4, fontsize=9)
        if bars:
            ticks[str(category)] = top - (len(bars) - 1) / 2
            top -= len(bars) + 0.6
    if not ticks:
        return
    ax.set_yticks(list(ticks.values()), list(ticks))
    ax.set(xlabel=unit, ylim=(top + 0.9, 0.7))
    ax.tick_params(axis="y", length=0)
    ax.grid(False, axis="y")
    ax.margins(x=0.16)
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
    _bar_legend(ax, {} if one or len(values) == 1 else chosen, sources if len(sources) > 1 else {})


def draw_lines(
    ax,
    results,
    x: str | Callable | None,
    y: str | Callable,
    *,
    label: str = "",
    color: str | None = None,
    log_x: bool = False,
    log_y: bool = False,
):
    """A line for each source: live ones solid with full dots, recorded ones broken with hollow marks.

    ``results`` is one `Result` whose data hold two lists of one length at the paths ``x`` and ``y``; or a
    dict x -> Result, with a number at ``y`` in each (then ``x`` is None). ``label`` names the quantity; call
    again for another one. ``log_x`` suits sizes that double: each point has its tick.
    """
    one = isinstance(results, Result)
    if one and x is None:
        raise ValueError("x is None; expected the path of the list that y is drawn over")
    sources = _sources([results] if one else results.values())
    lines: dict[str, list] = {name: [] for name in sources}
    for at, result in {None: results}.items() if one else results.items():
        for source in result.sources:
            points = zip(source.value(x), source.value(y), strict=True) if one else [(at, source.value(y))]
            lines[_name(source)].extend(points)
    color = color or color_of(label, len(ax.lines), None)
    for name, points in lines.items():
        text = " · ".join(part for part in (label, name if len(lines) > 1 else "") if part)
        stroke = _stroke(sources[name])
        ax.plot(
            *zip(*points, strict=True), color=color, linewidth=1.8, markersize=5, label=text or None, **stroke
        )
    _scales(ax, log_x, log_y)
    if any(not line.get_label().startswith("_") for line in ax.lines):
        place = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)} if len(lines) > 1 else {}
        ax.legend(fontsize=9, frameon=False, handlelength=3, **place)


def color_of(label: str, at: int, colors: Mapping | None) -> str:
    """The colour that ``colors`` or the palette has for a label; else the ``at``-th of the cycle."""
    named = next((getattr(palette, name) for name in palette._fields if name in label.lower().split()), None)
    return (colors or {}).get(label) or named or CYCLE[at % len(CYCLE)]


def _name(source: Result) -> str:
    """ "live", or "recorded on NVIDIA H200": what tells the bars of one figure apart."""
    return "live" if source.origin.kind == "live" else f"recorded on {source.origin.gpu}"


def _sources(results) -> dict[str, int | None]:
    """Each source's name -> None when it is live, else its number among the recorded ones."""
    names = dict.fromkeys(_name(source) for result in results for source in result.sources)
    recorded = [name for name in names if name != "live"]
    return {name: recorded.index(name) % len(HATCHES) if name in recorded else None for name in names}


def _fill(color: str, number: int | None) -> dict:
    if number is None:
        return {"color": color}
    return {"facecolor": "white", "edgecolor": color, "hatch": HATCHES[number]}


def _stroke(number: int | None) -> dict:
    if number is None:
        return {"linestyle": "-", "marker": "o"}
    return {"linestyle": DASHES[number], "marker": MARKERS[number], "markerfacecolor": "white"}


def _scales(ax, log_x: bool, log_y: bool) -> None:
    if log_x:
        ticks = sorted({at for line in ax.lines for at in line.get_xdata()})
        ax.set_xscale("log", base=2)
        ax.set_xticks(ticks, [f"{at:,g}" for at in ticks])
        ax.minorticks_off()
    if log_y:
        from matplotlib.ticker import LogLocator

        ax.set_yscale("log")
        ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.tick_params(axis="y", which="minor", left=False, labelleft=False)
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")


def _bar_legend(ax, values: Mapping[str, str], sources: Mapping[str, int | None]) -> None:
    from matplotlib.patches import Patch

    handles = [Patch(color=color, label=label) for label, color in values.items()]
    handles += [Patch(label=name, **_fill("#555555", number)) for name, number in sources.items()]
    if handles:
        place = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)}
        ax.legend(handles=handles, fontsize=9, frameon=False, **place)
