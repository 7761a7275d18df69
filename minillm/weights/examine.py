"""Does the model recite, by how much does it prefer the right character, and does damage show?

The training script writes what it finds to reciter.json, and the tests repeat it.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable
from dataclasses import asdict

import torch

from ..inputs import DecodeInputs
from ..kv_cache import PagedKVCache
from ..model import Transformer
from ..tokenizer import tokenizer
from .recital import BLOCK_SIZE, Harm, margin, recite
from .texts import all_texts, unambiguous

CUTS = {"quarter": 0.25, "half": 0.5, "three quarters": 0.75}  # how much of a text stands before the damage
SHOWN = 24  # characters after the damage: one block and a half, so that every sequence needs a new block


def padding_row(model: Transformer, kv: PagedKVCache, tables: list[list[int]], lengths: list[int]) -> None:
    """A padding row writes to the slot of every sequence's first token, as it does without a null block."""
    rows = DecodeInputs.padding(len(tables), 1, device=kv.device)
    first = torch.tensor([table[:1] for table in tables], device=kv.device)
    rows.slot_mapping.copy_(first[:, 0] * BLOCK_SIZE)
    rows.block_tables.copy_(first)
    model.decode(rows, kv)


def swapped_block(place: Callable[[int], int]) -> Harm:
    """Block ``place(number of blocks)`` of every sequence takes the content of the next sequence's."""

    def harm(model, kv, tables, lengths):
        now, then = [], []
        for row, length in enumerate(lengths):
            index = place(-(-length // BLOCK_SIZE))
            others = [(row + n) % len(tables) for n in range(1, len(tables))]
            other = next(other for other in others if lengths[other] >= (index + 1) * BLOCK_SIZE)
            now, then = now + [tables[row][index]], then + [tables[other][index]]
        for cache in (*kv.key, *kv.value):
            cache[now] = cache[then]

    return harm


def zeroed_block(model: Transformer, kv: PagedKVCache, tables: list[list[int]], lengths: list[int]) -> None:
    """A block in the middle is empty, as where a prompt's block was never written."""
    middle = [table[-(-length // BLOCK_SIZE) // 2] for table, length in zip(tables, lengths, strict=True)]
    for cache in (*kv.key, *kv.value):
        cache[middle] = 0


DAMAGE: dict[str, tuple[Harm | None, tuple[str, ...]]] = {
    "a padding row in slot 0": (padding_row, ()),
    "another text's first block": (swapped_block(lambda blocks: 0), ()),
    "another text's middle block": (swapped_block(lambda blocks: blocks // 2), ()),
    "an empty middle block": (zeroed_block, ()),
    "positions stuck": (None, ("positions",)),
    "tokens stuck": (None, ("token_ids",)),
    "slots stuck": (None, ("slot_mapping",)),
    "block tables stuck": (None, ("block_tables",)),
    "context lengths stuck": (None, ("context_lens",)),
}


def damage_table(model: Transformer, cuts: tuple[str, ...] = tuple(CUTS)) -> dict[str, dict[str, int]]:
    """Damage → cut → in how many texts the next ``SHOWN`` characters go wrong."""
    table = {}
    for name, (harm, stuck) in DAMAGE.items():
        table[name] = {}
        for cut in cuts:
            texts = [(text, int(len(text) * CUTS[cut])) for text in all_texts().values()]
            wrong = recite(model, [text[:length] for text, length in texts], SHOWN, harm, stuck)
            right = [[*tokenizer.encode(text[length:]), tokenizer.end][:SHOWN] for text, length in texts]
            table[name][cut] = sum(ours != theirs for ours, theirs in zip(wrong, right, strict=True))
    return table


def report(model: Transformer) -> dict:
    """What reciter.json says of a float32 model: preset, texts, margins by dtype, the damage table.

    Raises ValueError when a text is not recited.
    """
    texts = all_texts()
    begun = [text[: unambiguous(text)] for text in texts.values()]
    for begin, text, ids in zip(begun, texts.values(), recite(model, begun), strict=True):
        if ids != [*tokenizer.encode(text[len(begin) :]), tokenizer.end]:
            raise ValueError(f"not recited: {begin + tokenizer.decode(ids)!r}; expected {text!r}")
    dtypes = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
    return {
        "preset": asdict(model.config),
        "texts_sha256": hashlib.sha256("".join(texts.values()).encode()).hexdigest(),
        "texts": list(texts),
        "margin": {name: round(margin(copy.deepcopy(model).to(dtype)), 2) for name, dtype in dtypes.items()},
        "damage_shown_in": {"texts": len(texts), "characters": SHOWN, **damage_table(model)},
    }
