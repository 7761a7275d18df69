import functools
import math
import random
import threading
import time
import timeit
from statistics import mean, median
from time import perf_counter as imported_clock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minillm.lab.launch_queue import launch_queue
from minillm.lab.toy_device import toy_device


def time_with_events(fn, cuda, warmup=3, repeats=20):
    """How a GPU is timed: warm-up, an event before and after each call, one wait, the median."""
    for _ in range(warmup):
        fn()
    samples = []
    for _ in range(repeats):
        start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
        start.record()
        fn()
        end.record()
        end.synchronize()
        samples.append(start.elapsed_time(end) * 1e3)
    return median(samples)


# ---------------------------------------------------------------------------------- launches and events
us = st.integers(0, 20)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(us, us), min_size=1, max_size=12))
def test_launches_run_as_in_the_launch_queue(pairs):
    toy = toy_device()
    for launch_us, kernel_us in pairs:
        toy.launch(kernel_us, launch_us)
    schedule = launch_queue(*[list(column) for column in zip(*pairs, strict=True)])
    assert toy.executed == schedule.gpu
    assert toy.host_us == schedule.submit_us


def test_a_launch_returns_before_its_kernel_has_run():
    toy = toy_device(sync_us=7)
    toy.launch(kernel_us=1000, launch_us=5)
    assert toy.host_us == 5
    toy.synchronize()
    assert toy.host_us == 5 + 1000 + 7


def test_events_by_hand():
    toy = toy_device(call_us=1, sync_us=10)
    start, middle, end = (toy.Event(enable_timing=True) for _ in range(3))
    start.record()  # the host is at 1, the device is idle: reached at 1
    toy.launch(100, launch_us=5)  # the host is at 6, the kernel runs from 6 to 106
    middle.record()
    toy.launch(50, launch_us=5)  # the host is at 12, the kernel runs from 106 to 156
    end.record()
    assert toy.host_us == 13 and not end.query()
    end.synchronize()
    assert toy.host_us == 156 + 10 and end.query()
    assert start.elapsed_time(middle) == pytest.approx(0.105)  # with the wait for the launch
    assert middle.elapsed_time(end) == pytest.approx(0.050)  # the queue was full
    assert end.elapsed_time(start) == pytest.approx(-0.155)


def test_an_event_can_be_recorded_again():
    toy = toy_device(call_us=1)
    start, end = toy.Event(enable_timing=True), toy.Event(enable_timing=True)
    for kernel_us in (30, 70):
        toy.launch(500)
        start.record()
        toy.launch(kernel_us)
        end.record()
        toy.synchronize()
        assert start.elapsed_time(end) == pytest.approx(kernel_us * 1e-3)


def test_reading_an_event_too_early_fails_as_in_cuda():
    toy = toy_device()
    start, end = toy.Event(enable_timing=True), toy.Event(enable_timing=True)
    start.record()
    toy.launch(1000)
    end.record()
    with pytest.raises(RuntimeError, match="must be completed before.*device not ready"):
        start.elapsed_time(end)
    toy.current_stream().synchronize()
    assert start.elapsed_time(end) > 0.99


def test_events_that_were_not_recorded_or_have_no_time_fail_as_in_torch():
    toy = toy_device()
    timed, unrecorded, without_time = (
        toy.Event(enable_timing=True),
        toy.Event(enable_timing=True),
        toy.Event(),
    )
    timed.record(toy.current_stream())
    without_time.record()
    with pytest.raises(ValueError, match="must be recorded before"):
        timed.elapsed_time(unrecorded)
    with pytest.raises(ValueError, match="enable_timing=True"):
        timed.elapsed_time(without_time)
    before = toy.host_us
    unrecorded.synchronize()  # as in torch: nothing to wait for
    assert toy.host_us == before and unrecorded.query()


def test_waiting_by_polling_ends():
    toy = toy_device()
    event = toy.Event()
    toy.launch(300)
    event.record()
    polls = 0
    while not event.query():
        polls += 1
    assert polls > 10 and toy.host_us >= 305


