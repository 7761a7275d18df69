"""The kernel that executes a notebook: this very interpreter, kept apart from the learner's own files."""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path

import minillm


def kernel_manager_class(connection_file: Path) -> type:
    """A class for nbclient whose kernel is ``sys.executable``, whatever kernelspecs are installed.

    ``connection_file`` is where its sockets are written down (jupyter_client's default is a folder in the
    home, which a rented machine may keep read-only).
    """
    from jupyter_client.kernelspec import KernelSpec
    from jupyter_client.manager import AsyncKernelManager
    from traitlets import default

    class ThisInterpreter(AsyncKernelManager):
        @property
        def kernel_spec(self):
            # ERROR hides ipykernel's warning about TCP; without history no second kernel waits for its file.
            options = ["--IPKernelApp.log_level=ERROR", "--HistoryManager.enabled=False"]
            argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}", *options]
            return KernelSpec(argv=argv, display_name="this interpreter", language="python")

        @default("connection_file")
        def _connection_file_default(self):
            return str(connection_file)

    return ThisInterpreter


def kernel_environment(
    scratch: Path, record_to: Path | None = None, threads: int | None = None
) -> dict[str, str]:
    """The kernel's environment variables: ours, so that ``minillm`` is found, with the state in ``scratch``.

    record_to  where experiments write their records (MINILLM_RECORD), None for a run that records nothing
    threads    how many CPU threads torch takes unless OMP_NUM_THREADS is set already, None for its default
    """
    environment = dict(os.environ)
    # A backend that somebody chose for a terminal would keep figures out of the notebook.
    for name in ("MPLBACKEND", "MINILLM_RECORD"):
        environment.pop(name, None)
    home = str(Path(minillm.__file__).resolve().parents[1])
    if home not in (sysconfig.get_path("purelib"), sysconfig.get_path("platlib")):
        environment["PYTHONPATH"] = os.pathsep.join([home, *filter(None, [environment.get("PYTHONPATH")])])
    environment["MINILLM_PROGRESS"] = str(scratch / "progress.json")
    environment["IPYTHONDIR"] = str(scratch / "ipython")
    if record_to is not None:
        environment["MINILLM_RECORD"] = str(record_to)
    if threads is not None:
        environment.setdefault("OMP_NUM_THREADS", str(threads))
    return environment
