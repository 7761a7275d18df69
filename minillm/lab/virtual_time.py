"""Make code that reads the host's clock read a toy device's virtual clock, for a while."""

from __future__ import annotations

import functools
import inspect
import threading
import time
import timeit

# clocks of module ``time`` -> how many of their units are in a second
CLOCKS = {
    "perf_counter": 1, "monotonic": 1, "time": 1, "process_time": 1, "thread_time": 1,
    "perf_counter_ns": 10**9, "monotonic_ns": 10**9, "time_ns": 10**9, "process_time_ns": 10**9,
}  # fmt: skip


class VirtualTime:
    """A context manager: inside it, the clocks of module ``time`` and ``time.sleep`` are virtual.

    A name that was imported before (``from time import perf_counter``) still leads to the real clock, so
    each of ``functions`` has such names changed too: in its module, its closure and its default arguments.
    Only the thread that entered sees virtual time: a notebook's kernel has others that must not.
    """

    def __init__(self, toy, functions: tuple):
        self.toy, self.functions = toy, functions
        self._undo: list = []

    def __enter__(self):
        virtual = {
            getattr(time, name): self._clock(getattr(time, name), units) for name, units in CLOCKS.items()
        }
        virtual[time.sleep] = self._only_here(time.sleep, self._sleep)
        for name in (*CLOCKS, "sleep"):
            self._set(time, name, virtual[getattr(time, name)])
        self._set(timeit, "default_timer", virtual.get(timeit.default_timer, timeit.default_timer))
        for function in self.functions:
            self._change_names(_innermost(function), virtual)
        return self.toy

    def __exit__(self, *error):
        while self._undo:
            self._undo.pop()()

    def _clock(self, real, units: int):
        def virtual():
            return int(self.toy.perf_counter() * units) if units > 1 else self.toy.perf_counter()

        return self._only_here(real, virtual)

    def _sleep(self, seconds: float) -> None:
        self.toy.spend(seconds * 1e6, "sleep")

    def _only_here(self, real, virtual):
        mine = threading.get_ident()
        return lambda *args: (virtual if threading.get_ident() == mine else real)(*args)

    def _change_names(self, function, virtual: dict) -> None:
        names = getattr(function, "__globals__", {})
        for name, value in list(names.items()):
            if _is_key(value, virtual):
                names[name] = virtual[value]
                self._undo.append(lambda name=name, value=value: names.__setitem__(name, value))
        for cell in getattr(function, "__closure__", None) or ():
            content = _content(cell)
            if _is_key(content, virtual):
                self._set(cell, "cell_contents", virtual[content])
        if defaults := getattr(function, "__defaults__", None):
            self._set(
                function, "__defaults__", tuple(virtual[d] if _is_key(d, virtual) else d for d in defaults)
            )
        if defaults := getattr(function, "__kwdefaults__", None):
            changed = {name: virtual[d] if _is_key(d, virtual) else d for name, d in defaults.items()}
            self._set(function, "__kwdefaults__", changed)

    def _set(self, owner, name: str, value) -> None:
        before = getattr(owner, name)
        setattr(owner, name, value)
        self._undo.append(lambda: setattr(owner, name, before))


def _innermost(function):
    """The function under decorators, ``functools.partial`` and a bound method, or of a callable object."""
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(getattr(function, "__func__", function))
    return function if hasattr(function, "__globals__") else type(function).__call__


def _content(cell):
    try:
        return cell.cell_contents
    except ValueError:  # a name that has no value yet
        return None


def _is_key(value, virtual: dict) -> bool:
    return inspect.isbuiltin(value) and value in virtual
