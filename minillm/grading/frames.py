"""Tell the learner's code from everybody else's, and find the line of theirs that raised."""

import functools
import linecache
import os
import sysconfig
import traceback
from pathlib import Path

PACKAGE = str(Path(__file__).resolve().parents[1]) + os.sep
STANDARD_LIBRARY = tuple(sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib"))


@functools.lru_cache(maxsize=4096)
def is_learners(file: str) -> bool:
    """Whether the code in `file` is the learner's: not this package, an installed one, or Python's own.

    The file name of a notebook cell is made up by its kernel ("<ipython-input-3-...>" or a file that need
    not exist), so it is known by what it is not.
    """
    if file.startswith("<frozen") or "site-packages" in file or "dist-packages" in file:
        return False
    return not file.startswith((PACKAGE, *STANDARD_LIBRARY))


def where(error: BaseException) -> str:
    """ "line 4, total = 1 / 0": the last line of the learner's code on the way to `error`; "" if none."""
    if isinstance(error, SyntaxError) and error.lineno:
        return f"line {error.lineno}, {(error.text or '').strip()}"
    frames = [each for each in traceback.walk_tb(error.__traceback__) if is_learners(_file(each))]
    if not frames:
        return ""
    text = linecache.getline(_file(frames[-1]), frames[-1][1]).strip()
    return f"line {frames[-1][1]}" + (f", {text}" if text else "")


def origin(error: BaseException):
    """(code, line) of what raised `error`, or None if that was not the learner's own code."""
    frames = list(traceback.walk_tb(error.__traceback__))
    if not frames or not is_learners(_file(frames[-1])):
        return None
    return frames[-1][0].f_code, frames[-1][1]


def _file(frame_and_line) -> str:
    return frame_and_line[0].f_code.co_filename
