"""Ctrl-C and errors anywhere in the engine: what was asked for by hand goes on right, and nothing is lost."""

import linecache
import random
import sys
from pathlib import Path

import pytest
from helpers import alone, finish, no_leak, prompts_of, small_engine, small_model

import minillm.engine
from minillm.engine import outbox, record, scheduler
from minillm.engine.bucketed import BucketedDecoder
from minillm.engine.buffers import StaticBuffers
from minillm.engine.core import EngineCore
from minillm.engine.device_batch import DeviceBatch
from minillm.engine.tables import BlockTables
from minillm.kv_cache import BlockAllocator
from minillm.model import Transformer
from minillm.prompts import PackedPrompts

FOLDER = str(Path(minillm.engine.__file__).parent)
BY_HAND, NEW = 16, 7  # tokens
PROMPTS = prompts_of(7, 3, 5, 9, 2)


@pytest.fixture(scope="module")
def world():
    return World()


class World:
    """An engine so small that there are preemptions and chunks, used again and again, and its true texts."""

    def __init__(self):
        self.model = small_model(seed=4)
        self.texts = [alone(self.model, prompt, BY_HAND) for prompt in PROMPTS]
        self.stop = self.texts[2][4]  # so that one of the texts ends early
        self.renew()

    def renew(self):
        self.engine = small_engine(
            self.model, max_batch=2, num_blocks=7, prefill_budget=6, buckets=[2], sampling=False
        )

    def right(self, row, count):
        """What the text of a prompt is, in ``generate`` as ``interrupted`` calls it."""
        text = self.texts[row][:count]
        return text[: text.index(self.stop)] if self.stop in text else text

    def interrupted(self, spoil):
        """One request by hand, then ``generate`` under ``spoil``; True if that was interrupted.

        AssertionError unless the engine is then as if ``generate`` had never been called.
        """
        engine, submitted = self.engine, []
        by_hand = engine.add(PROMPTS[0], max_tokens=BY_HAND)
        for _ in range(4):
            engine.step()
        submit = engine.core.submit
        engine.core.submit = lambda request: (submitted.append(request), submit(request))
        try:
            with spoil:
                done = engine.generate(PROMPTS[1:], max_tokens=NEW, stop_token=self.stop)
            broken = False
        except (KeyboardInterrupt, ZeroDivisionError):
            broken = True
        finally:
            del engine.core.submit
        if not broken:
            assert [r.tokens for r in done] == [self.right(row, NEW) for row in range(1, 5)]
        unfinished = engine.core.requests.values()
        assert not any(request in unfinished for request in submitted), "a request of generate goes on"
        before = [(list(request.tokens), request.finish) for request in submitted]
        for request, (tokens, reason) in zip(submitted, before, strict=True):
            right = self.right(1 + PROMPTS[1:].index(request.prompt), NEW)
            assert tokens == right[: len(tokens)] and (reason in ("cancelled", None) or tokens == right)
        finish(engine)
        engine.step()  # what was broken off last is put right with the next turn
        assert by_hand.tokens == self.texts[0] and by_hand.finish == "length"
        assert before == [(request.tokens, request.finish) for request in submitted]
        assert no_leak(engine)
        return broken


class Raise:
    """In its k-th call from here on, ``owner.name`` raises, before it does anything or after all of it."""

    def __init__(self, owner, name, k, after, error=KeyboardInterrupt):
        self.owner, self.name, self.k, self.after, self.error = owner, name, k, after, error
        self.original, self.calls = getattr(owner, name), 0

    def __enter__(self):
        def spoilt(*args, **kwargs):
            self.calls += 1
            if self.calls == self.k and not self.after:
                raise self.error
            result = self.original(*args, **kwargs)
            if self.calls == self.k and self.after:
                raise self.error
            return result

        setattr(self.owner, self.name, staticmethod(spoilt) if self.name == "pack" else spoilt)
        return self

    def __exit__(self, *error):
        original = self.original
        setattr(self.owner, self.name, staticmethod(original) if self.name == "pack" else original)


