"""Exercise 2.5: how long a captured graph takes at least, and which of its nodes decide it."""

import copy
import sys

from minillm.grading.checks.lesson02 import critical_path_cases as cases_of
from minillm.grading.checks.lesson02.critical_path_mistakes import FORMULAS
from minillm.grading.checks.lesson02.critical_path_truth import is_path, length, total
from minillm.grading.checks.lesson02.critical_path_work import few_calls, limited, refuse_cubic
from minillm.grading.compare import compare, number, same, short
from minillm.grading.registry import Wrong, exercise

ARGUMENTS = ("nodes", "edges", "durations")
USUAL_LIMIT = 3000  # on nested calls; Python's own is 1,000, and the chain is longer than both


def read(value, _right=None) -> tuple[float, list[int]]:
    """(length, path) of what an answer returned, or Wrong."""
    if value is None:
        raise Wrong("returned-nothing")
    try:
        us, path = value
        path = [_node(i) for i in path]
    except (TypeError, ValueError):
        raise Wrong("wrong-type", f"Return two things, (length_us, path); yours is {short(value)}.") from None
    return number(us), path


def _node(i) -> int:
    if isinstance(i, str):
        raise TypeError
    return int(i)


def judge_path(path, us, edges, durations) -> None:
    """Raise Wrong unless `path` leads along edges and takes `us`."""
    seen = f"edges={short(edges)}, durations={short(durations)}; your path is {short(path)}"
    if not all(0 <= i < len(durations) for i in path):
        raise Wrong("no-path", f"It names a node that is not there: {seen}.")
    if not is_path(path, edges):
        backwards = len(path) > 1 and is_path(path[::-1], edges)
        raise Wrong("path-reversed" if backwards else "no-path", f"In the graph with {seen}.")
    if not same(total(path, durations), us):
        raise Wrong("path-too-short", f"In the graph with {seen}: {short(total(path, durations))} µs.")


@exercise(
    "2.5",
    answer="critical_path",
    arguments=ARGUMENTS,
    title="The critical path of a captured graph",
    hints=(
        "A node starts when the last of those that it waits for has ended. What is the end of a node that "
        "waits for nothing?",
        "end[j] = durations[j] + max(end[i] for all edges (i, j)). Each end is needed many times: "
        "compute it once, after those that it needs.",
        "Nodes in a fitting order: count for each how many it waits for; take one that waits for none, count "
        "down all that wait for it, repeat. No recursion, so 4,000 in a row are no trouble.",
        "Note for each node the predecessor with the latest end. The path is found backwards from the node "
        "with the latest end of all; then reverse it.",
    ),
    mistakes={
        "sum-of-all": "These are all durations added up: the time on one stream. Nodes between which no path "
        "leads may run side by side.",
        "counted-nodes": "Nodes were counted instead of adding up their durations.",
        "counted-edges": "Edges were counted instead of adding up durations.",
        "most-hops": "This is the path with the most nodes; asked is the one that takes longest.",
        "greedy": "A walk that takes the next node by its own duration does not see what comes after it. The "
        "longest path needs the end of every node.",
        "forgot-first": "The duration of the path's first node is missing: a node that waits for nothing "
        "ends after its own duration, not at 0.",
        "forgot-last": "The duration of the path's last node is missing: these are starts; asked is when all "
        "has ended.",
        "one-start": "Only one start was looked at. A graph may have several nodes that wait for nothing, "
        "and parts that are not connected at all.",
        "one-end": "This is the end of the last node in the list; another one may end later.",
        "lonely-nodes": "A node without any edge was left out; it runs as well.",
        "index-order": "A node was looked at before all that it waits for had their final end. The numbers "
        "of nodes and the order of edges say nothing about who waits for whom.",
        "shortest": "A node that waits for several starts after the last of them, not the first: a maximum, "
        "not a minimum.",
        "added-branches": "Branches were added up where they meet. They run side by side: a node that waits "
        "for several starts when the last of them ends.",
        "last-one-waited-for": "Of several that a node waits for only one was looked at, the one that comes "
        "first or last in the list.",
        "levels": "Levels were added up, as if each level had to end before the next one starts; a node "
        "waits for its own edges only.",
        "longest-node": "This is the longest single node; the nodes that it waits for come before it.",
        "no-path": "The path does not lead along edges: each of its nodes has to wait for the one before it.",
        "path-reversed": "The path is the wrong way round: it begins with the node that runs first.",
        "path-too-short": "The length is right, but the durations along the path do not add up to it.",
        "every-path": "Every path was walked, and their number doubles with each fork. Compute the end of "
        "each node once and keep it.",
        "all-pairs": "The work grows with the third power of the number of nodes, as when every pair is "
        "tried by way of every other node. A decode step would take it hours; look at each edge once.",
        "endless": "It does not come to an end, or not soon: a loop whose condition stays true, or one that "
        "tries every order of the nodes.",
        "recursion-limit": "Your function calls itself once for each node of a path, and a decode step has "
        "thousands in a row: Python stops at about a thousand. A loop has no such limit.",
    },
)
def check_critical_path(answer, rng):
    limit = sys.getrecursionlimit()
    try:
        sys.setrecursionlimit(min(limit, USUAL_LIMIT))  # something in this process may have raised it
        _check(answer, rng)
    finally:
        sys.setrecursionlimit(limit)


def _check(answer, rng):
    cases = cases_of.small(rng)
    paths = []

    def read_length(value, _right):
        us, path = read(value)
        paths.append(path)
        return us

    compare(limited(answer), cases, length, FORMULAS, ARGUMENTS, read=read_length)
    for (*_, edges, durations), path in zip(cases, paths, strict=True):
        judge_path(path, length(len(durations), edges, durations), edges, durations)
    layered, long = cases_of.layers(rng), cases_of.chain(rng)
    seen = f"On {layered[0]} nodes in layers of three it was still calling functions after 400,000 calls."
    with few_calls(seen):
        _compare_large(answer, layered)
    refuse_cubic(answer, rng)
    try:
        _compare_large(answer, long)
    except RecursionError as error:
        raise Wrong("recursion-limit", f"On {long[0]} nodes in a row: {error}.") from None


def _compare_large(answer, graph):
    us, path = read(answer(*copy.deepcopy(graph)))
    if not same(us, length(*graph)):
        raise Wrong(
            "wrong-value", f"On a graph of {graph[0]} nodes: {us:.6g}, right is {length(*graph):.6g}."
        )
    judge_path(path, us, *graph[1:])
