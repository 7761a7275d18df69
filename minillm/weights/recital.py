"""A recital by ``prefill`` and ``decode`` over a paged cache, without the engine, so that it can test one."""

from __future__ import annotations

import random
from collections.abc import Callable

import torch

from ..inputs import DecodeInputs
from ..kv_cache import PagedKVCache
from ..model import Transformer
from ..tokenizer import tokenizer
from .texts import all_texts, unambiguous

BLOCK_SIZE = 16
Harm = Callable[[Transformer, PagedKVCache, list[list[int]], list[int]], None]


@torch.inference_mode()
def recite(
    model: Transformer,
    prompts: list[str],
    steps: int | None = None,
    harm: Harm | None = None,
    stuck: tuple[str, ...] = (),
) -> list[list[int]]:
    """The ids that the model writes behind each prompt, greedily, up to an end, ``steps`` or a full context.

    All prompts are in one batch, with a padding row behind them, and own blocks that lie in random order.
    ``harm(model, kv, tables, lengths)`` is called once, between prefill and the first decode step. The inputs
    named in ``stuck`` keep the values of the first decode step, as a graph's do if nobody updates them.
    """
    longest, device = model.config.max_context, model.embedding.weight.device
    limits = [min(longest, len(prompt) + (steps or longest)) for prompt in prompts]
    sizes = [-(-limit // BLOCK_SIZE) for limit in limits]
    kv = PagedKVCache(
        model.config, 1 + sum(sizes), BLOCK_SIZE, device=device, dtype=model.embedding.weight.dtype
    )
    blocks = random.Random(0).sample(range(1, kv.num_blocks), sum(sizes))
    tables = [[blocks.pop() for _ in range(size)] for size in sizes]
    prompts = [tokenizer.encode(prompt) for prompt in prompts]
    logits = torch.stack([model.prefill(ids, kv, own) for ids, own in zip(prompts, tables, strict=True)])
    if harm:
        harm(model, kv, tables, [len(ids) for ids in prompts])
    written, live, first = [[] for _ in prompts], list(range(len(prompts))), None
    while True:
        for row, index in zip(live, logits.argmax(-1).tolist(), strict=False):  # False: the padding row
            written[row].append(index)
        lengths = [len(ids) + len(more) for ids, more in zip(prompts, written, strict=True)]
        live = [row for row in live if written[row][-1] != tokenizer.end and len(written[row]) != steps]
        live = [row for row in live if lengths[row] <= longest]
        if not live:
            return written
        context = [lengths[row] for row in live]
        owned = [tables[row][: -(-lengths[row] // BLOCK_SIZE)] for row in live]
        last = [written[row][-1] for row in live]
        inputs = DecodeInputs.for_sequences(last, owned, context, BLOCK_SIZE, max(sizes), device=device)
        first = first or (inputs, live)
        rows, padding = inputs.tensors(), DecodeInputs.padding(1, max(sizes), device=device).tensors()
        for name in stuck:
            rows[name] = getattr(first[0], name)[[first[1].index(row) for row in live]]
        rows = {name: torch.cat([rows[name], padding[name]]) for name in rows}
        rows["block_tables"] = rows["block_tables"][:, : max(map(len, owned))].contiguous()
        logits = model.decode(DecodeInputs(**rows), kv)


@torch.inference_mode()
def margin(model: Transformer) -> float:
    """By how much the logit of the right id leads, where it leads least: over every text's every place.

    Negative where another id leads. The first characters that several texts share are not looked at. A row of
    the decode step is a place of one text here, so its batch is 128 rows of one sequence.
    """
    device, smallest = model.embedding.weight.device, float("inf")
    for text in all_texts().values():
        ids = tokenizer.encode(text)
        table = list(range(1, 2 + len(ids) // BLOCK_SIZE))
        kv = PagedKVCache(model.config, 1 + len(table), device=device, dtype=model.embedding.weight.dtype)
        for start in range(0, len(ids), 128):
            fed = ids[start : start + 128]
            lengths = range(start + 1, start + 1 + len(fed))
            width = -(-lengths[-1] // BLOCK_SIZE)
            tables = [table[:width]] * len(fed)
            inputs = DecodeInputs.for_sequences(fed, tables, list(lengths), BLOCK_SIZE, width, device=device)
            logits = model.decode(inputs, kv).float()
            right = torch.tensor([*ids, tokenizer.end], device=device)[start + 1 :][: len(fed), None]
            lead = logits.gather(1, right)[:, 0] - logits.scatter(1, right, -torch.inf).amax(1)
            smallest = min([smallest, *lead[max(0, unambiguous(text) - 1 - start) :].tolist()])
    return smallest
