"""Answers to 1.1."""

import time
from statistics import mean, median

from minillm import lab
from minillm.grading.corpus import right, wrong


def event_pair(cuda):
    return cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)


def sample_ms(fn, cuda):
    """One sample as it should be taken."""
    start, end = event_pair(cuda)
    start.record()
    fn()
    end.record()
    end.synchronize()
    return start.elapsed_time(end)


@right("1.1")
def waits_for_each_sample(fn, cuda, warmup=3, repeats=20):
    for _ in range(warmup):
        fn()
    cuda.synchronize()
    times = sorted(sample_ms(fn, cuda) * 1e3 for _ in range(repeats))
    middle = len(times) // 2
    return times[middle] if len(times) % 2 else (times[middle - 1] + times[middle]) / 2


@right("1.1")
def polls_and_takes_the_upper_median(fn, cuda, warmup=3, repeats=20):
    times = []
    for call in range(warmup + repeats):
        start, end = event_pair(cuda)
        start.record()
        fn()
        end.record()
        while not end.query():
            pass
        if call >= warmup:
            times.append(start.elapsed_time(end) * 1000)
    return sorted(times)[repeats // 2]


@wrong("1.1", "no-warm-up")
def no_warm_up(fn, cuda, warmup=3, repeats=20):
    return median(sample_ms(fn, cuda) * 1000 for _ in range(repeats))


@wrong("1.1", "first-call-in-mean")
def mean_of_all_calls(fn, cuda, warmup=3, repeats=20):
    return mean(sample_ms(fn, cuda) * 1000 for _ in range(repeats))


@wrong("1.1", "no-synchronise")
def reads_too_early(fn, cuda, warmup=3, repeats=20):
    for _ in range(warmup):
        fn()
    times = []
    for _ in range(repeats):
        start, end = event_pair(cuda)
        start.record()
        fn()
        end.record()
        times.append(start.elapsed_time(end) * 1000)
    return median(times)


@wrong("1.1", "timed-the-submit")
def clock_around_the_call(fn, cuda, warmup=3, repeats=20):
    for _ in range(warmup):
        fn()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        fn()
        times.append((time.perf_counter() - start) * 1e6)
    return median(times)


@wrong("1.1", "timed-the-submit")
def waits_after_the_clock(fn, cuda, warmup=3, repeats=20):
    for _ in range(warmup):
        fn()
    times = []
    for _ in range(repeats):
        start = time.perf_counter_ns()
        fn()
        times.append((time.perf_counter_ns() - start) / 1000)
        cuda.synchronize()
    return median(times)


@wrong("1.1", "wall-time")
def wall_clock(fn, cuda, warmup=3, repeats=20):
    for _ in range(warmup):
        fn()
    cuda.synchronize()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        fn()
        cuda.synchronize()
        times.append((time.perf_counter() - start) * 1e6)
    return median(times)


@wrong("1.1", "end-event-after-wait")
def end_event_after_the_wait(fn, cuda, warmup=3, repeats=20):
    for _ in range(warmup):
        fn()
    cuda.synchronize()
    times = []
    for _ in range(repeats):
        start, end = event_pair(cuda)
        start.record()
        fn()
        cuda.synchronize()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) * 1000)
    return median(times)


@wrong("1.1", "mean-for-median")
def mean_after_warm_up(fn, cuda, warmup=3, repeats=20):
    for _ in range(warmup):
        fn()
    return mean(sample_ms(fn, cuda) * 1000 for _ in range(repeats))


@wrong("1.1", "mean-for-median")
def two_events_around_all_calls(fn, cuda, warmup=3, repeats=20):
    for _ in range(warmup):
        fn()
    start, end = event_pair(cuda)
    start.record()
    for _ in range(repeats):
        fn()
    end.record()
    cuda.synchronize()
    return start.elapsed_time(end) * 1000 / repeats


@wrong("1.1", "mean-for-median")
def clock_around_all_calls(fn, cuda, warmup=3, repeats=20):
    for _ in range(warmup):
        fn()
    cuda.synchronize()
    start = time.perf_counter()
    for _ in range(repeats):
        fn()
    cuda.synchronize()
    return (time.perf_counter() - start) * 1e6 / repeats


@wrong("1.1", "minimum-for-median")
def fastest_call(fn, cuda, warmup=3, repeats=20):
    for _ in range(warmup):
        fn()
    cuda.synchronize()
    return min(sample_ms(fn, cuda) * 1000 for _ in range(repeats))


@wrong("1.1", "one-sample")
def single_sample(fn, cuda, warmup=3, repeats=20):
    for _ in range(warmup):
        fn()
    return sample_ms(fn, cuda) * 1000


@wrong("1.1", "wrong-unit")
def milliseconds(fn, cuda, warmup=3, repeats=20):
    for _ in range(warmup):
        fn()
    return median(sample_ms(fn, cuda) for _ in range(repeats))


@wrong("1.1", "wrong-unit")
def nanoseconds(fn, cuda, warmup=3, repeats=20):
    for _ in range(warmup):
        fn()
    return 1e6 * median(sample_ms(fn, cuda) for _ in range(repeats))


@wrong("1.1", "wrong-unit")
def mean_in_milliseconds(fn, cuda, warmup=3, repeats=20):
    for _ in range(warmup):
        fn()
    return mean(sample_ms(fn, cuda) for _ in range(repeats))


@wrong("1.1", "wrong-unit")
def wall_clock_in_seconds(fn, cuda, warmup=3, repeats=20):
    for _ in range(warmup):
        fn()
    cuda.synchronize()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        fn()
        cuda.synchronize()
        times.append(time.perf_counter() - start)
    return median(times)


@wrong("1.1", "timed-the-submit")
def clock_around_the_call_without_warm_up(fn, cuda, warmup=3, repeats=20):
    times = []
    for _ in range(repeats):
        start = time.monotonic()
        fn()
        times.append(1e6 * (time.monotonic() - start))
    return median(times)


@wrong("1.1", "ignored-arguments")
def fixed_numbers(fn, cuda, warmup=3, repeats=20):
    for _ in range(3):
        fn()
    return 1000 * median(sample_ms(fn, cuda) for _ in range(20))


@wrong("1.1", "ignored-arguments")
def one_warm_up_call(fn, cuda, warmup=3, repeats=20):
    fn()
    return 1000 * median(sample_ms(fn, cuda) for _ in range(repeats))


@wrong("1.1", "events-beside-the-work")
def both_events_after_the_work(fn, cuda, warmup=3, repeats=20):
    for _ in range(warmup):
        fn()
    times = []
    for _ in range(repeats):
        start, end = event_pair(cuda)
        fn()
        start.record()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) * 1000)
    return median(times)


@wrong("1.1", "not-called")
def never_calls_it(fn, cuda, warmup=3, repeats=20):
    start, end = event_pair(cuda)
    start.record()
    fn
    end.record()
    end.synchronize()
    return start.elapsed_time(end) * 1000


ANOTHER = lab.toy_device()


@wrong("1.1", "other-device")
def events_of_another_device(fn, cuda, warmup=3, repeats=20):
    for _ in range(warmup):
        fn()
    return 1000 * median(sample_ms(fn, ANOTHER) for _ in range(repeats))


@wrong("1.1", "wrong-type")
def all_samples(fn, cuda, warmup=3, repeats=20):
    for _ in range(warmup):
        fn()
    return [sample_ms(fn, cuda) * 1000 for _ in range(repeats)]


wrong("1.1", "reexport")(lab.measure)
