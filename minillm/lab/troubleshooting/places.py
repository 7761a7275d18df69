"""Where a cell of a lesson stands: its notebook and its heading, looked up in this copy of the course."""

from __future__ import annotations

import functools
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from ..course import course_root

HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)
FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Place:
    """A cell: ``notebook`` and ``heading`` are None where this copy of the course does not have them."""

    lesson: str
    cell: str | None
    notebook: Path | None = None
    heading: str | None = None

    def words(self) -> str:
        """ "lesson 02, “Fork and join” (cell unjoined)", as far as known."""
        heading = f", “{self.heading}”" if self.heading else ""
        return f"lesson {self.lesson}{heading}" + (f" (cell {self.cell})" if self.cell else "")

    def markdown(self) -> str:
        """`words`, as a link where there is a notebook to open."""
        if self.notebook is None:
            return self.words()
        anchor = f"#{quote(self.heading.replace(' ', '-'), safe='')}" if self.heading else ""
        folder = quote(Path(os.path.relpath(self.notebook)).as_posix())
        cell = f" (cell `{self.cell}`)" if self.cell else ""
        return f"[{self.lesson} · {self.heading or self.notebook.stem}]({folder}{anchor}){cell}"


def place(cell: str, root: Path | None = None) -> Place:
    """The place of "02 unjoined", or of lesson "05" as a whole; ``root`` is the course's folder."""
    lesson, _, name = cell.partition(" ")
    try:
        root = root or course_root()
    except FileNotFoundError:
        return Place(lesson, name or None)
    notebook = next(iter(sorted((root / "notebooks").glob(f"{lesson}_*.ipynb"))), None)
    if notebook is None:
        return Place(lesson, name or None)
    headings = _headings(notebook, notebook.stat().st_mtime_ns)
    if not name:
        return Place(lesson, None, notebook, next(iter(headings.values()), None))
    return Place(lesson, name, notebook, headings.get(name))


@functools.cache
def _headings(notebook: Path, _changed: int) -> dict[str, str | None]:
    """Cell id -> the last heading at or above it, as plain text; {} of a file that cannot be read."""
    try:
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    except (OSError, ValueError, KeyError):
        return {}
    found, heading = {}, None
    for cell in cells:
        text = cell.get("source", "")
        if cell.get("cell_type") == "markdown":
            text = text if isinstance(text, str) else "".join(text)
            heading = next(reversed(HEADING.findall(FENCE.sub("", text))), heading)
        found[cell.get("id")] = heading and _plain(heading)
    return found


def _plain(heading: str) -> str:
    """The text that a reader sees, of which JupyterLab makes the anchor: without links and marks."""
    heading = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[`*]|(?<!\w)_|_(?!\w)", "", heading).strip()
