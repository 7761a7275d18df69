"""Answers to 1.1 that take the right kind of time and do something odd with it."""

import time
from statistics import mean, median
from time import perf_counter

import torch

from minillm.grading.corpus import right, wrong


def samples_us(fn, cuda, warmup, repeats):
    """As they should be taken; `warmup` calls are thrown away."""
    for _ in range(warmup):
        fn()
    found = []
    for _ in range(repeats):
        start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
        start.record()
        fn()
        end.record()
        end.synchronize()
        found.append(1000 * start.elapsed_time(end))
    return found


@wrong("1.1", "no-warm-up")
def warm_up_among_the_samples(fn, cuda, warmup=3, repeats=20):
    return median(samples_us(fn, cuda, 0, warmup + repeats))


@wrong("1.1", "first-call-in-mean")
def mean_with_the_warm_up(fn, cuda, warmup=3, repeats=20):
    return mean(samples_us(fn, cuda, 0, warmup + repeats))


@wrong("1.1", "one-sample")
def last_sample(fn, cuda, warmup=3, repeats=20):
    return samples_us(fn, cuda, warmup, repeats)[-1]


@wrong("1.1", "unsorted")
def middle_in_order_of_time(fn, cuda, warmup=3, repeats=20):
    return samples_us(fn, cuda, warmup, repeats)[repeats // 2]


@wrong("1.1", "reused-events")
def one_pair_read_at_the_end(fn, cuda, warmup=3, repeats=20):
    for _ in range(warmup):
        fn()
    start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
    pairs = []
    for _ in range(repeats):
        start.record()
        fn()
        end.record()
        pairs.append((start, end))
    cuda.synchronize()
    return 1000 * median(start.elapsed_time(end) for start, end in pairs)


@wrong("1.1", "events-swapped")
def from_end_to_start(fn, cuda, warmup=3, repeats=20):
    for _ in range(warmup):
        fn()
    found = []
    for _ in range(repeats):
        start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
        start.record()
        fn()
        end.record()
        cuda.synchronize()
        found.append(1000 * end.elapsed_time(start))
    return median(found)


@wrong("1.1", "event-without-time")
def events_that_keep_no_time(fn, cuda, warmup=3, repeats=20):
    start, end = cuda.Event(), cuda.Event()
    start.record()
    fn()
    end.record()
    cuda.synchronize()
    return 1000 * start.elapsed_time(end)


@wrong("1.1", "other-device")
def torchs_own_events(fn, cuda, warmup=3, repeats=20):
    return median(samples_us(fn, torch.cuda, warmup, repeats))


@wrong("1.1", "other-device")
def reads_the_toys_own_notes(fn, cuda, warmup=3, repeats=20):
    cuda.Event(enable_timing=True).record()
    for _ in range(warmup + repeats):
        fn()
    return median(end - start for start, end in cuda.executed[-repeats:])


class WallClock:
    def __call__(self, fn, cuda, warmup=3, repeats=20):
        for _ in range(warmup):
            fn()
        cuda.synchronize()
        found = []
        for _ in range(repeats):
            begun = perf_counter()
            fn()
            cuda.synchronize()
            found.append(1e6 * (perf_counter() - begun))
        return median(found)


wrong("1.1", "wall-time")(WallClock())


@wrong("1.1", "wrong-signature")
def other_names(fn, cuda, warm=3, count=20):
    return median(samples_us(fn, cuda, warm, count))


@wrong("1.1", "wrong-signature")
def without_keywords(fn, cuda):
    return median(samples_us(fn, cuda, 3, 20))


@wrong("1.1", "wrong-signature")
def other_defaults(fn, cuda, warmup=10, repeats=100):
    return median(samples_us(fn, cuda, warmup, repeats))


def after(wait):
    """A right answer that reads its events when `wait(end)` returns."""

    def time_gpu(fn, cuda, warmup=3, repeats=20):
        for _ in range(warmup):
            fn()
        found = []
        for _ in range(repeats):
            start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
            start.record()
            fn()
            end.record()
            wait(end)
            found.append(1000 * start.elapsed_time(end))
        return median(found)

    return time_gpu


@right("1.1")
@after
def waits_on_the_clock(end):
    until = time.monotonic() + 0.05
    while time.monotonic() < until:
        pass


@right("1.1")
@after
def polls_with_a_sleep(end):
    while not end.query():
        time.sleep(0)


right("1.1")(after(lambda end: time.sleep(0.05)))


@right("1.1")
def asks_for_the_time_until_it_is_there(fn, cuda, warmup=3, repeats=20):
    for _ in range(warmup):
        fn()
    found = []
    while len(found) < repeats:
        start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
        start.record()
        fn()
        end.record()
        taken = None
        while taken is None:
            try:
                taken = 1000 * start.elapsed_time(end)
            except RuntimeError:
                pass
        found.append(taken)
    return median(found)


@right("1.1")
def from_one_start(fn, cuda, warmup=3, repeats=20):
    """All times are read from one event; the samples are the differences."""
    for _ in range(warmup):
        fn()
    marks = [cuda.Event(enable_timing=True) for _ in range(repeats + 1)]
    marks[0].record()
    for mark in marks[1:]:
        fn()
        mark.record()
    cuda.synchronize()
    reached = [0.0, *(marks[0].elapsed_time(mark) for mark in marks[1:])]
    return 1000 * median(end - begun for begun, end in zip(reached, reached[1:], strict=False))
