"""The quiz as it is shown: the ten lines, or the answers beside what really happened."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

from .lines import LINES, SETTING, Line

MEANS = {
    "captured": "captured",
    "refused": "refused, and the capture goes on",
    "broken": "refused, and the capture is broken",
    "unknown": "could not be tried",
}
MARKS = {True: "✓ right", False: "✗ wrong", None: "–"}
SAID = {"y": "yes", "n": "no", "?": "?"}
HOW = (
    'Answer with ten letters, one for each line in order, y (yes) or n (no), "?" where you do not know: '
    'lab.capture_quiz("y?n…"). Then each line that you answered is tried, in a capture, on this machine.'
)
QUESTION = "Which of these lines may stand inside a capture?"


class Questions:
    """The ten lines, and how to answer."""

    def _repr_markdown_(self) -> str:
        rows = ["| | line | may it be captured? |", "|---|---|---|"]
        rows += [f"| {number} | `{line.code}` | y / n |" for number, line in enumerate(LINES, 1)]
        how = HOW.replace('lab.capture_quiz("y?n…")', '`lab.capture_quiz("y?n…")`')
        return f"**{QUESTION}**\n\n```python\n{SETTING}\n```\n\n" + "\n".join(rows) + f"\n\n{how}"

    def __repr__(self) -> str:
        lines = [f"{number:2}  {line.code}" for number, line in enumerate(LINES, 1)]
        return "\n".join([QUESTION, "", textwrap.indent(SETTING, "    "), "", *lines, "", _fill(HOW)])


@dataclass
class Row:
    """A line: the letter, what happened ("captured", "refused", "broken", "unknown"), the error's words."""

    number: int
    line: Line
    answer: str
    verdict: str | None
    words: str = ""

    @property
    def right(self) -> bool | None:
        """None where there is nothing to grade: no answer, or the line could not be tried."""
        if self.answer == "?" or self.verdict in (None, "unknown"):
            return None
        return (self.answer == "y") == (self.verdict == "captured")


@dataclass
class Graded:
    """The answers beside what happened. ``score`` counts the right ones, of ``answered`` that were graded."""

    rows: list[Row]
    backend: str

    @property
    def score(self) -> int:
        return sum(row.right is True for row in self.rows)

    @property
    def answered(self) -> int:
        return sum(row.right is not None for row in self.rows)

    def heading(self) -> str:
        """The score, and where the lines were tried."""
        where = "on the emulator (no GPU here)" if self.backend == "emulated" else "on this GPU"
        open_lines = sum(row.answer == "?" for row in self.rows)
        rest = f"; {open_lines} not answered" if open_lines else ""
        return f"{self.score} of {self.answered} right, tried {where}{rest}"

    def _repr_markdown_(self) -> str:
        from ..troubleshooting.wording import prose

        rows = ["| | line | you | what happened | | why |", "|---|---|---|---|---|---|"]
        for row in self.rows:
            happened, why = ("not told", "") if row.verdict is None else _happened(row)
            words = f"<br>`{row.words.replace('`', chr(39)).replace('|', '¦')}`" if row.words else ""
            rows.append(
                f"| {row.number} | `{row.line.code}` | {SAID[row.answer]} | {happened}{words} "
                f"| {MARKS[row.right]} | {prose(why)} |"
            )
        return f"**{self.heading()}**\n\n" + "\n".join(rows)

    def __repr__(self) -> str:
        lines = [self.heading(), ""]
        for row in self.rows:
            lines.append(f"{row.number:2}  {row.line.code}")
            if row.verdict is None:
                continue
            happened, why = _happened(row)
            lines.append(f"    you: {SAID[row.answer]}   {MARKS[row.right]}: {happened}")
            lines += [_fill(text, "    ") for text in (row.words, why) if text]
        return "\n".join(lines)


def _happened(row: Row) -> tuple[str, str]:
    return MEANS[row.verdict], row.line.why if row.verdict != "unknown" else ""


def _fill(text: str, indent: str = "") -> str:
    return textwrap.fill(text, 100, initial_indent=indent, subsequent_indent=indent)
