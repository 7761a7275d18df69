"""Exercise 2.5: graphs to try an answer on."""

from minillm.grading.checks.lesson02.critical_path_truth import neighbours

LONG = 4000  # nodes in a row


def relabelled(rng, nodes, edges, durations):
    """The same graph with other numbers for its nodes, and its edges in another order."""
    name = list(range(nodes))
    rng.shuffle(name)
    edges = [(name[i], name[j]) for i, j in edges]
    rng.shuffle(edges)
    renamed = [0.0] * nodes
    for old, new in enumerate(name):
        renamed[new] = durations[old]
    return nodes, edges, renamed


def random_graph(rng, nodes=9, density=0.25):
    """Random edges from earlier to later nodes, then other numbers."""
    edges = [(i, j) for j in range(nodes) for i in range(j) if rng.random() < density]
    return relabelled(rng, nodes, edges, [rng.uniform(1, 20) for _ in range(nodes)])


def two_parts(rng):
    """Two graphs side by side, of which the second takes longer, and a node by itself."""
    times = (
        [rng.uniform(2, 6) for _ in range(3)] + [rng.uniform(9, 20) for _ in range(3)] + [rng.uniform(1, 9)]
    )
    return 7, [(0, 1), (1, 2), (3, 4), (4, 5)], times


def long_alone(rng):
    """A node without an edge, which takes longer than the chain beside it."""
    return 4, [(0, 1), (1, 3)], [rng.uniform(1, 5), rng.uniform(1, 5), rng.uniform(30, 50), rng.uniform(1, 5)]


def tempting(rng):
    """A short node opens the long way, a long one the short way; and the way with most nodes is neither."""
    a, b, c = rng.uniform(1, 3), rng.uniform(40, 60), rng.uniform(7, 9)
    edges = [(0, 2), (0, 1), (1, 3), (2, 7), (3, 7), (0, 4), (4, 5), (5, 6), (6, 7)]
    return 8, edges, [rng.uniform(2, 4), a, c, b, 1.5, 2.5, 1.25, rng.uniform(2, 4)]


def shortcut(rng):
    """Node 3 is met early, by the edge from 0, and again late: what follows it has to wait for that."""
    edges = [(0, 1), (0, 3), (3, 4), (1, 2), (2, 3)]
    return 5, edges, [rng.uniform(2, 9) for _ in range(5)]


def small(rng):
    """What tells mistakes apart by the length alone; the special ones first."""
    cases = [make(rng) for make in (tempting, two_parts, long_alone, shortcut)]
    while len(cases) < 10:
        graph = random_graph(rng, nodes=rng.randint(6, 10))
        if is_telling(*graph[:2]):
            cases.append(graph)
    return [*cases, (3, [], [rng.uniform(1, 9) for _ in range(3)]), (1, [], [rng.uniform(1, 9)]), (0, [], [])]


def chain(rng, nodes=LONG):
    """One after the other, as a decode step on one stream; the numbers run against the order."""
    return nodes, [(i + 1, i) for i in range(nodes - 1)], [rng.uniform(1, 9) for _ in range(nodes)]


def layers(rng, depth=16, width=3):
    """Each node waits for all of the layer before: width ** depth ways."""
    edges = [
        (width * layer + i, width * (layer + 1) + j)
        for layer in range(depth - 1)
        for i in range(width)
        for j in range(width)
    ]
    nodes = depth * width
    return relabelled(rng, nodes, edges, [rng.uniform(1, 20) for _ in range(nodes)])


def is_telling(nodes, edges) -> bool:
    """Whether some node waits for two others and some number comes before one that it waits for."""
    return max(map(len, neighbours(nodes, edges)[0])) > 1 and any(i > j for i, j in edges)
