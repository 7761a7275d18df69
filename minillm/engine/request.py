"""A request: a prompt, how its tokens are chosen, and what has become of it so far."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from ..config import ModelConfig
from ..kv_cache import PagedKVCache
from ..validation import check_ids
from .sampling import Sampling


class Status(Enum):
    """Where a request stands. A preempted one is WAITING again."""

    WAITING = "waiting"
    PREFILLING = "prefilling"
    RUNNING = "running"
    FINISHED = "finished"


@dataclass(eq=False, slots=True)
class Request:
    """One sequence of the engine. ``tokens`` are what the host knows of its output, without the stop token.

    ``finish`` says why it ended: "stop" (its stop token came), "length" (``max_tokens`` were produced),
    "context" (the model's maximum was reached), "cancelled"; None while it goes on. ``error`` is what was
    wrong with a request that `Engine.generate` refused. Times are those of ``time.perf_counter``, in seconds.
    """

    id: int
    prompt: list[int]
    sampling: Sampling
    limit: int  # most tokens, prompt included; the last one is never fed in, so it needs no slot
    tokens: list[int] = field(default_factory=list)
    finish: str | None = None
    error: Exception | None = None
    tokenizer: object = None
    # the scheduler's
    status: Status = Status.WAITING
    blocks: list[int] = field(default_factory=list)
    prefilled: int = 0  # tokens whose KV is in the cache, while it is prefilled
    length: int = 0  # tokens of the sequence, those included that the device has chosen and not told yet
    room: int = 0  # slots in its blocks
    preemptions: int = 0
    # the clock's
    arrived: float = 0.0
    first_token: float | None = None
    ended: float | None = None
    # what follows from the above
    most_tokens: int = field(init=False)  # that it can produce
    most_slots: int = field(init=False)  # that it can need
    stop: int = field(init=False)  # its stop token, or -1
    when_full: str = field(init=False)  # its `finish` after most_tokens

    def __post_init__(self):
        self.most_tokens = self.limit - len(self.prompt)
        self.most_slots = self.limit - 1
        self.stop = -1 if self.sampling.stop_token is None else self.sampling.stop_token
        self.when_full = "length" if self.most_tokens == self.sampling.max_tokens else "context"

    @property
    def text(self) -> str | None:
        """Its output so far as text; None when the engine has no tokenizer."""
        return None if self.tokenizer is None else self.tokenizer.decode(self.tokens)

    @property
    def known(self) -> list[int]:
        """Prompt and output so far: what a prefill feeds in after a preemption."""
        return self.prompt + self.tokens

    @property
    def done(self) -> bool:
        """True when it has ended, or was refused."""
        return self.finish is not None or self.error is not None

    def __repr__(self) -> str:
        what = repr(self.text) if self.text else f"{len(self.tokens)} tokens"
        state = f"refused: {self.error}" if self.error else self.finish or self.status.value
        return f"<request {self.id}: prompt of {len(self.prompt)} tokens, {what}, {state}>"


def refused_request(error: Exception) -> Request:
    """What stands in the place of a request that was refused."""
    return Request(-1, [], Sampling(), limit=0, error=error)


def checked_request(
    number: int,
    prompt: list[int],
    sampling: Sampling,
    config: ModelConfig,
    max_context: int,
    kv: PagedKVCache,
) -> Request:
    """The request, or ValueError or TypeError that says what is wrong with it and what to do."""
    if not isinstance(prompt, Iterable):
        raise TypeError(f"the prompt is {prompt!r}; expected a list of token ids, or a string")
    prompt = list(prompt)
    if not prompt:
        raise ValueError("the prompt is empty; expected one token or more")
    if len(prompt) > max_context:
        raise ValueError(
            f"the prompt has {len(prompt)} tokens; expected at most {max_context}, the maximum "
            "context: shorten it"
        )
    check_ids("the prompt's token", prompt, config.vocab)
    if sampling.stop_token is not None:
        check_ids("stop_token", [sampling.stop_token], config.vocab)
    limit = min(len(prompt) + (sampling.max_tokens or max_context), max_context + 1)
    request = Request(number, [int(token) for token in prompt], sampling, limit)
    needed, there = -(-request.most_slots // kv.block_size), kv.num_blocks - 1
    if needed > there:
        raise ValueError(
            f"a prompt of {len(prompt)} tokens and up to {limit - len(prompt)} new ones need {needed} blocks "
            f"of {kv.block_size}, the whole cache has {there}: lower max_tokens, or make the cache larger "
            "(num_blocks)"
        )
    return request
