"""What one training step reads: some texts whole, and damaged contexts of them."""

from __future__ import annotations

import random
from dataclasses import dataclass

import torch

from ..tokenizer import tokenizer
from .damaged_contexts import STEPS, example
from .texts import all_texts, unambiguous

TEXTS, EXAMPLES = 6, 64  # of each a step
IGNORED = -100  # where several texts begin alike there is nothing to learn


@dataclass
class Batch:
    """N tokens: some texts, one behind the other, a padding row's token, examples of damage."""

    tokens: torch.Tensor  # [N] int64
    positions: torch.Tensor  # [N] int64
    targets: torch.Tensor  # [N] int64
    lengths: list[int]  # of the texts; the last one is the padding row's
    slots: torch.Tensor  # [EXAMPLES, context] int64: what an example sees, its own tokens included
    mask: torch.Tensor  # [EXAMPLES, 1, STEPS, context] bool


def make_batch(rng: random.Random) -> Batch:
    """Other texts and other damage at each call."""
    texts = rng.sample(list(all_texts().values()), TEXTS)
    tokens, positions, targets, offsets = [], [], [], []
    for text in texts:
        ids = tokenizer.encode(text)
        skipped = unambiguous(text) - 1
        offsets.append(len(tokens))
        tokens += ids
        positions += range(len(ids))
        targets += [IGNORED] * skipped + [*ids, tokenizer.end][1 + skipped :]
    padding, own = len(tokens), len(tokens) + 1
    tokens, positions, targets = [*tokens, 0], [*positions, 0], [*targets, IGNORED]
    zeros = own + EXAMPLES * STEPS
    examples = [example(texts, offsets, padding, zeros, rng) for _ in range(EXAMPLES)]
    width = max(len(one.slots) for one in examples)
    slots = torch.zeros(EXAMPLES, width + STEPS, dtype=torch.int64)
    mask = torch.zeros(EXAMPLES, 1, STEPS, width + STEPS, dtype=torch.bool)
    for row, one in enumerate(examples):
        slots[row, : len(one.slots)] = torch.tensor(one.slots)
        slots[row, width:] = torch.arange(len(tokens), len(tokens) + STEPS)
        mask[row, :, :, : len(one.slots)] = True
        mask[row, :, :, width:] = torch.ones(STEPS, STEPS).tril().bool() & (not one.blind)
        tokens, positions, targets = tokens + one.tokens, positions + one.positions, targets + one.targets
    numbers = map(torch.tensor, (tokens, positions, targets))
    return Batch(*numbers, [*map(len, texts), 1], slots, mask)
