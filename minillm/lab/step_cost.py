"""What a steady decode step of an `Engine` costs beside its graph, on the device and on the host."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass

import torch

from ..engine import Engine

ADDS = 12  # eager submits that the host's part of a step is compared with
WINDOW = 16  # steps: what some of them do for all, such as giving out blocks, is shared among so many


@dataclass
class StepCost:
    """One steady decode step, in µs, over ``steps`` of them.

    ``step_us``: from one to the next, and of that ``replay_us``: the GPU's time in the graph. ``host_us``:
    the CPU's time for all that a step needs besides the replay call (``replay_call_us``) and the wait for
    the step before it; ``adds_us``: that of 12 eager ``add_`` submits right behind it, and ``host_adds``: how
    many of these the host's part is worth. Not every step does the same on the host, and its speed changes
    from moment to moment, so these three are means over 16 steps in a row, and of such means the median. The
    other two are medians, ``step_us`` is a mean.
    """

    steps: int
    step_us: float
    replay_us: float
    host_us: float
    adds_us: float
    host_adds: float
    replay_call_us: float


class _Timed:
    """A graph whose replays are timed: on the host, in µs, and with ``events`` also on the GPU."""

    def __init__(self, graph, calls: list[float], events: list[tuple] | None):
        self.graph, self.calls, self.events = graph, calls, events

    def replay(self) -> None:
        pair = () if self.events is None else [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        if pair:
            pair[0].record()
        start = time.perf_counter()
        self.graph.replay()
        self.calls.append((time.perf_counter() - start) * 1e6)
        if pair:
            pair[1].record()
            self.events.append(pair)


def step_cost(engine: Engine, requests: list[tuple[list[int], int]], steps: int = 192) -> StepCost:
    """What a step costs while all ``requests`` run. Needs a GPU, and requests for more than ``steps`` tokens.

    Two passes: one for the device, with events around each replay, and one for the host without them.
    """
    seen = _steady_turns(engine, requests, steps, events=[], adds=0)
    host = _steady_turns(engine, requests, steps, events=None, adds=ADDS)
    spent = [
        turn - wait - call
        for turn, wait, call in zip(host["turns"], host["waits"], host["calls"], strict=True)
    ]
    own, adds = _windows(spent), _windows(host["adds"])
    return StepCost(
        steps=steps,
        step_us=statistics.mean(seen["turns"]),
        replay_us=statistics.median(start.elapsed_time(end) * 1e3 for start, end in seen["events"]),
        host_us=statistics.median(own),
        adds_us=statistics.median(adds),
        host_adds=statistics.median(ADDS * one / other for one, other in zip(own, adds, strict=True)),
        replay_call_us=statistics.median(host["calls"]),
    )


def _windows(values: list[float]) -> list[float]:
    """The means of so many neighbours at a time."""
    return [statistics.mean(values[at : at + WINDOW]) for at in range(0, len(values), WINDOW)]


def _steady_turns(engine: Engine, requests, steps: int, events: list | None, adds: int) -> dict:
    """µs of each turn, of its wait, its replay call and the ``adds`` behind it, and the replays' events."""
    added = [engine.add(prompt, max_tokens=tokens) for prompt, tokens in requests]
    while engine.scheduler.waiting or engine.scheduler.prefilling:
        engine.step()
    for _ in range(8):  # the prefill's work is behind
        engine.step()
    outbox, runners = engine.core.outbox, engine.batch.greedy.runners.values()
    turns, waits, calls, added_us = [], [], [], []
    graphs, x = [runner.graph for runner in runners], torch.zeros(1024, device="cuda")
    for runner in runners:
        runner.graph = _Timed(runner.graph, calls, events)

    def wait(event):
        start = time.perf_counter()
        event.synchronize()
        waits.append((time.perf_counter() - start) * 1e6)

    outbox.wait = wait
    try:
        for _ in range(steps):
            start = time.perf_counter()
            engine.step()
            end = time.perf_counter()
            for _ in range(adds):
                x.add_(1)
            turns.append((end - start) * 1e6)
            added_us.append((time.perf_counter() - end) * 1e6)
        torch.cuda.synchronize()
    finally:
        del outbox.wait
        for runner, graph in zip(runners, graphs, strict=True):
            runner.graph = graph
        for request in added:
            engine.cancel(request)
    return {"turns": turns, "waits": waits, "calls": calls, "adds": added_us, "events": events}
