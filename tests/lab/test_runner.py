"""The runner on notebooks that do everything notebooks do: finish, fail, hang, die, and not be notebooks."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from minillm.lab import notebook_file, records, runner

COURSE = Path(__file__).resolve().parents[2]
EMULATED = {"backend": "emulated", "gpu": None, "torch": "2.8.0"}
GPU = {"backend": "cuda", "gpu": "Test GPU", "torch": "2.8.0"}


def write(path: Path, *cells, **changes) -> Path:
    """A notebook whose cells are (id, source) or (id, source, tags); written without nbformat."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"cells": [], "metadata": {"kernelspec": {"name": "no-such-kernel", "display_name": "none"}}}
    content |= {"nbformat": 4, "nbformat_minor": 5} | changes
    for name, source, *tags in cells:
        cell = {"cell_type": "code", "id": name, "source": source.splitlines(keepends=True), "outputs": []}
        content["cells"].append(cell | {"execution_count": None, "metadata": {"tags": list(tags)}})
    path.write_text(json.dumps(content, indent=1), encoding="utf-8")
    return path


def text_of(path: Path, cell: str) -> str:
    cells = {c["id"]: c for c in json.loads(path.read_text(encoding="utf-8"))["cells"]}
    return "".join("".join(output.get("text", "")) for output in cells[cell]["outputs"])


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """One run over good and bad notebooks: (folder, rows, lines said, what the files held before)."""
    folder = tmp_path_factory.mktemp("a course with spaces")
    lessons = folder / "notebooks"
    facts = "import os, sys, minillm; print(sys.executable, os.getcwd(), minillm.__file__, sep='\\n')"
    progress = "import os; open(os.environ['MINILLM_PROGRESS'], 'w').write('from the run')"
    paths = [
        write(
            lessons / "00.ipynb",
            ("facts", facts),
            ("progress", progress),
            ("slow", "import time; time.sleep(0.6)"),
        ),
        write(
            lessons / "01.ipynb", ("fine", "x = 1"), ("boom", "raise ValueError('no\\nway')"), ("after", "1")
        ),
        write(lessons / "02.ipynb", ("tagged", "1 / 0", "raises-exception"), ("after", "print('went on')")),
        write(lessons / "03.ipynb", ("dies", "import os; os._exit(3)")),
        write(folder / "exercises" / "00.ipynb", ("same-name", "print('exercise')")),
        write(lessons / "04.ipynb", nbformat=99),
        lessons / "05.ipynb",
        lessons / "06.ipynb",
        lessons / "07.ipynb",
        lessons / "missing.ipynb",
    ]
    paths[6].write_text('{"cells": [', encoding="utf-8")
    paths[7].write_text("{}", encoding="utf-8")
    paths[8].write_bytes(b"\xff\xfe\x00")
    before = {path: path.read_bytes() for path in paths if path.exists()}
    said = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MINILLM_PROGRESS", str(folder / "the-learners.json"))
        patch.setenv("MPLBACKEND", "agg")
        rows = runner.run_notebooks(paths, folder / "out", jobs=2, say=said.append)
    return folder, rows, said, before


def test_every_notebook_has_a_row_in_order_and_a_failure_stops_no_other(run):
    folder, rows, said, before = run
    names = [f"notebooks/0{n}.ipynb" for n in range(4)] + ["exercises/00.ipynb"]
    names += [f"notebooks/0{n}.ipynb" for n in range(4, 8)] + ["notebooks/missing.ipynb"]
    assert [row["notebook"] for row in rows] == names
    assert [row["status"] for row in rows] == ["ok", "failed", "ok", "failed", "ok"] + 5 * ["failed"]
    assert json.loads((folder / "out/report.json").read_text(encoding="utf-8")) == {"notebooks": rows}
    assert all(row["backend"] in ("cuda", "emulated") for row in rows)


def test_the_failing_cell_and_the_reason_are_named_in_one_line(run):
    rows = {row["notebook"]: row for row in run[1]}
    expected = {
        "notebooks/01.ipynb": ("boom", "ValueError: no"),
        "notebooks/03.ipynb": ("dies", "the kernel died"),
        "notebooks/04.ipynb": (None, "not a notebook"),
        "notebooks/05.ipynb": (None, "not a notebook"),
        "notebooks/06.ipynb": (None, "not a notebook"),
        "notebooks/07.ipynb": (None, "not a notebook"),
        "notebooks/missing.ipynb": (None, "No such file"),
    }
    for name, (cell, reason) in expected.items():
        assert rows[name]["failing_cell"] == cell
        assert reason in rows[name]["error"] and "\n" not in rows[name]["error"]
    assert rows["notebooks/00.ipynb"]["failing_cell"] is rows["notebooks/00.ipynb"]["error"] is None


def test_the_slowest_cell_is_the_one_that_slept(run):
    row = run[1][0]
    assert (row["slowest_cell"], row["cells"]) == ("slow", 3)
    assert 0.6 <= row["slowest_seconds"] <= row["seconds"]


