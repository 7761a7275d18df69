"""Where a tensor's address stands in a captured graph: choose a tensor, see the nodes that hold it."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

import torch

from ..graphs.anatomy import Anatomy
from .decode_setup import DecodeStep
from .read_anatomy import Unreadable
from .step_parts import StepParts, step_parts
from .whereabouts import Whereabouts, whereabouts
from .widgets import display_widget

CHOOSE = "choose a tensor …"


class Found:
    """What `find_tensor` gives: ``shown`` in full and every other tensor in a line. A notebook renders it as
    tables, a terminal prints it."""

    def __init__(self, tensors: dict[str, Whereabouts], shown: str):
        self.tensors = tensors
        self.shown = tensors[shown]

    def _repr_markdown_(self) -> str:
        tables = [self.shown.as_markdown()]
        if len(self.tensors) > 1:
            rows = [f"| {' | '.join(row)} |" for row in self._summary("`")]
            table = "\n".join(["| tensor | starts at | nodes that hold it |", "|---|---|---|", *rows])
            head = f"<details><summary>All {len(self.tensors)} tensors, a line each</summary>"
            tables.append(f"{head}\n\n{table}\n\n</details>")
        return "\n\n".join(tables)

    def __repr__(self) -> str:
        rows = self._summary("") if len(self.tensors) > 1 else []
        wide = max((len(name) for name, _, _ in rows), default=0)
        lines = [f"  {name.ljust(wide)}  {start}  {nodes}" for name, start, nodes in rows]
        more = ["", f"All {len(rows)} tensors, and the nodes that hold them:", *lines] if rows else []
        return "\n".join([self.shown.as_text(), *more])

    def _summary(self, quote: str) -> list[tuple[str, str, str]]:
        return [(f"{quote}{w.name}{quote}", f"{w.start:#x}", w.in_short()) for w in self.tensors.values()]


def find_tensor(
    a: Anatomy | Unreadable,
    tensors: Mapping[str, torch.Tensor],
    shown: str | None = None,
    step: DecodeStep | None = None,
) -> Found | Unreadable:
    """The nodes of ``a`` that hold an address of a tensor, and at which place among their addresses.

    ``a`` is ``graphs.anatomy(g)`` or `lab.read_anatomy(g)`, and what cannot be read is given back: it says
    why. ``tensors`` names those to choose from; ``shown`` is the one whose table
    stands in the output, the first if it is left out. With ``step``, the `lab.decode_step` that ``g``
    captured, the table names the layer of each node. In a notebook a menu above the table shows the others.

    Raises TypeError for what is no anatomy, no dict or no tensor; ValueError for no tensors at all, a name
    that is not among them, or a tensor that lies on another device than the graph.
    """
    if isinstance(a, Unreadable):
        return a
    if not isinstance(a, Anatomy):
        raise TypeError(f"find_tensor() got {type(a).__name__}; expected graphs.anatomy(g) first")
    if not isinstance(tensors, Mapping):
        raise TypeError(f'tensors is {type(tensors).__name__}; expected a dict such as {{"x": x}}')
    if not tensors:
        raise ValueError('tensors is empty; expected one or more to choose from, such as {"x": x}')
    shown = next(iter(tensors)) if shown is None else shown
    if shown not in tensors:
        near = difflib.get_close_matches(str(shown), list(tensors), 3, 0.4) or list(tensors)[:3]
        raise ValueError(
            f"shown is {shown!r}, which is not among the {len(tensors)} names in tensors; "
            f"expected one of them, such as {', '.join(map(repr, near))}"
        )
    parts = step_parts(a, step) if step is not None else None
    found = Found({name: _checked(a, name, tensor, parts) for name, tensor in tensors.items()}, shown)
    _show_menu(found)
    return found


def _checked(a: Anatomy, name: str, tensor: torch.Tensor, parts: StepParts | None) -> Whereabouts:
    try:
        return whereabouts(a, name, tensor, parts)
    except (TypeError, ValueError) as error:
        raise type(error)(f"tensors[{name!r}]: {error}") from None


def _show_menu(found: Found) -> None:
    """The menu, where there are a notebook, ipywidgets and a choice."""
    if len(found.tensors) < 2:
        return
    try:
        import ipywidgets  # noqa: F401
        from IPython import get_ipython
    except ImportError:
        return
    if get_ipython() is not None:
        display_widget(_menu(found), "A menu of tensors: run this cell to use it.")


def _menu(found: Found):
    """A drop-down over an HTML table, which is empty until somebody chooses."""
    import ipywidgets as widgets

    menu = widgets.Dropdown(
        options=[CHOOSE, *found.tensors],
        description="find",
        style={"description_width": "40px"},
        layout=widgets.Layout(width="420px"),
    )
    table = widgets.HTML()

    def draw(_change=None) -> None:
        chosen = found.tensors.get(menu.value)
        table.value = chosen.as_html() if chosen else ""

    menu.observe(draw, names="value")
    return widgets.VBox([menu, table])
