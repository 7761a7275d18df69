"""Letting the CPU get ahead, so that a span of GPU time holds no waits for it.

A wait is put on the stream first; while the GPU sits in it, the CPU submits everything that is to be
timed. CUDA's launch queue holds about 1,000 launches; when it is full a launch makes the CPU wait, and
nobody gets ahead.
"""

from __future__ import annotations

from collections.abc import Callable

import torch


def spans_without_gaps(fn: Callable, repeats: int, submit_us: float) -> list[float]:
    """``repeats`` GPU durations of ``fn()`` in µs, each with all of ``fn`` in the queue before it began.

    ``submit_us`` is about what ``fn`` takes the CPU. RuntimeError when the CPU cannot get ahead.
    """
    per_us, wait_us, spans = cycles_per_us(), 2 * submit_us + 200, []
    while len(spans) < repeats:
        first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        torch.cuda._sleep(int(wait_us * per_us))
        first.record()
        fn()
        last.record()
        ahead = not first.query()  # the GPU has not even begun: all of fn stood in the queue
        last.synchronize()
        if ahead:
            spans.append(first.elapsed_time(last) * 1e3)
        elif wait_us > 64 * submit_us + 6400:
            raise RuntimeError(
                "the CPU never got ahead of the GPU; expected fn to launch fewer than about 1,000 kernels "
                "and not to wait for the device: time a shorter sequence, or leave queue_ahead out"
            )
        else:
            wait_us *= 2
    return spans


def cycles_per_us() -> float:
    """The GPU's clock, measured: the clock that a driver reports is not always the one it runs at."""
    first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda._sleep(1_000_000)  # wakes the clocks up
    first.record()
    torch.cuda._sleep(1_000_000)
    last.record()
    last.synchronize()
    return 1_000_000 / (first.elapsed_time(last) * 1e3)
