"""Recognise an answer that only hands out the package's own code, and say which."""

import functools
import importlib
import inspect
import sys
from contextlib import contextmanager

from minillm.grading.frames import is_learners
from minillm.grading.registry import Exercise, Wrong


def refuse_reexport(exercise: Exercise, answer) -> None:
    """Raise Wrong if `answer` itself is the package's, a wrapper of it, or a class derived from it."""
    while isinstance(answer, functools.partial):
        answer = answer.func
    answer = inspect.unwrap(answer) if callable(answer) else answer
    for base in answer.__mro__ if inspect.isclass(answer) else [answer]:
        for name in exercise.own:
            if base is resolve(name):
                raise Wrong("reexport", f"Your answer is {name}.")
    home = getattr(answer, "__module__", None) or ""
    if home.split(".")[0] == "minillm":
        raise Wrong("reexport", f"Your answer is {home}.{getattr(answer, '__qualname__', answer)}.")


@contextmanager
def watched(exercise: Exercise):
    """Note every call that the answer makes into the exercise's own code, its reference or the grader.

    Yields the set of names called. A profile function sees a call under whatever name it is made. The check
    itself may use the same functions as its oracle. Whoever means to deceive a grader in his own process
    finds a way; this is for those who did not know that it is no answer.
    """
    reference = f"minillm.grading.reference.lesson{exercise.lesson}.{exercise.answer}"
    forbidden = {id(code): name for name in (*exercise.own, reference) for code in _codes(resolve(name))}
    called = set()

    def on_event(frame, event, _argument):
        if event != "call":
            return
        name = forbidden.get(id(frame.f_code))
        if name is not None and _asked_by_learner(frame.f_back, exercise.check.__code__):
            called.add(name)
        elif name is None and _is_graders(frame) and is_learners(frame.f_back.f_code.co_filename):
            called.add(f"{frame.f_globals['__name__']}.{frame.f_code.co_name}")

    before = sys.getprofile()
    sys.setprofile(on_event)
    try:
        yield called
        if not called and sys.getprofile() is not on_event:
            raise Wrong("unwatched", "Did it call sys.setprofile, or start a profiler?")
    finally:
        sys.setprofile(before)


def _is_graders(frame) -> bool:
    """Whether this is a function of the grader that an answer has no business with, such as an oracle.

    What a check hands to an answer is not: only functions that stand in a module by themselves count. The
    reference of another exercise, and how to get it, is for everybody.
    """
    module, name = frame.f_globals.get("__name__") or "", frame.f_code.co_name
    if not module.startswith("minillm.grading.") or module.startswith("minillm.grading.reference."):
        return False
    code = getattr(frame.f_globals.get(name), "__code__", None)
    return code is frame.f_code and name != "answer_or_reference"


def _asked_by_learner(frame, check) -> bool:
    """Whether code of the learner's stands between this frame and the one of `check`."""
    while frame is not None and frame.f_code is not check:
        if is_learners(frame.f_code.co_filename):
            return True
        frame = frame.f_back
    return False


def run_watched(exercise: Exercise, answer, rng) -> None:
    """Run the check. An answer that asked the package's own code is a re-export, whatever came of it."""
    with watched(exercise) as called:
        try:
            exercise.check(answer, rng)
        except Exception:
            if not called:
                raise
    if called:
        raise Wrong("reexport", f"Your answer calls {' and '.join(sorted(called))}.")


def resolve(dotted: str):
    """The object called `dotted` ("minillm.lab.roofline.step_bytes"), or None where it is missing."""
    module, _, name = dotted.rpartition(".")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError):
        return None


def _codes(thing) -> list:
    """The code objects that run when `thing` (a function or a class) is used."""
    if inspect.isclass(thing):
        return [code for each in vars(thing).values() for code in _codes(each)]
    code = getattr(inspect.unwrap(thing) if callable(thing) else thing, "__code__", None)
    return [code] if code is not None else []
