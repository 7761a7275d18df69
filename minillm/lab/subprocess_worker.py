"""The worker process behind ``lab.in_subprocess``: runs snippets and says whether it is still sound.

Requests come as JSON lines on standard input, messages leave as JSON lines on standard output. Both are
taken out of a snippet's reach first, so that neither ``input()`` nor a print from C can disturb them.
"""

from __future__ import annotations

import json
import os
import re
import sys
import textwrap
import time
import warnings

OUTPUT_LIMIT = 20_000  # characters of a snippet's output that are kept: an endless print must not fill memory


class _Output:
    """A text stream that sends what is written to the parent at once: it must survive the process's death."""

    encoding, errors = "utf-8", "replace"

    def __init__(self, send):
        self.send, self.left = send, OUTPUT_LIMIT

    def write(self, text: str) -> int:
        if self.left > 0 and text:
            cut = "\n[output cut here]\n" if len(text) > self.left else ""
            self.send({"stdout": text[: self.left] + cut})
            self.left -= len(text)
        return len(text)

    def flush(self) -> None:
        pass

    def isatty(self) -> bool:
        return False


def serve() -> None:
    """Answer requests until standard input ends."""
    requests = os.fdopen(os.dup(0), encoding="utf-8")
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)  # what C code prints goes to standard error, which the parent shows if the process dies
    sys.stdin = open(0, encoding="utf-8", closefd=False)
    warnings.formatwarning = short_warning

    def send(message: dict) -> None:
        replies.write(json.dumps(message) + "\n")
        replies.flush()

    send({"ready": True})
    for line in requests:
        sys.stdout = sys.stderr = _Output(send)
        warnings.filterwarnings("default", category=UserWarning)  # forgets what an earlier snippet was told
        send(run_snippet(json.loads(line)["code"]))
        send({"sound": is_sound()})


def short_warning(message, category, *where, **more) -> str:
    """The warning without the file and line it came from: they differ from machine to machine."""
    return f"{category.__name__}: {re.sub(r' *[(]Triggered internally at [^)]*[)]', '', str(message))}\n"


def run_snippet(code: str) -> dict:
    """Run ``code`` in a namespace of its own. SystemExit passes: it ends the worker, as it should."""
    start = time.perf_counter()
    error = None
    try:
        exec(compile(textwrap.dedent(code), "<snippet>", "exec"), {"__name__": "__main__"})
        torch = sys.modules.get("torch")
        if torch and torch.cuda.is_initialized():
            torch.cuda.synchronize()  # a kernel's error belongs to the snippet that launched it
    except SystemExit:
        raise
    except BaseException as caught:
        error = caught
    outcome = {"done": True, "seconds": time.perf_counter() - start}
    if error is not None:
        chain = [f"{type(e).__name__}: {e}" for e in _before(error)]
        outcome |= {"error_type": type(error).__name__, "message": str(error), "context": chain}
    return outcome


def _before(error: BaseException) -> list[BaseException]:
    """The errors that were being handled when ``error`` was raised, latest first."""
    chain, seen = [], {id(error)}
    while (error := error.__cause__ or error.__context__) is not None and id(error) not in seen:
        seen.add(id(error))
        chain.append(error)
    return chain


def is_sound() -> bool:
    """Can this process still capture, replay and draw random numbers, and is its stream the default one?

    A failed capture can leave any of the three broken. Without torch imported nothing can be.
    """
    if "torch" not in sys.modules:
        return True
    from minillm.graphs import probe

    return probe() is None
