"""What tests of the course's own files may find: a learner's answers in exercises/ are no fault of it."""

from pathlib import Path

import pytest

COURSE = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def answered() -> list[str]:
    """The exercise notebooks that were edited by hand, as paths from the course's folder."""
    pytest.importorskip("nbformat")
    from minillm.grading.build_exercises import edited

    return [f"exercises/{path.name}" for path in (COURSE / "exercises").glob("*.ipynb") if edited(path)]
