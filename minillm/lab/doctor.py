"""The doctor: what will run on this machine, and what to do about each problem."""

from __future__ import annotations

import html
import textwrap
import warnings
from dataclasses import dataclass

STATUS = ("ok", "warn", "fail")
_COLOUR = {"ok": "#1b7837", "warn": "#8a5a00", "fail": "#b2182b"}  # readable on white; the word says it too


@dataclass(frozen=True)
class Row:
    """One finding: what was checked, "ok", "warn" or "fail", what was found, and what to do about it."""

    check: str
    status: str
    found: str
    advice: str = ""

    def __post_init__(self):
        if self.status not in STATUS:
            raise ValueError(f"status is {self.status!r}; it must be one of {', '.join(STATUS)}")
        if self.status != "ok" and not self.advice:
            raise ValueError(f"the row {self.check!r} is a problem and does not say what to do about it")


@dataclass(frozen=True)
class Report:
    """The doctor's rows. ``print(report)`` is a table of text, a notebook shows one of HTML.

    ``ok`` is False only if a row failed: a missing GPU is no failure (the course then runs emulated), and
    a warning is something to know, not something that stops the course.
    """

    rows: tuple[Row, ...]

    @property
    def ok(self) -> bool:
        return all(row.status != "fail" for row in self.rows)

    @property
    def summary(self) -> str:
        count = {status: sum(row.status == status for row in self.rows) for status in STATUS}
        if count["fail"]:
            return f"{count['fail']} problem(s) to solve first, {count['warn']} warning(s)."
        return f"Ready: {count['ok']} checks passed, {count['warn']} warning(s)."

    def __str__(self) -> str:
        width = max((len(row.check) for row in self.rows), default=0)
        lines = []
        for row in self.rows:
            lead = f"{row.status.upper() if row.status == 'fail' else row.status:<5}{row.check:<{width}}  "
            lines += _wrapped(row.found, lead)
            if row.advice:
                lines += _wrapped(row.advice, " " * (len(lead) - 3) + "-> ")
        return "\n".join([*lines, "", self.summary])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        left = 'style="text-align:left; white-space:normal"'
        cells = []
        for row in self.rows:
            look = f"background:{_COLOUR[row.status]};color:#fff;padding:0.1em 0.5em"
            status = f'<b style="{look}">{row.status}</b>'
            advice = f"<br><i>What to do: {html.escape(row.advice)}</i>" if row.advice else ""
            check, found = html.escape(row.check), html.escape(row.found) + advice
            cells.append(f"<tr><td {left}>{check}</td><td>{status}</td><td {left}>{found}</td></tr>")
        head = f"<tr><th {left}>check</th><th></th><th {left}>found</th></tr>"
        return f"<table>{head}{''.join(cells)}</table><p>{html.escape(self.summary)}</p>"


def _wrapped(text: str, lead: str) -> list[str]:
    return textwrap.wrap(
        text, 100, initial_indent=lead, subsequent_indent=" " * len(lead), break_long_words=False
    ) or [lead.rstrip()]


def doctor() -> Report:
    """Look at this machine and report; a few seconds at most beyond importing torch, and it never raises.

    It really runs a kernel and reads the result back: a GPU that this torch has no kernels for passes
    ``torch.cuda.is_available()`` and fails at the first operation.
    """
    from . import doctor_gpu, doctor_machine, doctor_state

    rows: list[Row] = []
    for check in (*doctor_machine.CHECKS, *doctor_gpu.CHECKS, *doctor_state.CHECKS):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # torch warns of an old driver; the rows say it better
                rows += check()
        except Exception as error:  # a broken check must not hide the others
            found = f"could not be checked: {type(error).__name__}: {error}"
            advice = "The course may run all the same. If it does not, start with this message."
            rows.append(Row(check.__name__.replace("_", " "), "warn", found, advice))
    return Report(tuple(rows))
