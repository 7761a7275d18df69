"""check, hint and reveal: what a learner calls."""

import random

from minillm.grading import progress_file
from minillm.grading.calling import refuse_uncallable
from minillm.grading.frames import where
from minillm.grading.guard import guard
from minillm.grading.outcome import ERROR, FAIL, NOT_ATTEMPTED, PASS, Outcome
from minillm.grading.reexport import refuse_reexport, run_watched
from minillm.grading.reference_source import reference, reference_source
from minillm.grading.registry import Wrong, find
from minillm.grading.text import Text
from minillm.grading.unfinished import is_untouched, what_is_left

RESTART = (
    "Your answer left CUDA in a state that cannot be repaired from here ({reason}). The result above is "
    "kept; restart the kernel before you go on."
)


def check(id: str, answer, seed: int = 0) -> Outcome:
    """Grade `answer` (the function or class itself) for exercise `id`, and note the result in the progress.

    `seed` chooses the random cases; the default is the same for everybody. Never raises because of the
    answer: the Outcome says PASS, FAIL, ERROR or NOT ATTEMPTED. UnknownExercise lists the ids there are.
    """
    outcome = grade(id, answer, seed)
    progress_file.note_outcome(outcome)
    return outcome


def grade(id: str, answer, seed: int = 0, accept_reference: bool = False) -> Outcome:
    """What `check` finds, without noting it. `accept_reference` lets the course test its own solutions."""
    exercise = find(id)
    status, key, message = NOT_ATTEMPTED, None, ""
    held = []  # what the answer made lives until `recover` is done: only its graph can end an open capture
    if answer is None or answer is Ellipsis:
        return Outcome(id, status, message, key, exercise.title)
    try:
        with guard():
            if not accept_reference:
                refuse_reexport(exercise, answer)
            refuse_uncallable(exercise, answer)
            run_watched(exercise, answer, random.Random(f"{id}/{seed}"))
        status, message = PASS, ""
    except Wrong as wrong:
        held.append(wrong)
        if explanation := exercise.explain(wrong.key):
            status, key, message = FAIL, wrong.key, f"{explanation} {wrong.seen}".strip()
        else:  # the answer raised it
            status, message = ERROR, _describe(wrong)
    except NotImplementedError as error:
        if not is_untouched(error, exercise):
            status, message = ERROR, what_is_left(error, exercise) or _describe(error)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # also SystemExit: an answer may not end the kernel
        held.append(error)
        status, message = ERROR, _describe(error)
    if exercise.captures and status in (FAIL, ERROR) and (reason := recover()):
        message += "\n" + RESTART.format(reason=reason)
    held.clear()
    return Outcome(id, status, message, key, exercise.title)


def hint(id: str) -> Text:
    """The next hint of exercise `id`, below those already given; one step further at each call."""
    exercise = find(id)
    number = progress_file.note_hint(id, len(exercise.hints))
    total = len(exercise.hints)
    lines = [f"Hint {n} of {total}: {text}" for n, text in enumerate(exercise.hints[:number], start=1)]
    if number == total:
        lines.append(f'That was the last hint. reveal("{id}") shows the solution.')
    return Text("\n".join(lines))


def reveal(id: str) -> Text:
    """The reference solution of exercise `id`; the progress marks the exercise as revealed."""
    exercise = find(id)
    source = reference_source(exercise)
    progress_file.note_revealed(id)
    return Text(source, code=True)


def answer_or_reference(id: str, answer):
    """`answer` if it passes, else the reference solution, and a printed line that says so."""
    outcome = grade(id, answer)
    if outcome.passed:
        return answer
    print(f"{id} is {outcome.status}, so this cell goes on with the reference solution.")
    return reference(find(id))


def _describe(error: BaseException) -> str:
    """Type and text of an exception, the learner's line that raised it, and the call that led there."""
    place = where(error)
    if isinstance(error, SystemExit):
        return f"Your answer ends the program ({type(error).__name__}); return a value instead. At {place}"
    try:
        text = f"{type(error).__name__}: {error}".rstrip(": ")
    except Exception:  # its own __str__ fails
        text = type(error).__name__
    return "\n".join([text, *([f"at {place}"] if place else []), *getattr(error, "called_with", [])])


def recover() -> str | None:
    """Undo what an answer did to this process's ability to capture; what is still broken, or None."""
    from minillm.graphs import recover as after_a_capture

    return after_a_capture()
