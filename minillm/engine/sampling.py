"""Which token comes next: greedy, or drawn by temperature and top-k, on the device and inside the graph."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral, Real

import torch

MOST = 64  # the largest top_k: a captured topk has a fixed size


@dataclass(frozen=True)
class Sampling:
    """How a request's tokens are chosen, and when it ends.

    ``max_tokens``: how many tokens it may produce; None is as many as fit the model's maximum context.
    ``temperature``: 0 is greedy; else logits are divided by it. ``top_k``: only the k most likely tokens, 1
    to 64; None is no limit. ``stop_token``: the token that ends the text, itself not part of it.

    Raises TypeError or ValueError, saying what was expected.
    """

    max_tokens: int | None = None
    temperature: float = 0.0
    top_k: int | None = None
    stop_token: int | None = None

    def __post_init__(self):
        check_whole("max_tokens", self.max_tokens, 1)
        check_whole("top_k", self.top_k, 1, MOST)
        check_whole("stop_token", self.stop_token, 0)
        if not isinstance(self.temperature, Real) or isinstance(self.temperature, bool):
            raise TypeError(f"temperature is {self.temperature!r}; expected a number, 0 (greedy) or more")
        if not 0 <= self.temperature < 1e30:  # NaN is neither
            raise ValueError(f"temperature is {self.temperature}; expected 0 (greedy) or more, and finite")


def check_whole(name: str, value, least: int, most: int | None = None) -> None:
    """TypeError for what is neither None nor a whole number, ValueError for one outside the limits."""
    expected = f"{least} or more" if most is None else f"{least} to {most}"
    if value is None:
        return
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise TypeError(f"{name} is {value!r}; expected a whole number, {expected}, or None")
    if value < least or (most is not None and value > most):
        raise ValueError(f"{name} is {value}; expected {expected}, or None")


def greedy(logits: torch.Tensor) -> torch.Tensor:
    """The most likely token of each row: logits [B, vocab] to tokens [B] int64."""
    return logits.argmax(-1)


def sample(
    logits: torch.Tensor, temperature: torch.Tensor, top_k: torch.Tensor, generator: torch.Generator
) -> torch.Tensor:
    """A token for each row of ``logits`` [B, vocab], as its ``temperature`` and ``top_k`` [B] say: [B] int64.

    The Gumbel-max trick: with E drawn from an exponential distribution, the argmax of logit / temperature −
    log E is a draw from the softmax, without its sum and without a wait
    (https://en.wikipedia.org/wiki/Gumbel_distribution). All of it is computed for every row, whatever
    the row wants, since a graph has no branches: `torch.where` picks.
    """
    scaled = logits.float() / temperature.clamp_min(1e-6)[:, None]
    noise = torch.empty_like(scaled).exponential_(generator=generator)
    drawn = scaled - noise.clamp_min_(1e-30).log_()
    likeliest = logits.topk(min(MOST, logits.shape[1]), dim=-1).indices  # [B, 64]
    rank = torch.arange(likeliest.shape[1], device=logits.device)
    among = drawn.gather(1, likeliest).masked_fill(rank >= top_k[:, None], -math.inf)
    limited = likeliest.gather(1, among.argmax(-1, keepdim=True)).squeeze(1)
    chosen = torch.where(top_k > 0, limited, drawn.argmax(-1))
    return torch.where(temperature > 0, chosen, greedy(logits))
