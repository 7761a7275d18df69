"""The commands: what each one calls, what it says when something is missing, and its exit code."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from minillm import cli
from minillm.lab import runner

COURSE = Path(__file__).resolve().parents[1]


def test_alone_and_with_help_it_says_what_there_is(capsys):
    for arguments in ([], ["--help"], ["-h"]):
        assert cli.main(arguments) == 0
        said = capsys.readouterr().out
        assert all(f"  {command}" in said for command in cli.COMMANDS)


def test_an_unknown_command_is_named_and_the_help_follows(capsys):
    assert cli.main(["dance"]) == 2
    said = capsys.readouterr().err
    assert "no command 'dance'" in said and "usage: python -m minillm COMMAND" in said


def test_as_a_module_it_returns_the_exit_code():
    answer = subprocess.run([sys.executable, "-m", "minillm", "dance"], cwd=COURSE, capture_output=True)
    assert answer.returncode == 2


def test_a_console_that_cannot_print_everything_gets_a_question_mark():
    code = "import minillm.cli as c; c.COMMANDS['say'] = lambda rest: print('3 µs ✓ 图'); c.main(['say'])"
    environment = os.environ | {"PYTHONIOENCODING": "cp1252"}
    answer = subprocess.run([sys.executable, "-c", code], cwd=COURSE, env=environment, capture_output=True)
    assert answer.returncode == 0 and answer.stdout.rstrip() == "3 µs ? ?".encode("cp1252"), answer.stderr


@pytest.fixture
def course(tmp_path, monkeypatch):
    """An empty course that is the current folder, and the calls of the runner made in it."""
    for folder in ("notebooks", "exercises", "elsewhere"):
        (tmp_path / folder).mkdir()
    for name in ("notebooks/01.ipynb", "notebooks/00.ipynb", "exercises/01.ipynb", "elsewhere/x.ipynb"):
        (tmp_path / name).write_text("{}")
    monkeypatch.chdir(tmp_path / "notebooks")
    return tmp_path


@pytest.fixture
def run_calls(monkeypatch):
    calls, row = [], {"notebook": "n", "status": "ok", "seconds": 1.0, "cells": 1, "slowest_cell": None}

    def fake(paths, out, record, timeout, jobs, say):
        calls.append(([Path(path) for path in paths], Path(out), record, timeout, jobs))
        return [row | {"failing_cell": None, "error": None}]

    monkeypatch.setattr(runner, "run_notebooks", fake)
    return calls, row


def test_run_takes_the_lessons_and_the_exercises_in_order(course, run_calls):
    assert cli.main(["run"]) == 0
    paths, out, *rest = run_calls[0][0]
    assert [path.relative_to(course).as_posix() for path in paths] == [
        "notebooks/00.ipynb",
        "notebooks/01.ipynb",
        "exercises/01.ipynb",
    ]
    assert out == course / "report" and rest == [False, 600, None]


def test_recording_leaves_the_exercises_alone(course, run_calls):
    assert cli.main(["run", "--record", "--timeout", "9", "--jobs", "3"]) == 0
    paths, out, *rest = run_calls[0][0]
    assert {path.parent.name for path in paths} == {"notebooks"} and rest == [True, 9, 3]


def test_named_notebooks_and_folders_are_taken_as_they_are(course, run_calls):
    assert cli.main(["run", "../elsewhere", "01.ipynb", "gone.ipynb", "--out", "there"]) == 0
    paths, out, *rest = run_calls[0][0]
    assert [path.name for path in paths] == ["x.ipynb", "01.ipynb", "gone.ipynb"] and out == Path("there")


def test_a_failed_notebook_is_exit_code_1(course, run_calls):
    run_calls[1]["status"] = "failed"
    assert cli.main(["run"]) == 1


def test_nothing_to_run_and_nothing_to_run_it_with_are_one_line_each(course, capsys, monkeypatch):
    for path in (*course.glob("notebooks/*"), *course.glob("exercises/*")):
        path.unlink()
    assert cli.main(["run"]) == 2
    monkeypatch.setattr(runner.importlib.util, "find_spec", lambda name: None)
    assert cli.main(["run", "x.ipynb"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2 and "no notebook found" in lines[0] and "pip install" in lines[1]


@pytest.mark.parametrize("command, module, extra", [("test", "pytest", "dev"), ("lab", "jupyterlab", "lab")])
def test_test_and_lab_pass_their_arguments_on_from_the_course_folder(
    course, monkeypatch, capsys, command, module, extra
):
    seen = []

    def fake(arguments, cwd):
        seen.append((arguments, cwd))
        return subprocess.CompletedProcess(arguments, 5)

    monkeypatch.setattr(cli.subprocess, "run", fake)
    monkeypatch.setattr(cli.importlib.util, "find_spec", lambda name: name)
    assert cli.main([command, "-k", "some thing", "--help"]) == 5
    [(arguments, cwd)] = seen
    assert arguments[:3] == [sys.executable, "-m", module] and arguments[-3:] == [
        "-k",
        "some thing",
        "--help",
    ]
    assert cwd == course
    monkeypatch.setattr(cli.importlib.util, "find_spec", lambda name: None)
    assert cli.main([command]) == 2
    assert f'{module} is not installed. Run: python -m pip install -e ".[{extra}]"' in capsys.readouterr().err


@pytest.mark.parametrize("ok", [True, False])
def test_the_doctor_prints_its_report_and_its_verdict_is_the_exit_code(monkeypatch, capsys, ok):
    module = importlib.import_module("minillm.lab.doctor")  # the module: lab.doctor is the function
    row = module.Row("a check", "ok" if ok else "fail", "found this", "do that")
    monkeypatch.setattr(module, "doctor", lambda: module.Report((row,)))
    assert cli.main(["doctor"]) == (0 if ok else 1)
    assert "found this" in capsys.readouterr().out


def test_build_gets_its_arguments(monkeypatch):
    module = importlib.import_module("minillm.grading.build")
    monkeypatch.setattr(module, "main", lambda arguments: (arguments == ["--check", "--release"]) * 7)
    assert cli.main(["build", "--check", "--release"]) == 7


def test_a_missing_package_is_one_line(tmp_path):
    # An isolated python has no torch: it sees the course and the standard library.
    code = f"import sys\nsys.path.insert(0, {str(COURSE)!r})\n"
    code += "from minillm.cli import main\nsys.exit(main(['doctor']))"
    command = [sys.executable, "-I", "-S", "-c", code]
    answer = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert answer.returncode == 2 and len(answer.stderr.splitlines()) == 1
    assert "is not installed. Run: python -m pip install" in answer.stderr


def test_a_missing_module_of_ours_is_a_bug_and_not_hidden(monkeypatch):
    monkeypatch.setitem(
        cli.COMMANDS, "broken", lambda rest: importlib.import_module("minillm.no_such_module")
    )
    with pytest.raises(ModuleNotFoundError):
        cli.main(["broken"])


def test_ctrl_c_is_not_a_traceback(monkeypatch, capsys):
    def interrupted(rest):
        raise KeyboardInterrupt

    monkeypatch.setitem(cli.COMMANDS, "run", interrupted)
    assert cli.main(["run"]) == 130
    assert capsys.readouterr().err == "interrupted\n"


@pytest.mark.parametrize("jobs", ["0", "-1", "two"])
def test_a_number_of_jobs_is_checked(course, run_calls, capsys, jobs):
    with pytest.raises(SystemExit) as ended:
        cli.main(["run", "--jobs", jobs])
    assert ended.value.code == 2 and "give 1 or more" in capsys.readouterr().err
