"""The course map and the syllabi, computed from the notebooks' own metadata."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

from .display import Markdown

# What a syllabus is for: its title, and the minutes that a room has for notebooks and core exercises.
SYLLABI = {"90 minutes": 80, "half a day": 200, "a full day": 360}


@dataclass
class Exercise:
    """One graded exercise, as its answer cell describes it."""

    id: str
    minutes: int
    difficulty: int
    core: bool


@dataclass
class Lesson:
    """One lesson notebook and its exercises; ``minutes`` are those of the notebook alone."""

    number: str
    title: str
    minutes: int
    file: str
    exercises: list[Exercise] = field(default_factory=list)

    def core_minutes(self) -> int:
        """Minutes of the notebook and its core exercises."""
        return self.minutes + sum(e.minutes for e in self.exercises if e.core)


def course_root(start: str | Path | None = None) -> Path:
    """The folder that holds ``notebooks/`` and ``exercises/``, at or above ``start`` (the cwd if left out).

    Raises FileNotFoundError when there is none.
    """
    here = Path(start or Path.cwd()).resolve()
    beside_package = Path(__file__).resolve().parents[2]
    for folder in (here, *here.parents, beside_package):
        if (folder / "notebooks").is_dir() and (folder / "exercises").is_dir():
            return folder
    raise FileNotFoundError(
        f"no course folder at or above {here.name}/: expected one that holds notebooks/ and exercises/; "
        "start from a folder inside your copy of the course"
    )


def lessons(root: str | Path | None = None) -> list[Lesson]:
    """The lessons of this copy of the course, in order, read from the notebooks' metadata."""
    root = Path(root) if root else course_root()
    found = []
    for path in sorted((root / "notebooks").glob("[0-9][0-9]_*.ipynb")):
        meta = json.loads(path.read_text(encoding="utf-8"))["metadata"]["minillm"]
        lesson = Lesson(meta["lesson"], meta["title"], meta["minutes"], path.name)
        exercises = root / "exercises" / path.name
        if exercises.exists():
            cells = json.loads(exercises.read_text(encoding="utf-8"))["cells"]
            answers = [c["metadata"].get("minillm", {}) for c in cells]
            lesson.exercises = [
                Exercise(a["exercise"], a["minutes"], a["difficulty"], bool(a.get("core")))
                for a in answers
                if "exercise" in a
            ]
        found.append(lesson)
    return found


def syllabus(minutes: int, root: str | Path | None = None) -> list[tuple[Lesson, list[Exercise]]]:
    """What fits into ``minutes``: the lessons in order, with as many exercises as there is time for.

    Lesson 00 is homework and costs nothing here. Lessons are taken in order with their core exercises
    while they fit; time that is left goes to the remaining exercises, the easiest first.
    """
    chosen, left = [], minutes
    for lesson in lessons(root):
        if lesson.number == "00":
            continue
        if lesson.core_minutes() > left:
            break
        chosen.append((lesson, [e for e in lesson.exercises if e.core]))
        left -= lesson.core_minutes()
    extras = [(e, taken) for lesson, taken in chosen for e in lesson.exercises if not e.core]
    for exercise, taken in sorted(extras, key=lambda pair: pair[0].difficulty):
        if exercise.minutes <= left:
            taken.append(exercise)
            left -= exercise.minutes
    return [(lesson, sorted(taken, key=lambda e: e.id)) for lesson, taken in chosen]


def course_map(root: str | Path | None = None):
    """Shows the lessons of this copy with minutes and exercises, and the three syllabi (Markdown)."""
    rows = ["| | lesson | minutes | exercises (★ core) | minutes |", "|---|---|---|---|---|"]
    for lesson in lessons(root):
        ids = ", ".join(e.id + ("★" if e.core else "") for e in lesson.exercises)
        practice = sum(e.minutes for e in lesson.exercises)
        rows.append(f"| {lesson.number} | {lesson.title} | {lesson.minutes} | {ids} | {practice or ''} |")
    rows.append("")
    for title, minutes in SYLLABI.items():
        plan = syllabus(minutes, root)
        parts = [f"{lesson.number} ({', '.join(e.id for e in taken) or 'reading'})" for lesson, taken in plan]
        used = sum(lesson.minutes + sum(e.minutes for e in taken) for lesson, taken in plan)
        rows.append(f"- **{title}**: {' → '.join(parts) or 'nothing fits'} · {used} minutes")
    return Markdown("\n".join(rows))