def test_the_kernel_is_this_interpreter_in_the_notebooks_folder_with_this_package(run):
    executable, folder, package = text_of(run[0] / "out/notebooks/00.ipynb", "facts").splitlines()
    assert executable == sys.executable
    assert Path(folder) == run[0] / "notebooks"
    assert Path(package) == COURSE / "minillm" / "__init__.py"


def test_copies_hold_the_outputs_and_nothing_of_the_learners_is_touched(run):
    folder, rows, said, before = run
    assert {path: path.read_bytes() for path in before} == before
    assert not (folder / "the-learners.json").exists()
    assert text_of(folder / "out/notebooks/02.ipynb", "after") == "went on\n"
    assert text_of(folder / "out/exercises/00.ipynb", "same-name") == "exercise\n"
    for row in rows:
        assert row["copy"] is None or (folder / "out" / row["copy"]).exists()


def test_each_executed_cell_says_a_line(run):
    said = [line for line in run[2] if line.startswith("notebooks/00.ipynb")]
    assert [line.split()[1:3] for line in said] == [["1/3", "facts"], ["2/3", "progress"], ["3/3", "slow"]]
    assert [line.split()[1:3] for line in run[2] if line.startswith("notebooks/01")][-1] == ["FAILED", "in"]


def fake_machine(monkeypatch, machine):
    monkeypatch.setattr(runner, "probe_machine", lambda scratch: dict(machine))


def test_a_cell_over_its_time_is_named(tmp_path, monkeypatch):
    fake_machine(monkeypatch, EMULATED)
    path = write(tmp_path / "nb/x.ipynb", ("hangs", "import time; time.sleep(600)"))
    began = time.monotonic()
    [row] = runner.run_notebooks([path], tmp_path / "out", timeout=2, say=lambda line: None)
    assert (row["status"], row["failing_cell"], row["error"]) == (
        "failed",
        "hangs",
        "took longer than 2 seconds",
    )
    assert time.monotonic() - began < 300  # it did not wait for the cell


def test_a_kernel_that_cannot_start_is_said(tmp_path, monkeypatch):
    fake_machine(monkeypatch, EMULATED)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "no-python-here"))
    path = write(tmp_path / "nb/x.ipynb", ("never", "1"))
    [row] = runner.run_notebooks([path], tmp_path / "out", say=lambda line: None)
    assert row["status"] == "failed" and row["failing_cell"] is None
    assert row["error"].startswith("the kernel did not start")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_a_full_disk_is_said_and_the_others_go_on(tmp_path, monkeypatch):
    fake_machine(monkeypatch, EMULATED)
    paths = [write(tmp_path / f"nb/{name}.ipynb", ("one", "1")) for name in "ab"]
    (tmp_path / "out/nb").mkdir(parents=True)
    (tmp_path / "out/nb/a.ipynb").symlink_to("/dev/full")
    rows = runner.run_notebooks(paths, tmp_path / "out", say=lambda line: None)
    assert [row["status"] for row in rows] == ["failed", "ok"]
    assert "No space left" in rows[0]["error"]


def test_an_nbconvert_that_does_not_work_costs_only_the_page(tmp_path, monkeypatch):
    def broken(notebook):
        raise RuntimeError("no template here")

    fake_machine(monkeypatch, EMULATED)
    monkeypatch.setattr(notebook_file, "html_page", broken)
    path, said = write(tmp_path / "nb/x.ipynb", ("one", "1")), []
    [row] = runner.run_notebooks([path], tmp_path / "out", say=said.append)
    assert (row["status"], row["copy"], row["page"]) == ("ok", "nb/x.ipynb", None)
    assert "no template here" in said[-1]


def test_a_report_that_cannot_be_written_is_one_clear_line(tmp_path, monkeypatch):
    fake_machine(monkeypatch, EMULATED)
    (tmp_path / "out").write_text("a file where the folder should be")
    with pytest.raises(runner.CannotRun, match="report cannot be written"):
        runner.run_notebooks([tmp_path / "none.ipynb"], tmp_path / "out")


@pytest.mark.parametrize("gone", ["nbclient", "ipykernel"])
def test_a_missing_package_is_named_with_its_command(tmp_path, monkeypatch, gone):
    real = runner.importlib.util.find_spec
    monkeypatch.setattr(runner.importlib.util, "find_spec", lambda name: None if name == gone else real(name))
    with pytest.raises(runner.CannotRun, match=rf'{gone} missing.*pip install -e "\.\[lab\]"'):
        runner.run_notebooks([], tmp_path)


def test_recording_is_refused_without_a_gpu(tmp_path, monkeypatch):
    fake_machine(monkeypatch, EMULATED)
    path = write(tmp_path / "nb/x.ipynb", ("one", "print(1)"))
    before = path.read_bytes()
    with pytest.raises(runner.CannotRun, match="GPU"):
        runner.run_notebooks([path], tmp_path / "out", record=True)
    assert path.read_bytes() == before


