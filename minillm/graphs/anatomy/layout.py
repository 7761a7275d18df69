"""Where to draw the nodes of a graph: a layer for each step of order, forks side by side.

Sugiyama's method in short: a node's layer is the length of the longest path to it; an edge over several
layers gets a place in each, so that it passes beside the nodes; layers are sorted by the mean place of
neighbours.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

MOST = 40  # nodes that are drawn at once
ENDS = 5  # of a longer graph: so many from either end, and so many races
SWEEPS = 6


def drawn_items(a) -> list[range]:
    """What gets a place: nodes one by one, and of a long graph the stretches in between as one."""
    n = len(a.nodes)
    if n <= MOST:
        return [range(i, i + 1) for i in range(n)]
    racing = sorted({i for race in (a.races or [])[:ENDS] for i in race})[: 2 * ENDS]
    alone = sorted({*range(ENDS), *racing, *range(n - ENDS, n)})
    items, done = [], 0
    for i in alone:
        items += [range(done, i)] if done < i else []
        items.append(range(i, i + 1))
        done = i + 1
    return items


@dataclass(frozen=True)
class Layout:
    """``places``: (column, layer) of each node, columns centred on 0.  ``paths``: the places that the edge
    (i, j) leads through, both ends included."""

    places: list[tuple[float, int]]
    paths: dict[tuple[int, int], list[tuple[float, int]]]
    columns: int
    layers: int


def lay_out(n: int, edges) -> Layout:
    """Nodes 0 … n - 1 with edges (i, j), i < j."""
    edges = sorted(set(edges))
    layer = [0] * n
    for i, j in sorted(edges, key=lambda edge: edge[1]):
        layer[j] = max(layer[j], layer[i] + 1)
    rows: list[list] = [[] for _ in range(max(layer, default=-1) + 1)]
    for i in range(n):
        rows[layer[i]].append(i)
    links: dict = {}  # node, or (i, j, layer) where an edge passes -> its neighbours, above and below
    chains = {}
    for i, j in edges:
        passing = [(i, j, at) for at in range(layer[i] + 1, layer[j])]
        for stop in passing:
            rows[stop[2]].append(stop)
        chains[i, j] = [i, *passing, j]
        for upper, lower in itertools.pairwise(chains[i, j]):
            links.setdefault(upper, ([], []))[1].append(lower)
            links.setdefault(lower, ([], []))[0].append(upper)
    column = _columns(rows, links)
    place = {x: (column[x], at) for at, row in enumerate(rows) for x in row}
    paths = {edge: [place[x] for x in chain] for edge, chain in chains.items()}
    return Layout([place[i] for i in range(n)], paths, max(map(len, rows), default=0), len(rows))


def _columns(rows, links) -> dict:
    """The column of each member of each row, neighbours in a row 1 apart."""
    column: dict = {}

    def settle(row):
        for k, x in enumerate(row):
            column[x] = k - (len(row) - 1) / 2

    for row in rows:
        settle(row)
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        for row in rows if down else reversed(rows):
            side = 0 if down else 1
            mean = {}
            for x in row:
                near = links.get(x, ([], []))[side]
                mean[x] = sum(column[y] for y in near) / len(near) if near else column[x]
            row.sort(key=mean.__getitem__)  # stable: ties stay in program order
            settle(row)
    return column
