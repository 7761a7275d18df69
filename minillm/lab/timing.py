"""How long asynchronous work takes: on the CPU that submits it, on the GPU, and until its result is there."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass

import torch

from .queue_ahead import spans_without_gaps
from .wording import short

profiler_used = False  # `profile` sets it


def on_gpu() -> bool:
    """Whether timings here are a GPU's: a GPU is present and the emulator was not asked for."""
    from .. import graphs

    return graphs.backend == "cuda"


@dataclass(frozen=True)
class Stat:
    """Median and interquartile range of ``n`` samples, in microseconds."""

    median: float
    iqr: float
    n: int

    @classmethod
    def of(cls, samples: Iterable[float]) -> Stat:
        """The statistics of ``samples``; ValueError when there are none."""
        values = sorted(float(sample) for sample in samples)
        if not values:
            raise ValueError("no samples; expected at least one")
        if len(values) == 1:
            return cls(values[0], 0.0, 1)
        low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
        return cls(middle, high - low, len(values))

    def __str__(self) -> str:
        return f"{short(self.median)} µs (IQR {short(self.iqr)})"


@dataclass(frozen=True)
class Timing:
    """What `measure` found; every field in microseconds. ``device`` is the GPU's name, or "cpu".

    ``after_profiler``: `profile` was used in this process before, which makes launches slower ever after.
    """

    submit_us: Stat
    gpu_us: Stat | None
    wall_us: Stat
    warmup: int
    device: str
    after_profiler: bool = False

    def __str__(self) -> str:
        gpu = f"GPU {self.gpu_us}" if self.gpu_us else "GPU not timed"
        caution = " · after a profiler: launches are slower in this process" if self.after_profiler else ""
        return (
            f"submit {self.submit_us} · {gpu} · wall {self.wall_us}\n"
            f"median of {self.wall_us.n} after {self.warmup} warm-up calls · {self.device}{caution}"
        )

    def speedup_over(self, other: Timing) -> float:
        """How many times faster than ``other`` this is, by the median wall time.

        Raises ValueError when either was timed on a CPU or the devices differ: a CPU's time says
        nothing about a GPU, so this course never shows it as a speed-up.
        """
        if "cpu" in (self.device, other.device):
            raise ValueError(
                "a CPU timing is not a speed-up; expected two timings of one GPU: run this on a GPU"
            )
        if self.device != other.device:
            raise ValueError(
                f"timed on {self.device} and on {other.device}; expected one device: time both on it"
            )
        return other.wall_us.median / self.wall_us.median

    def to_json(self) -> dict:
        """A dict of numbers and strings, as a record holds it."""
        return asdict(self)


def measure(fn: Callable, *, warmup: int = 3, repeats: int = 20, queue_ahead: bool = False) -> Timing:
    """Time ``fn()``, which puts work on the current CUDA stream (or runs it on the CPU).

    Each repeat: wait for the device, record an event, call ``fn``, record a second event, wait for it.

    - ``submit_us``: the CPU's time in ``fn``, until it returned;
    - ``gpu_us``: the GPU's time between the two events. It holds the GPU's waits for a slow CPU, so for
      launch-bound work it is about as long as ``submit_us``. None without a GPU;
    - ``wall_us``: from the call until the second event has happened.

    ``queue_ahead=True`` takes ``gpu_us`` from one more call a repeat, made while the GPU is kept busy with
    a wait that outlasts the CPU's submitting: then no launch gaps are in it. CUDA queues about 1,000
    launches and then makes the CPU wait, so this is for shorter sequences than that, and for ``fn`` that
    does not wait for the device itself; else RuntimeError.
    """
    if not callable(fn):
        raise TypeError(f"measure got {type(fn).__name__}; expected a function to call: pass fn, not fn()")
    if repeats < 1 or warmup < 0:
        raise ValueError(f"repeats={repeats}, warmup={warmup}; expected at least 1 and at least 0")
    gpu = on_gpu()
    for _ in range(warmup):
        fn()
    samples = [_one_call(fn, gpu) for _ in range(repeats)]
    submit, spans, wall = zip(*samples, strict=True)
    if gpu and queue_ahead:
        spans = spans_without_gaps(fn, repeats, max(submit))
    device = torch.cuda.get_device_name() if gpu else "cpu"
    return Timing(
        Stat.of(submit), Stat.of(spans) if gpu else None, Stat.of(wall), warmup, device, profiler_used
    )


def submit_us(call, calls: int = 500, repeats: int = 9) -> float:
    """µs of CPU that one ``call`` takes to put work on the GPU when nothing waits.

    The median over ``repeats`` of the mean over ``calls``, which must fit into CUDA's launch queue (about
    1,000 launches) or run faster than they are launched.
    """
    per_call = []
    for _ in range(repeats + 1):  # the first repeat warms up and is dropped
        torch.cuda.synchronize()
        start = time.perf_counter_ns()
        for _ in range(calls):
            call()
        per_call.append((time.perf_counter_ns() - start) / 1e3 / calls)
    torch.cuda.synchronize()
    return statistics.median(per_call[1:])


def _one_call(fn: Callable, gpu: bool) -> tuple[float, float, float]:
    """Submit, GPU and wall microseconds of one call."""
    if not gpu:
        begin = time.perf_counter_ns()
        fn()
        wall = (time.perf_counter_ns() - begin) / 1e3
        return wall, 0.0, wall
    first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    first.record()
    begin = time.perf_counter_ns()
    fn()
    submitted = time.perf_counter_ns()
    last.record()
    last.synchronize()
    end = time.perf_counter_ns()
    return (submitted - begin) / 1e3, first.elapsed_time(last) * 1e3, (end - begin) / 1e3
