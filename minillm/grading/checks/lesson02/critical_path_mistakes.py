"""Exercise 2.5: what each mistake answers, as formulas. The paths are listed: only for small graphs."""

from functools import cache

from minillm.grading.checks.lesson02.critical_path_truth import (
    closed_when_first_met,
    ends,
    length,
    neighbours,
)


def _paths(nodes, edges):
    """Every path from a node that waits for nothing to one that nothing waits for; for small graphs."""
    before, after = neighbours(nodes, edges)

    def onwards(path):
        if not after[path[-1]]:
            yield path
        for j in after[path[-1]]:
            yield from onwards([*path, j])

    return [path for i in range(nodes) if not before[i] for path in onwards([i])]


@cache
def _small_paths(nodes, edges):
    return _paths(nodes, edges)


def over_paths(measure, choose=max, which=lambda path, nodes: True):
    """A formula: `choose` of measure(durations along a path) over all paths for which `which` holds."""

    def formula(nodes, edges, durations):
        paths = [path for path in _small_paths(nodes, tuple(edges)) if which(path, nodes)]
        return choose((measure([durations[i] for i in path]) for path in paths), default=0.0)

    return formula


def most_hops(choose):
    """The time of the path with the most nodes."""

    def formula(nodes, edges, durations):
        paths = _small_paths(nodes, tuple(edges))
        hops = max(map(len, paths), default=0)
        return choose((sum(durations[i] for i in path) for path in paths if len(path) == hops), default=0.0)

    return formula


def greedy(start, follow):
    """Walk on to the longest (or the first) of the next nodes, from the longest (or the first) start."""

    def formula(nodes, edges, durations):
        before, after = neighbours(nodes, edges)
        ready = [i for i in range(nodes) if not before[i]]
        total, at = 0.0, start(ready, durations) if ready else None
        while at is not None:
            total += durations[at]
            at = follow(after[at], durations) if after[at] else None
        return total

    return formula


def longest(some, durations):
    return max(some, key=lambda i: durations[i])


def _one_pass_over_edges(nodes, edges, durations):
    end = list(durations)
    for i, j in edges:
        end[j] = max(end[j], end[i] + durations[j])
    return max(end, default=0.0)


def _to_the_last(nodes, edges, durations):
    return ends(nodes, edges, durations)[-1] if nodes else 0.0


def _from_node(which):
    return over_paths(sum, which=lambda path, nodes: path[0] == which)


def _from_the_first_start(nodes, edges, durations):
    before = neighbours(nodes, edges)[0]
    first = next((i for i in range(nodes) if not before[i]), None)
    return _from_node(first)(nodes, edges, durations)


def _edges_only(nodes, edges, durations):
    """Nodes without an edge are not seen."""
    end, seen = ends(nodes, edges, durations), {i for edge in edges for i in edge}
    return max((end[i] for i in seen), default=0.0)


def _sum_of_levels(nodes, edges, durations):
    """What one gets who waits after each level of the graph for all of it."""
    level = ends(nodes, edges, [1] * nodes)
    return sum(max(durations[i] for i in range(nodes) if level[i] == at) for at in set(level))


def _in_order_of_starts(nodes, edges, durations):
    """When each node ends, if every node is visited once, in the order in which a search meets it."""
    before, after = neighbours(nodes, edges)
    queue = [i for i in range(nodes) if not before[i]]
    end = [durations[i] if not before[i] else 0.0 for i in range(nodes)]
    for i in queue:
        for j in after[i]:
            end[j] = max(end[j], end[i] + durations[j])
            if j not in queue:
                queue.append(j)
    return end


FORMULAS = {
    "sum-of-all": [
        lambda nodes, edges, durations: float(sum(durations)),
        lambda nodes, edges, durations: length(nodes, edges, durations) if edges else float(sum(durations)),
    ],
    "counted-nodes": lambda nodes, edges, durations: length(nodes, edges, [1] * nodes),
    "counted-edges": lambda nodes, edges, durations: max(length(nodes, edges, [1] * nodes) - 1, 0),
    "most-hops": [most_hops(choose) for choose in (max, min)],
    "greedy": [
        greedy(start, follow)
        for start in (longest, lambda some, _: some[0])
        for follow in (longest, lambda some, _: some[0])
    ],
    "forgot-first": over_paths(lambda times: sum(times[1:])),
    "forgot-last": over_paths(lambda times: sum(times[:-1])),
    "one-start": [_from_the_first_start, _from_node(0)],
    "one-end": _to_the_last,
    "lonely-nodes": _edges_only,
    "index-order": [
        _one_pass_over_edges,
        lambda nodes, edges, durations: _one_pass_over_edges(nodes, sorted(edges), durations),
        closed_when_first_met,
        lambda nodes, edges, durations: max(ends(nodes, edges, durations, order=range(nodes)), default=0.0),
        lambda nodes, edges, durations: max(_in_order_of_starts(nodes, edges, durations), default=0.0),
    ],
    "shortest": [
        over_paths(sum, choose=min),
        lambda nodes, edges, durations: max(ends(nodes, edges, durations, choose=min), default=0.0),
    ],
    "added-branches": lambda nodes, edges, durations: max(
        ends(nodes, edges, durations, choose=sum), default=0.0
    ),
    "last-one-waited-for": [
        lambda nodes, edges, durations: max(
            ends(nodes, edges, durations, choose=lambda those: list(those)[-1]), default=0.0
        ),
        lambda nodes, edges, durations: max(
            ends(nodes, edges, durations, choose=lambda those: list(those)[0]), default=0.0
        ),
    ],
    "levels": _sum_of_levels,
    "longest-node": lambda nodes, edges, durations: float(max(durations, default=0)),
}
