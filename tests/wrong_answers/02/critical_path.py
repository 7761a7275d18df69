"""Answers to 2.5."""

import sys
from functools import cache
from graphlib import TopologicalSorter

from minillm.grading.corpus import right, wrong


def sorted_nodes(nodes, edges):
    waits = {j: [i for i, k in edges if k == j] for j in range(nodes)}
    return list(TopologicalSorter(waits).static_order())


def trace_back(end, before, nodes):
    """The path that the ends belong to."""
    if not nodes:
        return []
    path = [max(range(nodes), key=lambda j: end[j])]
    while before[path[-1]]:
        path.append(max(before[path[-1]], key=lambda i: end[i]))
    return path[::-1]


def predecessors(nodes, edges):
    before = [[] for _ in range(nodes)]
    for i, j in edges:
        before[j].append(i)
    return before


def correct(nodes, edges, durations):
    before, end = predecessors(nodes, edges), [0.0] * nodes
    for j in sorted_nodes(nodes, edges):
        end[j] = durations[j] + max((end[i] for i in before[j]), default=0)
    return max(end, default=0.0), trace_back(end, before, nodes)


def all_paths(nodes, edges):
    before, after = predecessors(nodes, edges), predecessors(nodes, [(j, i) for i, j in edges])
    found, stack = [], [[i] for i in range(nodes) if not before[i]]
    while stack:
        path = stack.pop()
        if not after[path[-1]]:
            found.append(path)
        for j in after[path[-1]]:
            stack.append([*path, j])
    return found


def with_length(path, durations):
    return sum(durations[i] for i in path), path


@right("2.5")
def with_graphlib(nodes, edges, durations):
    return correct(nodes, edges, durations)


@right("2.5")
def relaxes_until_nothing_changes(nodes, edges, durations):
    """Backwards: the longest time from the beginning of each node to the end of all, and what follows it."""
    after = [[] for _ in range(nodes)]
    open_edges = [0] * nodes
    for i, j in edges:
        after[i].append(j)
        open_edges[i] += 1
    before = predecessors(nodes, edges)
    rest, follow = list(durations), [None] * nodes
    ready = [i for i in range(nodes) if open_edges[i] == 0]
    while ready:
        j = ready.pop()
        for i in before[j]:
            if durations[i] + rest[j] > rest[i]:
                rest[i], follow[i] = durations[i] + rest[j], j
            open_edges[i] -= 1
            if open_edges[i] == 0:
                ready.append(i)
    if nodes == 0:
        return 0, ()
    at, path = rest.index(max(rest)), []
    while at is not None:
        path.append(at)
        at = follow[at]
    return max(rest), tuple(path)


@right("2.5")
def recursion_with_a_memory_and_a_higher_limit(nodes, edges, durations):
    before = predecessors(nodes, edges)
    known = {}

    def best(j):
        if j not in known:
            us, path = 0, None
            for i in before[j]:
                if best(i)[0] > us:
                    us, path = best(i)[0], i
            known[j] = us + durations[j], path
        return known[j]

    sys.setrecursionlimit(20_000)
    if not nodes:
        return 0.0, []
    at = max(range(nodes), key=lambda j: best(j)[0])
    us, path = best(at)[0], []
    while at is not None:
        path.insert(0, at)
        at = known[at][1]
    return us, path


@right("2.5")
def a_depth_first_search_without_recursion(nodes, edges, durations):
    before, end, come_from = predecessors(nodes, edges), {}, {}
    for start in range(nodes):
        stack = [start]
        while stack:
            j = stack[-1]
            missing = [i for i in before[j] if i not in end]
            if missing:
                stack += missing
                continue
            stack.pop()
            come_from[j] = max(before[j], key=end.get, default=None)
            end[j] = durations[j] + end.get(come_from[j], 0)
    path, at = [], max(end, key=end.get, default=None)
    while at is not None:
        path.append(at)
        at = come_from[at]
    return max(end.values(), default=0), path[::-1]


@wrong("2.5", "sum-of-all")
def adds_everything_up(nodes, edges, durations):
    return sum(durations), sorted_nodes(nodes, edges)


