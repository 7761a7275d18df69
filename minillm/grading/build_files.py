"""Notebook files as build reads and writes them: the same content always gives the same bytes."""

import hashlib
import json
import os
from pathlib import Path

from minillm.grading.solution_cells import BuildError
from minillm.lab.first_cell import CELL_ID, FIRST_CELL
from minillm.lab.notebook_file import Failed, read_notebook


def read(path: Path):
    """The notebook at `path`; BuildError if it cannot be read, or a cell has no id to be known by."""
    try:
        cells = json.loads(path.read_text(encoding="utf-8")).get("cells", [])
        notebook = read_notebook(path)
    except (Failed, ValueError, AttributeError, OSError, RecursionError) as error:
        raise BuildError(str(error)) from None
    if not all(cell.get("id") for cell in cells):
        raise BuildError("a cell has no id; open and save the notebook in JupyterLab, which gives it one")
    return notebook


def text_of(notebook) -> str:
    """The notebook as Jupyter itself would save it, keys in order."""
    import nbformat

    return nbformat.writes(notebook).rstrip("\n") + "\n"


def place_first_cell(notebook) -> None:
    """Make the course's first cell the first code cell, whether it was there or not."""
    import nbformat

    cells = [cell for cell in notebook.cells if cell.get("id") != CELL_ID]
    before = next((i for i, cell in enumerate(notebook.cells) if cell.cell_type == "code"), len(cells))
    kept = next((cell for cell in notebook.cells if cell.get("id") == CELL_ID), None)
    first = kept or nbformat.v4.new_code_cell(id=CELL_ID)
    first.source = FIRST_CELL
    notebook.cells = [*cells[:before], first, *cells[before:]]


def strip_outputs(notebook) -> None:
    """Remove what running left: outputs and execution counts."""
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None


def source_hash(notebook) -> str:
    """A hash of what a learner would edit: the cells, in order. Outputs and metadata do not count."""
    digest = hashlib.sha256()
    for cell in notebook.cells:
        digest.update(f"{cell.cell_type}\0{cell.source.rstrip()}\0".encode())
    return digest.hexdigest()


def write(path: Path, text: str) -> None:
    """Replace a file in one step, so that nobody meets half of it. A link stays, and leads to the new one."""
    path = Path(os.path.realpath(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(path.name + ".tmp")
    unfinished.write_text(text, encoding="utf-8", newline="\n")
    os.replace(unfinished, path)
