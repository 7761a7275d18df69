"""`make` in a folder with spaces: which environment it takes, what it asks pip for, and when it does neither.

The environments here are folders whose python is a shell script that writes down how it was called.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from minillm import environment

COURSE = Path(__file__).resolve().parents[1]
PYTHON = """#!/bin/sh
here=$(dirname "$0")
for word in "$@"; do
  if [ "$previous" = -c ] && [ -f "$word" ]; then cat "$word" > "$here/constraints"; fi
  previous=$word
done
case "$*" in
  "-m pip --version") exit {no_pip};;
  "-c "*) echo "{versions}";;
  "-m pip install "*) sleep 0.3; echo pip install >> "$here/calls"; exit {pip_fails};;
  *) echo "$*" >> "$here/calls";;
esac
"""
needs_make = pytest.mark.skipif(os.name == "nt" or not shutil.which("make"), reason="needs make and a shell")


def fake_environment(folder: Path, versions="3 12", no_pip=0, pip_fails=0) -> Path:
    python = folder / "bin" / "python"
    python.parent.mkdir(parents=True, exist_ok=True)
    python.write_text(PYTHON.format(versions=versions, no_pip=no_pip, pip_fails=pip_fails))
    python.chmod(0o755)
    return folder


@pytest.fixture
def course(tmp_path):
    """What `make` needs of the course, in a folder with spaces in its name."""
    folder = tmp_path / "my course"
    (folder / "minillm").mkdir(parents=True)
    for name in (
        "Makefile",
        "pyproject.toml",
        "constraints.txt",
        "minillm/__init__.py",
        "minillm/environment.py",
    ):
        shutil.copy(COURSE / name, folder / name)
    return folder


def make(course: Path, *arguments: str, **variables) -> subprocess.CompletedProcess:
    away = ("VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "MAKEFLAGS", "MAKEOVERRIDES", "MFLAGS", "ARGS")
    clean = {key: value for key, value in os.environ.items() if key not in away}
    base = Path(sys.base_prefix, "bin", "python3")  # a python3 that is in no environment
    command = ["make", f"PYTHON={base}", *arguments]
    answer = subprocess.run(
        command,
        cwd=course,
        env=clean | {k: str(v) for k, v in variables.items()},
        capture_output=True,
        text=True,
    )
    return answer


def calls(prefix: Path) -> list[str]:
    path = prefix / "bin" / "calls"
    return path.read_text().splitlines() if path.exists() else []


@needs_make
def test_an_active_environment_is_used_keeps_its_torch_and_is_filled_once(course, tmp_path):
    active = fake_environment(tmp_path / "my env", "3 12 2.11.0+cu130")
    assert make(course, "run", VIRTUAL_ENV=active).returncode == 0
    assert (active / "bin/constraints").read_text() == "torch==2.11.0+cu130\n"
    assert make(course, "test", "ARGS=-q tests/lab", VIRTUAL_ENV=active).returncode == 0
    assert calls(active) == [
        "pip install",
        "-m minillm doctor",
        "-m minillm run",
        "-m minillm test -q tests/lab",
    ]
    assert not (course / ".venv").exists()


@needs_make
def test_conda_is_an_environment_too_and_an_environment_without_torch_gets_the_pinned_one(course, tmp_path):
    active = fake_environment(tmp_path / "conda", "3 10")
    assert make(course, "lab", CONDA_PREFIX=active).returncode == 0
    assert calls(active) == ["pip install", "-m minillm lab"]
    assert (active / "bin/constraints").read_text().splitlines() == pins()


def pins() -> list[str]:
    return (COURSE / "constraints.txt").read_text(encoding="utf-8").splitlines()


@needs_make
def test_without_one_the_courses_own_is_used_with_the_pinned_set(course, tmp_path):
    own = fake_environment(course / ".venv")
    assert make(course, "test", VIRTUAL_ENV=tmp_path / "deleted long ago").returncode == 0
    assert calls(own) == ["pip install", "-m minillm test"]
    assert (own / "bin/constraints").read_text().splitlines() == pins()


@needs_make
def test_a_torch_that_somebody_put_into_the_venv_stays_beside_the_pinned_rest(course):
    own = fake_environment(course / ".venv", "3 11 2.9.1+cu126")
    assert make(course, "test").returncode == 0
    kept = (own / "bin/constraints").read_text().splitlines()
    assert kept == [line for line in pins() if not line.startswith("torch==")] + ["torch==2.9.1+cu126"]


@needs_make
def test_changed_requirements_are_installed_again(course):
    own = fake_environment(course / ".venv")
    make(course, "test")
    (course / "constraints.txt").write_text("torch==2.14.0\n")
    make(course, "test")
    make(course, "test")
    assert calls(own) == 2 * ["pip install", "-m minillm test"] + ["-m minillm test"]
    assert (own / "bin/constraints").read_text() == "torch==2.14.0\n"


@needs_make
def test_several_targets_at_once_install_once_and_first(course):
    own = fake_environment(course / ".venv")
    answer = make(course, "-j4", "run", "test", "lab")
    assert answer.returncode == 0, answer.stderr
    assert calls(own)[0] == "pip install" and calls(own).count("pip install") == 1 and len(calls(own)) == 5


@needs_make
@pytest.mark.parametrize(
    "facts, said",
    [
        ({"versions": "3 9"}, "is Python 3.9; the course needs 3.10 or newer"),
        ({"versions": "3 12 2.6.0+cu124"}, "has torch 2.6.0+cu124; the course needs 2.8 or newer"),
        ({"no_pip": 1}, "has no pip. Run: "),
        ({"pip_fails": 1}, "pip could not install the course"),
    ],
)
def test_what_is_in_the_way_is_one_line_and_nothing_runs(course, tmp_path, facts, said):
    active = fake_environment(tmp_path / "env", **facts)
    answer = make(course, "run", VIRTUAL_ENV=active)
    assert answer.returncode != 0 and said in answer.stderr and "Traceback" not in answer.stderr
    assert [call for call in calls(active) if call != "pip install"] == []
    assert not (active / "minillm-course.stamp").exists()


@needs_make
def test_a_python_that_is_not_there_is_said(course):
    answer = make(course, "run", "PYTHON=no-such-python")
    assert answer.returncode != 0 and "no-such-python is not there" in answer.stdout


def test_a_venv_that_cannot_be_made_says_what_to_install(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(environment, "COURSE", str(tmp_path))
    monkeypatch.setattr(environment, "find_environment", lambda: (str(tmp_path / ".venv"), True))
    monkeypatch.setattr(environment.subprocess, "run", lambda *a, **k: subprocess.CompletedProcess(a, 1))
    for name in ("pyproject.toml", "constraints.txt"):
        (tmp_path / name).write_text("")
    assert environment.main([]) == 1
    assert "python3-venv" in capsys.readouterr().err