@wrong("2.5", "counted-nodes")
def counts_nodes(nodes, edges, durations):
    _, path = correct(nodes, edges, [1] * nodes)
    return len(path), path


@wrong("2.5", "counted-edges")
def counts_edges(nodes, edges, durations):
    _, path = correct(nodes, edges, [1] * nodes)
    return max(len(path) - 1, 0), path


@wrong("2.5", "most-hops")
def longest_by_hops(nodes, edges, durations):
    paths = sorted(all_paths(nodes, edges), key=lambda path: (len(path), with_length(path, durations)))
    return with_length(paths[-1] if paths else [], durations)


@wrong("2.5", "greedy")
def walks_to_the_longest_next_node(nodes, edges, durations):
    before = predecessors(nodes, edges)
    after = predecessors(nodes, [(j, i) for i, j in edges])
    choices, path = [i for i in range(nodes) if not before[i]], []
    while choices:
        path.append(max(choices, key=lambda i: durations[i]))
        choices = after[path[-1]]
    return with_length(path, durations)


@wrong("2.5", "forgot-first")
def starts_are_ready_at_zero(nodes, edges, durations):
    before, end = predecessors(nodes, edges), [0.0] * nodes
    for j in sorted_nodes(nodes, edges):
        end[j] = max((end[i] + durations[j] for i in before[j]), default=0)
    return max(end, default=0.0), trace_back(end, before, nodes)


@wrong("2.5", "forgot-last")
def latest_start(nodes, edges, durations):
    before, start = predecessors(nodes, edges), [0.0] * nodes
    for j in sorted_nodes(nodes, edges):
        start[j] = max((start[i] + durations[i] for i in before[j]), default=0.0)
    return max(start, default=0.0), trace_back(start, before, nodes)


@wrong("2.5", "one-start")
def only_from_the_first_start(nodes, edges, durations):
    before = predecessors(nodes, edges)
    start = next((i for i in range(nodes) if not before[i]), None)
    paths = [path for path in all_paths(nodes, edges) if path[0] == start]
    return max((with_length(path, durations) for path in paths), default=(0, []))


@wrong("2.5", "one-start")
def only_from_node_0(nodes, edges, durations):
    paths = [path for path in all_paths(nodes, edges) if path[0] == 0]
    return max((with_length(path, durations) for path in paths), default=(0, []))


@wrong("2.5", "one-end")
def end_of_the_last_node(nodes, edges, durations):
    before, end = predecessors(nodes, edges), [0.0] * nodes
    for j in sorted_nodes(nodes, edges):
        end[j] = durations[j] + max((end[i] for i in before[j]), default=0)
    return (end[-1] if nodes else 0), trace_back(end, before, nodes)


@wrong("2.5", "lonely-nodes")
def only_nodes_with_edges(nodes, edges, durations):
    waits = {}
    for i, j in edges:
        waits.setdefault(j, []).append(i)
    end = {}
    for j in TopologicalSorter(waits).static_order():
        end[j] = durations[j] + max((end[i] for i in waits.get(j, ())), default=0)
    path = [max(end, key=end.get)] if end else []
    while path and path[0] in waits:
        path.insert(0, max(waits[path[0]], key=end.get))
    return max(end.values(), default=0), path


@wrong("2.5", "index-order")
def in_the_order_of_the_numbers(nodes, edges, durations):
    before, end = predecessors(nodes, edges), [0.0] * nodes
    for j in range(nodes):
        end[j] = durations[j] + max((end[i] for i in before[j]), default=0)
    return max(end, default=0.0), trace_back(end, before, nodes)


@wrong("2.5", "index-order")
def once_over_the_edges(nodes, edges, durations):
    end = list(durations)
    for i, j in edges:
        end[j] = max(end[j], end[i] + durations[j])
    return max(end, default=0.0), trace_back(end, predecessors(nodes, edges), nodes)


@wrong("2.5", "index-order")
def breadth_first(nodes, edges, durations):
    before = predecessors(nodes, edges)
    after = predecessors(nodes, [(j, i) for i, j in edges])
    queue = [i for i in range(nodes) if not before[i]]
    end = {i: durations[i] for i in queue}
    for i in queue:
        for j in after[i]:
            if j not in end:
                queue.append(j)
            end[j] = max(end.get(j, 0), end[i] + durations[j])
    return max(end.values(), default=0), list(queue)


