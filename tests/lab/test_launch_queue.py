import numpy
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from minillm.lab.launch_queue import launch_queue


def tick_by_tick(launches, kernels, sync_every=None, queue_depth=None):
    """The same machine, run one microsecond at a time, with no formula for when anything ends."""
    n, now = len(launches), 0
    cpu, cpu_left, begun, submitted, draining = None, 0, 0, 0, False
    queue, gpu, gpu_left, finished = [], None, 0, 0
    cpu_times, gpu_times, cpu_done = {}, {}, None
    while True:
        moving = True
        while moving:  # all that happens at this instant
            moving = False
            if gpu is not None and gpu_left == 0:
                gpu_times[gpu].append(now)
                gpu, finished, moving = None, finished + 1, True
            if gpu is None and queue:
                gpu = queue.pop(0)
                gpu_left, gpu_times[gpu], moving = kernels[gpu], [now], True
            if cpu is not None and cpu_left == 0:
                cpu_times[cpu].append(now)
                queue.append(cpu)
                cpu, submitted, moving = None, submitted + 1, True
                draining = bool(sync_every) and submitted % sync_every == 0
            if draining and finished == submitted:
                draining, moving = False, True
            room = queue_depth is None or begun - finished < queue_depth
            if cpu is None and not draining and begun < n and room:
                cpu, cpu_left, cpu_times[begun] = begun, launches[begun], [now]
                begun, moving = begun + 1, True
        if cpu is None and submitted == n and not draining and cpu_done is None:
            cpu_done = now
        if finished == n:
            in_order = [[tuple(times[i]) for i in range(n)] for times in (cpu_times, gpu_times)]
            return *in_order, cpu_done, now
        now += 1
        cpu_left, gpu_left = cpu_left - (cpu is not None), gpu_left - (gpu is not None)


times = st.integers(0, 9)
optional_count = st.none() | st.integers(1, 5)


@settings(deadline=None, max_examples=300)
@given(st.lists(st.tuples(times, times), min_size=1, max_size=14), optional_count, optional_count)
def test_agrees_with_the_simulation_tick_by_tick(pairs, sync_every, queue_depth):
    launches, kernels = [list(column) for column in zip(*pairs, strict=True)]
    cpu, gpu, cpu_done, total = tick_by_tick(launches, kernels, sync_every, queue_depth)
    found = launch_queue(launches, kernels, sync_every=sync_every, queue_depth=queue_depth)
    assert (found.cpu, found.gpu) == (cpu, gpu)
    assert (found.submit_us, found.total_us) == (cpu_done, total)
    assert found.busy_us == sum(kernels) and found.idle_us == total - sum(kernels)
    # the CPU is always launching or waiting until it is done
    spent = sum(launches) + sum(end - start for start, end in found.waits)
    assert spent == found.submit_us


def test_launch_bound_by_hand():
    found = launch_queue(launch_us=10, kernel_us=2, kernels=3)
    assert found.cpu == [(0, 10), (10, 20), (20, 30)]
    assert found.gpu == [(10, 12), (20, 22), (30, 32)]
    assert (found.submit_us, found.total_us, found.busy_us, found.idle_us) == (30, 32, 6, 26)
    assert found.idle_fraction == 26 / 32 and found.waits == []


def test_gpu_bound_by_hand():
    found = launch_queue(launch_us=2, kernel_us=10, kernels=3)
    assert found.gpu == [(2, 12), (12, 22), (22, 32)]
    assert (found.submit_us, found.total_us, found.idle_us) == (6, 32, 2)


def test_a_long_kernel_hides_later_launches():
    found = launch_queue(launch_us=5, kernel_us=[20, 1, 1, 1])
    assert found.gpu == [(5, 25), (25, 26), (26, 27), (27, 28)]


def test_synchronising_after_every_second_kernel_by_hand():
    found = launch_queue(5, 8, kernels=3, sync_every=2)
    assert found.cpu == [(0, 5), (5, 10), (21, 26)]
    assert found.gpu == [(5, 13), (13, 21), (26, 34)]
    assert found.waits == [(10, 21)] and found.submit_us == 26 and found.total_us == 34


def test_a_last_synchronisation_keeps_the_cpu_until_the_end():
    assert launch_queue(5, 8, kernels=2, sync_every=2).submit_us == 21


def test_a_full_queue_blocks_the_cpu():
    found = launch_queue(1, 100, kernels=4, queue_depth=2)
    assert found.cpu == [(0, 1), (1, 2), (101, 102), (201, 202)]
    assert found.total_us == launch_queue(1, 100, kernels=4).total_us == 401


def test_fractions_of_microseconds_and_arrays():
    found = launch_queue(numpy.array([0.5, 0.25]), torch.tensor([1.5, 2.0]))
    assert found.gpu == [(0.5, 2.0), (2.0, 4.0)]


def test_no_kernels_is_an_empty_schedule():
    found = launch_queue([], 3)
    assert (found.cpu, found.gpu, found.total_us, found.idle_fraction) == ([], [], 0, 0.0)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"launch_us": 5, "kernel_us": 2}, "how many kernels"),
        ({"launch_us": [5, 5], "kernel_us": [2]}, "launch_us says 2, kernel_us says 1"),
        ({"launch_us": [5, 5], "kernel_us": 2, "kernels": 3}, "launch_us says 2, kernels says 3"),
        ({"launch_us": -1, "kernel_us": 2, "kernels": 1}, "launch_us has -1"),
        ({"launch_us": 1, "kernel_us": [1, float("nan")]}, "kernel_us has nan"),
        ({"launch_us": 1, "kernel_us": float("inf"), "kernels": 1}, "kernel_us has inf"),
        ({"launch_us": 1, "kernel_us": 1, "kernels": 0}, "kernels is 0"),
        ({"launch_us": 1, "kernel_us": 1, "kernels": 1, "sync_every": 0}, "sync_every is 0"),
        ({"launch_us": 1, "kernel_us": 1, "kernels": 1, "queue_depth": 1.5}, "queue_depth is 1.5"),
    ],
)
def test_bad_values_are_named(arguments, named):
    with pytest.raises(ValueError, match=named):
        launch_queue(**arguments)
