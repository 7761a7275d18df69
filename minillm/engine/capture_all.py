"""Capturing the graphs of many sizes: all or none, and the process is left as it was found."""

from __future__ import annotations

import gc
from collections.abc import Callable

from .. import graphs
from .progress import progress
from .runner import GraphRunner

Size = tuple[int, int]  # rows, blocks


class CaptureFailed(RuntimeError):
    """A capture was refused; the message says for which size, and why."""


def capture_all(sizes: list[Size], capture: Callable[[int, int], GraphRunner]) -> dict[Size, GraphRunner]:
    """``capture(*size)`` for each of ``sizes``, in their order, with a progress bar.

    Raises CaptureFailed for whatever a capture raises, without any graph left. What broke it off otherwise,
    Ctrl-C say, is raised as it is. In both cases random numbers and later captures work again, and the
    stream is the one that was current before.
    """
    runners, size, stream = {}, sizes[0], graphs.cuda.current_stream()
    frozen = gc.get_freeze_count()  # somebody else's, who will thaw them
    if not frozen:
        gc.collect()
        gc.freeze()  # torch collects garbage before each capture: quick with nothing to look at
    try:
        for size in progress(sizes, "capturing decode graphs"):
            runners[size] = capture(*size)
    except BaseException as error:
        runners.clear()
        wrong = graphs.recover()
        graphs.cuda.set_stream(stream)
        if not isinstance(error, Exception):
            raise
        reason = (str(error).splitlines() or [""])[0]
        why = "the capture for {} rows, {} blocks failed".format(*size)
        after = f" (and this process cannot capture any more: {wrong})" if wrong else ""
        raise CaptureFailed(f"{why}: {type(error).__name__}: {reason}{after}") from error
    finally:
        if not frozen:
            gc.unfreeze()
    return runners
