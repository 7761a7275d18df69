"""A node of a graph, and the order between nodes: what must hold, what does hold, and races."""

import collections
import functools

from torch import Tag, Tensor
from torch.utils._pytree import tree_leaves

Extent = collections.namedtuple("Extent", "start stop shape dtype")  # addresses, in bytes


def extent(t):
    """The bytes that tensor ``t`` reaches, from its first element to its last, with its shape and dtype."""
    reach = 1 + sum((n - 1) * s for n, s in zip(t.size(), t.stride(), strict=True))
    return Extent(t.data_ptr(), t.data_ptr() + reach * t.itemsize, tuple(t.shape), t.dtype)


def overlap(xs, ys):
    """Whether any extent of ``xs`` shares a byte with any of ``ys``."""
    return any(x.start < y.stop and y.start < x.stop for x in xs for y in ys)


class Node:
    """One kernel launch: an op, the addresses it reads, the addresses it writes.

    ``after`` holds the indices of the nodes that stream order puts directly before this one.
    """

    def __init__(self, index, func, args, kwargs, outs, written, after):
        self.index, self.func, self.args, self.kwargs = index, func, args, kwargs
        self.outs, self.after = outs, after  # outs: [(position among the results, alias of its memory)]
        self.name = func._schema.name.split("::")[1]
        self.reads = [extent(t) for t in tree_leaves((args, kwargs)) if isinstance(t, Tensor) and t.numel()]
        self.writes = [extent(t) for t in [o for _, o in outs] + written if t.numel()]
        if len(outs) == 1 and (direct := out_variant(func)):
            self.func, self.kwargs, self.outs = direct, kwargs | {"out": outs[0][1]}, []

    def launch(self):
        result = self.func(*self.args, **self.kwargs)
        if self.outs:  # neither in place nor through out=: move the results there
            leaves = tree_leaves(result)
            for position, out in self.outs:
                if leaves[position].numel():  # CPU kernels leave out by-products that a GPU's give
                    out.copy_(leaves[position])

    def __repr__(self):
        def spell(spans):
            return ", ".join(f"{list(s.shape)}@{s.start:#x}" for s in spans)

        return f"#{self.index} {self.name}({spell(self.reads)}) -> {spell(self.writes)}"


# Besides the pointwise ops, which torch tags as such.  Not every out= overload will do: some use the
# memory that they are given as scratch of another size.
WRITES_IN_PLACE = {"mm", "addmm", "bmm", "baddbmm", "cat", "index", "index_select", "gather", "sum", "mean"}


@functools.cache
def out_variant(func):
    """The overload of ``func`` that writes its result into a given tensor, so that a replay need not
    compute it elsewhere and copy it: ``aten.add.Tensor`` -> ``aten.add.out``.  None where there is
    none, or where it is not known to give the same bits."""
    schema = func._schema
    if Tag.pointwise not in func.tags and schema.name.split("::")[1] not in WRITES_IN_PLACE:
        return None
    wanted = [(a.name, str(a.type)) for a in schema.arguments] + [("out", "Tensor")]
    for name in func.overloadpacket.overloads():
        candidate = getattr(func.overloadpacket, name)
        arguments = [(a.name, str(a.type)) for a in candidate._schema.arguments]
        if arguments == wanted and len(schema.returns) == 1:
            return candidate
    return None


def data_edges(nodes):
    """(i, j): j reads bytes that i was the last to write.  What must be ordered."""
    edges = set()
    for node in nodes:
        for span in node.reads:
            writers = (i for i in reversed(range(node.index)) if overlap(nodes[i].writes, [span]))
            edges.update((i, node.index) for i in [next(writers, None)] if i is not None)
    return sorted(edges)


def stream_edges(nodes):
    """(i, j): what *is* ordered.  One stream makes a chain; waits make forks and joins."""
    return sorted((i, node.index) for node in nodes for i in node.after)


def races(nodes):
    """Pairs that touch the same bytes, at least one writing, with no path between them."""
    before = []  # node -> everything that it comes after
    for node in nodes:
        before.append(node.after.union(*(before[i] for i in node.after)))

    def clash(a, b):
        return overlap(a.writes, b.reads + b.writes) or overlap(a.reads, b.writes)

    pairs = ((a, b) for b in nodes for a in nodes[: b.index])
    return [(a.index, b.index) for a, b in pairs if a.index not in before[b.index] and clash(a, b)]


def to_dot(nodes):
    """The graph in Graphviz's language, as ``debug_dump`` writes it."""
    label = [f'  n{node.index} [label="{node.index} {node.name}"];' for node in nodes]
    edge = [f"  n{i} -> n{j};" for i, j in stream_edges(nodes)]
    return "\n".join(["digraph cuda_graph {", "  node [shape=box];", *label, *edge, "}", ""])
