"""PASS, FAIL, ERROR, NOT ATTEMPTED, and what a check leaves behind."""

import functools
import io
import os
import random
import sys
import warnings

import numpy
import pytest
import torch

from minillm import lab
from minillm.config import ModelConfig
from minillm.grading import answer_or_reference, check, grade, progress_file
from minillm.grading.outcome import ERROR, FAIL, NOT_ATTEMPTED, PASS, Outcome
from minillm.grading.reference_source import reference
from minillm.grading.registry import UnknownExercise, Wrong, find


def idle_fraction(busy_us, wall_us):
    return 1 - busy_us / wall_us


def stub(busy_us, wall_us):
    """What build leaves of a solution."""
    # YOUR CODE HERE
    raise NotImplementedError


def test_a_right_answer_passes():
    outcome = check("0.1", idle_fraction)
    assert (outcome.status, outcome.misconception) == (PASS, None)


@pytest.mark.parametrize("untouched", [stub, None, ...])
def test_an_untouched_answer_is_not_attempted(untouched):
    assert check("0.1", untouched).status == NOT_ATTEMPTED


def test_an_error_shows_the_line_of_the_learner():
    def divides_by_zero(busy_us, wall_us):
        nothing = busy_us - busy_us
        return wall_us / nothing

    outcome = check("0.1", divides_by_zero)
    line = divides_by_zero.__code__.co_firstlineno + 2
    assert outcome.status == ERROR
    assert "ZeroDivisionError" in outcome.message
    assert f"line {line}, return wall_us / nothing" in outcome.message


def test_the_line_is_the_learners_even_if_a_library_raised():
    def asks_torch(busy_us, wall_us):
        return torch.zeros(2) @ torch.zeros(3)

    message = check("0.1", asks_torch).message
    assert "RuntimeError" in message and "return torch.zeros(2) @ torch.zeros(3)" in message


def test_the_line_is_the_innermost_of_the_learners():
    def helper(busy_us):
        return {}["missing"]

    def asks_a_helper(busy_us, wall_us):
        return helper(busy_us)

    assert 'return {}["missing"]' in check("0.1", asks_a_helper).message


def test_something_that_a_library_has_not_implemented_is_an_error():
    def not_in_torch(busy_us, wall_us):
        raise NotImplementedError("Could not run 'aten::thing' with arguments from the 'Meta' backend")

    outcome = check("0.1", not_in_torch)
    assert outcome.status == ERROR and "aten::thing" in outcome.message


def test_an_answer_cannot_end_the_kernel():
    def leaves(busy_us, wall_us):
        raise SystemExit(3)

    assert check("0.1", leaves).status == ERROR


def test_an_interrupt_is_not_swallowed():
    def interrupted(busy_us, wall_us):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        check("0.1", interrupted)


def test_endless_recursion_is_an_error():
    def again(busy_us, wall_us):
        return again(busy_us, wall_us)

    outcome = check("0.1", again)
    assert outcome.status == ERROR and "RecursionError" in outcome.message


@pytest.mark.parametrize("id", ["9.9", "1.77", "x", "", 1.2, None])
def test_an_unknown_id_lists_the_ids(id):
    with pytest.raises(UnknownExercise, match=r"The ids are: 0\.1, 1\.1, 1\.2, 1\.3, 1\.4, 1\.5") as error:
        check(id, idle_fraction)
    assert repr(id) in str(error.value)


def test_swapped_answers_are_recognised_by_name():
    def finish_times(launch_us, kernel_us):
        return []

    outcome = check("0.1", finish_times)
    assert outcome.misconception == "another-exercise"
    assert "finish_times belongs to 1.2" in outcome.message and "idle_fraction" in outcome.message


def test_a_lambda_and_a_callable_object_are_answers_too():
    class Idle:
        def __call__(self, busy_us, wall_us):
            return 1 - busy_us / wall_us

    assert check("0.1", lambda busy, wall: 1 - busy / wall).passed
    assert check("0.1", Idle()).passed
    assert check("0.1", functools.partial(idle_fraction)).passed


def test_the_reference_is_no_answer():
    exercise = find("0.1")
    assert grade("0.1", reference(exercise)).misconception == "reexport"

    def asks_the_reference(busy_us, wall_us):
        return reference(exercise)(busy_us, wall_us)

    assert grade("0.1", asks_the_reference).misconception == "reexport"


def test_the_reference_of_another_exercise_may_help():
    finish = answer_or_reference("1.2", None)

    def speedup_bound(launch_us, kernel_us, node_us):
        nodes = [kernel + node_us for kernel in kernel_us]
        return finish(launch_us, nodes)[-1] / sum(nodes)

    assert check("1.5", speedup_bound).passed


def test_a_class_derived_from_the_packages_own_is_a_reexport(register):
    register(lambda answer, rng: answer(0), own=("minillm.lab.toy_device.ToyDevice",))

    class Mine(lab.ToyDevice):
        pass

    assert check("0.9", Mine).misconception == "reexport"


def test_a_check_may_use_the_packages_own_as_its_oracle(register):
    def compare_with_own(answer, rng):
        own = lab.launch_queue([1, 2], [3, 4]).total_us
        if answer(own) != own:
            raise Wrong("slip")

    register(compare_with_own, own=("minillm.lab.launch_queue.launch_queue",))
    assert check("0.9", lambda n: n).passed
    assert check("0.9", lambda n: lab.launch_queue([1, 2], [3, 4]).total_us).misconception == "reexport"


