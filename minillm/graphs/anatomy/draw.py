"""A graph drawn with matplotlib: the first node on top, forks side by side, races dashed and red."""

from __future__ import annotations

from .layout import drawn_items, lay_out
from .table import dims

BOX, STEP = (2.3, 0.56), (2.75, 0.92)  # inches: a node, and from one node to the next
INK, RACE = "#1A1A1A", "#C1121F"
LOOKS = {  # light fills of one lightness in grey; kinds differ by outline and by their words too
    "kernel": {"facecolor": "#DCEAF7", "linestyle": "-"},
    "memcpy": {"facecolor": "#FFF1C9", "linestyle": "--"},
    "memset": {"facecolor": "#FFF1C9", "linestyle": "--"},
}
OTHER = {"facecolor": "#EFEFEF", "linestyle": ":"}


def draw(a, ax=None):
    """See ``Anatomy.draw``."""
    items = drawn_items(a)
    at = {index: k for k, item in enumerate(items) for index in item}
    between = {(at[i], at[j]) for i, j in a.edges if at[i] != at[j]}
    layout = lay_out(len(items), between)
    width, height = (max(layout.columns, 1) * STEP[0], max(layout.layers, 1) * STEP[1])
    ax = ax or new_axes(width, height)
    ax.set(xlim=(-width / 2, width / 2), ylim=(-height + STEP[1] / 2, STEP[1] / 2), aspect="equal")
    ax.set_axis_off()
    scale = _scale(ax, width)
    ax.set_title(str(a), fontsize=10.5 * max(scale, 0.8), color=INK)
    spots = [_inches(place) for place in layout.places]
    for path in layout.paths.values():
        _edge(ax, [_inches(place) for place in path])
    raced = {i for race in a.races or [] for i in race}
    for item, spot in zip(items, spots, strict=True):
        if len(item) > 1:
            ax.text(*spot, f"… {len(item):,} more", ha="center", va="center", fontsize=10 * scale, color=INK)
        else:
            _box(ax, a.nodes[item[0]], spot, item[0] in raced, scale)
    for i, j in a.races or []:
        if len(items[at[i]]) == len(items[at[j]]) == 1:
            _race(ax, spots[at[i]], spots[at[j]], scale)
    return ax


def new_axes(width: float, height: float):
    """Axes of so many inches that leave no window open, in a figure that a notebook can show."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    title = 0.4
    fig = Figure(figsize=(max(width, 4.5) + 0.2, height + title + 0.1), facecolor="white")
    FigureCanvasAgg(fig)
    w, h = fig.get_size_inches()
    return fig.add_axes((0.1 / w, 0.05 / h, 1 - 0.2 / w, (h - title - 0.05) / h))


def _inches(place) -> tuple[float, float]:
    return place[0] * STEP[0], -place[1] * STEP[1]


def _scale(ax, width: float) -> float:
    """How large a drawn inch comes out on these axes; 1 on our own."""
    ax.apply_aspect()
    box = ax.get_window_extent()
    across = box.width / ax.figure.dpi / (ax.get_xlim()[1] - ax.get_xlim()[0])
    return min(1.0, max(across, 0.3))


def _box(ax, node, spot, races: bool, scale: float) -> None:
    from matplotlib.patches import FancyBboxPatch

    (x, y), (w, h) = spot, BOX
    look = LOOKS.get(node.kind, OTHER) | {"edgecolor": RACE if races else INK}
    corner = (x - w / 2, y - h / 2)
    style = "round,pad=0,rounding_size=0.1"
    ax.add_patch(FancyBboxPatch(corner, w, h, boxstyle=style, linewidth=2 if races else 1, zorder=3, **look))
    name = node.name.partition(" (")[0]
    _write(ax, (x, y + h * 0.2), f"#{node.index}  {name}", fontsize=10 * scale, weight="bold")
    _write(ax, (x, y - h * 0.23), details(node), fontsize=8 * scale)


def _write(ax, spot, words: str, **look) -> None:
    """Words centred on ``spot``, cut to the width of a box."""
    text = ax.text(*spot, words, ha="center", va="center", color=INK, zorder=4, parse_math=False, **look)
    left, right = ax.transData.transform([(0, 0), (BOX[0] * 0.95, 0)])[:, 0]
    while len(words) > 1 and text.get_window_extent().width > right - left:
        words = words[:-1]
        text.set_text(f"{words}…")


def details(node) -> str:
    """The line below the name: shapes when emulated, else the launch."""
    if node.reads is not None:
        read, written = (", ".join(str(list(s.shape)) for s in spans) for spans in (node.reads, node.writes))
        words = f"{read} → {written}" if read else f"→ {written}"
        return words if node.kind == "kernel" else f"{node.kind}: {words}"
    if node.grid is None:
        words = node.full_name if node.full_name != node.name else node.kind
        return words if words != node.name else ""
    blocks = "block" if node.grid == (1, 1, 1) else "blocks"
    return f"{dims(node.grid)} {blocks} of {dims(node.block)} threads"


def _edge(ax, stops) -> None:
    """From the bottom of the first box, past the boxes between, to the top of the last."""
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path

    half = BOX[1] / 2
    points = [(stops[0][0], stops[0][1] - half)]
    for x, y in stops[1:-1]:
        points += [(x, y + half), (x, y - half)]
    points.append((stops[-1][0], stops[-1][1] + half + 0.02))
    vertices, codes = [points[0]], [Path.MOVETO]
    for (x, y), (to, down) in zip(points, points[1:], strict=False):  # leaves and arrives vertically
        middle = (y + down) / 2
        vertices += [(x, middle), (to, middle), (to, down)]
        codes += [Path.CURVE4] * 3
    style = {"arrowstyle": "-|>", "mutation_scale": 10, "shrinkA": 0, "shrinkB": 0, "zorder": 2}
    ax.add_patch(FancyArrowPatch(path=Path(vertices, codes), color="#444444", linewidth=1.2, **style))


def _race(ax, a, b, scale: float) -> None:
    """A dashed line between two boxes, around those in between, with the word on it."""
    from matplotlib.patches import FancyArrowPatch

    (x, y), (to, down) = a, b
    half, bend = (BOX[0] / 2, BOX[1] / 2), 0.0
    if abs(x - to) < 0.5:  # one above the other
        start, end, bend = (x + half[0], y), (to + half[0], down), 0.3
    elif abs(y - down) < 0.5:  # side by side
        way = 1 if to > x else -1
        start, end = (x + half[0] * way, y), (to - half[0] * way, down)
    else:
        start, end = (x, y - half[1]), (to, down + half[1])
        if y < down:
            start, end = (x, y + half[1]), (to, down - half[1])
    line = {"arrowstyle": "-", "linestyle": (0, (4, 2)), "linewidth": 2, "color": RACE, "zorder": 5}
    arc = f"arc3,rad={-bend if y > down else bend}"
    ax.add_patch(FancyArrowPatch(start, end, connectionstyle=arc, shrinkA=0, shrinkB=0, **line))
    out = abs(y - down) * bend / 2
    middle = ((start[0] + end[0]) / 2 + out, (start[1] + end[1]) / 2)
    plate = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": RACE, "linewidth": 0.8}
    label = {"ha": "center", "va": "center", "color": RACE, "weight": "bold", "bbox": plate, "zorder": 6}
    ax.text(*middle, "race", fontsize=8 * scale, **label)
