"""A recorded output is fresh as long as what it was made by, and the output itself, are the same."""

import nbformat
import pytest

from minillm.lab.freshness import (
    is_placeholder,
    is_recorded,
    is_stale,
    needs_recording,
    placeholder_output,
    stamp_cell,
)
from minillm.lab.stamp import cell_stamp

CELL = 'result = lab.run("toy/step/llama-1b/B=1")\nlab.show(fig, "words")'


pytestmark = pytest.mark.usefixtures("change_the_experiment")


def code(source=CELL, **metadata):
    cell = nbformat.v4.new_code_cell(source, metadata=metadata)
    cell.outputs = [nbformat.v4.new_output("stream", text="12 µs")]
    return cell


def test_which_cells_need_a_gpu():
    assert needs_recording(code())
    assert needs_recording(code("x = 1", tags=["gpu"]))
    assert not needs_recording(code("x = 1"))
    assert not needs_recording(nbformat.v4.new_markdown_cell(CELL, metadata={"tags": ["gpu"]}))


def test_the_life_of_a_recorded_cell(run_info, change_the_experiment):
    cell = code(tags=["gpu"], minillm={"minutes": 2})
    assert not is_recorded(cell) and not is_stale(cell)
    stamp_cell(cell, run_info)
    assert is_recorded(cell) and not is_stale(cell)
    ours = cell.metadata.minillm
    assert ours.minutes == 2
    assert ours.recorded == {
        **{"gpu": "NVIDIA H200", "torch": "2.11.0+cu130", "date": "2026-11-29"},
        **{"stamp": cell_stamp(cell), "outputs": ours.recorded.outputs},
    }
    cell.source += "  \n"
    assert not is_stale(cell)
    change_the_experiment()
    assert is_stale(cell)


def test_an_edited_cell_is_stale(run_info):
    cell = code()
    stamp_cell(cell, run_info)
    cell.source = cell.source.replace("B=1", "B=2")
    assert is_stale(cell)


def test_a_placeholder_is_no_recording(run_info):
    cell = code()
    stamp_cell(cell, run_info)
    cell.outputs = [placeholder_output()]
    assert is_placeholder(cell.outputs[0]) and not is_recorded(cell) and not is_stale(cell)
    notebook = nbformat.v4.new_notebook(cells=[cell])
    nbformat.validate(notebook)
    again = nbformat.reads(nbformat.writes(notebook), as_version=4)
    assert is_placeholder(again.cells[0].outputs[0])
    assert "to be recorded on a GPU" in again.cells[0].outputs[0].data["text/plain"]


def test_stripped_outputs_are_missing_but_a_silent_cell_lacks_nothing(run_info, change_the_experiment):
    cell, silent = code(), code()
    silent.outputs = []
    for each in (cell, silent):
        stamp_cell(each, run_info)
    cell.outputs = []
    assert not is_recorded(cell)
    assert is_recorded(silent) and not is_stale(silent)
    change_the_experiment()
    assert is_stale(silent)


def test_cells_as_json_has_them(run_info):
    cell = {
        "cell_type": "code",
        "metadata": {},
        "source": CELL.splitlines(True),
        "outputs": [{"output_type": "stream"}],
    }
    assert needs_recording(cell)
    stamp_cell(cell, run_info)
    assert cell["metadata"]["minillm"]["recorded"]["stamp"] == cell_stamp(cell)
    assert is_recorded(cell) and not is_stale(cell)


def test_an_output_of_another_run_is_stale(run_info):
    cell = code()
    stamp_cell(cell, run_info)
    cell.outputs[0].text = "99 µs"
    assert is_stale(cell)


def test_how_a_file_splits_an_output_into_lines_does_not_matter(run_info):
    cell = code()
    cell.outputs[0].text = "one\ntwo\n"
    stamp_cell(cell, run_info)
    notebook = nbformat.v4.new_notebook(cells=[cell])
    again = nbformat.reads(nbformat.writes(notebook), as_version=4).cells[0]
    again.outputs[0]["text"] = ["one\n", "two\n"]
    assert is_recorded(again) and not is_stale(again)