def test_waiting_long_by_asking_takes_few_rounds():
    """A second, asked for by a clock of which one reading costs 50 ns."""
    toy = toy_device()
    with toy.as_time():
        end, rounds = time.monotonic() + 1, 0
        while time.monotonic() < end:
            rounds += 1
            time.sleep(0)
    assert 20 < rounds < 1000
    toy.launch(1e6)
    event = toy.Event()
    event.record()
    for polls in range(1000):  # noqa: B007
        if event.query():
            break
    assert 20 < polls < 999
    assert 1e6 < toy.host_us - 1e6 < 1.2e6  # and not much too late


def test_asking_costs_little_as_soon_as_something_happened_in_between():
    toy = toy_device(call_us=1)
    for _ in range(5):
        for _ in range(40):
            toy.perf_counter()
        toy.launch(0, launch_us=0)
        before = toy.host_us
        toy.perf_counter()
        assert toy.host_us - before == pytest.approx(0.1)


def test_the_log_keeps_what_elapsed_time_answered():
    toy = toy_device()
    start, end = toy.Event(enable_timing=True), toy.Event(enable_timing=True)
    start.record()
    toy.launch(100)
    end.record()
    with pytest.raises(RuntimeError):
        start.elapsed_time(end)
    toy.synchronize()
    assert toy.log.elapsed_ms == []
    assert [start.elapsed_time(end), end.elapsed_time(start)] == toy.log.elapsed_ms


# --------------------------------------------------------------------------------------------- kernels
def test_right_timing_gives_the_kernel_and_wrong_timings_do_not():
    toy = toy_device(seed=3)
    fn = toy.kernel(kernel_us=200, launch_us=5)
    assert time_with_events(fn, toy) == pytest.approx(205, rel=0.02)  # the launch is between the events

    toy = toy_device(seed=3)
    fn = toy.kernel(kernel_us=200, launch_us=5)
    begun = toy.perf_counter()
    fn()
    first_submit = toy.perf_counter() - begun
    begun = toy.perf_counter()
    fn()
    submit = toy.perf_counter() - begun
    begun = toy.perf_counter()
    fn()
    toy.synchronize()
    assert first_submit * 1e6 > 1000  # 40 times launch and kernel
    assert submit * 1e6 < 10  # it is asynchronous
    assert (
        toy.perf_counter() - begun
    ) * 1e6 > 225  # wall time: the kernel, its queue, the return from the wait


@pytest.mark.parametrize("seed", range(20))
def test_median_of_the_truth_is_the_kernel_and_the_mean_is_not(seed):
    toy = toy_device(seed)
    fn = toy.kernel(kernel_us=100, jitter=0.05)
    for _ in range(30):
        fn()
    durations = [end - start for start, end in toy.executed]
    assert median(durations) == pytest.approx(100, rel=0.05)
    assert sum(d > 700 for d in durations) == 3  # one outlier in ten, never none
    assert mean(durations) > 160
    assert all(d > 700 or 95 <= d <= 105 for d in durations)


def test_slow_first_calls():
    toy = toy_device()
    fn = toy.kernel(kernel_us=1, launch_us=5, first_call_us=900, slow_calls=2, launches=3)
    spent = []
    for _ in range(4):
        before = toy.host_us
        fn()
        spent.append(toy.host_us - before)
    assert spent == [910, 910, 15, 15]
    assert fn.calls == 4 and len(toy.executed) == 12


def test_without_disturbances_every_call_is_alike():
    toy = toy_device()
    fn = toy.kernel(kernel_us=50, jitter=0, outlier_every=0, first_call_us=5)
    for _ in range(25):
        fn()
    assert all(math.isclose(end - start, 50) for start, end in toy.executed)


def test_the_seed_decides_and_other_randomness_does_not():
    def run(seed):
        toy = toy_device(seed)
        random.seed(time.time_ns())
        return time_with_events(toy.kernel(kernel_us=30, jitter=0.3), toy), toy.executed

    assert run(1) == run(1) != run(2)


def test_the_log_tells_what_was_done_and_in_which_order():
    toy = toy_device()
    time_with_events(toy.kernel(20), toy, warmup=2, repeats=5)
    assert toy.log.counts() == {
        "launch": 7,
        "record": 10,
        "event_synchronize": 5,
        "elapsed_time": 5,
    }
    assert [entry.what for entry in toy.log.entries[:5]] == ["launch", "launch", "record", "launch", "record"]
    moments = [entry.at_us for entry in toy.log.entries]
    assert moments == sorted(moments)


