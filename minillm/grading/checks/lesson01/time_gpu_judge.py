"""What is known about a timing of the toy device: whether it is right, else which mistake explains it."""

from dataclasses import dataclass
from math import isclose
from statistics import mean, median, median_high, median_low

from minillm.lab.toy_device import ToyDevice, ToyKernel, toy_device


@dataclass
class Case:
    """One function on one toy device, and what is asked of the answer."""

    toy: ToyDevice
    fn: ToyKernel
    warmup: int
    repeats: int

    def device_us(self, last: int) -> list[float]:
        """The device's own time of each of the `last` calls, from first start to last end."""
        spans, each = self.toy.executed[-last * self.fn.launches :], self.fn.launches
        return [spans[i + each - 1][1] - spans[i][0] for i in range(0, len(spans), each)]

    @property
    def read_us(self) -> list[float]:
        """What the answer was told by elapsed_time, in the order in which it asked."""
        return [1000 * each for each in self.toy.log.elapsed_ms]

    @property
    def slack_us(self) -> float:
        """What right answers may add: a device that was idle waits for the launch after the first event."""
        return self.fn.launch_us + 4 * self.toy.call_us


def make_case(rng, warmup=3, repeats=20, launches=1) -> Case:
    """A launch costs far less than the kernel and than the wait of the host, so that each mistake shows."""
    toy = toy_device(seed=rng.randrange(10**6), sync_us=rng.uniform(35, 60))
    fn = toy.kernel(
        kernel_us=rng.uniform(60, 120),
        launch_us=rng.uniform(4, 8),
        slow_calls=warmup,
        jitter=0.2,
        outlier_factor=30,
        launches=launches,
    )
    return Case(toy, fn, warmup, repeats)


def judge(case: Case, value: float) -> str | None:
    """The mistake that explains `value`, or None if it is right."""
    calls, read, clock = case.fn.calls, case.read_us, bool(case.toy.log.count("clock"))
    if calls == 0:
        return "not-called"
    if not read and not clock:
        return "other-device"
    if value < 0 and read and max(read) <= 0:
        return "events-swapped"
    statistic = known_statistic(case, value)
    if statistic is None and any(known_statistic(case, value * unit) for unit in (1e3, 1e6, 1e-3)):
        return "wrong-unit"
    if calls == 1 or (calls == case.warmup + 1 and case.repeats > 1):
        return "one-sample"
    middle = median(case.device_us(case.repeats))
    if value < 0.5 * middle and clock:
        return "timed-the-submit"
    if calls == case.repeats:
        return "first-call-in-mean" if value > 3 * middle else "no-warm-up"
    if value < 0.5 * middle:
        return "events-beside-the-work"
    if len(read) > 1 and len(set(read)) == 1:
        return "reused-events"
    if calls != case.warmup + case.repeats:
        return "ignored-arguments"
    if statistic is None and value > 3 * middle and (len(read) > case.repeats or not read):
        return "first-call-in-mean" if read and _near(value, mean(read)) else "no-warm-up"
    return {"median": None, None: "wrong-value"}.get(statistic, statistic)


def known_statistic(case: Case, value: float) -> str | None:
    """ "median" if `value` is right; the mistake, if it is a number that one takes for it; else None."""
    if name := _beside_the_median(case, value):
        return name
    times, sync_us = case.device_us(min(case.fn.calls, case.repeats)), case.toy.sync_us
    clock = bool(case.toy.log.count("clock"))
    low, high = median_low(times), median_high(times)
    for name, least, most in (
        ("median", low, high),
        ("wall-time" if clock else "end-event-after-wait", low + sync_us, high + sync_us),
        ("mean-for-median", mean(times), mean(times) + clock * sync_us),
    ):
        if 0.99 * least <= value <= 1.01 * (most + case.slack_us):
            return name
    return None


def _beside_the_median(case: Case, value: float) -> str | None:
    """The mistake, if `value` is a sample that was read, and so looks right, but lies beside their median."""
    samples, times = case.read_us[-case.repeats :], case.device_us(case.repeats)
    most = case.slack_us + case.toy.sync_us
    if len(samples) < 3 or not all(0 <= us - own <= most for us, own in zip(samples, times, strict=False)):
        return None  # whatever was read, it was not one time for each call, in order
    if 0.9999 * median_low(samples) <= value <= 1.0001 * median_high(samples):
        return None
    half = len(samples) // 2
    middle = samples[half], samples[-half - 1]
    for name, found in (
        ("no-warm-up", [median(case.read_us)]),
        ("minimum-for-median", [min(samples)]),
        ("one-sample", [samples[0], samples[-1]]),
        ("unsorted", [*middle, mean(middle)]),
    ):
        if any(_near(value, each) for each in found):
            return name
    return None


def _near(value: float, other: float) -> bool:
    return isclose(value, other, rel_tol=1e-5)
