"""Traces: what happens to an engine, and when. Random ones, and those that random ones may miss.

Nothing here imports hypothesis, so that `run_traces.py` needs torch only.
"""

from __future__ import annotations

import random
from typing import NamedTuple

from minillm.reciter import continuation, texts, tokenizer
from minillm.weights.texts import unambiguous

TEXTS = texts()
LONGEST = "Numbers to ninety"  # as long as the model's maximum context, 1,024
NEVER = tokenizer.encode("}")[0]  # a character that stands in no text

FLAT = 30.0  # a temperature at which all tokens are about as likely: the reciter is sure of its texts

# Few engines, since capturing takes a while. Maxima that are no multiple of a bucket's step, few blocks,
# small prefill budgets, ladders that do not reach the top: what goes wrong goes wrong there.
SETTINGS = {
    # 32 columns at most, and 40 blocks for five rows; prompts come in chunks of 24
    "five": dict(
        max_batch=5, max_context=128, block_size=4, num_blocks=41, widths=[8, 16, 32], prefill_budget=24
    ),
    # five and six rows, and tables of more than 16 blocks, are over the top; nothing runs ahead
    "six": dict(
        max_batch=6,
        max_context=192,
        block_size=8,
        num_blocks=41,
        buckets=[1, 2, 4],
        widths=[4, 16],
        prefill_budget=48,
        ahead=0,
    ),
    # two steps ahead; the ladder ends with 8, 11
    "eleven": dict(
        max_batch=11,
        max_context=160,
        block_size=16,
        num_blocks=31,
        widths=[4, 10],
        prefill_budget=64,
        ahead=2,
    ),
    # no graphs for sampling steps; the ladder ends with 16, 19
    "nineteen": dict(
        max_batch=19,
        max_context=160,
        block_size=8,
        num_blocks=101,
        widths=[8, 20],
        sampling=False,
        prefill_budget=256,
    ),
    # no graphs; a cache that is smaller than one full context, and a budget that is no multiple of a block
    "eager": dict(
        max_batch=3, max_context=96, block_size=4, num_blocks=20, use_graphs=False, prefill_budget=7
    ),
    # one size is captured; all else is over the top
    "small": dict(
        max_batch=3, max_context=64, block_size=4, num_blocks=21, buckets=[2], widths=[8], prefill_budget=16
    ),
    # the model's own maximum context; 72 blocks, of which one full context takes 64
    "whole": dict(
        max_batch=3, block_size=16, num_blocks=73, buckets=[1, 3], widths=[16, 64], prefill_budget=512
    ),
}
MAX_CONTEXT = {name: settings.get("max_context", 1024) for name, settings in SETTINGS.items()}
# Tokens that one request can have in the cache.
ROOM = {
    name: min(MAX_CONTEXT[name], (settings["num_blocks"] - 1) * settings["block_size"])
    for name, settings in SETTINGS.items()
}


class Add(NamedTuple):
    """At this turn a request comes: the first ``begun`` characters of a text.

    ``stop``: a stop token, or None for the end of the text. ``temperature`` and ``top_k`` as in `Sampling`;
    with a ``top_k`` of 1 the text is as certain as without a temperature.
    """

    turn: int
    title: str
    begun: int
    max_tokens: int | None = None
    stop: int | None = None
    temperature: float = 0.0
    top_k: int | None = None

    @property
    def prompt(self) -> str:
        return TEXTS[self.title][: self.begun]

    @property
    def certain(self) -> bool:
        """Whether there is one right text."""
        return not self.temperature or self.top_k == 1

    def expected(self, max_context: int) -> tuple[list[int], str]:
        """The right tokens, and why they end."""
        stop, tokens = tokenizer.end if self.stop is None else self.stop, []
        for token in [*tokenizer.encode(continuation(self.prompt)), tokenizer.end]:
            if token == stop:
                return tokens, "stop"
            tokens.append(token)
            if len(tokens) == self.max_tokens:
                return tokens, "length"
            # The last token is not fed in, so it may stand behind the maximum.
            if self.begun + len(tokens) == max_context + 1:
                return tokens, "context"
        raise AssertionError(f"{self} goes on behind the end of the text: nobody knows how")


class Cancel(NamedTuple):
    """At this turn the request that came as number ``which`` is cancelled, if it is there by then."""

    turn: int
    which: int


class Refused(NamedTuple):
    """At this turn comes what must be refused: a key of `BAD`."""

    turn: int
    kind: str


class Break(NamedTuple):
    """From this turn on, the engine is interrupted when it next comes to this place."""

    turn: int
    place: str


