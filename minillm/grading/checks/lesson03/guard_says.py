"""Exercise 3.6: what a guard says, however it says it."""

import io
import warnings
from contextlib import redirect_stdout

from minillm.grading.registry import Wrong


class Told(Exception):
    """Not raised, but returned, printed or warned."""


def error_of(guard, current, usual=None):
    """What `guard(current)` raises, or tells in another way: by printing, by a warning, or by returning
    something other than `usual`, what it returns when nothing has changed. None if it says nothing."""
    printed, names = io.StringIO(), list(current)
    try:
        with redirect_stdout(printed), warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            returned = guard(current)
    except NotImplementedError:
        raise
    except Exception as error:
        return error
    if list(current) != names:
        raise Wrong("changed-input", "The dict that check was given has other entries afterwards.")
    if repr(returned) != repr(usual):
        return Told(f"it returned {returned!r}")
    if warned:
        return Told(f"it warned {str(warned[0].message)!r}")
    return Told(f"it printed {printed.getvalue().strip()!r}") if printed.getvalue() else None


def raised_by(guard, current):
    """What `guard(current)` raises, or None."""
    error = error_of(guard, current)
    return None if isinstance(error, Told) else error


def say(error) -> str:
    if isinstance(error, Told):
        return str(error)[:200]
    return f"it raised {type(error).__name__}: {str(error)[:200]}"
