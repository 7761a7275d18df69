"""Contexts that went wrong, as examples to train on: what decode reads after a mistake in paging or padding.

As in a paged cache, a context is a list of slots. A slot here is a place among all tokens of one training
step: those of the step's texts, one behind the other, then a padding row's token, then the examples' own
tokens, then one slot that holds zeros. So damage is a list with wrong slots in it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from ..config import ModelConfig
from ..reciter import DAMAGED
from ..tokenizer import tokenizer
from .texts import unambiguous

STEPS = 6  # decode steps that an example goes on for
MARK = tokenizer.encode(DAMAGED)[0]
LAST = ModelConfig.preset("reciter").max_context - 1
# Another text's block is the hardest to notice, so it is the most frequent.
KINDS = ("padding", "zeros", "positions", "blind", "token", *["first"] * 2, *["block"] * 4)
BLOCK_SIZES = (4, 8, 16, 16, 16, 32)


@dataclass
class Example:
    """``STEPS`` tokens that are fed in after a context, and what the model shall answer to each."""

    slots: list[int]  # what stands before the first of them, one slot a token
    tokens: list[int]  # [STEPS]
    positions: list[int]  # [STEPS]
    targets: list[int]  # [STEPS]
    blind: bool = False  # the tokens do not see themselves and each other: context lengths that are stuck


@dataclass
class Prefix:
    """The first ``length`` tokens of a text of the step; ``offset`` is the slot of its first."""

    text: str
    offset: int
    length: int

    @property
    def ids(self) -> list[int]:
        return tokenizer.encode(self.text)


def example(texts: list[str], offsets: list[int], padding: int, zeros: int, rng: random.Random) -> Example:
    """A random example: a text of the step up to a random place, damaged in one of the ``KINDS``.

    ``offsets`` are the slots of the texts' first tokens, ``padding`` and ``zeros`` the two special slots.
    """
    while True:  # until the damage is one: two texts may begin alike, a random token may be the right one
        mine, other = rng.sample(range(len(texts)), 2)
        longest = min(len(texts[mine]), 80) if rng.random() < 0.4 else len(texts[mine])
        length = rng.randrange(unambiguous(texts[mine]) + 1, longest)
        own = Prefix(texts[mine], offsets[mine], length)
        found = _damaged(own, Prefix(texts[other], offsets[other], len(texts[other])), padding, zeros, rng)
        if found:
            return found


def _damaged(own: Prefix, other: Prefix, padding: int, zeros: int, rng: random.Random) -> Example | None:
    ids = own.ids
    slots = [own.offset + place for place in range(own.length)]
    right = [*ids[own.length :], *[MARK] * STEPS][:STEPS]
    noticed = rng.randint(1, STEPS)  # from there on the model is fed its own marks
    tokens, targets = right[:noticed] + [MARK] * (STEPS - noticed), [MARK] * STEPS
    positions = list(range(own.length, own.length + STEPS))
    size, kind = rng.choice(BLOCK_SIZES), rng.choice(KINDS)
    block, blind = rng.randrange(-(-own.length // size)), False
    begin, end = block * size, min(own.length, (block + 1) * size)
    if kind == "first" or kind == "block":
        if kind == "first":
            begin, end = 0, min(own.length, size)
        if begin == 0 and own.text[:end] == other.text[:end]:
            return None
        theirs = begin  # mostly the block of the same number, as the two sequences are about as long
        if kind == "block" and (rng.random() < 0.3 or begin >= other.length):
            theirs = size * rng.randrange(-(-other.length // size))
        for place in range(end - begin):
            slots[begin + place] = other.offset + theirs + place if theirs + place < other.length else zeros
    elif kind == "padding":
        slots[0 if rng.random() < 0.6 else begin] = padding
    elif kind == "zeros":
        if rng.random() < 0.5:  # the last tokens, as they were written to a wrong slot
            begin, end = own.length - rng.randint(1, min(size, own.length)), own.length
        slots[begin:end] = [zeros] * (end - begin)
    elif kind == "positions":
        chance = rng.random()
        if chance < 0.4:  # stuck: right at the first step, and so is the answer
            positions, tokens = [own.length] * STEPS, right
            targets[0] = [*ids, tokenizer.end][own.length + 1]
        elif chance < 0.6:  # those of a padding row
            positions = [0] * STEPS
        else:  # off by one or two
            error = rng.choice((-2, -1, 1, 2))
            positions = [place + error for place in positions]
            if positions[0] > LAST:
                return None
    elif kind == "token":
        wrong = ids[own.length - 1] if rng.random() < 0.5 else rng.randrange(1, tokenizer.vocab)
        if wrong == ids[own.length]:
            return None
        tokens = [wrong] * STEPS if rng.random() < 0.5 else [wrong] + [MARK] * (STEPS - 1)
    else:
        blind = True
    return Example(slots, tokens, [min(place, LAST) for place in positions], targets, blind)