PLACES = ("before a prefill", "after a prefill", "before a step", "after a step", "while it waits")
BAD = {
    "no prompt": ("", {}),
    "no ids": ([], {}),
    "no such character": ("a~b", {}),
    "no such token": ([1, 96], {}),
    "half a token": ([1.5], {}),
    "a long prompt": ("a" * 1025, {}),
    "no tokens": ("Tyger", {"max_tokens": 0}),
    "below zero": ("Tyger", {"temperature": -1}),
    "no number": ("Tyger", {"temperature": float("nan")}),
    "a large top_k": ("Tyger", {"top_k": 65}),
    "half a top_k": ("Tyger", {"top_k": 1.5}),
    "no such stop": ("Tyger", {"stop_token": 96}),
}


class Trace(NamedTuple):
    """``engine``: a key of `SETTINGS`. ``events``, by turn. ``share`` of the steps are checked, 0 to 1.

    ``filling`` is what is put where nobody may read: "nan" or "bytes", random ones; ``seed`` is of both.
    """

    engine: str
    events: list
    share: float = 1.0
    filling: str = "nan"
    seed: int = 0


class RandomDraw:
    """What `draw_trace` draws with, from `random.Random`."""

    def __init__(self, seed):
        self.integer = random.Random(seed).randint

    def choice(self, items):
        return items[self.integer(0, len(items) - 1)]

    def chance(self, percent: int) -> bool:
        return self.integer(0, 99) >= 100 - percent


def draw_trace(draw, engine: str | None = None) -> Trace:
    """A random trace. ``draw`` has integer(least, most), choice(items) and chance(percent)."""
    engine = engine or draw.choice([name for name in SETTINGS if name != "whole"])
    settings, events, turn = SETTINGS[engine], [], 0
    count = draw.integer(1, settings["max_batch"] + 5)
    for _ in range(count):
        turn += draw.integer(1, 6) if draw.chance(40) else 0
        events.append(draw_request(draw, engine, turn))
    for _ in range(draw.choice([0, 0, 1, 3])):
        events.append(Cancel(draw.integer(0, turn + 25), draw.integer(0, count - 1)))
    for _ in range(draw.choice([0, 0, 1, 2])):
        events.append(Refused(draw.integer(0, turn + 5), draw.choice(list(BAD))))
    for _ in range(draw.choice([0, 0, 0, 1, 2])):
        events.append(Break(draw.integer(0, turn + 20), draw.choice(PLACES)))
    share = draw.choice([1.0, 0.3, 0.3, 0.0])
    events.sort(key=lambda event: event.turn)
    return Trace(engine, events, share, draw.choice(["nan", "bytes"]), draw.integer(0, 2**16))


def draw_request(draw, engine: str, turn: int) -> Add:
    """A request that the engine must accept, and whose text ends somewhere."""
    room, longest = ROOM[engine], MAX_CONTEXT[engine]
    title = draw.choice(list(TEXTS))
    text = TEXTS[title]
    least, most = unambiguous(text), min(len(text), room)
    begun = {
        "short": lambda: draw.integer(least, least + 12),
        "any": lambda: draw.integer(least, most),
        "nearly all": lambda: draw.integer(max(least, most - 12), most),
    }[draw.choice(["short", "short", "any", "nearly all"])]()
    # The last token needs no slot, so there may be one more than there is room for.
    fits = room + 1 - begun
    max_tokens = draw.integer(1, min(fits, draw.choice([4, 24, 24, 60])))
    kind = draw.choice(["plain", "plain", "plain", "to the end", "other stop", "sampled", "top 1"])
    if kind == "to the end" and (room == longest or len(text) < room):
        max_tokens = None if room == longest else fits
    if kind == "other stop" and text[begun:]:
        return Add(turn, title, begun, max_tokens, tokenizer.encode(draw.choice(text[begun:]))[0])
    if kind == "sampled":
        top_k = draw.choice([5, None, 2, 64])
        return Add(turn, title, begun, max_tokens, None, draw.choice([1.0, FLAT]), top_k)
    if kind == "top 1":
        return Add(turn, title, begun, max_tokens, None, draw.choice([1.0, FLAT]), 1)
    return Add(turn, title, begun, max_tokens)


