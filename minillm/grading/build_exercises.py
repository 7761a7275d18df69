"""One solution notebook -> its exercise notebook and its reference module."""

from dataclasses import dataclass
from pathlib import Path

from minillm.grading.answer_cell import check_answer_cell
from minillm.grading.build_files import place_first_cell, read, source_hash, strip_outputs, text_of
from minillm.grading.reference_source import HEADING
from minillm.grading.solution_cells import (
    BuildError,
    blank,
    checked_ids,
    has_markers,
    known,
    without_markers,
)

# The cells stand one below the other, each with its own imports, so that `reveal` can show one of them.
HEADER = '''# ruff: noqa: E402, F811, I001
"""Reference solutions of lesson {number}. Generated, do not edit: `python -m minillm build` makes them."""
'''


@dataclass(frozen=True)
class Built:
    """What one solution notebook gives: the texts of three files."""

    number: str
    solution: str
    exercise: str
    reference: str


def build_lesson(path: Path) -> Built:
    """Build `path`. Raises BuildError, which names the cell, if the notebook breaks a rule."""
    notebook = read(path)
    number = notebook.metadata.get("minillm", {}).get("lesson")
    if number != path.name[:2]:
        raise BuildError(f'its metadata says minillm.lesson = {number!r}; expected "{path.name[:2]}"')
    place_first_cell(notebook)
    strip_outputs(notebook)
    solution = text_of(notebook)
    answers: dict[str, str] = {}
    checked: list[str] = []
    for cell in notebook.cells:
        try:
            if cell.cell_type == "code":
                checked += checked_ids(cell.source)
            _take_answer(cell, answers)
        except BuildError as error:
            raise BuildError(f"cell {cell.id}: {error}") from None
    if set(checked) != set(answers):
        names = [", ".join(sorted(ids)) or "none" for ids in (set(answers), set(checked))]
        raise BuildError(f"answer cells are {names[0]}, check is called for {names[1]}")
    return Built(number, solution, _exercise_text(notebook), _reference_text(number, answers))


def _take_answer(cell, answers: dict[str, str]) -> None:
    """Put the solution of an answer cell into `answers` and leave the blank in the cell."""
    is_answer = "answer" in cell.metadata.get("tags", [])
    if not is_answer:
        if has_markers(cell.source):
            raise BuildError('it has solution markers and no tag "answer"; add the tag')
        return
    id = cell.metadata.get("minillm", {}).get("exercise")
    if id is None:
        raise BuildError('it has the tag "answer" and no metadata minillm.exercise')
    if not has_markers(cell.source):
        raise BuildError("it has no solution markers, so the solution would stay in the exercise")
    if id in answers:
        raise BuildError(f"a second answer cell for {id}")
    exercise = known(id)
    stub = blank(cell.source)
    check_answer_cell(cell.source, exercise.answer)
    answers[id] = without_markers(cell.source)
    cell.source = stub


def _exercise_text(notebook) -> str:
    """The learner's copy: no presenter's cells, nothing of the author's editor, a hash of what it was."""
    notebook.cells = [cell for cell in notebook.cells if "presenter" not in cell.metadata.get("tags", [])]
    for cell in notebook.cells:
        for key in set(cell.metadata) - {"tags", "minillm"}:
            del cell.metadata[key]
    ours = {**notebook.metadata["minillm"], "built": source_hash(notebook)}
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
        "minillm": ours,
    }
    return text_of(notebook)


def _reference_text(number: str, answers: dict[str, str]) -> str:
    sections = [f"{HEADING.format(id=id)}\n{source.strip()}\n" for id, source in answers.items()]
    # As ruff format has it: two blank lines above a definition, one above an import.
    imports_first = sections[0].split("\n")[1].startswith(("import", "from")) if sections else True
    return HEADER.format(number=number) + ("\n" if imports_first else "\n\n") + "\n\n".join(sections)


def edited(path: Path) -> bool:
    """Whether the exercise notebook at `path` is no longer what build wrote, or cannot even be read."""
    if not path.exists():
        return False
    try:
        notebook = read(path)
    except BuildError:
        return True
    return notebook.metadata.get("minillm", {}).get("built") != source_hash(notebook)
