"""Each test has its own progress file, and may register exercises of its own."""

import random
import sys

import pytest

from minillm.grading import progress_file, registry


@pytest.fixture(autouse=True)
def progress_path(tmp_path, monkeypatch):
    path = tmp_path / "progress.json"
    monkeypatch.setenv("MINILLM_PROGRESS", str(path))
    monkeypatch.setattr(progress_file, "_in_memory", {})
    return path


@pytest.fixture(autouse=True)
def fit_to_capture():
    """On a GPU, clears up what a refused capture left behind: its stream, a generator that does not work."""
    yield
    graphs = sys.modules.get("minillm.graphs")
    if graphs and graphs.backend == "cuda" and graphs.cuda.is_initialized():
        assert graphs.recover() is None


@pytest.fixture
def register(monkeypatch):
    """register(check, **more): an exercise "0.9", called `answer(n)`, for this test alone."""
    registry.all_exercises()
    monkeypatch.setattr(registry, "_exercises", dict(registry._exercises))

    def add(check, **more):
        settings = {"answer": "answer", "arguments": ("n",), "title": "A test", "hints": ("one", "two")}
        registry.exercise("0.9", **{**settings, "mistakes": {"slip": "You slipped."}, **more})(check)

    return add


@pytest.fixture
def rng():
    return random.Random(0)