def every_batch(engine: str, **choices) -> Trace:
    """Requests come one by one until every row is taken, and leave one by one: each batch size twice."""
    most = SETTINGS[engine]["max_batch"]
    short = sorted(TEXTS, key=lambda title: unambiguous(TEXTS[title]))
    events = []
    for number in range(most):
        title = short[number % len(short)]
        # The first to come is the last to go, so that every size is there on the way down, too.
        tokens = 2 * (most - number) + 1
        events.append(Add(number, title, unambiguous(TEXTS[title]), tokens, **choices))
    return Trace(engine, events)


def wide_then_narrow(engine: str) -> Trace:
    """Row 0 has a table as wide as it can be, then one block; row 1 the other way round, then wide again."""
    room, size = ROOM[engine], SETTINGS[engine]["block_size"]
    long, short = Add(0, LONGEST, room - 2, 3), Add(0, LONGEST, 2, 1 + size // 2)
    return Trace(
        engine, [long, *(short._replace(turn=turn) for turn in (1, 60, 61)), long._replace(turn=100)]
    )


def explicit_traces() -> dict[str, Trace]:
    """What random traces may miss, by name."""
    found = {}
    for engine in SETTINGS:
        found[f"every batch size, {engine}"] = every_batch(engine)
        found[f"wide then narrow, {engine}"] = wide_then_narrow(engine)
    for engine in ("five", "six", "eleven", "nineteen", "small"):
        found[f"every batch size, sampled, {engine}"] = every_batch(engine, temperature=FLAT, top_k=5)
    found["a storm of preemptions"] = Trace(
        "five", [Add(turn, title, 24, 70) for turn, title in enumerate(TEXTS)], filling="bytes"
    )
    found["preempted while it is prefilled"] = Trace(
        "eager", [Add(0, "Alphabet", 6, 30), Add(0, "Months", 6, 30), Add(1, "Sonnet 18", 48, 10)]
    )
    found["a request as large as the cache"] = Trace(
        "eager", [Add(0, "The Tyger", 12, 65), Add(1, "Sonnet 18", 12, 65), Add(2, "The Star", 12, 65)]
    )
    # The context reaches the model's maximum: the last character is fed in at position 1,023.
    company = [Add(0, "Sonnet 18", 20, 40), Add(3, "Row your boat", 90)]
    for name, last in {
        "the end stops it": Add(0, LONGEST, 1000),
        "the end is its last token": Add(0, LONGEST, 1000, stop=NEVER),
        "max_tokens end it there": Add(0, LONGEST, 1000, 25, NEVER),
        "one token before": Add(0, LONGEST, 1000, 24, NEVER),
        "the prompt fills it": Add(0, LONGEST, 1024),
        "the prompt fills it, no stop": Add(0, LONGEST, 1024, stop=NEVER),
        "the prompt lacks one": Add(0, LONGEST, 1023),
        "by a draw of one": Add(0, LONGEST, 1000, None, NEVER, FLAT, 1),
    }.items():
        found[f"the maximum context, {name}"] = Trace("whole", [last, *company])
    found["the maximum context, twice"] = Trace(
        "whole",
        [Add(0, LONGEST, 980), Add(0, LONGEST, 990), *company, Add(9, LONGEST, 1010, stop=NEVER)],
        0.3,
    )
    for place in PLACES:
        events = [Add(turn // 2, title, 30, 20 + turn) for turn, title in enumerate(TEXTS)]
        breaks = [Break(turn, place) for turn in (0, 3, 4, 15, 30)]
        found[f"broken off {place}"] = Trace("five", sorted([*events, *breaks], key=lambda event: event.turn))
    events = [Add(0, title, 20, 30) for title in TEXTS]
    for which, turn in enumerate((2, 5, 9, 14, 18, 19, 21)):
        events += [Break(turn, "while it waits"), Cancel(turn, which)]
    found["a cancellation broken off"] = Trace("eleven", events)  # two steps are underway in it
    cancels = [Cancel(1, 13), *(Cancel(turn, turn % 9) for turn in range(1, 20))]
    events = [*(Add(0, title, 20, 10) for title in TEXTS), *cancels, *(Refused(2, kind) for kind in BAD)]
    for engine in ("five", "six", "eleven"):
        found[f"cancelled and refused, {engine}"] = Trace(engine, sorted(events, key=lambda it: it.turn))
    return found


def long_traces() -> dict[str, Trace]:
    """A second or more each."""
    return {
        "the longest text from its beginning": Trace(
            "whole", [Add(0, LONGEST, unambiguous(TEXTS[LONGEST]))], 0.05
        ),
        "every text to its end": Trace(
            "whole",
            [Add(0, title, unambiguous(text)) for title, text in TEXTS.items() if title != LONGEST],
            0.05,
        ),
    }
