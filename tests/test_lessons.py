"""Run All is green: every lesson, executed as `python -m minillm run` does it, on the emulator."""

from pathlib import Path

import nbformat
import pytest

from minillm.lab.runner import run_notebooks

LESSONS = sorted((Path(__file__).parents[1] / "notebooks").glob("[0-9][0-9]_*.ipynb"))


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    """Each lesson's row of the report and its executed copy, by file name."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MINILLM_BACKEND", "emulated")
        out = tmp_path_factory.mktemp("report")
        before = [path.read_bytes() for path in LESSONS]
        rows = run_notebooks(LESSONS, out, say=lambda line: None)
    assert [path.read_bytes() for path in LESSONS] == before
    copies = {path.name: nbformat.read(next(out.rglob(path.name)), as_version=4) for path in LESSONS}
    return {path.name: (row, copies[path.name]) for path, row in zip(LESSONS, rows, strict=True)}


@pytest.mark.parametrize("name", [path.name for path in LESSONS])
def test_a_lesson_runs_to_its_end(executed, name):
    row, lesson = executed[name]
    assert row["status"] == "ok" and row["backend"] == "emulated", row
    outputs = [output for cell in lesson.cells for output in cell.get("outputs", ())]
    warned = [output.text for output in outputs if output.get("name") == "stderr"]
    assert not warned and not [output for output in outputs if output.output_type == "error"]


@pytest.mark.parametrize("name", [path.name for path in LESSONS])
def test_every_picture_is_small_and_described(executed, name):
    _, lesson = executed[name]
    pictures = [
        o for cell in lesson.cells for o in cell.get("outputs", ()) if "image/png" in o.get("data", {})
    ]
    assert pictures
    for picture in pictures:
        assert len(picture.data["image/png"]) <= 60_000 * 4 / 3 + 4
        assert len(picture.metadata["image/png"]["alt"]) > 20


@pytest.mark.parametrize("name", [path.name for path in LESSONS])
def test_a_lesson_has_what_the_course_map_reads(name):
    lesson = nbformat.read(next(path for path in LESSONS if path.name == name), as_version=4)
    ours = lesson.metadata["minillm"]
    assert ours["lesson"] == name[:2] and ours["title"] and 5 <= ours["minutes"] <= 60
    lengths = sorted(len(c.source.splitlines()) for c in lesson.cells if c.cell_type == "code")
    assert lengths[-1] <= 25 and lengths[len(lengths) // 2] <= 6
