"""What the checks take for right, against code that is not theirs."""

import random
from dataclasses import replace

import numpy
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from minillm import lab
from minillm.config import PRESETS
from minillm.grading.checks.lesson01 import bandwidth_floor, diagnose_truth, finish_times, speedup_bound
from minillm.grading.checks.lesson01.time_gpu_judge import make_case
from minillm.grading.registry import find

times = st.integers(0, 50)
steps = st.lists(st.tuples(times, times), min_size=1, max_size=12)


def brute_force_ends(launch_us, kernel_us):
    """Microsecond by microsecond: each kernel begins in the first one in which it may."""
    launched = [sum(launch_us[: i + 1]) for i in range(len(launch_us))]
    ends, now = [], 0
    for i, kernel in enumerate(kernel_us):
        while now < launched[i]:
            now += 1
        for _ in range(kernel):
            now += 1
        ends.append(now)
    return ends


@given(steps)
@settings(deadline=None, max_examples=80)
def test_ends_are_those_of_a_simulation_in_small_steps(step):
    launch_us, kernel_us = zip(*step, strict=True)
    assert finish_times.ends(launch_us, kernel_us) == brute_force_ends(launch_us, kernel_us)


@given(steps, st.integers(1, 9))
@settings(deadline=None, max_examples=80)
def test_a_graph_never_loses_and_gains_what_the_gpu_waits(step, node_us):
    launch_us, kernel_us = zip(*step, strict=True)
    bound = speedup_bound.bound(launch_us, kernel_us, node_us)
    schedule = lab.launch_queue(list(launch_us), [kernel + node_us for kernel in kernel_us])
    assert bound >= 1
    assert bound == pytest.approx(1 / (1 - schedule.idle_fraction))


@pytest.mark.parametrize("tied_head", [True, False])
@pytest.mark.parametrize("preset", [name for name, config in PRESETS.items() if config.hidden >= 2048])
def test_the_floor_is_the_roofline_up_to_the_norms(preset, tied_head):
    config = replace(PRESETS[preset], tied_head=tied_head)
    floor = bandwidth_floor.floor(config, 17, 3000, 1234.0)
    assert floor == pytest.approx(lab.bandwidth_floor_us(config, 17, 3000, 1234.0), rel=1e-3)


def cases_of(id, seed):
    """The arguments with which the check of `id` calls a right answer."""
    seen, exercise = [], find(id)
    right = {"1.2": finish_times.ends, "1.3": bandwidth_floor.floor, "1.4": diagnose_truth.verdict}
    right["1.5"] = speedup_bound.bound
    exercise.check(lambda *case: seen.append(case) or right[id](*case), random.Random(seed))
    return seen


METHODS = ("linear", "weibull", "hazen", "lower", "higher", "median_unbiased", "nearest")


@pytest.mark.parametrize("method", METHODS)
def test_no_diagnosis_hangs_on_how_quartiles_are_defined(method):
    for seed in range(5):
        for submit, busy, wall in cases_of("1.4", seed):
            low, middle, high = numpy.percentile(wall, [25, 50, 75], method=method)
            spread = (high - low) / middle
            assert (spread > 0.2) == (diagnose_truth.spread(wall) > 0.2)
            assert not 0.18 < spread < 0.21
            for part in (submit, busy):
                assert not 0.88 < numpy.median(part) / middle < 0.92


def test_every_diagnosis_is_asked_for():
    assert {diagnose_truth.verdict(*case) for case in cases_of("1.4", 0)} == set(diagnose_truth.VERDICTS)


def test_the_step_is_launch_bound_gpu_bound_and_both_in_turn():
    ratios = [sum(kernel) / sum(launch) for launch, kernel in cases_of("1.2", 0) if launch]
    assert min(ratios) < 0.5 and max(ratios) > 2


def test_floors_are_asked_for_with_and_without_a_tied_head_and_with_grouped_heads():
    configs = [case[0] for case in cases_of("1.3", 0)]
    assert {config.tied_head for config in configs} == {True, False}
    assert any(config.heads > config.kv_heads for config in configs)


def test_cases_change_with_the_seed_and_only_with_it():
    for id in ("1.2", "1.3", "1.4", "1.5"):
        assert cases_of(id, 1) == cases_of(id, 1) != cases_of(id, 2)


def test_the_toy_case_knows_the_time_of_each_call(rng):
    case = make_case(rng, launches=3)
    for _ in range(4):
        case.fn()
    spans = case.device_us(last=2)
    flat = case.toy.executed
    assert spans == [flat[8][1] - flat[6][0], flat[11][1] - flat[9][0]]


def test_tensors_and_arrays_are_numbers_too():
    from minillm.grading.compare import number, numbers

    assert number(torch.tensor(2.5)) == number(numpy.float32(2.5)) == 2.5
    assert numbers(torch.tensor([1.0, 2.0]), [0, 0]) == numbers(numpy.array([1, 2]), [0, 0]) == [1.0, 2.0]
