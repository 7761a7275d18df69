"""What an engine did, in numbers that serving people use, and as a table to read."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

import torch

from .. import graphs
from .tally import Tally


@dataclass(frozen=True)
class Latency:
    """Milliseconds: the median, and what 99 of 100 stayed below. None where nothing was measured."""

    p50: float | None
    p99: float | None

    @staticmethod
    def of(seconds: list[float]) -> Latency:
        """Of durations in seconds; the 99th percentile is the nearest rank."""
        if not seconds:
            return Latency(None, None)
        ranked = sorted(seconds)
        return Latency(statistics.median(ranked) * 1e3, ranked[-(-99 * len(ranked) // 100) - 1] * 1e3)

    def __str__(self) -> str:
        return (
            "-" if self.p50 is None else f"{self.p50:,.2f} ms (median), {self.p99:,.2f} ms (99th percentile)"
        )


@dataclass(frozen=True)
class Stats:
    """Since the engine was made, or since ``reset_stats()``. Times are the host's, as a client sees them.

    ``time_to_first_token``: from arrival to the first token. ``time_per_output_token``: of the tokens after
    it. ``decode_tokens_per_second`` leaves out prefill, its time and its tokens; ``tokens_per_second`` is
    end to end. ``captured``: decode graphs, ``capture_seconds``, ``pool_bytes`` and ``device_bytes`` as in
    `BucketedDecoder`.
    """

    where: str
    mode: str
    requests: int
    tokens: int
    seconds: float
    prefill_seconds: float
    decode_tokens: int
    decode_steps: int
    time_to_first_token: Latency
    time_per_output_token: Latency
    preemptions: int
    tally: Tally
    captured: int
    capture_seconds: float
    pool_bytes: int
    device_bytes: int | None

    @property
    def tokens_per_second(self) -> float | None:
        """All tokens over all the time that there was work; None before anything was done."""
        return self.tokens / self.seconds if self.seconds and self.tokens else None

    @property
    def decode_tokens_per_second(self) -> float | None:
        """Tokens of decode steps over the time that was not prefill; None before the first."""
        decode_seconds = self.seconds - self.prefill_seconds
        return self.decode_tokens / decode_seconds if self.decode_tokens and decode_seconds > 0 else None

    def __str__(self) -> str:
        def rate(value):
            return "-" if value is None else f"{value:,.0f} tokens/s"

        lines = [
            f"on                      {self.where}",
            f"decode                  {self.mode}",
            f"finished                {self.requests:,} requests, {self.tokens:,} tokens, "
            f"{self.preemptions:,} preemptions",
            f"end to end              {rate(self.tokens_per_second)}",
            f"decode only             {rate(self.decode_tokens_per_second)}, {self.decode_steps:,} steps",
            f"time to first token     {self.time_to_first_token}",
            f"time per output token   {self.time_per_output_token}",
        ]
        if self.captured:
            beside = (
                "" if self.device_bytes is None else f", {self.device_bytes / 2**20:,.0f} MiB of the device"
            )
            lines.append(
                f"capture                 {self.captured} graphs in {self.capture_seconds:.1f} s, pool of "
                f"{self.pool_bytes / 2**20:,.0f} MiB{beside}"
            )
        if self.tally.hits:
            lines.append("graph (rows × blocks)      steps   padded rows")
        lines += [
            f"{row['rows']:>10} × {row['blocks']:<8} {row['hits']:>10,} {row['padded_rows']:>9,} "
            f"({row['padded_share']:.0%})"
            for row in self.tally.table()
        ]
        lines += [f"eager: {reason:<15} {steps:>8,}" for reason, steps in self.tally.fallbacks.items()]
        return "\n".join(lines)


def stats_of(engine) -> Stats:
    """The stats of an `Engine`."""
    record, decoders = engine.core.record, engine.batch.decoders
    tally = Tally()
    for decoder in decoders:
        tally.hits.update(decoder.tally.hits)
        tally.wanted.update(decoder.tally.wanted)
        tally.fallbacks.update(decoder.tally.fallbacks)
    lost = [decoder.device_bytes for decoder in decoders if decoder.device_bytes is not None]
    return Stats(
        where=_where(engine.kv.device),
        mode=engine.mode,
        requests=record.requests,
        tokens=record.tokens,
        seconds=record.clock.busy_seconds,
        prefill_seconds=record.clock.prefill_seconds,
        decode_tokens=record.decode_tokens,
        decode_steps=record.decode_steps,
        time_to_first_token=Latency.of(record.first),
        time_per_output_token=Latency.of(record.between),
        preemptions=engine.scheduler.preemptions,
        tally=tally,
        captured=sum(decoder.captured for decoder in decoders),
        capture_seconds=sum(decoder.capture_seconds for decoder in decoders),
        pool_bytes=max(decoder.pool_bytes for decoder in decoders),
        device_bytes=sum(lost) if lost else None,
    )


def _where(device: torch.device) -> str:
    if device.type == "cuda" and graphs.backend == "cuda":
        return torch.cuda.get_device_name(device)
    return "a CPU, graphs emulated: its times say nothing about a GPU"
