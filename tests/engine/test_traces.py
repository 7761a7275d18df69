"""Traces of arrivals, lengths, finishes, preemptions, cancellations and breaks, through a watched engine.

`traces` says what happens, `checked_engine` what is held against what at every step, turn and end. Here it is
run, it is proved that the traces cover what they should, and that the watch does notice what goes wrong.
"""

from collections import Counter

import pytest
import torch
from checked_engine import CheckedEngine, Engines
from hypothesis import given, settings
from hypothesis import strategies as st
from traces import (
    LONGEST,
    PLACES,
    SETTINGS,
    TEXTS,
    Add,
    RandomDraw,
    Trace,
    draw_trace,
    every_batch,
    explicit_traces,
    long_traces,
)

from minillm.engine import advance as steps
from minillm.engine.bucketed import BucketedDecoder
from minillm.engine.buffers import StaticBuffers
from minillm.engine.core import EngineCore
from minillm.engine.outbox import Outbox
from minillm.engine.scheduler import Scheduler
from minillm.engine.tables import BlockTables
from minillm.graphs import heap
from minillm.kv_cache import BlockAllocator
from minillm.model import Transformer
from minillm.reciter import tokenizer

torch.set_num_threads(1)
EXPLICIT, LONG = explicit_traces(), long_traces()
SAMPLE = 40  # random traces of `make test`
ALL = {"emulated": 1000, "cuda": 200}  # of `make test-all`


class HypothesisDraw(RandomDraw):
    """What `draw_trace` draws with, from hypothesis, which can then make a trace that fails smaller."""

    def __init__(self, draw):
        self.integer = lambda least, most: draw(st.integers(least, most))


@st.composite
def random_traces(draw):
    return draw_trace(HypothesisDraw(draw))


@pytest.fixture(scope="module")
def engines(backend):
    return Engines()


@pytest.fixture(scope="module")
def seen(backend):
    """What the explicit traces were about, and by name which of them have run."""
    return Counter()


def run_explicit(engines, name, seen):
    engines.run({**EXPLICIT, **LONG}[name], seen)
    seen["ran", name] += 1


@pytest.mark.parametrize("name", EXPLICIT)
def test_an_explicit_trace(engines, name, seen):
    run_explicit(engines, name, seen)


@pytest.mark.long
@pytest.mark.parametrize("name", LONG)
def test_a_long_trace(engines, name):
    run_explicit(engines, name, Counter())


def test_the_explicit_traces_cover_what_they_are_there_for(engines, seen):
    for name in EXPLICIT:
        if not seen["ran", name]:
            run_explicit(engines, name, seen)
    sizes = {name: range(1, choices["max_batch"] + 1) for name, choices in SETTINGS.items()}
    expected = [f"batch size, {name}, {size}" for name, several in sizes.items() for size in several]
    expected += [f"broken off {place}" for place in PLACES]
    expected += [f"cancelled while {status}" for status in ("waiting", "prefilling", "running", "finished")]
    expected += [f"finish: {reason}" for reason in ("stop", "length", "context", "cancelled")]
    expected += [f"preempted while {status}" for status in ("prefilling", "running")]
    expected += [
        "a cancellation broken off",
        "a narrower step after a wider one",
        "a row with a narrower table than before",
        "chunks of a prompt",
        "held at a break",
        "over the top: blocks",
        "over the top: rows",
        "padded replays",
        "sampled tokens",
        "steps at the model's maximum context",
        "steps that can draw",
    ]
    assert [what for what in expected if not seen[what]] == []
    assert seen["checked steps"] > 1000 and seen["checked prefills"] > 100
    assert len(TEXTS[LONGEST]) == engines.model.config.max_context


def test_random_traces(engines, backend, everything):
    """1,000 with `make test-all` on the emulated backend, 200 on a GPU; a sample of them otherwise."""
    count, seen, different = ALL[backend] if everything else SAMPLE, Counter(), set()

    @settings(deadline=None, max_examples=2 * count)  # some come twice
    @given(trace=random_traces())
    def run(trace):
        if repr(trace) not in different and len(different) < count:
            engines.run(trace, seen)
            different.add(repr(trace))

    run()
    assert len(different) == seen["traces"] == count
    expected = ["checked steps", "replays", "padded replays", "chunks of a prompt", "finish: length"]
    if everything:
        expected += ["preempted while running", "preempted while prefilling", "sampled tokens", "refused"]
        expected += ["over the top: rows", "over the top: blocks", "finish: stop", "finish: context"]
        expected += [f"broken off {place}" for place in PLACES]
        expected += [f"traces, {name}" for name in SETTINGS if name != "whole"]
        print(*sorted(seen.items()), sep="\n")
    assert [what for what in expected if not seen[what]] == []


