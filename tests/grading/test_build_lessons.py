"""Recorded outputs of lessons: a stale one gives way, a missing one matters for a release."""

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from minillm.grading.build import build
from minillm.lab import freshness
from minillm.lab.first_cell import CELL_ID, FIRST_CELL

GPU = {"gpu": "NVIDIA H200", "torch": "2.11.0", "date": "2026-11-29"}


def recorded_cell(source="print('a timing')", id="timing"):
    cell = new_code_cell(
        source, id=id, metadata={"tags": ["gpu"]}, outputs=[new_output("stream", text="12 µs")]
    )
    freshness.stamp_cell(cell, GPU)
    return cell


@pytest.fixture
def course(tmp_path):
    for folder in ("solutions", "notebooks", "exercises"):
        (tmp_path / folder).mkdir()
    return tmp_path


def save(course, *cells):
    first = new_code_cell(FIRST_CELL, id=CELL_ID)
    notebook = new_notebook(cells=[new_markdown_cell("# Lesson", id="title"), first, *cells])
    nbformat.write(notebook, course / "notebooks/01_lesson.ipynb")


def load(course):
    notebook = nbformat.read(course / "notebooks/01_lesson.ipynb", as_version=4)
    nbformat.validate(notebook)
    return notebook


UP_TO_DATE = ["Everything is built."]


def said(course, **options):
    lines = []
    return build(course, say=lines.append, **options), lines


def test_a_fresh_output_stays(course):
    save(course, recorded_cell())
    before = (course / "notebooks/01_lesson.ipynb").read_bytes()
    assert said(course, check=True, release=True) == (0, UP_TO_DATE)
    assert said(course) == (0, UP_TO_DATE)
    assert (course / "notebooks/01_lesson.ipynb").read_bytes() == before


def test_a_stale_output_fails_the_check_and_is_replaced(course):
    cell = recorded_cell()
    cell.source = "print('another timing')"
    save(course, cell, recorded_cell(id="fresh"))
    before = (course / "notebooks/01_lesson.ipynb").read_bytes()
    code, lines = said(course, check=True)
    assert code == 1 and (course / "notebooks/01_lesson.ipynb").read_bytes() == before
    assert "notebooks/01_lesson.ipynb: the recorded output of timing is stale" in lines[0]
    assert said(course)[0] == 0
    stale, fresh = load(course).cells[2:]
    assert [freshness.is_placeholder(output) for output in stale.outputs] == [True]
    assert "recorded" not in stale.metadata.get("minillm", {})
    assert fresh.outputs[0].text == "12 µs"
    assert said(course, check=True) == (0, UP_TO_DATE)


def test_a_release_needs_every_recording(course):
    unrecorded = new_code_cell("print(1)", id="unrecorded", metadata={"tags": ["gpu"]})
    save(course, recorded_cell(), unrecorded, new_code_cell("print(2)", id="needs-no-gpu"))
    assert said(course, check=True) == (0, UP_TO_DATE)
    code, lines = said(course, check=True, release=True)
    assert code == 1
    assert len(lines) == 1
    assert lines[0].startswith("notebooks/01_lesson.ipynb: cell unrecorded has no recorded output")


def test_a_placeholder_is_no_recording(course):
    cell = recorded_cell()
    cell.source = "print('another timing')"
    save(course, cell)
    said(course)
    assert said(course, check=True)[0] == 0
    assert said(course, check=True, release=True)[0] == 1


def test_an_output_of_which_nobody_says_where_it_comes_from_is_stale(course):
    cell = recorded_cell()
    del cell.metadata["minillm"]["recorded"]
    save(course, cell)
    assert said(course, check=True)[0] == 1
    said(course)
    assert freshness.is_placeholder(load(course).cells[2].outputs[0])


def test_an_output_that_needs_no_gpu_is_recorded_or_gone(course):
    def plain(id):
        return new_code_cell("print(1)", id=id, outputs=[new_output("stream", text="1")])

    recorded = plain("recorded")
    freshness.stamp_cell(recorded, GPU)
    save(course, recorded)
    assert said(course, check=True, release=True) == (0, UP_TO_DATE)
    save(course, recorded, plain("of-somebody"))
    assert said(course, check=True)[0] == 1
    said(course)
    assert [len(cell.outputs) for cell in load(course).cells[2:]] == [1, 0]
    assert said(course, check=True, release=True) == (0, UP_TO_DATE)


def test_a_lesson_without_the_first_cell_gets_it(course):
    cells = [new_markdown_cell("# Lesson", id="title"), new_code_cell("import math", id="imports")]
    nbformat.write(new_notebook(cells=cells), course / "notebooks/01_lesson.ipynb")
    code, lines = said(course, check=True)
    assert code == 1 and "its first cell is not the course's" in lines[0]
    said(course)
    assert [cell.id for cell in load(course).cells] == ["title", CELL_ID, "imports"]


def test_a_damaged_lesson_is_one_clear_line(course):
    (course / "notebooks/01_lesson.ipynb").write_text("{", encoding="utf-8")
    code, lines = said(course)
    assert code == 1 and len(lines) == 1 and lines[0].startswith("notebooks/01_lesson.ipynb: ")


def test_an_output_of_another_run_is_stale(course):
    cell = recorded_cell()
    cell.outputs[0].text = "99 µs on my CPU"
    save(course, cell)
    assert said(course, check=True)[0] == 1
