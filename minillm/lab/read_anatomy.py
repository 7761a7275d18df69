"""The anatomy of a graph, for a lesson: it goes on where a graph cannot be read, and says why."""

from __future__ import annotations

from ..graphs.anatomy import Anatomy, anatomy
from ..graphs.anatomy.driver import CANNOT_READ
from ..graphs.anatomy.report import count_of


class Unreadable:
    """Stands for the anatomy of a graph that cannot be read on this machine; ``why`` says what to do."""

    def __init__(self, why: str):
        self.why = why

    def __repr__(self) -> str:
        return f"the nodes of this graph cannot be read here: {self.why}"


def read_anatomy(g) -> Anatomy | Unreadable:
    """``graphs.anatomy(g)``; where cuda-bindings is missing or too old, or the driver is, an `Unreadable`.

    Run All stays green on a GPU whose torch came without cuda-bindings: the figures and tables that need the
    nodes say so instead. Raises what ``anatomy`` raises for what is no graph, or has none to show.
    """
    try:
        return anatomy(g)
    except CANNOT_READ as error:
        return Unreadable(str(error))


def node_count(g) -> str:
    """ "1 node" or "4 nodes"; "unknown nodes", and the reason, where the graph cannot be read."""
    a = read_anatomy(g)
    return f"unknown nodes ({a.why})" if isinstance(a, Unreadable) else count_of(len(a.nodes), "node")


def order_of(a: Anatomy | Unreadable) -> str:
    """How many edges there are, and whether they make the nodes a chain; of an `Unreadable`, why."""
    if isinstance(a, Unreadable):
        return repr(a)
    chain = sorted(a.edges) == [(i, i + 1) for i in range(len(a.nodes) - 1)]
    order = "each node waits for the one before it" if chain else "not every node waits for the one before it"
    return f"{count_of(len(a.edges), 'edge')}: {order}"