def test_traces_where_device_memory_is_not_host_memory(backend, everything):
    if backend == "cuda":
        pytest.skip("there it never is")
    with heap():
        engines, seen = Engines(), Counter()
        for name in ("every batch size, sampled, small", "wide then narrow, small"):
            engines.run(EXPLICIT[name], seen)
        for number in range(20 if everything else 0):
            engines.run(draw_trace(RandomDraw(number), "small"), seen)
    assert seen["checked steps"] > 10 and seen["sampled tokens"]


# The watch can fail: each of these faults, put into the engine, is noticed.


def fault(owner, name, make):
    """A function that puts ``make(the original)`` into the place of ``owner.name``."""
    return lambda patch: patch.setattr(owner, name, make(getattr(owner, name)))


def forget_the_last_token(preempt):
    def wrong(self, request):
        request.tokens = request.tokens[:-1]
        preempt(self, request)

    return wrong


def hand_out_twice(allocate):
    def wrong(self, count):
        blocks = allocate(self, count)
        self._free += blocks[:1]
        return blocks

    return wrong


def hand_out_the_null_block(allocate):
    def wrong(self, count):
        blocks = allocate(self, count)
        return [0, *blocks[1:]]

    return wrong


def stay_where_it_was(advance):
    def wrong(rows, chosen):
        before = rows.inputs.positions.clone()
        advance(rows, chosen)
        rows.inputs.positions.copy_(before)

    return wrong


def write_when_it_has_ended(find_slots):
    def wrong(rows, block_size):
        inputs = rows.inputs
        block = inputs.block_tables.gather(1, (inputs.positions // block_size)[:, None]).squeeze(1)
        inputs.slot_mapping.copy_(block * block_size + inputs.positions % block_size)

    return wrong


def clear_nothing(set_row):
    def wrong(self, row, blocks):
        self._now[row, : len(blocks)] = blocks
        self.changed = True

    return wrong


def write_into_a_foreign_slot(prefill):
    def wrong(self, inputs, kv):
        logits = prefill(self, inputs, kv)
        kv.value[0].flatten(0, 1)[-1].fill_(3)
        return logits

    return wrong


def tell_the_newest(receive):
    def wrong(self):
        self._sent[0][0].copy_(self._sent[-1][0])
        return receive(self)

    return wrong


def the_last_comes_first(add):
    def wrong(self, request):
        add(self, request)
        self.waiting.reverse()

    return wrong


def round_otherwise(run_eagerly):
    def wrong(self, rows, blocks):
        run_eagerly(self, rows, blocks)
        self.buffers.logits[:rows].mul_(1.01)  # in bfloat16 too

    return wrong


STORM = Trace("eager", [Add(turn, title, 24, 20) for turn, title in enumerate(list(TEXTS)[:6])])
COMMA = tokenizer.encode(",")[0]
ENDS = Trace("eager", [Add(0, "Row your boat", 20, 40, COMMA), Add(0, "Row your boat", 20, 40)])
BROKEN = EXPLICIT["broken off before a step"]._replace(engine="eager")
GRAPHS = every_batch("small")
FAULTS = {
    "a block is leaked": (
        fault(BlockAllocator, "free", lambda free: lambda self, blocks: free(self, blocks[1:])),
        STORM,
    ),
    "a block is handed out twice": (fault(BlockAllocator, "allocate", hand_out_twice), STORM),
    "the null block is handed out": (fault(BlockAllocator, "allocate", hand_out_the_null_block), STORM),
    "a preemption loses a token": (fault(Scheduler, "preempt", forget_the_last_token), STORM),
    "positions stand still": (fault(steps, "advance", stay_where_it_was), STORM),
    "an ended row writes": (fault(steps, "find_slots", write_when_it_has_ended), ENDS),
    "a row is not padded": (fault(StaticBuffers, "pad", lambda pad: lambda *what: None), ENDS),
    "stale columns": (fault(BlockTables, "set_row", clear_nothing), STORM),
    "a prefill writes elsewhere": (fault(Transformer, "prefill_packed", write_into_a_foreign_slot), STORM),
    "tokens are overwritten": (fault(Outbox, "receive", tell_the_newest), STORM),
    "the last comes first": (fault(Scheduler, "add", the_last_comes_first), STORM),
    "nothing is cleared after a break": (
        fault(EngineCore, "_repair", lambda repair: lambda self: None),
        BROKEN,
    ),
    "eager rounds otherwise": (fault(BucketedDecoder, "run_eagerly", round_otherwise), GRAPHS),
}


@pytest.mark.parametrize("trace", [STORM, ENDS, BROKEN, GRAPHS], ids=["storm", "ends", "broken", "graphs"])
def test_without_a_fault_nothing_is_noticed(engines, trace):
    engines.run(trace, Counter())


@pytest.mark.parametrize("name", FAULTS)
def test_the_watch_notices_when(engines, monkeypatch, name):
    put_in, trace = FAULTS[name]
    put_in(monkeypatch)
    with pytest.raises((AssertionError, ValueError, RuntimeError, IndexError)):
        CheckedEngine(trace.engine, engines.model).run(trace, Counter())
