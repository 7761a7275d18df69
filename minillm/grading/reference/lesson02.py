# ruff: noqa: E402, F811, I001
"""Reference solutions of lesson 02. Generated, do not edit: `python -m minillm build` makes them."""

# --- exercise 2.1 ---
from minillm.graphs import cuda, warm_up


def capture_and_replay(fn, x):
    """One call of fn, captured: (graph, static_input, static_output), with fn(x) in static_output."""
    static_input = x.clone()
    warm_up(lambda: fn(static_input))
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        static_output = fn(static_input)
    graph.replay()  # the capture has recorded and computed nothing
    return graph, static_input, static_output


# --- exercise 2.2 ---
from minillm.graphs import cuda, warm_up


class GraphRunner:
    """fn(**inputs) captured once; runner(**values) loads values by name, replays, returns the output."""

    def __init__(self, fn, inputs):
        self.static = {name: tensor.clone() for name, tensor in inputs.items()}
        warm_up(lambda: fn(**self.static))
        self.graph = cuda.CUDAGraph()
        with cuda.graph(self.graph):
            self.output = fn(**self.static)

    def __call__(self, **values):
        for name, value in values.items():  # all are checked before any is copied
            if name not in self.static:
                raise TypeError(f"no input is called {name!r}; there are: {', '.join(self.static)}")
            static = self.static[name]
            if value.shape != static.shape or value.dtype != static.dtype:
                raise ValueError(
                    f"{name} is {value.dtype} {list(value.shape)}, but it was captured as "
                    f"{static.dtype} {list(static.shape)}: pad it, convert it, or capture another graph"
                )
        for name, value in values.items():
            self.static[name].copy_(value)
        self.graph.replay()
        return self.output


# --- exercise 2.3 ---
import torch


def penalised_probabilities(logits, seen, banned, penalty):
    """Probabilities [batch, vocab]: seen tokens penalised, banned ones ruled out; may be captured."""
    penalised = torch.where(logits > 0, logits / penalty, logits * penalty)
    scores = torch.where(seen, penalised, logits)  # both are computed for all tokens: one shape, no question
    return torch.softmax(scores.masked_fill(banned, float("-inf")), dim=-1)


# --- exercise 2.4 ---
from minillm.graphs import cuda


def fork_join(left, right, combine, side):
    """combine(left(), right()), the branches on two streams; for use within a capture."""
    main = cuda.current_stream()
    side.wait_stream(main)  # the fork: draws `side` into the capture, after all that is on `main` so far
    with cuda.stream(side):
        b = right()
    a = left()
    main.wait_stream(side)  # the join: what `main` gets from now on comes after right
    return combine(a, b)


# --- exercise 2.5 ---
def critical_path(nodes, edges, durations):
    """(length in µs, [first node, ..., last node]) of the longest path; edges (i, j): j waits for i."""
    after, waits = [[] for _ in range(nodes)], [0] * nodes
    for i, j in edges:
        after[i].append(j)
        waits[j] += 1
    end, latest = list(durations), [None] * nodes  # latest: the last to end of those that a node waits for
    ready = [i for i in range(nodes) if not waits[i]]
    for i in ready:  # grows on the way: a node joins when all that it waits for have their ends
        for j in after[i]:
            if latest[j] is None or end[i] > end[latest[j]]:
                latest[j], end[j] = i, end[i] + durations[j]
            waits[j] -= 1
            if not waits[j]:
                ready.append(j)
    at, path = max(range(nodes), key=lambda i: end[i], default=None), []
    while at is not None:
        path.append(at)
        at = latest[at]
    return max(end, default=0), path[::-1]


# --- exercise 2.6 ---
import torch

from minillm.graphs import cuda, device, warm_up


def seeded_dropout(x, p, seed):
    """(replay, reseed): replay() gives dropout of x, with a new mask each time; reseed(seed) starts anew."""
    generator, graph = torch.Generator(device), cuda.CUDAGraph()
    graph.register_generator_state(generator)  # else the capture refuses to draw from it

    def dropout():
        keep = torch.empty_like(x).bernoulli_(1 - p, generator=generator)
        return x * keep / (1 - p)

    warm_up(dropout)
    with cuda.graph(graph):
        out = dropout()

    def replay():
        graph.replay()
        return out

    def reseed(seed):
        generator.manual_seed(seed)  # a replay starts from the generator's seed and offset, and moves it on

    reseed(seed)  # after the warm-up, which drew from it
    return replay, reseed
