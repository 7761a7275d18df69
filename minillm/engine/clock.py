"""Where an engine's time went: busy at all, and how much of that in prefill."""

from __future__ import annotations

import time
from contextlib import contextmanager

import torch

from .. import graphs


class Clock:
    """Seconds of work, and of prefill in it.

    On a GPU a prefill is timed by events, since the host does not wait for it.
    """

    def __init__(self):
        self._busy_since: float | None = None
        self._busy, self._prefill = 0.0, 0.0
        self._events: list[tuple] = []

    def start(self) -> None:
        """There is work from now on, if there was none before."""
        if self._busy_since is None:
            self._busy_since = time.perf_counter()

    def stop(self) -> None:
        """All work is done, on the device too."""
        if self._busy_since is not None:
            self._busy += time.perf_counter() - self._busy_since
            self._busy_since = None

    @property
    def busy_seconds(self) -> float:
        """Seconds with work to do."""
        return self._busy + (time.perf_counter() - self._busy_since if self._busy_since is not None else 0.0)

    @contextmanager
    def prefill(self):
        """What is launched inside is prefill."""
        if graphs.backend != "cuda":
            start = time.perf_counter()
            yield
            self._prefill += time.perf_counter() - start
            return
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        yield
        end.record()
        self._events.append((start, end))

    @property
    def prefill_seconds(self) -> float:
        """Seconds of prefill; waits for the last one."""
        for start, end in self._events:
            end.synchronize()
            self._prefill += start.elapsed_time(end) / 1e3
        self._events.clear()
        return self._prefill
