"""Experiments that run in a process of their own: what comes back, and what is said when nothing does."""

import os
import textwrap

import pytest

from minillm.lab.experiments import CannotMeasure, DoesNotFit
from minillm.lab.own_process import run_in_own_process

TOPIC = """
import os, sys, time
from minillm.lab.experiments import DoesNotFit, experiment

@experiment("elsewhere/pid/{factor}")
def pid(factor):
    print("a print of the experiment is not its answer")
    return {"pid": os.getpid(), "doubled": 2 * factor}

@experiment("elsewhere/too-large")
def too_large():
    raise DoesNotFit("needs 300 GiB")

@experiment("elsewhere/fails")
def fails():
    raise ZeroDivisionError("on purpose")

@experiment("elsewhere/dies")
def dies():
    os._exit(3)

@experiment("elsewhere/hangs")
def hangs():
    time.sleep(600)
"""


@pytest.fixture(autouse=True)
def topic(tmp_path, monkeypatch):
    """A topic of experiments that only the new process finds."""
    (tmp_path / "elsewhere.py").write_text(textwrap.dedent(TOPIC), encoding="utf-8")
    (tmp_path / "sitecustomize.py").write_text(
        "import minillm.lab.experiments as e\n"
        f"e.__path__.append({str(tmp_path)!r})\n"
        "import torch\n"
        "torch.cuda.empty_cache = lambda: None\n",
        encoding="utf-8",
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))


def test_the_data_come_back_from_another_process():
    data = run_in_own_process("elsewhere/pid/21")
    assert data["doubled"] == 42 and data["pid"] != os.getpid()


def test_a_shape_that_does_not_fit_stays_that():
    with pytest.raises(DoesNotFit, match="300 GiB"):
        run_in_own_process("elsewhere/too-large")


@pytest.mark.parametrize(
    "name, words",
    [("fails", "ZeroDivisionError: on purpose"), ("dies", "exit code 3")],
)
def test_what_went_wrong_is_said(name, words):
    with pytest.raises(CannotMeasure, match=words):
        run_in_own_process(f"elsewhere/{name}")


def test_an_endless_experiment_is_ended():
    with pytest.raises(CannotMeasure, match="did not end within 2 s"):
        run_in_own_process("elsewhere/hangs", timeout=2)