@pytest.mark.parametrize(
    "bad", [{"kernel_us": -1}, {"kernel_us": float("nan")}, {"kernel_us": 1, "launch_us": -1}]
)
def test_times_that_cannot_be_are_refused(bad):
    with pytest.raises(ValueError, match="must not be negative"):
        toy_device().launch(**bad)
    with pytest.raises(ValueError, match="jitter is 1.5"):
        toy_device().kernel(1, jitter=1.5)


# ---------------------------------------------------------------------------------------- virtual time
def timed_by(clock, fn, cuda):
    begun = clock()
    fn()
    cuda.synchronize()
    return clock() - begun


CLOCKS = {
    "perf_counter": 1,
    "monotonic": 1,
    "time": 1,
    "process_time": 1,
    "perf_counter_ns": 1e9,
    "monotonic_ns": 1e9,
    "time_ns": 1e9,
}


@pytest.mark.parametrize("name", CLOCKS)
def test_clocks_of_the_time_module_show_virtual_time(name):
    toy = toy_device(sync_us=0, call_us=0)
    real = getattr(time, name)
    with toy.as_time():
        spent = timed_by(getattr(time, name), lambda: toy.launch(3000, 5), toy)
    assert spent / CLOCKS[name] * 1e6 == pytest.approx(3005, abs=0.01)
    assert getattr(time, name) is real


def by_imported_name(fn, cuda):
    return timed_by(imported_clock, fn, cuda)


def by_default_argument(fn, cuda, clock=time.perf_counter, *, other=imported_clock):
    begun = other()
    return timed_by(clock, fn, cuda) + 0 * begun


def by_local_import(fn, cuda):
    from time import perf_counter

    return timed_by(perf_counter, fn, cuda)


def by_closure():
    from time import perf_counter as mine

    def answer(fn, cuda):
        return timed_by(mine, fn, cuda)

    return answer


def decorated(function):
    @functools.wraps(function)
    def wrapper(*args):
        return function(*args)

    return wrapper


class Answers:
    def method(self, fn, cuda, clock=time.monotonic):
        return timed_by(clock, fn, cuda)


class CallableAnswer:
    def __call__(self, fn, cuda):
        return timed_by(imported_clock, fn, cuda)


@pytest.mark.parametrize(
    "answer",
    [
        CallableAnswer(),
        by_imported_name,
        by_default_argument,
        by_local_import,
        by_closure(),
        decorated(by_default_argument),
        functools.partial(by_imported_name),
        Answers().method,
        lambda fn, cuda: timed_by(timeit.default_timer, fn, cuda),
    ],
)
def test_names_that_an_answer_imported_earlier_show_virtual_time_too(answer):
    toy = toy_device(sync_us=0, call_us=0)
    with toy.as_time(answer):
        assert answer(lambda: toy.launch(5e6, 5), toy) == pytest.approx(5.000005)  # five virtual seconds
    assert imported_clock is time.perf_counter
    assert by_default_argument.__defaults__ == (time.perf_counter,)
    assert by_default_argument.__kwdefaults__ == {"other": time.perf_counter}
    assert Answers.method.__defaults__ == (time.monotonic,)
    assert timeit.default_timer is time.perf_counter
    # and it is the real clock again: five virtual seconds take no time
    assert answer(lambda: None, toy) < 4


def test_everything_is_put_back_after_an_error():
    toy, before = toy_device(), (time.perf_counter, time.sleep, imported_clock)
    with pytest.raises(KeyError), toy.as_time(by_imported_name):
        assert time.perf_counter is not before[0]
        raise KeyError
    assert (time.perf_counter, time.sleep, imported_clock) == before


def test_sleeping_takes_virtual_time_only():
    toy = toy_device()
    with toy.as_time():
        time.sleep(3600)
    assert toy.host_us == pytest.approx(3600e6)


def test_a_busy_wait_on_a_virtual_clock_ends():
    toy = toy_device()
    with toy.as_time():
        end = time.perf_counter() + 50e-6
        while time.perf_counter() < end:
            pass
    assert toy.host_us >= 50


def test_other_threads_keep_the_real_time():
    toy, seen = toy_device(), []
    with toy.as_time():
        thread = threading.Thread(target=lambda: seen.append(time.time()))
        thread.start()
        thread.join()
        assert time.time() < 1  # virtual time begins at 0
    assert seen[0] > 1e9  # a date after 2001
    assert toy.log.count("clock") == 1
