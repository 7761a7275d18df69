"""A small serving engine, as people use it: prompts in, texts out, and numbers about how it went."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ..kv_cache import PagedKVCache
from ..model import Transformer
from .core import EngineCore, Produced
from .device_batch import DeviceBatch
from .progress import Progress
from .record import Record
from .request import Request, checked_request, refused_request
from .sampling import Sampling, check_whole
from .scheduler import Scheduler
from .stats import Stats, stats_of


class Engine:
    """Serves requests with one model: `generate` for a list of prompts, or `add` and `step` by hand.

    At most ``max_batch`` requests run at a time, of at most ``max_context`` tokens each (the model's maximum
    when left out); the others wait. Their KV lies in ``num_blocks`` blocks of ``block_size`` tokens, one of
    which is the null block; left out, there are enough for ``max_batch`` full contexts. With fewer, requests
    are preempted and computed again when blocks run out. ``buckets`` and ``widths`` are those of
    `BucketedDecoder`. ``use_graphs=False`` decodes eagerly; ``sampling=False`` captures no graphs for
    requests with a temperature, which then run eagerly. ``prefill_budget``: prompt tokens a step.
    ``ahead``: decode steps that are launched before the first one's tokens are looked at. With a
    ``tokenizer`` a prompt can be a string, and its end is the stop token of requests that name none.

    A capture that fails leaves an engine that decodes eagerly: a warning and ``mode`` say why.
    """

    def __init__(
        self,
        model: Transformer,
        tokenizer=None,
        *,
        max_batch: int = 8,
        max_context: int | None = None,
        num_blocks: int | None = None,
        block_size: int = 16,
        buckets: Iterable[int] | None = None,
        widths: Iterable[int] | None = None,
        use_graphs: bool = True,
        sampling: bool = True,
        prefill_budget: int = 2048,
        ahead: int = 1,
        seed: int = 0,
    ):
        check_whole("max_context", max_context, 1, model.config.max_context)
        check_whole("max_batch", max_batch, 1)
        check_whole("block_size", block_size, 1)
        check_whole("num_blocks", num_blocks, 2)
        check_whole("prefill_budget", prefill_budget, 1)
        check_whole("ahead", ahead, 0)
        max_context = max_context or model.config.max_context
        num_blocks = num_blocks or 1 + max_batch * -(-max_context // block_size)
        weight = model.embedding.weight
        self.model, self.tokenizer, self.max_context = model, tokenizer, max_context
        self.kv = PagedKVCache(model.config, num_blocks, block_size, weight.device, weight.dtype)
        self.scheduler = Scheduler(num_blocks, block_size, max_batch, prefill_budget)
        self.batch = DeviceBatch(model, self.kv, max_batch, max_context, ahead, seed, buckets, widths)
        self._ids = itertools.count()
        self.core = EngineCore(self.scheduler, self.batch, ahead)
        self.batch.capture(greedy=use_graphs, sampling=use_graphs and sampling)

    @property
    def mode(self) -> str:
        """How it decodes: by graphs, or eagerly, and why."""
        return self.batch.mode

    @property
    def idle(self) -> bool:
        """True when every request has ended, and `step` has returned all their tokens."""
        return not self.core.requests and not self.core.held

    def add(self, prompt: str | Sequence[int], sampling: Sampling | None = None, **choices) -> Request:
        """Queue a request and return it; its ``tokens`` grow with every `step`.

        ``choices`` are those of `Sampling`: max_tokens, temperature, top_k, stop_token. Raises ValueError
        or TypeError, and the engine is as before, for a prompt that is empty, too long, or not in the
        vocabulary, for values that `Sampling` refuses, and for more tokens than the cache can ever hold.
        """
        sampling = replace(sampling or Sampling(), **choices)
        if isinstance(prompt, str):
            if self.tokenizer is None:
                raise TypeError("the prompt is a string, and the engine has no tokenizer: pass token ids")
            prompt = self.tokenizer.encode(prompt)
        if sampling.stop_token is None and self.tokenizer is not None:
            sampling = replace(sampling, stop_token=self.tokenizer.end)
        request = checked_request(
            next(self._ids), prompt, sampling, self.model.config, self.max_context, self.kv
        )
        request.tokenizer = self.tokenizer
        self.core.submit(request)
        return request

    def step(self) -> Produced:
        """One turn: the new (request, token) pairs. Those of a turn that was broken off do not come again."""
        return self.core.step()

    def cancel(self, request: Request) -> None:
        """End a request early, unless it is done. Its tokens are kept; the next `step` returns the newest."""
        self.core.cancel(request)

    def generate(self, prompts: str | Sequence, sampling: Sampling | None = None, **choices) -> list[Request]:
        """A finished request for every prompt, in their order; all of them run together.

        ``prompts``: one string, or a list of strings or of lists of token ids. ``choices`` are those of
        `Sampling`, and hold for all. A prompt that `add` refuses gives a request with ``error`` set, and a
        warning; the others are not affected. If it is interrupted, its requests are cancelled, and the
        engine can go on. RuntimeError when weights or KV tensors were replaced since the capture.
        """
        replace(sampling or Sampling(), **choices)  # what is wrong for all of them is refused at once
        self.check_addresses()
        requests, others = [], set(self.core.requests.values())
        try:
            for prompt in [prompts] if isinstance(prompts, str) else prompts:
                try:
                    requests.append(self.add(prompt, sampling, **choices))
                except (TypeError, ValueError) as error:
                    warnings.warn(f"prompt {len(requests)} was refused: {error}", stacklevel=2)
                    requests.append(refused_request(error))
            self._run(requests)
        except BaseException:  # Ctrl-C too, also before a request that is queued is in `requests`
            for request in set(self.core.requests.values()) - others:
                self.cancel(request)
            self.core.held.clear()  # those that came with the cancellations
            raise
        return requests

    def _run(self, requests: list[Request]) -> None:
        most, count = sum(r.limit - len(r.prompt) for r in requests), 0
        with Progress("generating tokens", most) as bar:
            while not all(request.done for request in requests):
                count += len(self.step())
                bar.done(count)

    def check_addresses(self) -> None:
        """RuntimeError naming weights or KV tensors that were replaced since the capture."""
        for decoder in self.batch.decoders:
            decoder.check_addresses()

    def stats(self) -> Stats:
        """What was done since the engine was made or `reset_stats` called; print it."""
        return stats_of(self)

    def reset_stats(self) -> None:
        """Count from zero."""
        self.core.record = Record()
        self.scheduler.preemptions = 0
        self.batch.reset_tally()

    def __repr__(self) -> str:
        name, rows = self.model.config.name, self.scheduler.max_batch
        return f"<engine of {name} on {self.kv.device.type}, {rows} rows, {self.mode}>"
