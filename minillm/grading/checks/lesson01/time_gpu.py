"""Exercise 1.1: time work that the CPU does not wait for. Graded on the toy device, whose truth is known."""

from dataclasses import dataclass
from statistics import mean, median, median_high, median_low

from minillm.grading.compare import number
from minillm.grading.registry import Wrong, exercise
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
    toy, calls = case.toy, case.fn.calls
    if calls == 0:
        return "not-called"
    if not toy.log.count("record") and not toy.log.count("clock"):
        return "other-device"
    statistic = known_statistic(case, value)
    if statistic is None and any(known_statistic(case, value * unit) for unit in (1e3, 1e6, 1e-3)):
        return "wrong-unit"
    if calls == 1 or (calls == case.warmup + 1 and case.repeats > 1):
        return "one-sample"
    middle = median(case.device_us(case.repeats))
    if value < 0.5 * middle and toy.log.count("clock"):
        return "timed-the-submit"
    if calls == case.repeats:
        return "first-call-in-mean" if value > 3 * middle else "no-warm-up"
    if value < 0.5 * middle:
        return "events-beside-the-work"
    if calls != case.warmup + case.repeats:
        return "ignored-arguments"
    return {"median": None, None: "wrong-value"}.get(statistic, statistic)


def known_statistic(case: Case, value: float) -> str | None:
    """ "median" if `value` is right; the mistake, if it is a number that one takes for it; else None."""
    times, sync_us = case.device_us(min(case.fn.calls, case.repeats)), case.toy.sync_us
    clock = bool(case.toy.log.count("clock"))
    low, high = median_low(times), median_high(times)
    for name, least, most in (
        ("median", low, high),
        ("wall-time" if clock else "end-event-after-wait", low + sync_us, high + sync_us),
        ("mean-for-median", mean(times), mean(times) + clock * sync_us),
        ("minimum-for-median", min(times), min(times)),
    ):
        if 0.99 * least <= value <= 1.01 * (most + case.slack_us):
            return name
    return None


@exercise(
    "1.1",
    answer="time_gpu",
    arguments=("fn", "cuda"),
    title="Time asynchronous work",
    own=("minillm.lab.timing.measure",),
    hints=(
        "fn() returns when the work is submitted. Which clock was there when the work itself began and "
        "ended?",
        "An event is a mark in the GPU's own queue: start = cuda.Event(enable_timing=True), start.record(), "
        "fn(), end.record().",
        "end.synchronize() waits until the GPU has reached the mark; only then does start.elapsed_time(end) "
        "answer, in milliseconds.",
        "Call fn warmup times and throw that away. Then take repeats samples, each with its own two events, "
        "and return statistics.median of them, times 1000.",
    ),
    mistakes={
        "not-called": "fn was never called.",
        "other-device": "Your function asked neither the events of its argument `cuda` nor a clock; use "
        "cuda.Event and cuda.synchronize as they are given to you.",
        "no-synchronise": "The events were read before the GPU had reached them: wait with end.synchronize() "
        "or cuda.synchronize() first.",
        "timed-the-submit": "This is the time that the CPU needs to submit the work; the call returns long "
        "before the GPU is done.",
        "events-beside-the-work": "Nothing lies between your two events: record one before fn() and one "
        "after it.",
        "no-warm-up": "The first calls were timed too; they load the kernel's code and are slow. Call fn "
        "warmup times before you take samples.",
        "first-call-in-mean": "The mean has the first, slow calls in it. Warm up before you take samples, "
        "and take their median.",
        "one-sample": "You took a single sample; one disturbance and it is wrong. Take `repeats` of them and "
        "return their median.",
        "ignored-arguments": "fn must be called exactly warmup + repeats times.",
        "wall-time": "This is the wall time on the CPU's clock; it has the launch and the CPU's waking up "
        "after the wait in it. Let the GPU's own events take the time.",
        "end-event-after-wait": "The second event was recorded after the wait, so the CPU's waking up is in "
        "the time. Record it right after fn(), and wait after that.",
        "mean-for-median": "This is the mean; a call that something disturbed moves it far. Take the median "
        "of the single calls.",
        "minimum-for-median": "This is the fastest call; asked is the median, what a call usually takes.",
        "wrong-unit": "The unit is wrong: elapsed_time gives milliseconds; asked are microseconds.",
    },
)
def check_time_gpu(answer, rng):
    _check(answer, make_case(rng))
    _check(answer, make_case(rng, warmup=6, repeats=9), warmup=6, repeats=9)
    _check(answer, make_case(rng, launches=4))


def _check(answer, case: Case, **keywords) -> None:
    try:
        with case.toy.as_time(answer):
            value = number(answer(case.fn, case.toy, **keywords))
    except RuntimeError as error:
        if "must be completed" in str(error):
            raise Wrong("no-synchronise", f"The device said: {error}") from error
        raise
    if key := judge(case, value):
        raise Wrong(key, _seen(case, value))


def _seen(case: Case, value: float) -> str:
    if case.fn.calls == 0:
        return f"You return {value:.6g}."
    right = median(case.device_us(min(case.fn.calls, case.repeats)))
    return (
        f"On a toy device: one call takes {right:.1f} µs there (a launch costs the CPU "
        f"{case.fn.launch_us:.1f} µs, returning from a wait {case.toy.sync_us:.1f} µs); you return "
        f"{value:.6g} µs after {case.fn.calls} calls, with warmup={case.warmup} and repeats={case.repeats}."
    )