def test_a_check_may_use_the_packages_own_through_another_function(register):
    """lab.bandwidth_floor_us asks step_bytes; what matters is who asked first."""
    own = ("minillm.lab.roofline.step_bytes",)
    config = ModelConfig.preset("tiny")
    register(lambda answer, rng: answer(lab.bandwidth_floor_us(config, 1, 1, 1)), own=own)
    assert check("0.9", lambda n: n).passed
    asks = check("0.9", lambda n: lab.bandwidth_floor_us(config, 1, 1, 1))
    assert asks.misconception == "reexport" and "step_bytes" in asks.message


def test_answer_or_reference(capsys):
    assert answer_or_reference("0.1", idle_fraction) is idle_fraction
    assert capsys.readouterr().out == ""
    assert answer_or_reference("0.1", stub)(30, 100) == pytest.approx(0.7)
    assert "0.1 is NOT ATTEMPTED, so this cell goes on with the reference solution" in capsys.readouterr().out
    assert progress_file.read() == {}  # this is no attempt


def test_the_seed_varies_the_cases(register):
    seen = []
    register(lambda answer, rng: seen.append(rng.random()))
    for seed in (0, 0, 5):
        check("0.9", lambda n: n, seed=seed)
    check("0.9", lambda n: n)
    assert seen[0] == seen[1] == seen[3] != seen[2]


def test_generators_and_settings_are_as_before():
    def spoils_everything(busy_us, wall_us):
        random.seed(7)
        numpy.random.seed(7)
        torch.manual_seed(7)
        torch.set_grad_enabled(False)
        torch.set_default_dtype(torch.float64)
        return 1 - busy_us / wall_us

    states = random.getstate(), numpy.random.get_state()[1].copy(), torch.get_rng_state()
    assert check("0.1", spoils_everything).passed
    assert random.getstate() == states[0]
    assert (numpy.random.get_state()[1] == states[1]).all()
    assert torch.equal(torch.get_rng_state(), states[2])
    assert torch.is_grad_enabled() and torch.get_default_dtype() == torch.float32


def test_the_process_is_as_before(tmp_path):
    def spoils_everything(busy_us, wall_us):
        torch.set_default_device("meta")
        torch.set_num_threads(3)
        warnings.simplefilter("ignore")
        os.chdir(tmp_path)
        sys.stdout, sys.stderr = io.StringIO(), io.StringIO()
        return 1 - busy_us / wall_us

    def state():
        filters = list(warnings.filters)
        return (
            torch.get_default_device(),
            torch.get_num_threads(),
            filters,
            os.getcwd(),
            sys.stdout,
            sys.stderr,
        )

    before = state()
    assert check("0.1", spoils_everything).passed
    assert state() == before
    with torch.device("meta"):
        assert check("0.1", lambda busy, wall: 1 - busy / wall).passed
        assert torch.get_default_device() == torch.device("meta")


def test_a_poisoned_generator_does_not_hide_the_result(monkeypatch):
    """After a failed capture CUDA's generator refuses to be read; here torch's own one does."""

    def refuse(*_):
        raise RuntimeError("Offset increment outside graph capture encountered unexpectedly.")

    monkeypatch.setattr(torch, "get_rng_state", refuse)
    random.seed(3)
    before = random.getstate()
    assert check("0.1", lambda busy, wall: random.random()).status == FAIL
    assert random.getstate() == before


def test_the_current_stream_is_as_before(register):
    from minillm.graphs import cuda

    before = cuda.current_stream()
    register(lambda answer, rng: answer(0))
    check("0.9", lambda n: cuda.set_stream(cuda.Stream()))
    assert cuda.current_stream() == before


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_the_gpus_generator_and_stream_are_as_before():
    torch.zeros(1, device="cuda")
    state, stream = torch.cuda.get_rng_state(), torch.cuda.current_stream()

    def spoils_everything(busy_us, wall_us):
        torch.cuda.manual_seed(7)
        torch.cuda.set_stream(torch.cuda.Stream())
        return 1 - busy_us / wall_us

    assert check("0.1", spoils_everything).passed
    assert torch.equal(torch.cuda.get_rng_state(), state)
    assert torch.cuda.current_stream() == stream


def test_after_a_failure_the_probe_captures(register, monkeypatch):
    from minillm.grading import core

    def fails(answer, rng):
        raise Wrong("slip", "Seen.")

    register(fails, captures=True)
    healthy = check("0.9", lambda n: n)
    assert healthy.message == "You slipped. Seen."
    monkeypatch.setattr(core, "recover", lambda: "RuntimeError: operation not permitted")
    broken = check("0.9", lambda n: n)
    assert (broken.status, broken.misconception) == (FAIL, "slip")
    assert "You slipped." in broken.message
    assert "restart the kernel" in broken.message and "operation not permitted" in broken.message


def test_no_probe_where_nothing_is_captured(register, monkeypatch):
    from minillm.grading import core

    def fails(answer, rng):
        raise Wrong("slip")

    monkeypatch.setattr(core, "recover", lambda: pytest.fail("looked"))
    register(fails)
    assert check("0.9", lambda n: n).status == FAIL


def test_an_outcome_reads_well_as_text_and_as_html():
    outcome = Outcome("1.2", FAIL, "a < b\nsecond line", "slip", "A title")
    assert repr(outcome).splitlines()[:3] == ["FAIL  1.2  A title", "  a < b", "  second line"]
    assert 'hint("1.2")' in repr(outcome)
    html = outcome._repr_html_()
    assert "a &lt; b" in html and "FAIL" in html and "a < b" not in html


def test_an_outcome_refuses_other_words():
    with pytest.raises(ValueError, match="GOOD"):
        Outcome("1.2", "GOOD")
