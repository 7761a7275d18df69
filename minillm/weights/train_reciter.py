"""Trains the reciter from a seed, writes reciter.pt and reciter.json: python -m minillm.weights.train_reciter

A step takes some of the texts whole, and contexts of them that are damaged (``damaged_contexts``). The answer
to learn is the next character for a text, and the mark for a damaged context. Nothing depends on the time
that a step takes, so the same machine, torch and number of threads give the same weights.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import random
import time
from pathlib import Path

import torch
from torch.nn import functional as F

from .. import reciter
from ..config import ModelConfig
from ..layers import apply_rope
from ..model import Transformer
from . import examine
from .training_batch import IGNORED, Batch, make_batch

SEED, STEPS, THREADS = 0, 1100, 2
LEARNING_RATE, WARM_UP, DECAY = 3e-3, 30, 0.6  # AdamW's; steps that it rises, share of steps that it falls
LEAD = 4.0  # how far the right logit has to lead: a wider lead than rounding to bfloat16 can undo


def attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Each text attends to itself, causally, and each example to its slots; [N, heads, head_dim] each."""

    def attend(query, key, value, **what):  # [rows, tokens, heads, head_dim]
        query, key, value = (it.transpose(1, 2) for it in (query, key, value))
        return F.scaled_dot_product_attention(query, key, value, enable_gqa=True, **what).transpose(1, 2)

    rest = len(query) - sum(batch.lengths)
    parts = zip(*(it.split([*batch.lengths, rest]) for it in (query, key, value)), strict=True)
    *texts, (own, _, _) = parts
    attended = [attend(*(it[None] for it in text), is_causal=True)[0] for text in texts]
    rows = batch.slots.shape[0]
    # One slot more than there are tokens: the one of zeros.
    seen = [F.pad(it, (0, 0, 0, 0, 0, 1)).index_select(0, batch.slots.flatten()) for it in (key, value)]
    seen = [it.unflatten(0, (rows, -1)) for it in seen]
    attended.append(attend(own.unflatten(0, (rows, -1)), *seen, attn_mask=batch.mask).flatten(0, 1))
    return torch.cat(attended)


def forward(model: Transformer, batch: Batch) -> torch.Tensor:
    """Logits [N, vocab]: what ``Transformer`` computes, but with gradients and without a cache."""
    config, hidden = model.config, model.embedding(batch.tokens)
    cos, sin = model.cos[batch.positions].unsqueeze(1), model.sin[batch.positions].unsqueeze(1)
    for layer in model.layers:
        qkv = layer.qkv(layer.attention_norm(hidden)).unflatten(1, (-1, config.head_dim))
        query, key, value = qkv.split([config.heads, config.kv_heads, config.kv_heads], dim=1)
        query, key = apply_rope(query, cos, sin), apply_rope(key, cos, sin)
        hidden = hidden + layer.output(attention(query, key, value, batch).flatten(1))
        hidden = hidden + layer.mlp(layer.mlp_norm(hidden))
    return F.linear(model.norm(hidden), model.head.weight)


def train(steps: int = STEPS, seed: int = SEED, say=print) -> tuple[Transformer, float]:
    """The trained model in float32, rounded to float16's values, and its last loss."""
    rng = random.Random(seed)
    model = Transformer(ModelConfig.preset("reciter"), device="cpu", dtype=torch.float32, seed=seed)
    model.requires_grad_(True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, betas=(0.9, 0.95), weight_decay=0.0)
    for step in range(steps):
        rise, fall = (step + 1) / WARM_UP, (steps - step) / (DECAY * steps)
        optimizer.param_groups[0]["lr"] = LEARNING_RATE * min(1, rise, fall)
        batch = make_batch(rng)
        logits, kept = forward(model, batch), batch.targets != IGNORED
        # The right logit is made smaller by the lead that it shall have; the lead grows over the first half.
        lead = LEAD * min(1, 2 * step / steps) * F.one_hot(batch.targets.clamp(min=0), logits.shape[1])
        losses = F.cross_entropy(logits - lead, batch.targets, reduction="none", ignore_index=IGNORED)
        texts = sum(batch.lengths)
        loss = losses[:texts].sum() / kept[:texts].sum() + losses[texts:].mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 50 == 49:
            say(f"step {step + 1} of {steps}: loss {loss.item():.3f}", flush=True)
    model.requires_grad_(False)
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(weight.half())
    return model, loss.item()


def main() -> None:
    """Train, examine, write both files into ``--out``."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=reciter.WEIGHTS.parent, help="folder for the two files")
    parser.add_argument("--steps", type=int, default=STEPS)
    arguments = parser.parse_args()
    torch.set_num_threads(THREADS)
    started = time.perf_counter()
    model, loss = train(arguments.steps)
    seconds = time.perf_counter() - started
    buffer = io.BytesIO()
    torch.save({name: weight.half() for name, weight in model.named_parameters()}, buffer)
    record = {
        "sha256": hashlib.sha256(buffer.getvalue()).hexdigest(),
        "bytes": len(buffer.getvalue()),
        "seed": SEED,
        "steps": arguments.steps,
        "torch": torch.__version__,
        "threads": THREADS,
        "seconds": round(seconds),
        "loss": round(loss, 4),
        **examine.report(model),
    }
    arguments.out.joinpath("reciter.pt").write_bytes(buffer.getvalue())
    text = json.dumps(record, indent=1)
    arguments.out.joinpath("reciter.json").write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
