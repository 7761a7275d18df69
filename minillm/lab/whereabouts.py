"""The nodes of a captured graph that hold an address of one tensor, as a table in three languages."""

from __future__ import annotations

import html
import textwrap
from dataclasses import dataclass

import torch

from ..graphs.anatomy import Anatomy, Node
from ..graphs.emulator.extents import extent, shares_a_byte
from .step_parts import StepParts

WIDEST = 44  # letters of a node's name
MOST = 24  # rows of the table

POOL = (
    "A graph's pool uses memory again: of a tensor made during the capture, nodes that had another tensor "
    "at its address are listed too."
)
ON_CUDA = (
    "CUDA tells addresses, not lengths: a kernel that is given the start of a larger tensor and reaches "
    "this one by an offset is not found, nor is it known what it reads and writes. A parameter that a kernel "
    "does not use may hold an old pointer."
)
NOT_FOUND = (
    "No node holds an address in it. The captured code may not use it; or it is a new tensor at another "
    "address (assigned again, or moved, since the capture); or a node reaches it by an offset from another "
    "tensor's address, as a view that starts further in."
)


@dataclass(frozen=True)
class Holder:
    """One node that holds addresses of the tensor. ``places`` count its addresses from 1."""

    node: Node
    part: str | None  # "layer 3"; None where nobody asked for parts
    places: tuple[int, ...]
    offsets: tuple[int, ...]  # bytes from the tensor's start, one a place
    access: str  # "reads", "writes", "reads and writes"; "" where CUDA does not tell


@dataclass(frozen=True)
class Whereabouts:
    """One tensor's address range and the nodes that hold an address in it."""

    name: str
    start: int  # address of its first byte
    stop: int  # one after its last
    shape: tuple[int, ...]
    dtype: torch.dtype
    backend: str
    holders: list[Holder]
    inside: list[Node]  # emulated: those that hold none of its addresses and touch its bytes all the same

    def head(self) -> str:
        """ "qkv.weight [1024, 512] float32: 0x7f… to 0x7f… (2,097,152 bytes)"."""
        dtype, size = str(self.dtype).removeprefix("torch."), self.stop - self.start
        return f"{list(self.shape)} {dtype}: {self.start:#x} to {self.stop:#x} ({size:,} bytes)"

    def finding(self) -> str:
        """How many nodes hold an address of it."""
        if self.start == self.stop:
            return "It has no elements, so no address is its own."
        n = len(self.holders)
        return f"{n} node{'s hold' if n > 1 else ' holds'} an address in it." if n else NOT_FOUND

    def in_short(self) -> str:
        """ "#16, #56", at most six of them."""
        more = f" and {len(self.holders) - 6} more" if len(self.holders) > 6 else ""
        return ", ".join(f"#{holder.node.index}" for holder in self.holders[:6]) + more or "none"

    def columns(self) -> list[str]:
        """Heads of the table."""
        parts = any(holder.part is not None for holder in self.holders)
        access = ["does"] * (self.backend == "emulated")
        return ["node", "name", *["part"] * parts, "which of its addresses", "address", *access]

    def rows(self) -> list[list[str]]:
        """A row a node, the first ones."""
        return [self._row(holder) for holder in self.holders[:MOST]]

    def notes(self) -> list[str]:
        """What the reader must know to trust the table."""
        more = len(self.holders) - MOST
        notes = [f"… {more:,} more nodes."] if more > 0 else []
        if self.inside:
            named = ", ".join(map(repr, self.inside[:6])) + (" and more" if len(self.inside) > 6 else "")
            notes.append(f"Reach its bytes by an offset from an address before it: {named}.")
        if self.backend == "cuda":
            return [*notes, *[POOL] * bool(self.holders), ON_CUDA]
        return [*notes, *[POOL] * any("writes" in h.access for h in self.holders)]  # inputs are only read

    def as_text(self) -> str:
        """For a terminal."""
        lines = [self.columns(), *self.rows()] if self.holders else []
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        table = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines]
        words, *notes = (textwrap.fill(text, 100) for text in (self.finding(), *self.notes()))
        return "\n".join([f"{self.name} {self.head()}", words, *table, *notes])

    def as_markdown(self) -> str:
        """For a notebook."""
        lines = [self.columns(), ["---"] * len(self.columns()), *self.rows()] if self.holders else []
        table = ["| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |" for line in lines]
        words = [f"**`{self.name}`** {self.head()}", self.finding(), "\n".join(table)]
        return "\n\n".join([*filter(None, words), *(f"*{note}*" for note in self.notes())])

    def as_html(self) -> str:
        """For a widget."""
        look = "padding:0 10px 0 0;text-align:left;line-height:1.5"
        body = "<tr>" + "".join(f'<th style="{look}">{html.escape(c)}</th>' for c in self.columns()) + "</tr>"
        for row in self.rows():
            cells = (f'<td style="{look};white-space:nowrap">{html.escape(cell)}</td>' for cell in row)
            body += f"<tr>{''.join(cells)}</tr>"
        table = f'<div style="overflow-x:auto"><table>{body}</table></div>' * bool(self.holders)
        head = f"<p><b><code>{html.escape(self.name)}</code></b> {html.escape(self.head())}</p>"
        notes = [f"<p><i>{html.escape(note)}</i></p>" for note in self.notes()]
        return "".join([head, f"<p>{html.escape(self.finding())}</p>", table, *notes])

    def _row(self, holder: Holder) -> list[str]:
        name, places, offset = holder.node.name, holder.places, holder.offsets[0]
        more = ", …" if len(places) > 4 else ""
        which = f"{', '.join(map(str, places[:4]))}{more} of {len(holder.node.addresses)}"
        address = f"{self.start + offset:#x}" + (f" (start + {offset:,} bytes)" if offset else " (its start)")
        row = [f"#{holder.node.index}", name if len(name) <= WIDEST else f"{name[: WIDEST - 1]}…"]
        row += [] if holder.part is None else [holder.part]
        return [*row, which, address, *[holder.access] * (self.backend == "emulated")]


def whereabouts(a: Anatomy, name: str, tensor: torch.Tensor, parts: StepParts | None = None) -> Whereabouts:
    """Look for one tensor; ``parts`` names the layer of each node. Raises what ``Anatomy.where`` raises."""
    nodes, span = a.where(tensor), extent(tensor)
    start, stop = span[:2] if tensor.numel() else (span.start, span.start)
    held = holders(nodes, start, stop, parts)
    others = [n for n in a.nodes if n not in nodes] if tensor.numel() else []
    inside = [n for n in others if any(shares_a_byte(s, span) for s in (*(n.reads or ()), *(n.writes or ())))]
    return Whereabouts(name, start, stop, tuple(tensor.shape), tensor.dtype, a.backend, held, inside)


def holders(nodes: list[Node], start: int, stop: int, parts: StepParts | None) -> list[Holder]:
    """What each node holds of the addresses from ``start`` to ``stop``."""
    found = []
    for node in nodes:
        places = [at for at, address in enumerate(node.addresses) if start <= address < stop]
        part = parts.name_of(parts.parts[node.index]) if parts else None
        counted, offsets = zip(*((at + 1, node.addresses[at] - start) for at in places), strict=True)
        found.append(Holder(node, part, counted, offsets, _access(node, places)))
    return found


def _access(node: Node, places: list[int]) -> str:
    """An emulated node's addresses are what it writes, then what it reads."""
    if node.writes is None:
        return ""
    written = len(node.writes)
    verbs = {"reads": any(at >= written for at in places), "writes": any(at < written for at in places)}
    return " and ".join(verb for verb, does in verbs.items() if does)
