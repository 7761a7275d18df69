"""One notebook on its way through a kernel: its progress, and what went wrong in which cell."""

from __future__ import annotations

import atexit
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .notebook_file import Failed, read_notebook, write_copies
from .notebook_kernel import kernel_environment, kernel_manager_class
from .write_back import write_back


@dataclass(frozen=True)
class Settings:
    """What all notebooks of one run share (see ``runner.run_notebooks``)."""

    out: Path
    timeout: float
    machine: dict
    scratch: Path
    threads: int | None
    record_to: Path | None
    say: Callable[[str], None]


class NotebookRun:
    """Executes the notebook at ``path``; ``row`` says how it went so far, ``notebook`` holds its outputs."""

    def __init__(self, path: Path, copy: Path, number: int, settings: Settings):
        self.path, self.copy, self.settings = path, copy, settings
        # Lessons and exercises share file names, so a name always has its folder; so has the copy.
        self.name = f"{path.parent.name}/{path.name}"
        self.scratch = settings.scratch / str(number)
        self.notebook = None
        self.row = {
            "notebook": self.name,
            "status": "failed",
            "seconds": 0.0,
            "cells": 0,
            "failing_cell": None,
            "slowest_cell": None,
            "slowest_seconds": 0.0,
            "backend": settings.machine["backend"],
            "gpu": settings.machine["gpu"],
            "error": "interrupted before it began",
            "copy": None,
            "page": None,
        }
        self._cell, self._began, self._done, self._client = None, 0.0, 0, None
        self._stopped = threading.Event()

    def execute(self) -> None:
        """Runs the notebook in a kernel of its own and writes the copies. Fills ``row``; raises nothing."""
        if self._stopped.is_set():
            return
        started = time.perf_counter()
        self.row["error"] = "interrupted"
        try:
            self.notebook = read_notebook(self.path)
            try:
                self._run_cells()
            finally:
                self.row["seconds"] = round(time.perf_counter() - started, 2)
                self.row.update(write_copies(self.notebook, self.copy, self.settings.out, self.settings.say))
            if self.settings.record_to is not None:
                write_back(self.path, self.notebook, self.settings.machine)
            self.row.update(status="ok", error=None)
        except Exception as problem:
            # Whatever it was, the other notebooks go on.
            self.row["error"] = (
                str(problem) if isinstance(problem, Failed) else f"{type(problem).__name__}: {problem}"
            )
            place = f" in cell {self.row['failing_cell']}" if self.row["failing_cell"] else ""
            self.settings.say(f"{self.name}  FAILED{place}: {self.row['error']}")

    def stop(self) -> None:
        """Ends the kernel, from any thread; ``execute`` then returns within about a second."""
        self._stopped.set()
        process = getattr(getattr(getattr(self._client, "km", None), "provisioner", None), "process", None)
        if process is not None:
            process.kill()

    def _run_cells(self) -> None:
        from nbclient import NotebookClient
        from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

        self.scratch.mkdir(parents=True)
        self.row["cells"] = sum(c.cell_type == "code" and bool(c.source.strip()) for c in self.notebook.cells)
        log = logging.getLogger("minillm.notebooks")
        log.addHandler(logging.NullHandler())
        log.propagate = False  # what went wrong is said once, by us
        self._client = client = NotebookClient(
            self.notebook,
            kernel_manager_class=kernel_manager_class(self.scratch / "kernel.json"),
            timeout=self.settings.timeout,
            record_timing=False,
            store_widget_state=True,  # html_copy shows what the widgets held
            shutdown_kernel="immediate",
            resources={"metadata": {"path": str(self.path.parent)}},
            on_cell_execute=self._cell_begins,
            on_cell_executed=self._cell_ends,
            log=log,
        )
        settings = self.settings
        try:
            client.execute(env=kernel_environment(self.scratch, settings.record_to, settings.threads))
            self._cell = None
        except CellExecutionError as error:
            raise Failed(f"{error.ename}: {(error.evalue.splitlines() or [''])[0][:200]}") from error
        except CellTimeoutError as error:
            raise Failed(f"took longer than {settings.timeout:g} seconds") from error
        except Exception as error:
            if self._stopped.is_set():
                raise Failed("interrupted") from error
            if self._cell is None:
                raise Failed(f"the kernel did not start: {(str(error).splitlines() or [''])[0]}") from error
            if isinstance(error, DeadKernelError):
                raise Failed("the kernel died") from error
            raise Failed(f"{type(error).__name__}: {error}") from error
        finally:
            self.row["failing_cell"] = self._cell
            # nbclient leaves this behind when a kernel did not start, and it would fail at exit.
            atexit.unregister(client._cleanup_kernel)

    def _cell_begins(self, cell, cell_index: int) -> None:
        if self._stopped.is_set():
            raise Failed("interrupted")
        self._cell = cell.get("id", f"number {cell_index + 1}")
        self._began = time.perf_counter()

    def _cell_ends(self, cell, cell_index: int, execute_reply: dict) -> None:
        seconds = time.perf_counter() - self._began
        self._done += 1
        if seconds > self.row["slowest_seconds"]:
            self.row.update(slowest_cell=self._cell, slowest_seconds=round(seconds, 2))
        self.settings.say(f"{self.name}  {self._done}/{self.row['cells']}  {self._cell}  {seconds:.1f} s")
