"""A stamp changes with the cell and with the experiments named in it, and with nothing else."""

import nbformat
import pytest

from minillm.lab import experiments
from minillm.lab.experiments import experiment
from minillm.lab.freshness import (
    cell_stamp,
    experiments_named,
    is_placeholder,
    is_recorded,
    is_stale,
    needs_recording,
    placeholder_output,
    shows_old_source,
    stamp_cell,
)

CELL = 'result = lab.run("toy/step/llama-1b/B=1")\nlab.show(fig, "words")'


@pytest.fixture(autouse=True)
def toy(registry):
    @experiment("toy/step/{preset}/B={batch}")
    def step(preset, batch):
        return {"x": 1}

    @experiment("toy/add")
    def add():
        return {}


def change_the_experiment():
    del experiments._registered["toy/step/{preset}/B={batch}"]

    @experiment("toy/step/{preset}/B={batch}")
    def step(preset, batch):
        return {"x": 2}


def code(source=CELL, **metadata):
    cell = nbformat.v4.new_code_cell(source, metadata=metadata)
    cell.outputs = [nbformat.v4.new_output("stream", text="12 µs")]
    return cell


def test_blanks_at_line_ends_do_not_matter():
    assert cell_stamp(CELL) == cell_stamp(CELL.replace("\n", "   \n") + "\n\n")
    assert cell_stamp(CELL) != cell_stamp(CELL.replace("lab.show", "  lab.show"))
    assert cell_stamp(CELL) != cell_stamp(CELL.replace("words", "other words"))


@pytest.mark.parametrize(
    "source, named",
    [
        (CELL, ["toy/step/{preset}/B={batch}"]),
        ("lab.run('toy/add')", ["toy/add"]),
        ('lab.run(f"toy/step/{preset}/B={b}")', ["toy/step/{preset}/B={batch}"]),
        ('{b: lab.run(f"toy/step/llama-1b/B={b}") for b in (1, 2)}', ["toy/step/{preset}/B={batch}"]),
        ('%matplotlib inline\n!nvidia-smi\nlab.run("toy/add")', ["toy/add"]),
        ('lab.run("toy/add"', ["toy/add"]),  # does not parse: looked for as text
        ('# lab.run("toy/add")', []),
        ('open("data/x.csv"); "toy/none"; "http://toy/add"; "toy/step/a"', []),
        ("toy/add", []),
    ],
)
def test_experiments_named_in_a_cell(source, named):
    assert sorted(experiments_named(source)) == named


def test_which_cells_need_a_gpu():
    assert needs_recording(code())
    assert needs_recording(code("x = 1", tags=["gpu"]))
    assert not needs_recording(code("x = 1"))
    assert not needs_recording(nbformat.v4.new_markdown_cell(CELL, metadata={"tags": ["gpu"]}))


def test_the_life_of_a_recorded_cell(run_info):
    cell = code(tags=["gpu"], minillm={"minutes": 2})
    assert not is_recorded(cell) and not is_stale(cell)
    stamp_cell(cell, run_info)
    assert is_recorded(cell) and not is_stale(cell)
    ours = cell.metadata.minillm
    assert ours.minutes == 2
    assert ours.recorded == {
        "gpu": "NVIDIA H200", "torch": "2.11.0+cu130", "date": "2026-11-29", "stamp": cell_stamp(CELL)
    }  # fmt: skip
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


def test_stripped_outputs_are_missing_but_a_silent_cell_lacks_nothing(run_info):
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
    assert cell["metadata"]["minillm"]["recorded"]["stamp"] == cell_stamp(CELL)
    assert is_recorded(cell) and not is_stale(cell)


def test_a_gpu_cell_that_names_no_experiment_depends_on_those_above_it(run_info):
    measured, drawn, plain = code(), code("draw(result)", tags=["gpu"]), code("print(1)")
    for cell in (drawn, plain):
        stamp_cell(cell, run_info, before=[measured])
    assert not is_stale(drawn, before=[measured]) and is_stale(drawn, before=[])
    change_the_experiment()
    assert is_stale(drawn, before=[measured]) and not is_stale(plain, before=[measured])


def test_shown_source_is_old_when_its_file_reads_otherwise():
    import inspect

    from minillm.lab import wording

    text = f"# minillm/lab/wording.py, line 11\n{inspect.getsource(wording.percent).rstrip()}"
    output = {"output_type": "display_data", "data": {"text/plain": text}}
    assert not shows_old_source(output)
    assert shows_old_source({"data": {"text/plain": text.replace("fraction", "share")}})
    assert shows_old_source({"data": {"text/plain": text.replace("wording.py", "gone.py")}})
    assert not shows_old_source({"data": {"text/plain": "12 µs"}}) and not shows_old_source({"text": "12 µs"})
