"""Exercise 2.5: the longest way through a graph."""


def order_of(nodes: int, edges) -> list[int]:
    """The nodes, each after all that it waits for."""
    after, waits = neighbours(nodes, edges)[1], [0] * nodes
    for _, j in edges:
        waits[j] += 1
    ready = [i for i in range(nodes) if not waits[i]]
    for i in ready:
        for j in after[i]:
            waits[j] -= 1
            if not waits[j]:
                ready.append(j)
    return ready


def neighbours(nodes: int, edges) -> tuple[list, list]:
    """For each node what it waits for, and what waits for it."""
    before, after = [[] for _ in range(nodes)], [[] for _ in range(nodes)]
    for i, j in edges:
        before[j].append(i)
        after[i].append(j)
    return before, after


def ends(nodes, edges, durations, choose=max, order=None) -> list[float]:
    """When each node ends; `choose` and `order` turn it into what mistakes give."""
    before, end = neighbours(nodes, edges)[0], [0.0] * nodes
    for j in order_of(nodes, edges) if order is None else order:
        end[j] = durations[j] + (choose(end[i] for i in before[j]) if before[j] else 0)
    return end


def length(nodes, edges, durations) -> float:
    """The truth."""
    return max(ends(nodes, edges, durations), default=0.0)


def is_path(path, edges) -> bool:
    """Whether each node of `path` waits for the one before it."""
    known = set(edges)
    return all(edge in known for edge in zip(path, path[1:], strict=False))


def total(path, durations) -> float:
    """Microseconds of the nodes of `path`, one after the other."""
    return float(sum(durations[i] for i in path))


def closed_when_first_met(nodes, edges, durations):
    """A mistake: Dijkstra's algorithm, turned round. The node with the latest end so far counts as final."""
    before, after = neighbours(nodes, edges)
    open_, closed = {i: durations[i] for i in range(nodes) if not before[i]}, {}
    while open_:
        i = max(open_, key=open_.get)
        closed[i] = open_.pop(i)
        for j in after[i]:
            if j not in closed:
                open_[j] = max(open_.get(j, 0.0), closed[i] + durations[j])
    return max(closed.values(), default=0.0)
