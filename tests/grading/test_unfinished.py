"""NOT ATTEMPTED is a blank that nobody touched; work that still raises NotImplementedError is an ERROR."""

import pytest

from minillm.grading import answer_or_reference, check, progress_file
from minillm.grading.outcome import ERROR, NOT_ATTEMPTED


def untouched(busy_us, wall_us):
    """What build leaves of a solution."""
    # YOUR CODE HERE
    raise NotImplementedError


def without_docstring(busy_us, wall_us):
    raise NotImplementedError()


class UntouchedMethod:
    def __call__(self, busy_us, wall_us):
        """A class has its blanks in methods."""
        # YOUR CODE HERE
        raise NotImplementedError


@pytest.mark.parametrize("answer", [untouched, without_docstring, UntouchedMethod()])
def test_a_blank_is_not_attempted(answer):
    assert check("0.1", answer).status == NOT_ATTEMPTED
    assert progress_file.read()["0.1"]["attempts"] == 0


def raise_left_below(busy_us, wall_us):
    """What build leaves of a solution."""
    # YOUR CODE HERE
    idle = wall_us - busy_us
    idle /= wall_us
    raise NotImplementedError


def code_below_the_raise(busy_us, wall_us):
    # YOUR CODE HERE
    raise NotImplementedError
    return 1 - busy_us / wall_us


def one_case_is_left(busy_us, wall_us):
    if busy_us == 0:
        raise NotImplementedError
    return 1 - busy_us / wall_us


@pytest.mark.parametrize("answer", [raise_left_below, code_below_the_raise, one_case_is_left])
def test_work_with_the_raise_left_in_is_an_error_that_names_the_line(answer):
    outcome = check("0.1", answer)
    assert outcome.status == ERROR
    lines = open(__file__, encoding="utf-8").read().split("\n")
    line = next(n for n in range(answer.__code__.co_firstlineno, 999) if "raise NotImpl" in lines[n - 1])
    assert f"Line {line} still raises NotImplementedError: delete it" in outcome.message


def finish_times(launch_us, kernel_us):
    """The blank of 1.2."""
    # YOUR CODE HERE
    raise NotImplementedError


def speedup_bound(launch_us, kernel_us, node_us, finish=finish_times):
    kernels = [kernel + node_us for kernel in kernel_us]
    return finish(launch_us, kernels)[-1] / sum(kernels)


def test_the_blank_of_another_exercise_is_named():
    outcome = check("1.5", speedup_bound)
    assert outcome.status == ERROR
    assert "finish_times (1.2) is still blank" in outcome.message
    assert check("1.2", finish_times).status == NOT_ATTEMPTED


def test_with_the_reference_of_1_2_a_right_1_5_passes_on_a_wrong_1_2(capsys):
    def serialised(launch_us, kernel_us):
        return [sum(launch_us[: i + 1]) + sum(kernel_us[: i + 1]) for i in range(len(launch_us))]

    finish = answer_or_reference("1.2", serialised)
    assert "1.2 is FAIL" in capsys.readouterr().out
    assert check("1.5", lambda *case: speedup_bound(*case, finish)).passed
    assert not check("1.5", lambda *case: speedup_bound(*case, serialised)).passed


def test_without_its_source_a_bare_raise_is_a_blank():
    names = {}
    exec("def idle_fraction(busy_us, wall_us):\n    raise NotImplementedError", names)
    assert check("0.1", names["idle_fraction"]).status == NOT_ATTEMPTED
