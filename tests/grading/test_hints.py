"""hint goes one step further at each call; reveal ends it, and the board remembers."""

import re

import pytest

from minillm.grading import check, hint, progress, progress_file, reveal
from minillm.grading.registry import UnknownExercise, all_exercises, exercise


def test_hints_come_one_by_one():
    first, second, third, again = (repr(hint("0.1")) for _ in range(4))
    assert first.startswith("Hint 1 of 3: ") and "Hint 2" not in first
    assert second.startswith(first) and "Hint 2 of 3: " in second
    assert 'reveal("0.1")' not in second
    assert "Hint 3 of 3: " in third and 'That was the last hint. reveal("0.1")' in third
    assert again == third
    assert progress_file.read()["0.1"]["hints"] == 3


def test_hints_of_one_exercise_leave_the_others_alone():
    hint("0.1")
    assert repr(hint("1.1")).startswith("Hint 1 of")


@pytest.mark.parametrize("each", all_exercises(), ids=lambda each: each.id)
def test_every_exercise_reveals_a_function_or_class_of_its_name(each):
    text = repr(reveal(each.id))
    assert re.findall(r"^(?:def|class) (\w+)", text, re.MULTILINE) == [each.answer]  # not the neighbour's
    assert "SOLUTION" not in text
    compile(text, each.id, "exec")
    assert progress_file.read()[each.id]["revealed"]


def test_the_board_tells_who_looked():
    reveal("0.1")
    assert "revealed" in repr(progress())
    check("0.1", lambda busy, wall: 1 - busy / wall)
    row = next(line for line in repr(progress()).splitlines() if line.startswith("0.1"))
    assert "PASS, solution revealed" in row


def test_unknown_ids():
    for function in (hint, reveal):
        with pytest.raises(UnknownExercise, match="1.2"):
            function("7.7")


def test_a_missing_reference_says_what_to_do(register):
    register(lambda answer, rng: None)
    with pytest.raises(LookupError, match="python -m minillm build"):
        reveal("0.9")


@pytest.mark.parametrize("hints", [("one",), tuple("12345")])
def test_an_exercise_has_two_to_four_hints(hints):
    with pytest.raises(ValueError, match="two to four"):
        exercise("0.8", answer="x", arguments=(), title="", hints=hints, mistakes={})


def test_html_escapes():
    assert "<b>" not in hint("0.1")._repr_html_()
    assert "&lt;" in type(hint("0.1"))("a < b")._repr_html_()
