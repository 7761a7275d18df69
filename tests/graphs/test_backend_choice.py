"""Which backend `minillm.graphs` takes, and how it says that it cannot."""

import pathlib
import subprocess
import sys

import pytest
import torch

from minillm.graphs import choose_backend

ROOT = pathlib.Path(__file__).parents[2]
GPU = torch.cuda.is_available()
VALUES = ("", "emulated", "cpu", "cuda")
ASK = f"""
import importlib, os, sys
import torch
for value in {VALUES!r}:
    os.environ["MINILLM_BACKEND"] = value
    sys.modules.pop("minillm.graphs", None)
    try:
        graphs = importlib.import_module("minillm.graphs")
        print(graphs.backend, graphs.device, graphs.cuda is torch.cuda)
    except (ValueError, RuntimeError) as error:
        print(error)
print(*[m for m in sys.modules if m.startswith("minillm.")])
"""


@pytest.mark.parametrize(
    "wanted, gpu, chosen",
    [
        (None, True, "cuda"),
        (None, False, "emulated"),
        ("", False, "emulated"),
        ("emulated", True, "emulated"),
        ("emulated", False, "emulated"),
        ("cuda", True, "cuda"),
    ],
)
def test_the_choice(wanted, gpu, chosen):
    assert choose_backend(wanted, gpu) == chosen


def test_a_choice_that_cannot_be():
    with pytest.raises(ValueError, match="MINILLM_BACKEND is 'gpu'; expected 'cuda' or 'emulated'"):
        choose_backend("gpu", True)
    with pytest.raises(RuntimeError, match="MINILLM_BACKEND is 'cuda', but .* unset"):
        choose_backend("cuda", False)


def test_the_environment_is_asked_and_nothing_else_of_the_package_is_imported():
    shown = subprocess.run([sys.executable, "-c", ASK], cwd=ROOT, capture_output=True, text=True)
    *rows, loaded = shown.stdout.splitlines()
    said = dict(zip(VALUES, rows, strict=True))
    assert said["emulated"] == "emulated cpu False"
    assert said[""] == ("cuda cuda True" if GPU else "emulated cpu False")
    assert "MINILLM_BACKEND is 'cpu'; expected 'cuda' or 'emulated'" in said["cpu"]
    assert said["cuda"] == "cuda cuda True" if GPU else "unset MINILLM_BACKEND" in said["cuda"]
    assert loaded and all(name.split(".")[1] == "graphs" for name in loaded.split())
