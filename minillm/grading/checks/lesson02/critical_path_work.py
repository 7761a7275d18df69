"""Exercise 2.5: how much work an answer does, counted in lines of Python, so that none runs for hours."""

import sys
from contextlib import contextmanager
from math import log2

from minillm.grading.checks.lesson02 import critical_path_cases as cases_of
from minillm.grading.registry import Wrong

MOST_CALLS = 400_000
MOST_LINES = 1_000_000  # on a graph of ten nodes; a count, so it is the same on every machine
MOST_ON_THE_CHAIN = 3_000_000_000  # minutes of Python
SHORT, DOUBLE = 20, 40


@contextmanager
def few_calls(seen: str):
    """Raise Wrong("every-path") from within an answer that goes on calling functions without end."""
    before, count = sys.getprofile(), 0

    def on_event(frame, event, argument):
        nonlocal count
        count += 1
        if count > MOST_CALLS:
            raise Wrong("every-path", seen)
        if before is not None:
            before(frame, event, argument)

    sys.setprofile(on_event)
    try:
        yield
    finally:
        sys.setprofile(before)


def lines_of(answer, graph) -> tuple[object, int]:
    """(what it returns, how many lines of Python it ran); raises Wrong("endless") after a million lines."""
    before, count = sys.gettrace(), 0

    def on_line(frame, event, argument):
        nonlocal count
        count += event == "line"
        if count > MOST_LINES:
            raise Wrong("endless", f"After {MOST_LINES:,} lines it was still running.")
        return on_line

    sys.settrace(on_line)
    try:
        returned = answer(*graph)
    finally:
        sys.settrace(before)
    return returned, count


def limited(answer):
    """`answer`, stopped by Wrong("endless") if it runs too many lines."""
    return lambda *graph: lines_of(answer, graph)[0]


def refuse_cubic(answer, rng) -> None:
    """Raise Wrong("all-pairs") if a chain of 4,000 nodes would take it hours, told from two short ones.

    Twice as many nodes are twice the work for who looks at each edge once, four times for a loop within a
    loop, and eight times for all pairs by way of every node. Only the last is refused.
    """
    short, double = (lines_of(answer, cases_of.chain(rng, nodes))[1] for nodes in (SHORT, DOUBLE))
    on_the_chain = double * (cases_of.LONG / DOUBLE) ** log2(max(double / max(short, 1), 1))
    if on_the_chain > MOST_ON_THE_CHAIN:
        raise Wrong(
            "all-pairs",
            f"{SHORT} nodes in a row took {short:,} lines of Python, {DOUBLE} took {double:,}; at that rate "
            f"{cases_of.LONG:,} take {on_the_chain:,.0f}.",
        )
