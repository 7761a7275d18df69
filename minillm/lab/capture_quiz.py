"""``lab.capture_quiz``: which of ten lines may be captured? Graded by what really happens on this machine."""

from __future__ import annotations

import json

from .quiz.graded import Graded, Questions, Row
from .quiz.lines import LINES

SECONDS = 60.0  # for one line; the first starts CUDA in the worker


def capture_quiz(answers: str = ""):
    """Which of ten lines may stand inside a capture? Without answers: shows them, and how to answer.

    answers: a letter for each line, "y" (may be captured), "n" (may not) or "?" (not answered); blanks and
    capitals do not matter. Each line that was answered is run in a capture, in a process of its own, on the
    running backend: it is captured; or refused, and the capture goes on; or the capture is broken. Only the
    first makes "y" right. What was not answered is not told.
    Returns what shows itself as Markdown in a notebook and as text in a terminal; graded it has ``.score``,
    ``.answered`` and ``.rows``. TypeError for what is no text, ValueError for another number of letters or
    other letters.
    """
    letters = checked(answers)
    if not letters.strip("?"):
        if not letters:
            _show_form()
        return Questions()
    from ..graphs import backend

    tried = try_lines([line.code for line, letter in zip(LINES, letters, strict=True) if letter != "?"])
    rows = [
        Row(number, line, letter, *(next(tried) if letter != "?" else (None,)))
        for number, (line, letter) in enumerate(zip(LINES, letters, strict=True), 1)
    ]
    return Graded(rows, backend)


def checked(answers: str) -> str:
    """The ten letters without blanks, in lower case; "" if there are none."""
    if not isinstance(answers, str):
        raise TypeError(f"answers is {answers!r}; expected a text of {len(LINES)} letters such as 'yn?…'")
    letters = "".join(answers.split()).lower()
    for position, letter in enumerate(letters, 1):
        if letter not in "yn?":
            raise ValueError(
                f"answer {position} is {letter!r}; expected y (may be captured), n (may not) or ? "
                "(not answered)"
            )
    if letters and len(letters) != len(LINES):
        raise ValueError(
            f"{len(letters)} answers for {len(LINES)} lines; expected a letter for each line, in order: put "
            "? where you have no answer"
        )
    return letters


def try_lines(lines: list[str]):
    """Yields (verdict, words) for each line, tried one after another in a worker."""
    from .subprocess_cells import in_subprocess

    snippets = [f"from minillm.lab.quiz.trial import report\nreport({code!r})" for code in lines]
    for outcome in in_subprocess(snippets, timeout=SECONDS):
        if outcome.ok:
            told = json.loads(outcome.stdout.splitlines()[-1])
            yield told["verdict"], told["words"]
        else:
            yield "unknown", f"{outcome.error_type}: {outcome.message}".splitlines()[0]


def _show_form() -> None:
    """The same with buttons, where a notebook can show them; the table below it needs none."""
    try:
        import ipywidgets  # noqa: F401
        from IPython import get_ipython
    except ImportError:
        return
    if get_ipython() is not None:
        from .quiz.form import show_form

        show_form()
