"""Exercise 2.4: which part of the captured program waits for which."""

from dataclasses import dataclass

from minillm.graphs import anatomy
from minillm.graphs.anatomy.driver import CANNOT_READ


@dataclass(frozen=True)
class Order:
    """What must hold (`forked`, `joined`), and what must not (`serial`)."""

    forked: bool  # both branches wait for what was on the stream before
    joined: bool  # combine waits for both branches
    serial: bool  # one of the branches waits for the other


def order_of(program, slow_program, x) -> Order:
    """Read from the graph's edges; where they cannot be read (for want of cuda-bindings), by slow branches.

    slow_program(part): the same program, captured with that part asleep for a while.
    """
    try:
        return by_edges(program, anatomy(program.graph))
    except (*CANNOT_READ, LookupError):
        return by_slow_branches(slow_program, x)


def by_edges(program, found) -> Order:
    """Nodes are known by the buffers whose addresses they hold."""
    before = [0] * len(found.nodes)  # node -> the nodes that it comes after, as bits
    for i, j in sorted(found.edges, key=lambda edge: edge[1]):  # a node comes after all that it waits for
        before[j] |= before[i] | 1 << i

    def holding(buffer):
        return {node.index for node in found.where(buffer)}

    def follows(first, then):
        return all(before[j] >> i & 1 for i in first for j in then)

    scales, finishes = holding(program.x), holding(program.finished)
    combines = holding(program.combined)
    others = combines | finishes  # finish may have been given a branch's buffer by mistake
    left, right = holding(program.l) - others, holding(program.r) - others
    if not all((scales, left, right, combines)):
        raise LookupError("a part of the program has no node in the graph")

    def beginnings(part):
        return [j for j in part if not any(before[j] >> i & 1 for i in part)]

    def waits(first, then):
        """Whether `then` begins after a node of `first`; a later copy of its result does not count."""
        return any(before[j] >> i & 1 for i in first for j in beginnings(then))

    # a second beginning is a copy of a branch's result that does not wait for that branch
    races = any(len(beginnings(part)) > 1 for part in (left, right))

    return Order(
        forked=follows(scales, left | right),
        joined=follows(left | right, combines) and not races,
        serial=not races and (waits(left, right) or waits(right, left)),
    )


def by_slow_branches(slow_program, x) -> Order:
    """Whoever does not wait for a slow part reads the NaN that stood in its buffer before the replay."""

    def stale(tensor):
        return bool(tensor.isnan().any())

    programs = {part: slow_program(part) for part in ("scale", "left", "right")}
    for program in programs.values():
        program.replay(x)
    scale, left, right = programs.values()
    return Order(
        forked=not stale(scale.l) and not stale(scale.r),
        joined=not stale(left.combined) and not stale(right.combined),
        serial=not stale(left.seen) or not stale(right.seen),
    )
