"""Every wrong answer that we know is rejected for its own reason, and every right one passes."""

from collections import Counter
from pathlib import Path

import pytest

from minillm.grading import corpus, grade
from minillm.grading.outcome import PASS
from minillm.grading.reexport import resolve
from minillm.grading.reference_source import reference
from minillm.grading.registry import COMMON_MISTAKES, all_exercises

FOLDER = Path(__file__).parents[1] / "wrong_answers"
ENTRIES = corpus.load_corpus(FOLDER)
EXERCISES = all_exercises()
SEEDS = (1, 2)  # besides the one that learners get


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_the_grader_says_of_an_answer_what_it_should(entry):
    right, outcome = entry.judge()
    assert right, f"expected {entry.misconception or PASS}, got\n{outcome}"
    if entry.misconception:  # the message names the mistake, and says what was seen
        exercise = next(each for each in EXERCISES if each.id == entry.id)
        explanation = exercise.explain(entry.misconception)
        assert outcome.message.startswith(explanation)
        if entry.misconception != "returned-nothing":
            assert len(outcome.message) > len(explanation) + 10


@pytest.mark.long
@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_it_says_so_with_other_cases(entry):
    for seed in SEEDS:
        right, outcome = entry.judge(seed)
        assert right, f"seed {seed}: expected {entry.misconception or PASS}, got\n{outcome}"


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.id)
def test_the_reference_passes_with_every_seed(exercise):
    for seed in range(10):
        outcome = grade(exercise.id, reference(exercise), seed, accept_reference=True)
        assert outcome.status == PASS, outcome


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.id)
def test_an_exercise_has_five_wrong_answers_and_a_second_right_one(exercise):
    kinds = Counter(bool(entry.misconception) for entry in ENTRIES if entry.id == exercise.id)
    assert kinds[True] >= 5 and kinds[False] >= 1


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.id)
def test_every_mistake_of_an_exercise_was_made_by_somebody(exercise):
    made = {entry.misconception for entry in ENTRIES if entry.id == exercise.id}
    assert set(exercise.mistakes) <= made


def test_every_common_mistake_was_made_by_somebody():
    assert set(COMMON_MISTAKES) <= {entry.misconception for entry in ENTRIES}


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.id)
def test_the_functions_that_must_not_be_handed_out_exist(exercise):
    assert all(resolve(name) is not None for name in exercise.own)


def test_answers_lie_in_the_folder_of_their_lesson():
    folders = {
        Path(entry.file).parent.name: entry.id for entry in ENTRIES if entry.file.startswith(str(FOLDER))
    }
    assert folders
    assert all(f"{int(id.split('.')[0]):02d}" == folder for folder, id in folders.items())
