"""Captured graphs (lesson 02): a small one node by node; a decode step with every layer a row."""

from __future__ import annotations

from ...graphs.anatomy.layout import lay_out
from ...graphs.anatomy.report import count_of
from ..read_anatomy import Unreadable
from ..step_kinds import KINDS, node_kinds, runs
from ..step_parts import StepParts, step_parts
from .node_boxes import CELL, CELL_COLUMNS, LEGEND_COLUMNS, ROW, WIDTH, draw_cells, draw_legend, draw_rows
from .show import show
from .style import figure, placard, wrapped

MOST_ROWS = 36  # of a model with more layers the first and the last ones


def draw_step(a, step, layer: int = 0) -> None:
    """Show the graph of a captured decode step: a box a node, a row a layer, and ``layer`` enlarged.

    ``a`` is ``graphs.anatomy(g)`` and ``step`` the `lab.decode_step` that ``g`` captured. The layers are
    found by the addresses of their weights; of one that is not found the figure says so, and its nodes stand
    in a row of their own. Raises TypeError for what is no anatomy, ValueError for a layer that the model
    has not, or for a step on another device. An `Unreadable` is drawn as its reason.
    """
    if isinstance(a, Unreadable):
        return _say_why(a)
    parts = step_parts(a, step)
    if not 0 <= layer < parts.layers:
        raise ValueError(f"layer is {layer}; expected 0 to {parts.layers - 1}")
    fig, alt = drawn(a, parts, layer, origin(a))
    show(fig, alt)


def draw_graph(a, finding: str) -> None:
    """Show a small graph, node by node, titled "4 nodes" and ``finding``. ``a`` as for `draw_step`."""
    if isinstance(a, Unreadable):
        return _say_why(a)
    title = f"{count_of(len(a.nodes), 'node')}{finding}"
    layers = lay_out(len(a.nodes), a.edges).layers
    fig, ax = figure(title, size=(8, 0.8 + 0.6 * layers), note=origin(a))
    a.draw(ax)
    ax.set_title("")  # the figure has one, with the finding
    show(fig, f"A graph, node by node. {title}.")


def _say_why(a: Unreadable) -> None:
    fig, ax = figure("The nodes of this graph cannot be read here", size=(8, 2.6))
    placard(ax, wrapped(fig, a.why, 5.6, 13))
    show(fig, repr(a))


def drawn(a, parts: StepParts, layer: int, origin: str):
    """The figure and its alternative text."""
    kinds = node_kinds(a, parts)
    rows = [(parts.name_of(part), parts.nodes_of(part)) for part in range(parts.layers + 2)]
    if len(rows) > MOST_ROWS:
        hidden = len(rows) - MOST_ROWS + 1
        rows[MOST_ROWS - 4 : -3] = [(f"… {hidden} more", None)]
    rows += _lost(parts)
    chosen = parts.nodes_of(layer + 1)
    cell_rows = -(-len(chosen) // CELL_COLUMNS)
    legend = [kind for kind in KINDS if kind in kinds]
    height = ROW * (len(rows) + 0.4) + CELL * (-(-len(legend) // LEGEND_COLUMNS) + 0.6)
    height += CELL * (cell_rows + 2) if chosen else 0
    title = finding(a, parts)
    fig, ax = figure(title, size=(WIDTH + 0.3, height + 0.55), note=origin)
    ax.set(xlim=(0, WIDTH), ylim=(-height, 0), aspect="equal")
    ax.set_axis_off()
    y = draw_rows(ax, rows, kinds)
    y = draw_legend(ax, legend, y)
    if chosen:
        draw_cells(ax, a, parts, kinds, layer, chosen, y)
    order = ", ".join(f"{n} × {KINDS[kind]}" for kind, n in runs(kinds[k] for k in chosen))
    alt = f"A box for each node, a row for each layer. {title}."
    return fig, alt + (f" Layer {layer} in order: {order}." if chosen else f" Layer {layer} was not found.")


def finding(a, parts: StepParts) -> str:
    """What the graph is made of, with the numbers: "419 nodes: 8 layers of 50, the same in each; …"."""
    found = [parts.nodes_of(layer + 1) for layer in range(parts.layers) if layer not in parts.missing]
    total, lost = f"{len(a.nodes):,} nodes", parts.nodes_of(None)
    if parts.missing or lost:
        words = f"{total}: {len(found)} of {parts.layers} layers found by their weights' addresses"
        return f"{words}, {len(lost):,} nodes could not be placed"
    names = {tuple(a.nodes[k].name for k in nodes) for nodes in found}
    sizes = sorted({len(nodes) for nodes in found})
    size = f"{sizes[0]}" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
    same = "the same in each" if len(names) == 1 else f"of {len(names)} kinds"
    before, after = len(parts.nodes_of(0)), len(parts.nodes_of(parts.layers + 1))
    return f"{total}: {parts.layers} layers of {size}, {same}; {before} before them and {after} after"


def origin(a) -> str:
    """Where the graph ``a`` was captured, for a figure's corner: "NVIDIA H200 · torch 2.11.0"."""
    if a.backend == "emulated":
        return "emulated: ATen ops, no GPU"
    import torch

    return f"{torch.cuda.get_device_name()} · torch {torch.__version__.partition('+')[0]}"


def _lost(parts: StepParts) -> list[tuple[str, list[int]]]:
    """The nodes that could not be placed, in rows no longer than the longest layer."""
    lost = parts.nodes_of(None)
    long = max([len(parts.nodes_of(layer + 1)) for layer in range(parts.layers)] + [50])
    return [("not placed" if at == 0 else "", lost[at : at + long]) for at in range(0, len(lost), long)]
