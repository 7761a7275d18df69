"""A node of a graph, and the order between nodes: what must hold, what does hold, and races."""

import functools

from torch import Tag, Tensor
from torch.utils._pytree import tree_leaves

from .extents import Pieces, extent, shares_a_byte

# In-place ops whose first operand's old values do not matter.
OVERWRITES = {"copy_", "fill_", "zero_", "uniform_", "normal_", "random_", "bernoulli_", "exponential_"}


def has_address(t):
    """Whether a recorded operand is a pointer: to the bytes of a `Memory`, which torch cannot resize, and
    not an empty tensor or a number that rides in the launch."""
    return t.numel() > 0 and not t.untyped_storage().resizable()


class Node:
    """One kernel launch: an op, the addresses it reads, the addresses it writes.

    ``after`` holds the indices of the nodes that stream order puts directly before this one.
    """

    def __init__(self, index, func, args, kwargs, outs, written, after):
        self.index, self.func, self.args, self.kwargs = index, func, args, kwargs
        self.outs, self.after = outs, after  # outs: [(position among the results, alias of its memory)]
        self.schema, self.name = func._schema, func._schema.name.split("::")[1]
        read = [args[1:] if self.name in OVERWRITES else args, {k: kwargs[k] for k in kwargs if k != "out"}]
        self.reads = [extent(t) for t in tree_leaves(read) if isinstance(t, Tensor) and has_address(t)]
        self.writes = [extent(t) for t in [o for _, o in outs] + written if t.numel()]
        if len(outs) == 1 and (direct := out_variant(func)):
            self.func, self.kwargs, self.outs = direct, kwargs | {"out": outs[0][1]}, []

    def launch(self):
        result = self.func(*self.args, **self.kwargs)
        if self.outs:  # neither in place nor through out=: move the results there
            leaves = tree_leaves(result)
            for position, out in self.outs:
                if getattr(leaves[position], "shape", None) == out.shape:  # a CPU's may leave out a GPU's
                    out.copy_(leaves[position])  # by-products

    def __repr__(self):
        def spell(spans):
            return ", ".join(f"{list(s.shape)}@{s.start:#x}" for s in spans)

        return f"#{self.index} {self.name}({spell(self.reads)}) -> {spell(self.writes)}"


# Whose out= overload is trusted, besides the pointwise ops, which torch tags as such: some use the memory
# that they are given as scratch of another size.
GOOD_OUT = {"mm", "addmm", "bmm", "baddbmm", "cat", "index", "index_select", "gather", "sum", "mean"}


@functools.cache
def out_variant(func):
    """The overload of ``func`` that writes its result into a given tensor, so that a replay need not
    compute it elsewhere and copy it: ``aten.add.Tensor`` -> ``aten.add.out``.  None where there is
    none, or where it is not known to give the same bits."""
    schema = func._schema
    if Tag.pointwise not in func.tags and schema.name.split("::")[1] not in GOOD_OUT:
        return None
    wanted = [(a.name, str(a.type)) for a in schema.arguments] + [("out", "Tensor")]
    for name in func.overloadpacket.overloads():
        candidate = getattr(func.overloadpacket, name)
        arguments = [(a.name, str(a.type)) for a in candidate._schema.arguments]
        if arguments == wanted and len(schema.returns) == 1:
            return candidate
    return None


def data_edges(nodes):
    """(i, j): j reads a byte that i was the last to write.  How the values flow."""
    pieces = Pieces(span for node in nodes for span in node.writes)
    writer, edges = [None] * len(pieces), set()
    for node in nodes:
        for span in node.reads:
            for part in pieces.of(span):
                edges.update((i, node.index) for i in set(writer[part]) if i is not None)
        for span in node.writes:
            for part in pieces.of(span):
                writer[part] = [node.index] * (part.stop - part.start)
    return sorted(edges)


def stream_edges(nodes):
    """(i, j): what *is* ordered.  One stream makes a chain; waits make forks and joins."""
    return sorted((i, node.index) for node in nodes for i in node.after)


class Race(tuple):
    """(i, j): two nodes that touch the same bytes, at least one writing, with no path between them.

    It is that pair, and says more: ``kind`` ("read after write", "write after read" or "write after
    write", in the order in which the program has them) and ``extents``, what i and what j touches.
    """

    def __new__(cls, i, j):
        race = super().__new__(cls, (i.index, j.index))
        race.nodes = i, j
        return race

    @functools.cached_property
    def _clash(self):
        i, j = self.nodes
        clashes = (
            ("read after write", i.writes, j.reads),
            ("write after write", i.writes, j.writes),
            ("write after read", i.reads, j.writes),
        )
        return next((k, x, y) for k, xs, ys in clashes for x in xs for y in ys if shares_a_byte(x, y))

    kind = property(lambda self: self._clash[0])
    extents = property(lambda self: self._clash[1:])

    def __repr__(self):
        (i, j), (_, y), verb = self.nodes, self.extents, {"read": "reads", "write": "writes"}
        second, first = self.kind.split(" after ")
        where = f"{list(y.shape)} {str(y.dtype).removeprefix('torch.')} at {y.start:#x}"
        told = f"#{j.index} {j.name} {verb[second]} {where}, #{i.index} {i.name} {verb[first]} bytes of it"
        return f"({i.index}, {j.index}) {self.kind}: {told}, and no path leads from one to the other"


def races(nodes):
    """A ``Race`` for each pair that touches the same bytes, at least one writing, with no path between.

    Sets of nodes are bits of one int.
    """
    before = []  # node -> everything that it comes after
    for node in nodes:
        before.append(functools.reduce(int.__or__, (before[i] | 1 << i for i in node.after), 0))
    free = [~before[j] & ((1 << j) - 1) for j in range(len(nodes))]  # earlier, but not waited for
    unordered = functools.reduce(int.__or__, (f | 1 << j for j, f in enumerate(free) if f), 0)
    some = [node for node in nodes if unordered >> node.index & 1]
    pieces = Pieces(span for node in some for span in node.writes)
    readers, writers, pairs = [0] * len(pieces), [0] * len(pieces), []
    for node in some:
        reads = [part for span in node.reads for part in pieces.of(span)]
        writes = [part for span in node.writes for part in pieces.of(span)]
        touched = [writers[part] for part in reads + writes] + [readers[part] for part in writes]
        clash = free[node.index] & functools.reduce(int.__or__, (m for masks in touched for m in masks), 0)
        pairs += [Race(nodes[i], node) for i in range(clash.bit_length()) if clash >> i & 1]
        for masks, parts in ((readers, reads), (writers, writes)):
            for part in parts:
                masks[part] = [mask | 1 << node.index for mask in masks[part]]
    return pairs


def to_dot(nodes):
    """The graph in Graphviz's language, as ``debug_dump`` writes it."""
    label = [f'  n{node.index} [label="{node.index} {node.name}"];' for node in nodes]
    edge = [f"  n{i} -> n{j};" for i, j in stream_edges(nodes)]
    return "\n".join(["digraph cuda_graph {", "  node [shape=box];", *label, *edge, "}", ""])
