"""A progress bar for those who watch, and nothing for a log."""

import io
import sys
import types

import pytest

from minillm.engine import progress as module
from minillm.engine.progress import WIDTH, Progress, progress


class Terminal(io.StringIO):
    def isatty(self):
        return True

    def shown(self):
        """What a person sees in the end: a carriage return goes to the line's start, the rest overwrites."""
        line = []
        for part in self.getvalue().split("\r"):
            line[: len(part)] = part
        return "".join(line)


class Broken(Terminal):
    def write(self, text):
        raise BrokenPipeError


class Ascii(Terminal):
    def write(self, text):
        text.encode("ascii")
        return super().write(text)


@pytest.fixture
def clock(monkeypatch):
    """A clock that is moved by hand; nobody is in a notebook."""
    now = types.SimpleNamespace(seconds=100.0)
    monkeypatch.setattr(module, "time", types.SimpleNamespace(perf_counter=lambda: now.seconds))
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    return now


def work(clock, steps=10, each=0.3):
    bar_of = []
    for item in progress(range(steps), "working"):
        clock.seconds += each
        bar_of.append(item)
    return bar_of


def test_a_log_gets_nothing(clock, monkeypatch):
    log = io.StringIO()
    monkeypatch.setattr(sys, "stderr", log)
    assert work(clock) == list(range(10)) and log.getvalue() == ""


@pytest.mark.parametrize("stream", [None, "closed"])
def test_without_a_place_to_draw_the_work_is_done(stream, clock, monkeypatch):
    closed = io.StringIO()
    monkeypatch.setattr(sys, "stderr", closed if stream else None)
    assert work(clock) == list(range(10))


def test_a_terminal_shows_a_bar_that_is_gone_in_the_end(clock, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    assert work(clock) == list(range(10))
    drawn = [text for text in terminal.getvalue().split("\r") if text.strip()]
    assert drawn[0].startswith("working █") and " 3 of 10 · 1 s" in drawn[0]
    assert " 9 of 10 · 3 s" in drawn[-1] and len(drawn) == 7
    assert terminal.shown().strip() == ""
    assert "\n" not in terminal.getvalue()


def test_what_is_quick_needs_no_bar(clock, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    work(clock, each=0.05)
    assert terminal.getvalue() == ""


def test_it_is_not_drawn_more_than_ten_times_a_second(clock, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    work(clock, steps=2000, each=0.001)
    drawn = [text for text in terminal.getvalue().split("\r") if text.strip()]
    assert 10 <= len(drawn) <= 14


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_an_error_comes_through_and_the_bar_is_gone(error, clock, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with pytest.raises(error), Progress("working", 5) as bar:
        clock.seconds += 2
        bar.done(1)
        raise error
    assert "working" in terminal.getvalue() and terminal.shown().strip() == ""


@pytest.mark.parametrize("terminal", [Broken, Ascii])
def test_a_terminal_that_cannot_show_it_does_no_harm(terminal, clock, monkeypatch):
    monkeypatch.setattr(sys, "stderr", terminal())
    assert work(clock) == list(range(10))


def test_a_closed_terminal_does_no_harm(clock, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with Progress("working", 5) as bar:
        clock.seconds += 2
        terminal.close()
        bar.done(1)


@pytest.mark.parametrize(
    "count, total, full", [(0, 8, 0), (4, 8, WIDTH // 2), (8, 8, WIDTH), (0, 0, WIDTH), (1, 1000, 0)]
)
def test_the_bar_is_as_full_as_the_work(count, total, full):
    bar = Progress("label", total)
    bar.done(count)
    text = bar.text(61.4)
    assert text == f"label {'█' * full}{'·' * (WIDTH - full)} {count:,} of {total:,} · 61 s"


class Handle:
    def __init__(self):
        self.texts = []

    def update(self, text):
        self.texts.append(repr(text))


def test_a_notebook_shows_text_that_is_updated_in_place_and_emptied(clock, monkeypatch):
    handle, displayed = Handle(), []

    def display(text, display_id):
        assert display_id is True
        displayed.append(repr(text))
        return handle

    shell = types.SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "ipykernel", types.ModuleType("ipykernel"))
    fake = types.ModuleType("IPython")
    fake.get_ipython, fake.display = lambda: shell, types.ModuleType("IPython.display")
    fake.display.display = display
    monkeypatch.setitem(sys.modules, "IPython", fake)
    monkeypatch.setitem(sys.modules, "IPython.display", fake.display)
    log = io.StringIO()
    monkeypatch.setattr(sys, "stderr", log)
    work(clock)
    assert len(displayed) == 1 and displayed[0].startswith("working █")
    assert len(handle.texts) == 7 and handle.texts[-1] == "" and " 9 of 10 " in handle.texts[-2]
    assert log.getvalue() == ""


def test_ipython_without_a_kernel_is_a_terminal(clock, monkeypatch):
    fake = types.ModuleType("IPython")
    fake.get_ipython = lambda: None
    monkeypatch.setitem(sys.modules, "ipykernel", types.ModuleType("ipykernel"))
    monkeypatch.setitem(sys.modules, "IPython", fake)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    work(clock)
    assert "working" in terminal.getvalue()
