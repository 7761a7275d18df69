"""What ``anatomy`` returns: the nodes and edges of a graph, to look at, search and draw."""

from __future__ import annotations

import collections
from dataclasses import dataclass

import torch

from ..emulator.extents import Extent, extent
from ..emulator.nodes import Race


@dataclass(frozen=True)
class Node:
    """One node of a graph: as a rule one kernel launch, with everything that is frozen in it."""

    index: int  # place in the order of the nodes; a node comes after all that it waits for
    kind: str  # "kernel", "memcpy", "memset", "host", "child graph", "empty", "event record", "event wait"…
    name: str  # short: "add (vectorized_elementwise)"; the ATen op when emulated
    full_name: str  # as C++ has it; "aten::add.Tensor" when emulated
    grid: tuple[int, int, int] | None = None  # blocks; None when emulated, or where nothing is launched
    block: tuple[int, int, int] | None = None  # threads
    shared_bytes: int | None = None  # dynamic shared memory of one block
    # The pointers in its parameters, in their order, as ints: of a copy the destination, then the source;
    # emulated: what it writes, then what it reads. Host memory only where a memcpy uses it. On CUDA: every
    # word that lies in torch's memory, also an old pointer left in a part of a struct that is not used.
    addresses: tuple[int, ...] = ()
    reads: tuple[Extent, ...] | None = None  # start, stop, shape, dtype, stride; None on CUDA
    writes: tuple[Extent, ...] | None = None

    def __repr__(self) -> str:
        return f"#{self.index} {self.name}"


@dataclass(frozen=True, repr=False)
class Anatomy:
    """Nodes, edges and addresses of one captured graph, as they were when ``anatomy`` was called.

    A notebook and a prompt show it as a table; ``print`` and ``str`` give one line.
    """

    nodes: list[Node]
    edges: list[tuple[int, int]]  # (i, j): j waits for i
    backend: str  # "cuda" or "emulated"
    # (i, j): j reads bytes that i was the last to write. None on CUDA, which does not tell.
    data_edges: list[tuple[int, int]] | None = None
    races: list[Race] | None = None  # as `graphs.races`; None on CUDA

    @property
    def kernels(self) -> dict[str, int]:
        """How many kernels of each short name there are, most frequent first."""
        count = collections.Counter(node.name for node in self.nodes if node.kind == "kernel")
        return dict(count.most_common())

    def where(self, tensor: torch.Tensor) -> list[Node]:
        """The nodes that hold an address within the bytes of ``tensor``, whether they read or write them.

        A kernel that is given a larger tensor's start and reaches ``tensor`` from there is not found. In a
        graph's pool memory is used again: nodes that had another tensor there are found too.
        Raises TypeError for what is no tensor, ValueError for a tensor of the other backend.
        """
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"where() got {type(tensor).__name__}; expected a tensor")
        device = "cuda" if self.backend == "cuda" else "cpu"
        pinned = tensor.device.type == "cpu" and device == "cuda" and tensor.is_pinned()
        if tensor.device.type != device and not pinned:
            raise ValueError(
                f"where() got a tensor on {tensor.device}, but this graph holds addresses on {device}: pass "
                "a tensor that the captured code used"
            )
        if not tensor.numel():
            return []
        span = extent(tensor)
        return [n for n in self.nodes if any(span.start <= a < span.stop for a in n.addresses)]

    def dot(self) -> str:
        """The graph in Graphviz's language: paste it into any viewer of that, or run ``dot -Tsvg``."""
        from .dot import to_dot

        return to_dot(self)

    def draw(self, ax=None):
        """Draw the graph, the first node on top, races as dashed red lines; returns matplotlib's axes.

        A new figure, large enough for the graph, unless ``ax`` is given. Of more than 40 nodes only the
        first, the last and some that race are drawn.
        """
        from .draw import draw

        return draw(self, ax)

    def __str__(self) -> str:
        kinds = collections.Counter(node.kind for node in self.nodes)
        kernels_first = sorted(kinds.items(), key=lambda item: (item[0] != "kernel", -item[1]))
        parts = ", ".join(count_of(n, kind) for kind, n in kernels_first)
        inside = f" ({parts})" if parts else ""
        raced = f", {count_of(len(self.races), 'race')}" if self.races else ""
        return f"{count_of(len(self.nodes), 'node')}{inside}, {count_of(len(self.edges), 'edge')}{raced}"

    def __repr__(self) -> str:
        from .table import as_text

        return as_text(self)

    def _repr_markdown_(self) -> str:
        from .table import as_markdown

        return as_markdown(self)


def count_of(n: int, what: str) -> str:
    """ "1 node", "1,234 nodes"."""
    plural = what if n == 1 or what.endswith(("memcpy", "empty")) else f"{what}s"
    return f"{n:,} {plural}"
