"""The exercises: what each one is called, its hints, the mistakes that it can name, and its check.

A module `minillm/grading/checks/lessonNN` (a file or a package) registers the exercises of lesson NN:

    @exercise("1.2", answer="finish_times", arguments=("launch_us", "kernel_us"), title=..., hints=(...),
              mistakes={"ignored-queue": "A kernel was started while ..."}, own=("minillm.lab...",))
    def check_finish_times(answer, rng): ...

The check calls `answer` and returns nothing if it is right; else it raises `Wrong(key, what_was_seen)`.
"""

import importlib
import pkgutil
import random
from collections.abc import Callable
from dataclasses import dataclass, field

# Mistakes that any answer can have. The rest are named by their exercise.
COMMON_MISTAKES = {
    "not-a-function": "Give check the function itself, without calling it.",
    "wrong-signature": "The grader cannot call your function.",
    "another-exercise": "This is the answer of another exercise.",
    "reexport": "This hands the work to code that is already there; the exercise is to write it yourself.",
    "returned-nothing": "Your function returned None: is a return missing?",
    "wrong-type": "Your function returned something of the wrong kind.",
    "wrong-length": "Your function returned the wrong number of values.",
    "wrong-value": "The result is not right, and the grader does not know this mistake.",
    "changed-input": "Your function changed what it was given; the caller's lists must stay as they were.",
    "unwatched": "Your function took away the grader's profile function (sys.setprofile), so the grader "
    "could not look on. Take that out.",
}


class UnknownExercise(KeyError):
    """The id is not one of the course's."""

    def __str__(self):
        return self.args[0]


class Wrong(Exception):
    """Raised by a check: the answer has the mistake `key`; `seen` says how it showed."""

    def __init__(self, key: str, seen: str = ""):
        super().__init__(key, seen)
        self.key, self.seen = key, seen


@dataclass(frozen=True)
class Exercise:
    """One exercise. `keywords` are the arguments that have a default, and it; `captures` says that an answer
    can break stream capture for the whole process."""

    id: str
    answer: str
    arguments: tuple[str, ...]
    title: str
    hints: tuple[str, ...]
    mistakes: dict[str, str]
    check: Callable[[object, random.Random], None]
    own: tuple[str, ...] = ()
    keywords: dict[str, object] = field(default_factory=dict)
    captures: bool = False
    lesson: str = field(default="", compare=False)

    def explain(self, key: str) -> str | None:
        """The mistake `key` in words; None if there is no such mistake."""
        return self.mistakes.get(key) or COMMON_MISTAKES.get(key)


_exercises: dict[str, Exercise] = {}


def exercise(id, *, answer, arguments, title, hints, mistakes, own=(), keywords=None, captures=False):
    """Register the decorated function as the check of exercise `id`."""
    if not 2 <= len(hints) <= 4:
        raise ValueError(f"exercise {id} has {len(hints)} hints; it takes two to four")
    if doubled := set(mistakes) & set(COMMON_MISTAKES):
        raise ValueError(f"exercise {id} redefines common mistakes: {', '.join(sorted(doubled))}")

    def register(check):
        lesson = f"{int(id.split('.')[0]):02d}"
        _exercises[id] = Exercise(
            id=id,
            answer=answer,
            arguments=tuple(arguments),
            title=title,
            hints=tuple(hints),
            mistakes=mistakes,
            check=check,
            own=tuple(own),
            keywords=keywords or {},
            captures=captures,
            lesson=lesson,
        )
        return check

    return register


def lessons() -> list[str]:
    """The lessons that have checks: ["00", "01", ...]."""
    from minillm.grading import checks

    names = (module.name for module in pkgutil.iter_modules(checks.__path__))
    return sorted(name.removeprefix("lesson") for name in names if name.startswith("lesson"))


def all_exercises() -> list[Exercise]:
    """Every exercise of the course, by lesson and number."""
    for lesson in lessons():
        importlib.import_module(f"minillm.grading.checks.lesson{lesson}")
    return sorted(_exercises.values(), key=lambda each: [int(part) for part in each.id.split(".")])


def find(id: str) -> Exercise:
    """The exercise `id`; UnknownExercise names the ones that exist."""
    lesson = id.split(".")[0] if isinstance(id, str) else ""
    if lesson.isdigit() and f"{int(lesson):02d}" in lessons():
        importlib.import_module(f"minillm.grading.checks.lesson{int(lesson):02d}")
        if id in _exercises:
            return _exercises[id]
    known = ", ".join(each.id for each in all_exercises())
    given = repr(id) if isinstance(id, str) else f"{id!r} (ids are strings: write it in quotes)"
    raise UnknownExercise(f"there is no exercise {given}. The ids are: {known}")
