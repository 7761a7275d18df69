"""Puts what a GPU run showed into the lesson's own file: outputs and their stamps, never a changed source."""

from __future__ import annotations

import datetime
import json
import os
import re
import sys
import sysconfig
import tempfile
from pathlib import Path

from .html_copy import WIDGET_VIEW
from .notebook_file import Failed

LIVE_ONLY = "live-only"  # the tag of a cell that speaks of the reader's own machine: nothing of it is stored


def write_back(path: Path, executed, machine: dict[str, str | None]) -> None:
    """Replaces the outputs in the notebook file at ``path`` by those of ``executed``, the same notebook, run.

    Cells that show something, or need a recording (``freshness.needs_recording``), are stamped with today and
    ``machine``.
    Widgets are dropped, since they are dead without a kernel and their static figure stands in the same cell.
    Execution counts are cleared, so that a new recording differs only where its outputs do.

    Raises Failed, and leaves the file as it was, when the sources are not the same, when a cell has no id,
    when an output would publish a path of this machine, or when the file cannot be written.
    """
    import nbformat

    from . import freshness  # brings torch, which only a recording needs here

    lesson = nbformat.read(path, as_version=4)
    before = [(cell.get("id"), cell.source) for cell in lesson.cells]
    if before != [(cell.get("id"), cell.source) for cell in executed.cells] or None in dict(before):
        raise Failed("its cells have no ids, or were edited while it ran; save it and run it again")
    today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    for at, (cell, ran) in enumerate(zip(lesson.cells, executed.cells, strict=True)):
        if cell.cell_type != "code":
            continue
        cell.outputs, cell.execution_count = publishable_outputs(ran.outputs), None
        if LIVE_ONLY in cell.metadata.get("tags", ()):
            cell.outputs = []
        found = machine_paths(json.dumps(cell.outputs, ensure_ascii=False))
        if found:
            raise Failed(f"the output of cell {cell.id} names a path of this machine: {found[0]}")
        cell.metadata.get("minillm", {}).pop("recorded", None)
        if cell.outputs or freshness.needs_recording(cell):
            freshness.stamp_cell(cell, {**machine, "date": today}, before=lesson.cells[:at])
    lesson.metadata.pop("widgets", None)
    text = nbformat.writes(lesson) + "\n"
    if before != [(cell.get("id"), cell.source) for cell in nbformat.reads(text, as_version=4).cells]:
        raise Failed("its sources would change on the way through nbformat; open and save it in JupyterLab")
    unfinished = path.with_name(path.name + ".tmp")
    try:
        unfinished.write_text(text, encoding="utf-8", newline="\n")
        os.replace(unfinished, path)
    except OSError as problem:
        raise Failed(f"its outputs cannot be written back: {problem.strerror or problem}") from problem


def publishable_outputs(outputs: list) -> list:
    """Copies of a cell's outputs without widgets and without execution counts."""
    import nbformat

    kept = []
    for output in outputs:
        if WIDGET_VIEW in output.get("data", {}):
            continue
        output = nbformat.from_dict(output)
        if "execution_count" in output:
            output.execution_count = None
        kept.append(output)
    return kept


def machine_paths(text: str) -> list[str]:
    """The paths in ``text`` that mean nothing elsewhere: in homes, libraries, the course, temporary files."""
    course = str(Path(__file__).resolve().parents[2])
    environment = [sys.prefix] if sys.prefix != sys.base_prefix else []
    folders = [course, str(Path.home()), sysconfig.get_path("stdlib"), tempfile.gettempdir(), *environment]
    patterns = [re.escape(folder) + r"(?=[/\\])" for folder in folders if len(folder) > 1]
    patterns += [r"/(?:home|Users|root)/", r"[A-Za-z]:\\+Users", r"[\w./\\-]+[/\\](?:site|dist)-packages"]
    return re.findall(rf"(?<![\w/])(?:{'|'.join(patterns)})[\w./\\-]*", text)
