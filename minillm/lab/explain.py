"""``lab.explain``: what an error around CUDA graphs means, what to do, and the cell that shows it."""

from __future__ import annotations

from .subprocess_cells import Outcome


def explain(error=None):
    """Explain an error; without an argument, show the whole index as a table.

    error: a text (a message or a whole traceback), an exception (its context is looked at as well), the
    number of a CUDA error, or an ``Outcome`` or list of them from ``lab.in_subprocess``. Where the last error
    only follows from an earlier one (901), the cause comes first, or you are told how to find it.
    Returns what shows itself as Markdown in a notebook and as text in a terminal; ``.known`` says whether
    anything matched, ``.names`` what. TypeError for anything else.
    """
    from .troubleshooting.answer import Explanations

    if error is None:
        from .troubleshooting.table import Table

        return Table()
    if isinstance(error, list) and all(isinstance(one, Outcome) for one in error):
        if len(error) == 1:
            return _one(error[0])
        # the list of what is known once, under the last one
        return Explanations(
            _one(outcome, f"Outcome [{number}]", number == len(error) - 1)
            for number, outcome in enumerate(error)
        )
    return _one(error)


def _one(error, title: str = "", families: bool = True):
    from .troubleshooting.answer import Explanation, NothingToExplain
    from .troubleshooting.given import text_of
    from .troubleshooting.search import find, nearest

    text = text_of(error)
    findings = find(text)
    if findings:
        return Explanation(findings, title=title)
    if isinstance(error, Outcome) and error.ok:
        return NothingToExplain(title)
    return Explanation([], _last_line(text), nearest(text), title, families)


def _last_line(text: str) -> str:
    """The line that says most: of a traceback the last one, else the first."""
    lines = [line.strip() for line in text.splitlines() if line.strip()] or ["(an empty text)"]
    return lines[-1] if lines[0].startswith("Traceback") else lines[0]
