"""The bandwidth floor: no decode step is faster than reading its bytes once.

Decoding one token multiplies every weight matrix by a few vectors, so the step's arithmetic is small beside
its memory traffic: at small batch, bytes / bandwidth is a floor under the step's time (the memory roof of
Williams, Waterman and Patterson, "Roofline", CACM 2009).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..config import ModelConfig


@dataclass(frozen=True)
class StepBytes:
    """Bytes that one decode step must read: ``weights`` once a step, ``kv`` for all sequences together."""

    weights: float
    kv: float

    @property
    def total(self) -> float:
        return self.weights + self.kv


def step_bytes(config: ModelConfig, batch: int, context: int, bytes_per_element: float = 2) -> StepBytes:
    """Bytes that a decode step of ``batch`` sequences with ``context`` tokens each must read.

    Weights: all of them, once, whatever the batch is. The embedding table is not among them, since a step
    reads ``batch`` rows of it and no more; those rows are left out, being less than a thousandth of the
    rest. The head is read whole, so it counts once also where it is tied to the embedding. KV: a key and a
    value for each token of each sequence in every layer, the token of this step included. What a step
    writes (one token's KV a sequence, logits, activations) is left out: a floor may be too low, never too
    high. ``bytes_per_element`` is 2 for bfloat16 and float16, for weights and KV alike.

    Raises ValueError if ``batch`` or ``context`` is not a whole number of at least 1, or
    ``bytes_per_element`` is not above 0.
    """
    for name, value in (("batch", batch), ("context", context)):
        if value != int(value) or value < 1:
            raise ValueError(f"{name} is {value}; it must be a whole number of at least 1")
    _positive("bytes_per_element", bytes_per_element, "2 for bfloat16 and float16, 4 for float32")
    kv_elements = 2 * config.layers * config.kv_heads * config.head_dim * context * batch
    return StepBytes(
        weights=config.weight_count(include_embedding=False) * bytes_per_element,
        kv=kv_elements * bytes_per_element,
    )


def bandwidth_floor_us(
    config: ModelConfig, batch: int, context: int, gb_per_s: float, bytes_per_element: float = 2
) -> float:
    """Microseconds that a decode step takes at least on memory of ``gb_per_s`` (1 GB/s = 1e9 bytes/s).

    Take a datasheet's bandwidth (``lab.device_named(...).bandwidth_gb_per_s``) for a floor that nothing can
    pass, or a measured one for what a kernel can hope for. Raises ValueError as ``step_bytes`` does, and for
    a bandwidth that is not above 0.
    """
    _positive("gb_per_s", gb_per_s, "the H200's datasheet says 4800")
    return step_bytes(config, batch, context, bytes_per_element).total / (gb_per_s * 1e3)


def _positive(name: str, value: float, example: str) -> None:
    if not (value > 0 and math.isfinite(value)):
        raise ValueError(f"{name} is {value}; it must be a number above 0 ({example})")
