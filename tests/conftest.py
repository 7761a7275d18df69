"""For all tests: those marked `long` wait for --all, and a learner's answers in exercises/ are no fault."""

from pathlib import Path

import pytest

COURSE = Path(__file__).resolve().parents[1]


def pytest_addoption(parser):
    parser.addoption("--all", action="store_true", help="run the tests marked `long` as well")


def pytest_collection_modifyitems(config, items):
    if not config.getoption("--all"):
        for item in items:
            if item.get_closest_marker("long"):
                item.add_marker(pytest.mark.skip(reason="takes long: make test-all"))


@pytest.fixture(scope="session")
def answered() -> list[str]:
    """The exercise notebooks that were edited by hand, as paths from the course's folder."""
    pytest.importorskip("nbformat")
    from minillm.grading.build_exercises import edited

    return [f"exercises/{path.name}" for path in (COURSE / "exercises").glob("*.ipynb") if edited(path)]
