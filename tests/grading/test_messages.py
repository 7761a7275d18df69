"""What a message must say: which call it was, which signature is asked for; and check never raises."""

import math
import sys
import time
import warnings

import pytest
import torch

from minillm.grading import check, grade
from minillm.grading.outcome import ERROR, FAIL
from minillm.grading.registry import Wrong
from minillm.lab.toy_device import ToyDevice


def ends(launch_us, kernel_us):
    cpu = gpu = 0
    found = []
    for launch, kernel in zip(launch_us, kernel_us, strict=True):
        cpu += launch
        gpu = max(cpu, gpu) + kernel
        found.append(gpu)
    return found


@pytest.mark.parametrize("for_empty, status", [(None, FAIL), ([0], FAIL), ("raise", ERROR)])
def test_the_message_says_for_which_call(for_empty, status):
    def finish_times(launch_us, kernel_us):
        if not launch_us:
            return launch_us[0] if for_empty == "raise" else for_empty
        return ends(launch_us, kernel_us)

    outcome = check("1.2", finish_times)
    assert outcome.status == status
    assert outcome.message.endswith("It was called with launch_us=[], kernel_us=[].")


SIGNATURES = {
    "other names": (lambda fn, cuda, n=3, m=20: 1, "wrong-signature", "yours is"),
    "no keywords": (lambda fn, cuda: 1, "wrong-signature", "yours is"),
    "no defaults": (lambda fn, cuda, warmup, repeats: 1, "wrong-signature", "yours is"),
    "other defaults": (lambda fn, cuda, warmup=5, repeats=20: 1, "wrong-signature", "Your defaults differ"),
    "any keywords": (lambda fn, cuda, **more: 1, "not-called", ""),
}


@pytest.mark.parametrize("kind", SIGNATURES)
def test_the_signature_that_is_asked_for_is_shown(kind):
    answer, key, words = SIGNATURES[kind]
    outcome = check("1.1", answer)
    assert outcome.misconception == key and words in outcome.message
    assert ("time_gpu(fn, cuda, warmup=3, repeats=20)" in outcome.message) == (key == "wrong-signature")


def raising(error):
    def answer(busy_us, wall_us):
        raise error

    return answer


class Speechless(Exception):
    def __str__(self):
        raise RuntimeError("no words")


@pytest.mark.parametrize("error", [Wrong("nonsense-key", "hello"), Speechless(), GeneratorExit()])
def test_check_never_raises_because_of_an_exception(error):
    outcome = check("0.1", raising(error))
    assert outcome.status == ERROR and outcome.message.startswith(type(error).__name__)


class Unspeakable:
    name = 5

    def __repr__(self):
        raise RuntimeError("no words")


@pytest.mark.parametrize("value", [Unspeakable(), b"0.5", 10**400, torch.ones(1), torch.ones(1, 1)])
def test_what_is_no_number_is_of_the_wrong_type(value):
    assert check("0.1", lambda busy, wall: value).misconception == "wrong-type"


def test_nothing_is_printed_beside_the_outcome():
    async def asynchronous(busy_us, wall_us):
        return 1 - busy_us / wall_us

    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a coroutine that was never awaited, a gradient that was cut off
        outcome = check("0.1", asynchronous)
        assert outcome.misconception == "wrong-type" and "remove `async`" in outcome.message
        assert check("0.1", lambda b, w: torch.tensor(1 - b / w, requires_grad=True)).passed


def test_an_answer_cannot_replace_what_compares():
    before = math.isclose

    def replaces(busy_us, wall_us):
        math.isclose = lambda *args, **more: True
        return 0.123

    try:
        assert check("0.1", replaces).status == FAIL
    finally:
        math.isclose = before


HANDS_OUT = """
def hands_out(answer, rng):
    def double(n):
        return 2 * n

    if answer(double) != 6:
        raise Wrong("slip")
"""


def test_a_function_that_the_check_hands_out_may_be_called(register):
    names = {"__name__": "minillm.grading.checks.lesson99", "Wrong": Wrong}
    exec(HANDS_OUT, names)
    register(names["hands_out"])
    assert check("0.9", lambda double: double(3)).passed


def test_a_profile_function_of_ones_own_may_come_and_go():
    def profiled(busy_us, wall_us):
        before = sys.getprofile()
        sys.setprofile(None)
        sys.setprofile(before)
        return 1 - busy_us / wall_us

    assert check("0.1", profiled).passed


def test_waiting_loops_need_few_rounds(monkeypatch):
    """However far the moment is that a loop waits for: 23 calls, and none needs more than some hundred."""
    toys = []
    start = ToyDevice.__init__

    def remember(self, *args, **more):
        start(self, *args, **more)
        toys.append(self)

    monkeypatch.setattr(ToyDevice, "__init__", remember)

    def waits_on_the_clock(fn, cuda, warmup=3, repeats=20):
        for _ in range(warmup + repeats):
            begin, end = cuda.Event(True), cuda.Event(True)
            begin.record()
            fn()
            end.record()
            until = time.monotonic() + 0.5
            while time.monotonic() < until:
                pass
        return 1000 * begin.elapsed_time(end)

    grade("1.1", waits_on_the_clock)
    assert toys and all(toy.log.count("clock") < 400 * 23 for toy in toys)
