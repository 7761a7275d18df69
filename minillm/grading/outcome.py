"""What a check found, and how a notebook shows it."""

import html
import re
from dataclasses import dataclass

PASS, FAIL, ERROR, NOT_ATTEMPTED = "PASS", "FAIL", "ERROR", "NOT ATTEMPTED"
STATUSES = (PASS, FAIL, ERROR, NOT_ATTEMPTED)

# The word carries the meaning; the colour only repeats it, so nobody has to tell red from green.
COLOURS = {PASS: "#00725a", FAIL: "#b2452d", ERROR: "#8a3f8f", NOT_ATTEMPTED: "#6b6b6b"}


@dataclass(frozen=True)
class Outcome:
    """The result of one check.

    status         one of STATUSES
    misconception  the key of the mistake that the grader recognised (FAIL), else None
    message        what was seen, in words for the learner; may have several lines
    """

    id: str
    status: str
    message: str = ""
    misconception: str | None = None
    title: str = ""

    def __post_init__(self):
        if self.status not in STATUSES:
            raise ValueError(f"status is one of {', '.join(STATUSES)}, not {self.status!r}")

    @property
    def passed(self) -> bool:
        return self.status == PASS

    @property
    def next_step(self) -> str:
        """One line: what the learner can do now."""
        if self.status == NOT_ATTEMPTED:
            return f'Fill in the answer cell and run both cells again. To get started: hint("{self.id}")'
        if self.status == FAIL:
            return f'For a push in the right direction: hint("{self.id}")'
        return ""

    def _lines(self) -> list[str]:
        return [line for line in (self.message, self.next_step) if line]

    def __repr__(self):
        head = f"{self.status}  {self.id}  {self.title}".rstrip()
        body = "\n".join(self._lines())
        return head + "".join(f"\n  {line}" for line in body.splitlines())

    def _repr_html_(self):
        colour = COLOURS[self.status]
        code = r"`([^`\n]+)`|(hint\(&quot;[\d.]+&quot;\))"  # names between backticks, and the call of a hint
        body = re.sub(code, r"<code>\1\2</code>", html.escape("\n".join(self._lines())))
        return (
            f'<div style="border-left:5px solid {colour};padding:0.3em 0.9em">'
            f'<b style="background:{colour};color:#fff;padding:0.1em 0.5em">{self.status}</b> '
            f"<b>{html.escape(self.id)}</b> {html.escape(self.title)}"
            f'<div style="white-space:pre-wrap;margin-top:0.4em">{body}</div></div>'
        )