@wrong("2.5", "shortest")
def shortest_of_all_paths(nodes, edges, durations):
    return min((with_length(path, durations) for path in all_paths(nodes, edges)), default=(0, []))


@wrong("2.5", "shortest")
def starts_after_the_first_predecessor(nodes, edges, durations):
    before, end = predecessors(nodes, edges), [0.0] * nodes
    for j in sorted_nodes(nodes, edges):
        end[j] = durations[j] + min((end[i] for i in before[j]), default=0)
    return max(end, default=0.0), trace_back(end, before, nodes)


@wrong("2.5", "added-branches")
def adds_branches_up(nodes, edges, durations):
    before, end = predecessors(nodes, edges), [0.0] * nodes
    for j in sorted_nodes(nodes, edges):
        end[j] = durations[j] + sum(end[i] for i in before[j])
    return max(end, default=0.0), trace_back(end, before, nodes)


@wrong("2.5", "last-one-waited-for")
def one_predecessor_each(nodes, edges, durations):
    waits_for = {j: i for i, j in edges}  # a later edge replaces an earlier one
    end = {}
    for j in sorted_nodes(nodes, edges):
        end[j] = durations[j] + end.get(waits_for.get(j), 0)
    path = [max(end, key=end.get)] if end else []
    while path and path[0] in waits_for:
        path.insert(0, waits_for[path[0]])
    return max(end.values(), default=0), path


@wrong("2.5", "levels")
def level_by_level(nodes, edges, durations):
    before, level = predecessors(nodes, edges), {}
    for j in sorted_nodes(nodes, edges):
        level[j] = 1 + max((level[i] for i in before[j]), default=-1)
    path = []
    for depth in sorted(set(level.values())):
        path.append(max((i for i in level if level[i] == depth), key=lambda i: durations[i]))
    return with_length(path, durations)


@wrong("2.5", "longest-node")
def only_the_longest_node(nodes, edges, durations):
    if not nodes:
        return 0, []
    at = max(range(nodes), key=lambda i: durations[i])
    return durations[at], [at]


@wrong("2.5", "no-path")
def nodes_in_the_order_of_their_ends(nodes, edges, durations):
    return correct(nodes, edges, durations)[0], sorted_nodes(nodes, edges)


@wrong("2.5", "path-reversed")
def from_the_end_to_the_start(nodes, edges, durations):
    us, path = correct(nodes, edges, durations)
    return us, path[::-1]


@wrong("2.5", "path-too-short")
def without_the_first_node(nodes, edges, durations):
    us, path = correct(nodes, edges, durations)
    return us, path[1:]


@wrong("2.5", "every-path")
def recursion_without_a_memory(nodes, edges, durations):
    before = predecessors(nodes, edges)

    def best(j):
        found = max((best(i) for i in before[j]), default=(0, []))
        return found[0] + durations[j], [*found[1], j]

    return max((best(j) for j in range(nodes)), default=(0, []))


@wrong("2.5", "every-path")
def compares_all_paths(nodes, edges, durations):
    return max((with_length(path, durations) for path in all_paths(nodes, edges)), default=(0, []))


@wrong("2.5", "recursion-limit")
def recursion_with_a_memory(nodes, edges, durations):
    before = predecessors(nodes, edges)

    @cache
    def best(j):
        found = max((best(i) for i in before[j]), default=(0, ()))
        return found[0] + durations[j], (*found[1], j)

    return max((best(j) for j in range(nodes)), default=(0, []))


@wrong("2.5", "wrong-type")
def only_the_length(nodes, edges, durations):
    return correct(nodes, edges, durations)[0]


@wrong("2.5", "changed-input")
def uses_the_edges_up(nodes, edges, durations):
    found = correct(nodes, edges, durations)
    while edges:
        edges.pop()
    return found


@wrong("2.5", "returned-nothing")
def prints_it(nodes, edges, durations):
    found = correct(nodes, edges, durations)
    len(found)