def test_recording_writes_outputs_and_stamps_into_the_lesson_and_nothing_else(tmp_path, monkeypatch):
    fake_machine(monkeypatch, GPU)
    monkeypatch.setattr(records, "FOLDER", tmp_path / "records")
    widget = "import ipywidgets\nfrom IPython.display import display\n"
    widget += "display(ipywidgets.IntSlider())\nprint('static µ')"
    path = write(
        tmp_path / "notebooks/x.ipynb",
        ("timed", "import os; os.path.basename(os.environ['MINILLM_RECORD'])", "gpu"),
        ("widget", widget),
        ("none", "# only a remark"),
    )
    leaky = write(tmp_path / "notebooks/y.ipynb", ("leak", "import os; print(os.__file__)"))
    failing = write(tmp_path / "notebooks/z.ipynb", ("shown", "print(1)"), ("boom", "1 / 0"))
    sources = [cell["source"] for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]]
    before = leaky.read_bytes(), failing.read_bytes()
    rows = runner.run_notebooks([path, leaky, failing], tmp_path / "out", record=True, say=lambda line: None)

    assert [row["status"] for row in rows] == ["ok", "failed", "failed"]
    assert "cell leak names a path of this machine" in rows[1]["error"]
    assert (leaky.read_bytes(), failing.read_bytes()) == before
    lesson = json.loads(path.read_text(encoding="utf-8"))
    timed, widget, none = lesson["cells"]
    assert [cell["source"] for cell in lesson["cells"]] == sources
    assert "".join(timed["outputs"][0]["data"]["text/plain"]) == "'records'"
    assert timed["metadata"]["minillm"]["recorded"].items() >= {"gpu": "Test GPU", "torch": "2.8.0"}.items()
    assert [output["output_type"] for output in widget["outputs"]] == ["stream"]
    assert "recorded" in widget["metadata"]["minillm"] and "widgets" not in lesson["metadata"]
    assert "minillm" not in none["metadata"] and not none["outputs"]
    assert all(cell["execution_count"] is None for cell in lesson["cells"])
    assert timed["outputs"][0]["execution_count"] is None


@pytest.mark.skipif(os.name == "nt", reason="sends SIGINT")
def test_ctrl_c_ends_the_kernel_and_leaves_a_report(tmp_path):
    pid = tmp_path / "nb" / "kernel.pid"
    hangs = "import os, pathlib, time\npathlib.Path('pid.tmp').write_text(str(os.getpid()))"
    hangs += "\nos.replace('pid.tmp', 'kernel.pid')\ntime.sleep(600)"
    path = write(tmp_path / "nb/x.ipynb", ("begins", "1"), ("hangs", hangs))
    later = write(tmp_path / "nb/y.ipynb", ("never", "1"))
    command = [sys.executable, "-m", "minillm", "run", str(path), str(later), "--jobs", "1"]
    command += ["--out", str(tmp_path / "out")]
    process = subprocess.Popen(
        command, cwd=COURSE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        while not pid.exists() and process.poll() is None:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        rest = process.communicate(timeout=120)[0]
    finally:
        process.kill()
    assert process.returncode == 1, rest
    rows = json.loads((tmp_path / "out/report.json").read_text(encoding="utf-8"))["notebooks"]
    assert [row["error"] for row in rows] == ["interrupted", "interrupted before it began"]
    assert rows[0]["failing_cell"] == "hangs"
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


def test_a_copy_never_overwrites_a_notebook(tmp_path):
    path = write(tmp_path / "notebooks/x.ipynb", ("one", "print(1)"))
    before = path.read_bytes()
    with pytest.raises(runner.CannotRun, match="overwrite a notebook"):
        runner.run_notebooks([path], tmp_path)
    assert path.read_bytes() == before and sorted(tmp_path.rglob("*")) == [path.parent, path]


def test_notebooks_of_folders_with_one_name_have_a_copy_each(tmp_path):
    paths = [write(tmp_path / f"{room}/nb/x.ipynb", ("one", f"print('room {room}')")) for room in ("a", "b")]
    rows = runner.run_notebooks(paths, tmp_path / "out", say=lambda line: None)
    copies = [tmp_path / "out" / row["copy"] for row in rows]
    assert [text_of(copy, "one").strip() for copy in copies] == ["room a", "room b"]


def test_without_a_folder_for_temporary_files_there_is_one_line(tmp_path, monkeypatch):
    def full(**options):
        raise FileNotFoundError("No usable temporary directory found")

    monkeypatch.setattr(runner.tempfile, "TemporaryDirectory", full)
    with pytest.raises(runner.CannotRun, match="temporary files"):
        runner.run_notebooks([tmp_path / "x.ipynb"], tmp_path / "out")
