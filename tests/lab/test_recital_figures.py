"""The picture of two texts: the first wrong character is the one that a reader would point at."""

import pytest

from minillm.lab.figures import recital
from minillm.lab.figures.recital import BLOCK, COLUMN, NEWLINE, beside, finding, first_wrong

CASES = [
    ("abc", "abc", None, "All 3 characters are right"),
    ("abx", "abc", 2, "Wrong from character 3 on: 'x' instead of 'c'"),
    ("#bc", "abc", 0, "Wrong from character 1 on: '#' instead of 'a'"),
    ("ab", "abc", 2, "Wrong from character 3 on: the end instead of 'c'"),
    ("abcd", "abc", 3, "Wrong from character 4 on: 'd' instead of the end"),
    ("a b", "a\nb", 1, "Wrong from character 2 on: a blank instead of a new line"),
    ("", "a", 0, "Wrong from character 1 on: the end instead of 'a'"),
]


@pytest.fixture
def shown(monkeypatch):
    """The (figure, alternative text) pairs that were shown."""
    seen = []
    monkeypatch.setattr(recital, "show", lambda fig, alt: seen.append((fig, alt)))
    return seen


@pytest.mark.parametrize("written, right, place, title", CASES)
def test_the_first_wrong_character(written, right, place, title):
    assert first_wrong(written, right) == place
    assert finding(written, right) == title


@pytest.mark.parametrize("written, right, place, title", CASES)
def test_the_picture_marks_it_and_says_it_in_words(shown, written, right, place, title):
    beside(written, right)
    [(fig, alt)] = shown
    assert title in alt and repr(written) in alt and repr(right) in alt
    assert fig.texts[0].get_text().replace("\n", " ") == title
    marks = [text for text in fig.axes[0].texts if BLOCK in text.get_text()]
    assert len(marks) == (0 if place is None else 2)
    for mark in marks:  # both texts have the same characters before it
        assert mark.get_text().count(BLOCK) == 1
        before = right[:place].split("\n")[-1]
        assert mark.get_text().index(BLOCK) == len(before)


def test_a_long_line_is_broken_and_nothing_is_lost(shown):
    right = "x" * COLUMN + "y" * 10 + "\n" + "z" * 5
    beside(right[:-1] + "?", right)
    ax = shown[0][0].axes[0]
    left = [text for text in ax.texts if text.get_position()[0] == 0 and text.get_text() != "written"]
    drawn = "".join(text.get_text() for text in left)
    for character in "xyz?":
        assert drawn.count(character) == (right[:-1] + "?").count(character)
    assert drawn.count(NEWLINE) == 1
    assert max(len(text.get_text()) for text in left) <= COLUMN + 1


def test_it_is_drawn_within_the_figure(shown):
    beside("w" * 100, "W\n" * 9)
    fig = shown[0][0]
    fig.canvas.draw()
    for text in fig.axes[0].texts:
        box = text.get_window_extent()
        assert 0 <= box.x0 and box.x1 <= fig.bbox.x1 and 0 <= box.y0 and box.y1 <= fig.bbox.y1


def test_the_two_texts_do_not_touch(shown):
    beside("w" * 2 * COLUMN, "W" * 2 * COLUMN)
    fig = shown[0][0]
    fig.canvas.draw()
    boxes = [text.get_window_extent() for text in fig.axes[0].texts if text.get_text().strip("wW") == ""]
    ends = [box.x1 for text, box in zip(fig.axes[0].texts, boxes, strict=False) if box.x0 < fig.bbox.x1 / 2]
    starts = [box.x0 for box in boxes if box.x0 >= fig.bbox.x1 / 2]
    assert max(ends) < min(starts)
