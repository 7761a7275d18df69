"""The generated reference solutions: the functions, and their source for `reveal`."""

import importlib
import inspect

from minillm.grading.registry import Exercise

HEADING = "# --- exercise {id} ---"  # build writes one above each solution; reveal cuts there
MISSING = "the reference solution of {id} is missing here. In a checkout, `python -m minillm build` makes it."


class NoReference(LookupError):
    """This installation has no reference solution for the exercise."""


def _module(exercise: Exercise):
    try:
        return importlib.import_module(f"minillm.grading.reference.lesson{exercise.lesson}")
    except ModuleNotFoundError:
        raise NoReference(MISSING.format(id=exercise.id)) from None


def reference(exercise: Exercise):
    """The reference answer itself: a function or a class."""
    try:
        return getattr(_module(exercise), exercise.answer)
    except AttributeError:
        raise NoReference(MISSING.format(id=exercise.id)) from None


def reference_source(exercise: Exercise) -> str:
    """The source of the reference answer, with the imports and helpers of its cell."""
    source = inspect.getsource(_module(exercise))
    before, heading, rest = source.partition(HEADING.format(id=exercise.id) + "\n")
    if not heading:
        raise NoReference(MISSING.format(id=exercise.id))
    return rest.partition(HEADING.split("{")[0])[0].strip() + "\n"
