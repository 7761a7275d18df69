"""A progress bar for what takes a while, where somebody is watching; elsewhere nothing is printed."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator

PATIENCE = 0.7  # seconds: what takes less needs no bar
EVERY = 0.1  # seconds between two drawings
WIDTH = 28  # characters


class Progress:
    """``with Progress("capturing", total=12) as bar: … bar.done(3)``. Gone when it is left.

    Draws on a terminal, and in a notebook as text that is updated in place. Never raises for a broken output.
    """

    def __init__(self, label: str, total: int):
        self.label, self.total = label, total
        self._start = self._drawn = time.perf_counter()
        self._place, self._count = _place(), 0

    def __enter__(self) -> Progress:
        return self

    def done(self, count: int) -> None:
        """``count`` of ``total`` are done by now."""
        self._count, now = count, time.perf_counter()
        if self._place and now - self._start > PATIENCE and now - self._drawn > EVERY:
            self._drawn = now
            self._place.show(self.text(now - self._start))

    def text(self, seconds: float) -> str:
        """The bar as one line: label, bar, counts, and the seconds so far."""
        full = round(WIDTH * self._count / self.total) if self.total else WIDTH
        bar = "█" * full + "·" * (WIDTH - full)
        return f"{self.label} {bar} {self._count:,} of {self.total:,} · {seconds:.0f} s"

    def __exit__(self, *error) -> None:
        if self._place:
            self._place.clear()


def progress(items: Iterable, label: str) -> Iterator:
    """The items one by one, with a bar that says how many are behind."""
    items = list(items)
    with Progress(label, len(items)) as bar:
        for at, item in enumerate(items):
            bar.done(at)
            yield item


class _Terminal:
    def __init__(self):
        self.longest = 0

    def show(self, text: str) -> None:
        self.longest = max(self.longest, len(text))
        self._write("\r" + text)

    def clear(self) -> None:
        if self.longest:
            self._write("\r" + " " * self.longest + "\r")

    def _write(self, text: str) -> None:
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except (OSError, ValueError, UnicodeError):  # closed, or a console that cannot print it
            pass


class _Notebook:
    def __init__(self):
        self.handle = None

    def show(self, text: str) -> None:
        from IPython.display import display

        if self.handle is None:
            self.handle = display(_Text(text), display_id=True)
        else:
            self.handle.update(_Text(text))

    def clear(self) -> None:
        if self.handle is not None:
            self.handle.update(_Text(""))


class _Text:
    """Text that a notebook shows as it is, without quotes."""

    def __init__(self, text: str):
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _place():
    """Where to draw: a notebook, a terminal, or None where nobody is watching."""
    if "ipykernel" in sys.modules and "IPython" in sys.modules:
        from IPython import get_ipython

        if getattr(get_ipython(), "kernel", None) is not None:
            return _Notebook()
    return _Terminal() if sys.stderr and sys.stderr.isatty() else None
