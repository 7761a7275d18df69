"""The course map and syllabi are what the notebooks' metadata add up to."""

import json

import pytest

from minillm.lab.course import course_map, course_root, lessons, syllabus


def write(folder, name, metadata, cells=()):
    folder.mkdir(exist_ok=True)
    text = json.dumps(
        {"metadata": {"minillm": metadata}, "cells": [{"metadata": {"minillm": c}} for c in cells]}
    )
    (folder / name).write_text(text, encoding="utf-8")


@pytest.fixture
def root(tmp_path):
    def exercise(id, minutes, difficulty, core=False):
        return {"exercise": id, "minutes": minutes, "difficulty": difficulty, "core": core}

    for number, minutes, cells in [
        ("00", 10, [exercise("0.1", 5, 1, core=True)]),
        ("01", 20, [exercise("1.1", 10, 2, core=True), exercise("1.2", 10, 4), exercise("1.3", 10, 3)]),
        ("02", 30, [exercise("2.1", 10, 2, core=True)]),
    ]:
        name = f"{number}_lesson.ipynb"
        write(tmp_path / "notebooks", name, {"lesson": number, "title": f"L{number}", "minutes": minutes})
        write(tmp_path / "exercises", name, {}, cells)
    return tmp_path


def plan(root, minutes):
    return [(lesson.number, [e.id for e in taken]) for lesson, taken in syllabus(minutes, root)]


def test_lessons_are_read_in_order(root):
    assert [lesson.number for lesson in lessons(root)] == ["00", "01", "02"]
    assert lessons(root)[1].core_minutes() == 30


@pytest.mark.parametrize(
    "minutes, expected",
    [
        (29, []),  # lesson 01 with its core exercise takes 30
        (30, [("01", ["1.1"])]),
        (45, [("01", ["1.1", "1.3"])]),  # the easier of the two that are not core
        (70, [("01", ["1.1"]), ("02", ["2.1"])]),
        (90, [("01", ["1.1", "1.2", "1.3"]), ("02", ["2.1"])]),
    ],
)
def test_a_syllabus_takes_lessons_in_order_and_then_the_easiest_exercises(root, minutes, expected):
    assert plan(root, minutes) == expected


def test_the_map_shows_minutes_and_plans(root):
    text = repr(course_map(root))
    assert "| 01 | L01 | 20 | 1.1★, 1.2, 1.3 | 30 |" in text
    assert "**half a day**: 01 (1.1, 1.2, 1.3) → 02 (2.1) · 90 minutes" in text


def test_the_root_is_found_from_below(root):
    assert course_root(root / "notebooks") == root.resolve()


def test_the_real_notebooks_can_be_planned():
    numbers = [lesson.number for lesson in lessons()]
    assert numbers == sorted(numbers) and "01" in numbers and syllabus(80)
