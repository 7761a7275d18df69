"""Answers that people write, kept as tests: wrong ones with the mistake that must be named, and right ones.

    @wrong("1.2", "ignored-queue")
    def starts_when_launched(launch_us, kernel_us): ...

    @right("1.2")
    def with_a_running_maximum(launch_us, kernel_us): ...

They live in tests/wrong_answers/NN/*.py, NN being the lesson.
"""

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from minillm.grading.core import grade
from minillm.grading.outcome import FAIL, PASS, Outcome


@dataclass(frozen=True)
class Entry:
    """One answer. `misconception` is None for a right one."""

    id: str
    misconception: str | None
    answer: object
    file: str

    @property
    def name(self) -> str:
        return f"{self.id} {getattr(self.answer, '__name__', self.answer)}"

    def judge(self, seed: int = 0) -> tuple[bool, Outcome]:
        """Whether the grader says of this answer what it should, and what it says."""
        outcome = grade(self.id, self.answer, seed)
        expected = (PASS, None) if self.misconception is None else (FAIL, self.misconception)
        return (outcome.status, outcome.misconception) == expected, outcome


_entries: list[Entry] = []


def wrong(id: str, misconception: str) -> Callable:
    """The decorated answer to `id` must fail, with exactly this misconception."""
    return lambda answer: _add(id, misconception, answer)


def right(id: str) -> Callable:
    """The decorated answer to `id` must pass."""
    return lambda answer: _add(id, None, answer)


def _add(id, misconception, answer):
    code = getattr(answer, "__code__", None)
    _entries.append(Entry(id, misconception, answer, code.co_filename if code else ""))
    return answer


def load_corpus(folder: str | Path) -> list[Entry]:
    """Import every file below `folder` and return the answers in it, in order of lesson and file."""
    found: list[Entry] = []
    for path in sorted(Path(folder).glob("[0-9][0-9]/*.py")):
        _entries.clear()
        name = f"wrong_answers_{path.parent.name}_{path.stem}"
        specification = importlib.util.spec_from_file_location(name, path)
        specification.loader.exec_module(importlib.util.module_from_spec(specification))
        found += _entries
    _entries.clear()
    return found
