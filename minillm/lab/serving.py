"""Serving one list of requests with an `Engine`, eagerly or with graphs."""

from __future__ import annotations

import random
from dataclasses import asdict

from ..engine import Engine
from ..model import Transformer

REQUESTS, PROMPT, OUTPUT, MAX_CONTEXT = 64, (16, 128), (256, 512), 1024  # the last three in tokens
# A finer ladder than the default: more graphs to capture, less padding at every step.
BUCKETS = (1, 2, 4, *range(8, REQUESTS + 1, 8))  # sequences
WIDTHS = (8, 12, 16, 20, 24, 28, 32, 40, 48, 64)  # blocks of 16 tokens


def requests_of(vocab: int, count: int = REQUESTS, seed: int = 0) -> list[tuple[list[int], int]]:
    """``count`` pairs of a random prompt and the number of tokens to produce, the same for every engine."""
    draw = random.Random(seed)
    return [
        ([draw.randrange(vocab) for _ in range(draw.randint(*PROMPT))], draw.randint(*OUTPUT))
        for _ in range(count)
    ]


def serving_engine(model: Transformer, max_batch: int, use_graphs: bool) -> Engine:
    """The engine of the benchmarks: all requests at once, prompts packed into one prefill, greedy."""
    return Engine(
        model,
        max_batch=max_batch,
        max_context=MAX_CONTEXT,
        buckets=[size for size in BUCKETS if size <= max_batch],
        widths=WIDTHS,
        use_graphs=use_graphs,
        sampling=False,
        prefill_budget=max_batch * PROMPT[1],
    )


def serve(engine: Engine, requests: list[tuple[list[int], int]]) -> dict:
    """Serve all of them, that arrive together, and say how it went: the engine's `Stats` as plain numbers."""
    engine.reset_stats()
    for prompt, tokens in requests:
        engine.add(prompt, max_tokens=tokens)
    while not engine.idle:
        engine.step()
    stats = engine.stats()
    return {
        "mode": stats.mode,
        "tokens": stats.tokens,
        "seconds": stats.seconds,
        "prefill_seconds": stats.prefill_seconds,
        "steps": stats.decode_steps,
        "tokens_per_second": stats.tokens_per_second,
        "decode_tokens_per_second": stats.decode_tokens_per_second,
        "first_token_ms": asdict(stats.time_to_first_token),
        "per_token_ms": asdict(stats.time_per_output_token),
        "buckets": stats.tally.table(),
        "fallbacks": dict(stats.tally.fallbacks),
        "captured": stats.captured,
        "capture_seconds": stats.capture_seconds,
        "pool_bytes": stats.pool_bytes,
        "device_bytes": stats.device_bytes,
    }
