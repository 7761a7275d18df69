"""progress(): the learner's board."""

import html

from minillm.grading import progress_file
from minillm.grading.outcome import COLOURS, NOT_ATTEMPTED, PASS
from minillm.grading.registry import Exercise, all_exercises

COLUMNS = ("exercise", "", "state", "attempts", "hints", "first passed")


class Board:
    """One row an exercise; prints as a text table and shows as HTML in a notebook."""

    def __init__(self, exercises: list[Exercise], entries: dict[str, dict]):
        self.exercises, self.entries = exercises, entries

    @property
    def rows(self) -> list[tuple[str, ...]]:
        return [self._row(each) for each in self.exercises]

    @property
    def summary(self) -> str:
        passed = sum(bool(self._entry(each)["first_pass"]) for each in self.exercises)
        return f"{passed} of {len(self.exercises)} exercises passed"

    def _entry(self, exercise: Exercise) -> dict:
        return self.entries.get(exercise.id, progress_file.FRESH)

    def _state(self, exercise: Exercise) -> str:
        """What was passed once stays passed, also when the notebook was emptied since."""
        entry = self._entry(exercise)
        state = PASS if entry["first_pass"] else entry["status"]
        return f"{state}, solution revealed" if entry["revealed"] else state

    def _row(self, exercise: Exercise) -> tuple[str, ...]:
        entry = self._entry(exercise)
        first = (entry["first_pass"] or "")[:16].replace("T", " ")
        hints = f"{entry['hints']} of {len(exercise.hints)}"
        return (
            exercise.id,
            exercise.title,
            self._state(exercise),
            str(entry["attempts"]),
            hints,
            f"{first} UTC" if first else "",
        )

    def __repr__(self):
        table = [COLUMNS, *self.rows]
        widths = [max(len(row[column]) for row in table) for column in range(len(COLUMNS))]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in table
        ]
        return "\n".join([*lines, self.summary])

    def _repr_html_(self):
        head = "".join(f"<th style='text-align:left'>{name}</th>" for name in COLUMNS)
        body = ""
        for row in self.rows:
            state = row[2].split(",")[0]
            colour = COLOURS.get(state, COLOURS[NOT_ATTEMPTED])
            cells = [f"<td style='text-align:left'>{html.escape(cell)}</td>" for cell in row]
            cells[2] = (
                f"<td style='text-align:left;border-left:5px solid {colour};padding-left:0.5em'>"
                f"{html.escape(row[2])}</td>"
            )
            body += f"<tr>{''.join(cells)}</tr>"
        return f"<table><tr>{head}</tr>{body}</table><p>{self.summary}</p>"


def progress() -> Board:
    """The board of all exercises, read from the progress file."""
    return Board(all_exercises(), progress_file.read())
