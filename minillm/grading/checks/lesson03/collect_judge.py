"""Exercise 3.3: a captured decode step in miniature, and which mistake explains what was collected of it."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from minillm.grading.checks.lesson03.sequence import all_same, refuse_lazy, shares_memory, tensors_of
from minillm.grading.checks.lesson03.stream_order import StreamOrder
from minillm.grading.checks.lesson03.watching import Watch, captured, place, random_tensor, same
from minillm.grading.device_memory import on_device
from minillm.grading.registry import Wrong
from minillm.graphs import cuda


@dataclass
class Case:
    """A step with a state of its own, so that every replay gives other logits [B, V]."""

    graph: object
    state: torch.Tensor
    logits: torch.Tensor
    kept: tuple = ()
    watch: Watch = field(default_factory=Watch)
    gave: list = field(default_factory=list)
    results: list = field(default_factory=list)  # (tensors of an earlier call, what they must hold)


def make_case(rng, dtype=torch.float32) -> Case:
    batch, vocab = 2, rng.randint(5, 7)
    state = random_tensor(rng, batch, vocab).to(dtype)
    weight = random_tensor(rng, vocab).to(dtype)

    def step(state):
        state.copy_((state.roll(1, 1) * 1.5 + weight).sin())
        return state * 2 + weight

    graph, logits = captured(step, state)
    return Case(graph, state, logits, (weight,))


def judge_call(case: Case, answer, steps: int, rng) -> None:
    """Call the answer once; raise Wrong if it does not give what each of `steps` replays left behind."""
    case.state.copy_(random_tensor(rng, *case.state.shape))
    case.graph.replay()  # the logits hold a step of somebody else's
    case.watch, case.gave = Watch(), []
    watch, gave, before, where = case.watch, case.gave, case.logits.clone(), place(case.logits)
    static = case.logits.detach()
    order = StreamOrder(watch, static)

    def replay():
        with watch.pause():
            order.replay()
            case.graph.replay()
            gave.append(static.clone())
            watch.replays += 1

    try:
        with order.on(), watch.on():
            value = answer(replay, case.logits, steps)
    except Exception as error:
        if watch.moved:  # the emulator may refuse what CUDA lets happen
            raise Wrong("moved-logits", f"It ended in {type(error).__name__}: {error}") from error
        raise
    cuda.synchronize()  # an answer may use streams of its own
    shape = list(static.shape)
    if place(case.logits) != where:
        raise Wrong("moved-logits", f"They were at {where[0]:#x}, now at {case.logits.data_ptr():#x}.")
    refuse_lazy(value)
    if len(gave) != steps:
        raise Wrong("replay-count", f"The grader counted {len(gave)} replays for {steps} steps.")
    if early := [name for name, replays in watch.waits if replays < steps]:
        raise Wrong("waits", f"The first of {len(early)} such calls among {steps} replays was {early[0]}.")
    if isinstance(value, torch.Tensor) and list(value.shape) == [steps * shape[0], shape[1]]:
        raise Wrong("concatenated", f"For {steps} steps of logits {shape} you return {list(value.shape)}.")
    if not same(static, gave[-1]):
        raise Wrong("changed-input", "`logits` do not hold what the last replay left there.")
    found = tensors_of(value, steps, static.shape)
    if key := _collected(found, gave, before, static):
        raise Wrong(key, f"For {steps} steps of logits {shape}, compared with what each replay left there.")
    if order.loose:
        raise Wrong("unordered", order.loose)
    case.results.append((found, gave))


def judge_later(case: Case) -> None:
    """Raise Wrong if what was collected earlier changed since."""
    for found, gave in case.results:
        if not all_same(found, gave):
            raise Wrong("aliased", "Logits that were collected earlier changed with later replays.")


def _collected(found, gave, before, logits) -> str | None:
    """The mistake that explains the tensors `found`, or None if each is what its replay gave."""
    if shares_memory(found, logits):
        return "aliased"
    if not all(map(on_device, found)):
        return "on-the-host"
    if not all_same(found, gave):
        return _other_values(found, gave, before)
    return None if all(each.dtype == logits.dtype for each in found) else "other-dtype"


def _other_values(found, gave, before) -> str:
    if all_same(found, [before, *gave[:-1]]):
        return "cloned-too-early"
    for key, value in (("copied-before-the-loop", before), ("copied-after-the-loop", gave[-1])):
        if all(same(each, value) for each in found):
            return key
    known = [before, *gave]
    return "wrong-value" if any(same(a, b) for a in found for b in known) else "never-written"
