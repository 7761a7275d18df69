"""A small model whose texts vary, and what its texts must be: an oracle that knows no cache and no batch."""

import contextlib
import dataclasses
import sys
from pathlib import Path

import torch

from minillm.config import ModelConfig
from minillm.engine import Engine
from minillm.graphs import device as DEVICE
from minillm.graphs import heap
from minillm.inputs import DecodeInputs
from minillm.kv_cache import PagedKVCache
from minillm.model import Transformer

sys.path.insert(0, str(Path(__file__).parents[1] / "model"))
from test_model import dense_forward, random_norms  # noqa: E402

torch.set_num_threads(1)
# An untied head: with a tied one, random weights repeat the last token for ever, whatever the cache holds.
CONFIG = dataclasses.replace(
    ModelConfig.preset("reciter"),
    layers=1,
    hidden=32,
    heads=2,
    kv_heads=1,
    head_dim=16,
    ffn=48,
    vocab=50,
    max_context=64,
    tied_head=False,
)
NEAR = 1e-3  # logits of a random model: rounding stays far below, another context far above


def small_model(seed=0, **change):
    """float32, norms that are no ones, and attention that counts: the same weights on every backend."""
    config, where = dataclasses.replace(CONFIG, **change), "cpu" if DEVICE == "cuda" else DEVICE
    model = random_norms(Transformer(config, device=where, dtype=torch.float32, seed=seed), seed)
    for layer in model.layers:
        layer.output.weight.mul_(4)
    return model.to(DEVICE)


def small_cache(num_blocks=12, block_size=4, fill=None, config=CONFIG):
    """An empty cache, or one where every slot holds ``fill``."""
    kv = PagedKVCache(config, num_blocks, block_size, device=DEVICE, dtype=torch.float32)
    for tensor in kv.tensors().values() if fill is not None else ():
        tensor.fill_(fill)
    return kv


def small_engine(model, tokenizer=None, **change):
    """Three rows, blocks of 4, one captured size of each kind. AssertionError where it would never end."""
    engine = Engine(
        model, tokenizer, **{"max_batch": 3, "block_size": 4, "buckets": [3], "widths": [16], **change}
    )
    silent = [0]

    def step():
        produced = type(engine.core).step(engine.core)
        silent[0] = 0 if produced or engine.idle else silent[0] + 1
        assert silent[0] < 100, f"100 turns without a token: {engine.core.requests}"
        return produced

    engine.core.step = step
    return engine


def prompts_of(*lengths, seed=0, vocab=50):
    """Random prompts of those lengths."""
    generator = torch.Generator().manual_seed(seed)
    return [torch.randint(vocab, (length,), generator=generator).tolist() for length in lengths]


def is_greedy(model, prompt, tokens):
    """Whether each token is the most likely one after those before it, in a float64 forward of it all."""
    if not tokens:
        return True
    logits = dense_forward(model, prompt + tokens[:-1])[len(prompt) - 1 :]
    return bool((logits.gather(1, torch.tensor(tokens)[:, None])[:, 0] > logits.amax(1) - NEAR).all())


def alone(model, prompt, count):
    """The next ``count`` greedy tokens of one prompt, by prefill and decode steps of one row, eagerly."""
    kv = PagedKVCache(model.config, 20, 4, device=DEVICE, dtype=torch.float32)
    table = list(range(1, 17))
    tokens = [model.prefill(prompt, kv, table).argmax().item()]
    while len(tokens) < count:
        inputs = DecodeInputs.for_sequences(
            tokens[-1:], [table], [len(prompt) + len(tokens)], 4, 16, device=DEVICE
        )
        tokens.append(model.decode(inputs, kv)[0].argmax().item())
    return tokens


def sequences(tokens, lengths, block_size=4, max_blocks=None, seed=0, num_blocks=12, config=CONFIG):
    """DecodeInputs of sequences whose blocks lie anywhere but in block 0."""
    order = iter((torch.randperm(num_blocks - 1, generator=torch.Generator().manual_seed(seed)) + 1).tolist())
    tables = [[next(order) for _ in range(-(-length // block_size))] for length in lengths]
    widest = max_blocks or max(map(len, tables))
    return DecodeInputs.for_sequences(
        tokens, tables, lengths, block_size, widest, device=DEVICE, config=config, num_blocks=num_blocks
    )


def no_leak(engine):
    """An idle engine owns no block, has no row, and nothing is underway."""
    scheduler = engine.scheduler
    assert engine.idle and not engine.core.outbox
    assert not scheduler.waiting and not scheduler.prefilling and not scheduler.running
    assert not scheduler.moves
    assert scheduler.allocator.num_free == scheduler.num_blocks - 1
    return True


def finish(engine, turns=1000):
    """Turns until every request has ended."""
    for _ in range(turns):
        if engine.idle:
            return
        engine.step()
    raise AssertionError(f"not done after {turns} turns: {engine.scheduler.waiting}")


PLACES = {"as it is": contextlib.nullcontext, "heap": heap}
