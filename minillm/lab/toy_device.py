"""An asynchronous device with its own clock: what a timing function must cope with, without a GPU.

It offers the names of ``torch.cuda`` that timing needs (Event, synchronize, current_stream) and behaves as
a GPU does: a launch returns before the kernel has run, the first calls of a kernel are slow, now and then
one takes far longer, an event's time can be read only once the device has reached it. Everything happens
on a virtual clock, so results depend on the seed alone and not on this machine.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import NamedTuple

from .toy_events import ToyEvent, ToyStream
from .toy_kernel import ToyKernel
from .virtual_time import VirtualTime

ASKING = {"clock", "query", "elapsed_time", "sleep"}  # what a loop does that waits by itself


class LogEntry(NamedTuple):
    """One thing the host did, and the virtual microsecond at which it had done it."""

    what: str  # launch, record, synchronize, event_synchronize, query, elapsed_time, clock or sleep
    at_us: float


class ToyDevice:
    """See the module. ``call_us`` is the host time of a small call, ``sync_us`` what returning from a wait
    costs the host (the reason why wall time is longer than GPU time); both in microseconds.

    ``log.entries`` tells what was done and in what order, ``log.count("launch")`` how often,
    ``log.elapsed_ms`` what ``elapsed_time`` answered; ``executed`` holds the true (start, end) of each kernel
    on the device, in virtual microseconds.

    Asking again and again (a clock, ``query``) with nothing in between costs more and more of that time, so
    that a loop which waits for a moment gets there after some hundred rounds, however far it is.
    """

    def __init__(self, seed: int = 0, call_us: float = 0.5, sync_us: float = 25.0):
        self.host_us = self.device_us = 0.0  # the host's clock; when the device will have finished its queue
        self.call_us, self.sync_us = call_us, sync_us
        self.random = random.Random(seed)
        self.log = Log()
        self.executed: list[tuple[float, float]] = []
        self._asking_since: float | None = None

    def Event(self, enable_timing: bool = False, **ignored) -> ToyEvent:
        """As ``torch.cuda.Event``: without ``enable_timing=True`` it has an order but no time."""
        return ToyEvent(self, enable_timing)

    def synchronize(self, device=None) -> None:
        """Make the host wait until the device has done all that was launched."""
        self._wait_for(self.device_us, "synchronize")

    def current_stream(self, device=None) -> ToyStream:
        return ToyStream(self)

    def launch(self, kernel_us: float, launch_us: float = 5.0) -> None:
        """Submit one kernel that runs for ``kernel_us``; the host is free again after ``launch_us``."""
        if not (kernel_us >= 0 and launch_us >= 0):
            raise ValueError(f"kernel_us={kernel_us}, launch_us={launch_us}: times must not be negative")
        self.spend(launch_us, "launch")
        start = max(self.host_us, self.device_us)
        self.device_us = start + kernel_us
        self.executed.append((start, self.device_us))

    def kernel(self, kernel_us: float, launch_us: float = 5.0, **behaviour) -> ToyKernel:
        """A function without arguments to be timed; ``behaviour`` is explained at ``ToyKernel``."""
        return ToyKernel(self, kernel_us, launch_us, **behaviour)

    def perf_counter(self) -> float:
        """The host's virtual clock in seconds. Reading it takes a little of that time."""
        self.spend(self.call_us / 10, "clock")
        return self.host_us * 1e-6

    def as_time(self, *functions) -> VirtualTime:
        """``with toy.as_time(fn):`` makes the clocks of module ``time`` show this device's virtual time.

        ``functions`` are those whose own names for a clock (``from time import perf_counter``) must change
        too. All is put back at the end; other threads keep the real time.
        """
        return VirtualTime(self, functions)

    def spend(self, us: float, what: str) -> None:
        """Let host time pass, and write down for what."""
        if what not in ASKING:
            self._asking_since = None
        elif self._asking_since is None:
            self._asking_since = self.host_us
        elif what != "sleep":
            us += (self.host_us - self._asking_since) / 20
        self.host_us += us
        self.log.entries.append(LogEntry(what, self.host_us))

    def _wait_for(self, device_us: float, what: str) -> None:
        self.host_us = max(self.host_us, device_us)
        self.spend(self.sync_us, what)


class Log:
    """What the host did, in order."""

    def __init__(self):
        self.entries: list[LogEntry] = []
        self.elapsed_ms: list[float] = []

    def count(self, what: str) -> int:
        return self.counts()[what]

    def counts(self) -> Counter:
        return Counter(entry.what for entry in self.entries)


def toy_device(seed: int = 0, call_us: float = 0.5, sync_us: float = 25.0) -> ToyDevice:
    """A new asynchronous toy device; the same seed gives the same times. See ``ToyDevice``."""
    return ToyDevice(seed, call_us, sync_us)
