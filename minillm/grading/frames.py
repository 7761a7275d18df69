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
    lines = [
        (line, linecache.getline(frame.f_code.co_filename, line).strip())
        for frame, line in traceback.walk_tb(error.__traceback__)
        if is_learners(frame.f_code.co_filename)
    ]
    if not lines:
        return ""
    line, text = lines[-1]
    return f"line {line}, {text}" if text else f"line {line}"
