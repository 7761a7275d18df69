"""An experiment in a process of its own, for what would spoil the measurements that come after it.

The profiler is the reason: a process that has used it launches more slowly ever after. On an H200 with torch
2.11, one ``add_`` went from 7 to 14 µs of CPU, and launching a graph of 2,000 nodes from 8 to 800 µs.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from pathlib import Path

MARK = "minillm-result "  # begins the line that carries the answer; anything else printed is not ours


def run_in_own_process(name: str, timeout: float = 300.0) -> dict:
    """What the experiment ``name`` returned in a new process.

    DoesNotFit as in the experiment itself; CannotMeasure, with the end of its traceback, for any other
    exception (a profiler that is not allowed to run, say), for a process that died, and after ``timeout``
    seconds.
    """
    from .experiments import CannotMeasure, DoesNotFit

    course = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join(filter(None, [course, os.environ.get("PYTHONPATH")]))
    try:
        ended = subprocess.run(
            [sys.executable, "-m", "minillm.lab.own_process", name],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=timeout,
            env={**os.environ, "PYTHONPATH": path, "PYTHONUTF8": "1"},
        )
    except subprocess.TimeoutExpired:
        raise CannotMeasure(
            f"{name} did not end within {timeout:.0f} s; expected well under a minute: look with "
            "`python -m minillm doctor` whether other processes use the GPU"
        ) from None
    for line in ended.stdout.splitlines():
        if line.startswith(MARK):
            answer = json.loads(line[len(MARK) :])
            if "does_not_fit" in answer:
                raise DoesNotFit(answer["does_not_fit"])
            return answer["data"]
    last = (ended.stderr.strip().splitlines() or [f"exit code {ended.returncode}"])[-1]
    raise CannotMeasure(f"{name} failed in its own process: {last}")


def main(name: str) -> None:
    """The new process's side: runs the experiment and prints its answer on one marked line."""
    from .experiments import DoesNotFit
    from .live_or_recorded import measure_here

    try:
        with contextlib.redirect_stdout(io.StringIO()):
            answer = {"data": measure_here(name)}
    except DoesNotFit as reason:
        answer = {"does_not_fit": str(reason)}
    print(MARK + json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
