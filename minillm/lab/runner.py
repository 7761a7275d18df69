"""Executes notebooks and says how each went; unless asked to record, it leaves them as they are."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

from .notebook_kernel import kernel_environment
from .notebook_run import NotebookRun, Settings
from .report import write_report

PROBE = """
import json, torch
from minillm.graphs import backend
gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
print(json.dumps({"backend": backend, "gpu": gpu, "torch": torch.__version__}))
"""


class CannotRun(Exception):
    """Nothing can be executed at all: what is missing, and the command that brings it."""


def probe_machine(scratch: Path) -> dict[str, str | None]:
    """{"backend", "gpu", "torch"} as a kernel will see them; found in a process of its own, so that this one
    never holds memory of the GPU that it measures. None for each where torch does not work.
    """
    command = [sys.executable, "-c", PROBE]
    answer = subprocess.run(command, capture_output=True, text=True, env=kernel_environment(scratch))
    if answer.returncode:
        return {"backend": None, "gpu": None, "torch": None}
    return json.loads(answer.stdout.splitlines()[-1])


def run_notebooks(
    paths: Sequence[str | Path],
    out: str | Path,
    record: bool = False,
    timeout: float = 600,
    jobs: int | None = None,
    say: Callable[[str], None] = print,
) -> list[dict]:
    """Executes the notebooks at ``paths`` and writes executed copies and a report into the folder ``out``.

    record   also write the outputs and the measurements back into the course (needs a GPU)
    timeout  seconds that one cell may take
    jobs     notebooks at the same time; None is one on a GPU, where a neighbour would spoil the timings, and
             up to two without
    say      receives a line of progress for each cell

    Returns one row for each notebook, in order, as report.json has it: notebook, status ("ok" or "failed"),
    seconds, cells, failing_cell and slowest_cell (cell ids), backend, gpu, and error for one that failed. A
    failure never stops the others. Ctrl-C ends the kernels and returns what there is.

    Raises CannotRun if Jupyter's own packages are missing, if ``record`` finds no GPU, if ``out`` cannot be
    written, or if a copy in it would overwrite a notebook.
    """
    missing = [name for name in ("nbformat", "nbclient", "ipykernel") if not importlib.util.find_spec(name)]
    if missing:
        raise CannotRun(f'{" and ".join(missing)} missing. Run: python -m pip install -e ".[lab]"')
    paths = list(dict.fromkeys(Path(path).resolve() for path in paths))
    out = Path(out).resolve()
    copies = _copy_places(paths, out)
    # Windows keeps files of a dying kernel open for a moment.
    with _scratch_folder() as scratch:
        machine = probe_machine(Path(scratch))
        if record and machine["backend"] != "cuda":
            raise CannotRun(
                f"--record writes down what a GPU did; the backend is {machine['backend'] or 'missing'}. "
                "Run without --record, or on a machine with an NVIDIA GPU."
            )
        cores = os.cpu_count() or 1
        if record:
            jobs = 1  # neighbours would write to one record file
        jobs = jobs or (1 if machine["gpu"] else min(2, cores))
        settings = Settings(
            out=out,
            timeout=timeout,
            machine=machine,
            scratch=Path(scratch),
            # Two kernels with a thread for every core each would mostly wait for one another.
            threads=max(1, cores // jobs) if jobs > 1 else None,
            record_to=_records_folder() if record else None,
            say=_one_line_at_a_time(say),
        )
        places = zip(paths, copies, strict=True)
        runs = [NotebookRun(path, copy, number, settings) for number, (path, copy) in enumerate(places)]
        try:
            out.mkdir(parents=True, exist_ok=True)
            _execute(runs, jobs)
            rows = [run.row for run in runs]
            write_report(out, rows, machine)
        except OSError as problem:
            raise CannotRun(f"the report cannot be written: {problem}") from problem
    return rows


def _copy_places(paths: Sequence[Path], out: Path) -> list[Path]:
    """Where the executed copy of each notebook goes: ``out``, its folder's name, its own name."""
    places: list[Path] = []
    for path in paths:
        folder, number = out / path.parent.name, 1
        while folder / path.name in places:  # two folders of one name
            number += 1
            folder = out / f"{path.parent.name}-{number}"
        places.append(folder / path.name)
        if places[-1] in paths or places[-1].resolve() == path:
            raise CannotRun(
                f"the executed copy of {path.parent.name}/{path.name} would overwrite a notebook: "
                "choose another --out, such as report"
            )
    return places


def _scratch_folder() -> tempfile.TemporaryDirectory:
    try:
        return tempfile.TemporaryDirectory(prefix="minillm-run-", ignore_cleanup_errors=True)
    except OSError as problem:
        raise CannotRun(f"no folder for temporary files can be made: {problem}") from problem


def _records_folder() -> Path:
    from . import records  # brings torch, which an ordinary run leaves to the kernels

    return records.FOLDER


def _execute(runs: list[NotebookRun], jobs: int) -> None:
    with ThreadPoolExecutor(jobs) as pool:
        pending = [pool.submit(run.execute) for run in runs]
        try:
            # Waiting in slices, since Windows delivers Ctrl-C only between them.
            while pending:
                done, pending = wait(pending, timeout=0.5)
                for future in done:
                    future.result()
        except KeyboardInterrupt:
            for run in runs:
                run.stop()


def _one_line_at_a_time(say: Callable[[str], None]) -> Callable[[str], None]:
    lock = threading.Lock()

    def locked(line: str) -> None:
        with lock:
            say(line)

    return locked
