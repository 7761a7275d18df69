"""Every check of a lesson about captures has memory as on a GPU, also within a heap of the learner's."""

import pytest
import torch

from minillm.grading import grade
from minillm.grading.device_memory import as_on_a_gpu, on_device
from minillm.grading.reference_source import reference
from minillm.grading.registry import all_exercises
from minillm.graphs import backend, device, heap

CAPTURED = [each for each in all_exercises() if each.lesson in ("02", "03")]


def test_what_lies_on_the_device_is_told_apart():
    with as_on_a_gpu():
        assert on_device(torch.ones(1, device=device))
        assert not on_device(torch.ones(1)) and not on_device([1])


@pytest.mark.skipif(backend == "cuda", reason="on a GPU heap() does nothing")
@pytest.mark.parametrize("exercise", CAPTURED, ids=lambda exercise: exercise.id)
def test_a_check_works_within_a_heap_of_the_learners(exercise):
    with heap():
        outcome = grade(exercise.id, reference(exercise), accept_reference=True)
    assert outcome.passed, outcome
