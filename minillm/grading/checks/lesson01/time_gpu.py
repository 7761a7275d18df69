"""Exercise 1.1: time work that the CPU does not wait for. Graded on the toy device, whose truth is known."""

from statistics import median

from minillm.grading.checks.lesson01.time_gpu_judge import Case, judge, make_case
from minillm.grading.compare import number
from minillm.grading.registry import Wrong, exercise

# What a device says -> the mistake behind it.
COMPLAINTS = {
    "must be completed": "no-synchronise",
    "enable_timing=True": "event-without-time",
    "dummy base class": "other-device",  # torch.cuda.Event without a GPU
    "not compiled with CUDA": "other-device",
    "no NVIDIA driver": "other-device",
}


@exercise(
    "1.1",
    answer="time_gpu",
    arguments=("fn", "cuda"),
    keywords={"warmup": 3, "repeats": 20},
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
        "other-device": "The grader saw your function ask neither the events of its argument `cuda` nor a "
        "clock that it knows (those of module time). Use cuda.Event and cuda.synchronize of that argument.",
        "event-without-time": "An event only notes its time if it is made for that: "
        "cuda.Event(enable_timing=True).",
        "events-swapped": "The two events are swapped: write start.elapsed_time(end).",
        "reused-events": "All your samples are the same one: an event that is recorded again forgets its "
        "time. Make two events for each sample, or read them before they are recorded again.",
        "unsorted": "This is the middle of your samples in the order in which they were taken; the median is "
        "the middle of the sorted ones.",
        "no-synchronise": "The events were read before the GPU had reached them: wait with end.synchronize() "
        "or cuda.synchronize() first.",
        "timed-the-submit": "This is the time that the CPU needs to submit the work; the call returns long "
        "before the GPU is done.",
        "events-beside-the-work": "Nothing lies between your two events: record one before fn() and one "
        "after it.",
        "no-warm-up": "The first calls are among your samples; they load the kernel's code and are slow. "
        "Call fn warmup times before you take samples.",
        "first-call-in-mean": "The mean has the first, slow calls in it. Warm up before you take samples, "
        "and take their median.",
        "one-sample": "A single sample decides; one disturbance and it is wrong. Take `repeats` of them and "
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
    # More calls for the warm-up than samples: the median of all of them is that of the slow ones.
    _check(answer, make_case(rng, warmup=9, repeats=7), warmup=9, repeats=7)
    _check(answer, make_case(rng, launches=4))


def _check(answer, case: Case, **keywords) -> None:
    try:
        with case.toy.as_time(answer):
            value = number(answer(case.fn, case.toy, **keywords))
    except (RuntimeError, ValueError, AssertionError) as error:
        for words, key in COMPLAINTS.items():
            if words in str(error):
                raise Wrong(key, f"The device said: {error}") from error
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
