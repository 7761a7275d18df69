"""The lessons in notebooks/: their first cell, and recorded outputs that no longer belong to their cell."""

from pathlib import Path

from minillm.grading.build_files import place_first_cell, read, text_of
from minillm.lab import freshness


def refreshed(path: Path) -> tuple[str, str]:
    """The notebook's text as it should be, and what was wrong with it."""
    notebook = read(path)
    before = text_of(notebook)
    place_first_cell(notebook)
    first_cell_changed = text_of(notebook) != before
    stale = [cell for at, cell in enumerate(notebook.cells) if has_stale_output(cell, notebook.cells[:at])]
    for cell in stale:
        cell.outputs, cell.execution_count = [], None
        if freshness.needs_recording(cell):
            cell.outputs = [freshness.placeholder_output()]
        cell.metadata.get("minillm", {}).pop("recorded", None)
    reasons = []
    if first_cell_changed:
        reasons.append("its first cell is not the course's")
    if stale:
        names = ", ".join(cell.id for cell in stale)
        reasons.append(f"the recorded output of {names} is stale, or is not what `run --record` wrote")
    return text_of(notebook), "; ".join(reasons) or "is not written as Jupyter saves it"


def missing_outputs(folder: Path) -> list[str]:
    """One line for each cell of the lessons in `folder` that shows no recording though it needs one."""
    return [
        f"{path.name}: cell {cell.id} has no recorded output: python -m minillm run --record, on a GPU"
        for path in sorted((folder / "notebooks").glob("*.ipynb"))
        for cell in read(path).cells
        if freshness.needs_recording(cell) and not freshness.is_recorded(cell)
    ]


def has_stale_output(cell, before=()) -> bool:
    """Stale, or an output of which nobody says where it was recorded. ``before`` are the cells above."""
    if cell.cell_type != "code" or not cell.outputs or all(map(freshness.is_placeholder, cell.outputs)):
        return False
    return not freshness.is_recorded(cell) or freshness.is_stale(cell, before)
