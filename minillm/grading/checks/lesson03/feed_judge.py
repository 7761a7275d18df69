"""Exercise 3.1: which mistake explains what a graph was fed and what was kept of its output."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from minillm.grading.checks.lesson03.sequence import all_same, refuse_lazy, shares_memory, tensors_of
from minillm.grading.checks.lesson03.watched_graph import WatchedGraph
from minillm.grading.checks.lesson03.watching import captured, memory, place, random_tensor, same
from minillm.grading.registry import Wrong
from minillm.graphs import cuda


@dataclass
class Case:
    """A graph of one shape, the function that was captured, and the tensors that it reads and writes."""

    graph: WatchedGraph
    step: object
    static_input: torch.Tensor
    static_output: torch.Tensor
    weight: torch.Tensor  # kept, since the graph reads it
    results: list = field(default_factory=list)  # (tensors of an earlier call, what they must hold)


def make_case(rng) -> Case:
    """[B, D] in, [B, 2 D] out; every element of the output depends on the batch."""
    rows, columns = rng.randint(2, 4), rng.randint(5, 6)
    weight, static_input = random_tensor(rng, rows, columns), random_tensor(rng, rows, columns)

    def step(x):
        return torch.cat([torch.tanh(x * weight), x.roll(1, 1) + 0.5 * x], dim=1)

    graph, static_output = captured(step, static_input)
    watched = WatchedGraph(graph, static_input, static_output)
    return Case(watched, step, static_input, static_output, weight)


def reused(batches: list[torch.Tensor]):
    """An iterator whose batches all stand in one tensor, one after the other."""
    staging = torch.empty_like(batches[0])
    return map(staging.copy_, batches)


def judge_call(case: Case, answer, batches: list[torch.Tensor], poison: torch.Tensor, one_tensor=False):
    """Call the answer on `batches` (in one tensor, one after the other); raise Wrong if it is wrong."""
    graph, before = case.graph, place(case.static_input)
    graph.begin(poison)
    right = [case.step(each) for each in batches]
    previous = case.static_output.clone()
    given = [each.clone() for each in batches]
    try:
        with graph.order.on(), graph.watch.on():
            value = answer(
                graph, case.static_input, case.static_output, reused(given) if one_tensor else given
            )
    except Exception as error:
        if graph.watch.moved:  # the emulator may refuse what CUDA lets happen
            raise Wrong("moved-static", f"It ended in {type(error).__name__}: {error}") from error
        raise
    cuda.synchronize()  # an answer may use streams of its own
    asked = f"for {len(batches)} batches of shape {list(batches[0].shape)}"
    if place(case.static_input) != before:
        raise Wrong("moved-static", f"It was at {before[0]:#x} and is at {case.static_input.data_ptr():#x}.")
    if not all_same(given, batches) and not one_tensor:
        changed = sum(not same(a, b) for a, b in zip(given, batches, strict=True))
        raise Wrong("copied-backwards", f"{changed} of {len(batches)} batches were overwritten.")
    refuse_lazy(value)
    if key := _replays(len(graph.fed), len(batches)):
        raise Wrong(key, f"The grader counted {len(graph.fed)} replays {asked}.")
    if key := _feeding(graph, case.static_input, batches, poison):
        wrong = [i for i, (fed, own) in enumerate(zip(graph.fed, batches, strict=True)) if not same(fed, own)]
        raise Wrong(key, f"The static input did not hold the batch at replay {wrong[0] + 1}, {asked}.")
    found = tensors_of(value, len(batches), case.static_output.shape)
    if key := _results(found, graph.gave, previous, case.static_output):
        raise Wrong(key, f"The grader compared your {len(found)} results with what each replay gave.")
    if graph.order.loose:
        raise Wrong("unordered", graph.order.loose)
    if not all_same(graph.gave, right):
        raise Wrong("wrong-value", "The graph itself no longer gives what the captured function does.")
    case.results.append((found, graph.gave))


def judge_later(case: Case) -> None:
    """Raise Wrong if results of earlier calls no longer hold what their replays gave."""
    for found, gave in case.results:
        if not all_same(found, gave):
            raise Wrong("aliased", "Results of an earlier call changed when the function was called again.")


def _replays(count: int, wanted: int) -> str | None:
    if count == 0:
        return "no-replay"
    return None if count == wanted else "replay-count"


def _feeding(graph, static_input, batches, poison) -> str | None:
    """The mistake that explains what the static input held at each replay, or None if that is right."""
    fed = graph.fed
    if all_same(fed, batches):
        return None
    if all(same(each, poison) for each in fed):
        elsewhere = any(memory(each) != memory(static_input) for each in graph.watch.written)
        return "copied-elsewhere" if elsewhere else "rebound"
    if all_same(fed, [poison, *batches[:-1]]):
        return "replayed-too-early"
    if all(any(same(each, later) for later in batches[i:]) for i, each in enumerate(fed)):
        return "read-ahead"
    return "part-only" if _partly(fed, batches, poison) else "wrong-value"


def _partly(fed, batches, poison) -> bool:
    """Whether each element comes from the batch or was left over, and both occur."""
    old, new = [poison, *fed[:-1]], 0
    for now, before, batch in zip(fed, old, batches, strict=True):
        if not bool(((now == batch) | (now == before)).all()):
            return False
        new += int((now == batch).sum())
    return new > 0


def _results(found, gave, previous, static_output) -> str | None:
    """The mistake that explains the results, or None if each is what its replay gave, in its own memory."""
    shared = shares_memory(found, static_output)
    if shared == [len(found) - 1] and len(found) > 1:
        return "last-aliased"
    if shared:
        return "aliased"
    if all_same(found, gave):
        return None
    if all_same(found, [previous, *gave[:-1]]):
        return "cloned-too-early"
    return "copied-after-the-loop" if all(same(each, gave[-1]) for each in found) else "wrong-value"