PLACES = [
    (Transformer, "prefill_packed"),
    (PackedPrompts, "pack"),
    (BucketedDecoder, "run"),
    (BlockAllocator, "allocate"),
    (BlockAllocator, "free"),
    *((StaticBuffers, name) for name in ("write", "move", "pad")),
    *((BlockTables, name) for name in ("set_row", "set_block", "move_row", "upload")),
    *((DeviceBatch, name) for name in ("prefill", "choose", "join", "grow", "follow", "step")),
    *((outbox.Outbox, name) for name in ("send", "receive", "wait")),
    *((record.Record, name) for name in ("came", "began", "ended")),
    *(
        (scheduler.Scheduler, name)
        for name in (
            *("add", "next_chunks", "_admit", "_give", "prefilled"),
            *("grow", "preempt", "finish", "release"),
        )
    ),
    *((EngineCore, name) for name in ("_prefill", "_decode", "_collect", "_take", "_end", "step")),
]


@pytest.mark.parametrize("owner, name", PLACES, ids=[f"{o.__name__}.{n}" for o, n in PLACES])
def test_raised_in_a_call_of(owner, name, world):
    broken = []
    try:
        for k in (1, 2, 9):
            for after in (False, True):
                error = ZeroDivisionError if k == 2 else KeyboardInterrupt
                broken.append(world.interrupted(Raise(owner, name, k, after, error)))
    except BaseException:
        world.renew()
        raise
    assert broken[0] and broken[1], "never called: this test tests nothing"


class AtLine:
    """Raises when the n-th line inside of minillm/engine is about to run; without ``n`` it counts them.

    Lines with nothing but ``try:`` are left out: Python does not look for signals there, and what a trace
    function raises there is not even caught by a ``try`` around it.
    """

    def __init__(self, n=None):
        self.n, self.lines, self.where = n, 0, None

    def __enter__(self):
        self.before = sys.gettrace()
        sys.settrace(self.call)
        return self

    def __exit__(self, *error):
        sys.settrace(self.before)

    def call(self, frame, event, arg):
        return self.line if frame.f_code.co_filename.startswith(FOLDER) else None

    def line(self, frame, event, arg):
        if event == "line" and linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip() != "try:":
            self.lines += 1
            if self.lines == self.n:
                self.where = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
                sys.settrace(None)
                raise KeyboardInterrupt
        return self.line


@pytest.mark.parametrize("part", range(4))
def test_raised_at_any_line(world, part):
    count = AtLine()
    assert not world.interrupted(count)
    assert count.lines > 500
    for n in random.Random(part).sample(range(1, count.lines + 1), 20):
        spoil = AtLine(n)
        try:
            assert world.interrupted(spoil)
        except BaseException as error:
            world.renew()
            raise AssertionError(f"raised at line {n} of {count.lines}, {spoil.where}") from error


def test_no_token_comes_twice_from_a_cancellation_broken_off_at_any_line(world):
    lines, n = None, 0
    while lines is None or n < lines:
        n += 1
        engine, heard = world.engine, []
        kept, dropped = (engine.add(prompt, max_tokens=NEW) for prompt in PROMPTS[:2])
        for _ in range(4):
            heard += engine.step()
        spoil = AtLine(n)
        try:
            with spoil:
                engine.cancel(dropped)
            lines = spoil.lines
        except KeyboardInterrupt:
            engine.cancel(dropped)
        while not engine.idle:
            heard += engine.step()
        assert kept.tokens == world.right(0, NEW)
        for request in (kept, dropped):
            said = iter(request.tokens)  # what it heard are its tokens, in order: one at most was lost
            told = [token for other, token in heard if other is request]
            assert all(token in said for token in told), f"broken off at {spoil.where}"
            assert len(request.tokens) - 1 <= len(told) <= len(request.tokens)
        assert no_leak(engine)
    assert lines > 20
