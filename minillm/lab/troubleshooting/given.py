"""The text of what was passed to ``lab.explain``: the earliest error first, the last one last."""

from __future__ import annotations

import re

from ..subprocess_cells import Outcome

COLOURS = re.compile(r"\x1b\[[0-9;]*m")  # as notebooks colour their tracebacks
# "904", "error 904", "CUDA's error code 904", "CUDA error: 904"
NUMBER = re.compile(
    r"\s*(?:cuda(?:['’]s)?\s+)?(?:error)?\s*(?:code|number)?\s*[:#]?\s*(\d+)\s*", re.IGNORECASE
).fullmatch
AFTER = re.compile(r"^ *raised after ", re.MULTILINE)


def text_of(error) -> str:
    """All that was said, in the order of time.

    error: a text, an exception (its ``__cause__`` and ``__context__`` come before it), an ``Outcome`` (what
    it printed and its context come before its error), or the number of a CUDA error. TypeError for anything
    else.
    """
    if isinstance(error, int) and not isinstance(error, bool):
        return f"CUDA error {error}"
    if isinstance(error, str):
        if number := NUMBER(error):
            return f"CUDA error {int(number[1])}"
        return in_time(COLOURS.sub("", error))
    if isinstance(error, BaseException):
        return "\n".join(said(e) for e in reversed(chain(error)))
    if isinstance(error, Outcome):
        last = [] if error.error_type is None else [f"{error.error_type}: {error.message}"]
        return "\n".join([error.stdout, *reversed(error.context), *last])
    raise TypeError(
        f"explain() got {type(error).__name__}; expected the text of an error, the exception itself, what "
        "lab.in_subprocess returned, or the number of a CUDA error"
    )


def in_time(text: str) -> str:
    """The text with what a printed ``Outcome`` puts last ("raised after …") brought before its error."""
    start = AFTER.search(text)
    if not start:
        return text
    error, earlier = text[: start.start()].rstrip("\n"), AFTER.split(text[start.start() :])[1:]
    *before, last = re.split(r"\n(?=\w+: )", error) if error else [""]
    return "\n".join([*before, *(part.rstrip("\n") for part in reversed(earlier)), last])


def said(error: BaseException) -> str:
    """ "Type: message", and the notes that were added."""
    return "\n".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", [])])


def chain(error: BaseException) -> list[BaseException]:
    """The error and those before it, latest first, as a traceback would show them."""
    found = []
    while error is not None and all(error is not other for other in found):
        found.append(error)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return found
