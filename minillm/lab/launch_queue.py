"""A CPU that submits kernels and a GPU that executes them, simulated exactly.

Submitting is asynchronous: the CPU goes on to the next launch while the GPU works through its queue. Which
of the two sets the pace, and what a synchronisation costs, follows from two rules about when things start.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

Interval = tuple[float, float]


@dataclass(frozen=True)
class Schedule:
    """When what ran, in microseconds from the start; all lists are in order of launch.

    ``cpu[i]`` is the (start, end) of submitting kernel i, ``gpu[i]`` of executing it; ``waits`` holds the
    CPU's waits for the GPU (synchronisations, a full queue) that took any time. ``submit_us`` is when the
    CPU is done, ``total_us`` when both are.
    """

    cpu: list[Interval]
    gpu: list[Interval]
    waits: list[Interval]
    submit_us: float
    total_us: float

    @property
    def busy_us(self) -> float:
        """Time in which the GPU executes a kernel."""
        return sum(end - start for start, end in self.gpu)

    @property
    def idle_us(self) -> float:
        """Time in which the GPU executes nothing, the wait for the first kernel included."""
        return self.total_us - self.busy_us

    @property
    def idle_fraction(self) -> float:
        """Part of the total time in which the GPU is idle, 0.0 to 1.0 (0.0 for an empty schedule)."""
        return self.idle_us / self.total_us if self.total_us else 0.0


def launch_queue(
    launch_us: float | Iterable[float],
    kernel_us: float | Iterable[float],
    kernels: int | None = None,
    sync_every: int | None = None,
    queue_depth: int | None = None,
) -> Schedule:
    """Simulate the launch of ``kernels`` kernels on one stream.

    ``launch_us`` is what one launch costs the CPU, ``kernel_us`` how long a kernel runs on the GPU, in
    microseconds; each is one number for all kernels or a list with one number a kernel. ``kernels`` is
    needed when both are single numbers.

    The CPU starts a launch when it is done with the one before. Kernel i starts on the GPU when its launch
    has ended and kernel i - 1 has. With ``sync_every=k`` the CPU waits after each k-th launch until the GPU
    is done (``k=1``: after every kernel). With ``queue_depth=d`` it also waits before a launch while d
    kernels are submitted and not finished; on CUDA that is about 1,000, so a long queue blocks the CPU too.

    Integers give integers back: nothing is rounded. Raises ValueError for negative, infinite or NaN times,
    for lists of different lengths, and for counts below 1.
    """
    launches, durations = _per_kernel(launch_us, kernel_us, kernels)
    for name, value in (("sync_every", sync_every), ("queue_depth", queue_depth)):
        if value is not None and (value != int(value) or value < 1):
            raise ValueError(f"{name} is {value}; it must be a whole number of at least 1, or None for never")

    cpu, gpu, waits = [], [], []
    cpu_free = gpu_free = 0
    for i, (launch, duration) in enumerate(zip(launches, durations, strict=True)):
        if queue_depth and i >= queue_depth:
            cpu_free = _wait(cpu_free, gpu[i - queue_depth][1], waits)
        cpu.append((cpu_free, cpu_free + launch))
        cpu_free += launch
        start = max(cpu_free, gpu_free)
        gpu.append((start, start + duration))
        gpu_free = start + duration
        if sync_every and (i + 1) % sync_every == 0:
            cpu_free = _wait(cpu_free, gpu_free, waits)
    return Schedule(cpu, gpu, waits, submit_us=cpu_free, total_us=max(cpu_free, gpu_free))


def _wait(now: float, until: float, waits: list[Interval]) -> float:
    """The CPU's time after waiting for the GPU's time ``until``."""
    if until > now:
        waits.append((now, until))
    return max(now, until)


def _per_kernel(launch_us, kernel_us, kernels: int | None) -> tuple[list[float], list[float]]:
    columns = {"launch_us": _column("launch_us", launch_us), "kernel_us": _column("kernel_us", kernel_us)}
    counts = {name: len(column) for name, column in columns.items() if isinstance(column, list)}
    if kernels is not None:
        if kernels != int(kernels) or kernels < 1:
            raise ValueError(f"kernels is {kernels}; it must be a whole number of at least 1")
        counts["kernels"] = int(kernels)
    if not counts:
        raise ValueError("how many kernels? Pass kernels=..., or a list for launch_us or kernel_us")
    if len(set(counts.values())) > 1:
        told = ", ".join(f"{name} says {count}" for name, count in counts.items())
        raise ValueError(f"the number of kernels is not clear: {told}; pass lists of one length")
    n = next(iter(counts.values()))
    return tuple(column if isinstance(column, list) else [column] * n for column in columns.values())


def _column(name: str, value):
    """One number as it is, anything else (list, array, tensor) as a list of numbers; all of them checked."""
    value = value.tolist() if hasattr(value, "tolist") else value
    column = list(value) if isinstance(value, Iterable) else value
    for number in column if isinstance(column, list) else [column]:
        if not (math.isfinite(number) and number >= 0):
            raise ValueError(f"{name} has {number}; times are microseconds, finite and not negative")
    return column
