"""The parent's side of ``lab.in_subprocess``: starts a worker, sends it snippets, notices when it dies."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections import deque
from pathlib import Path

START_SECONDS = 60.0  # how long a new worker may take to answer
PROBE_SECONDS = 60.0  # how long it may take to find out whether it is still sound
_SERVE = "from minillm.lab.subprocess_worker import serve; serve()"


class WorkerHandle:
    """A process that runs snippets. Threads read its pipes, since not every system can poll a pipe."""

    def __init__(self):
        course = str(Path(__file__).resolve().parents[2])
        path = os.pathsep.join(filter(None, [course, os.environ.get("PYTHONPATH")]))
        self.process = subprocess.Popen(
            [sys.executable, "-c", _SERVE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            env={**os.environ, "PYTHONPATH": path, "PYTHONUTF8": "1"},
        )
        self.messages: queue.Queue[dict] = queue.Queue()
        self.last_errors: deque[str] = deque(maxlen=5)
        self.readers = [
            threading.Thread(target=read, daemon=True) for read in (self._read_messages, self._read_errors)
        ]
        for reader in self.readers:
            reader.start()
        if "ready" not in self._next(START_SECONDS):
            self.stop()
            raise RuntimeError(f"the worker process of in_subprocess did not start{self._last_words()}")

    def run(self, snippet: str, timeout: float) -> tuple[dict, bool]:
        """Run one snippet: the fields of its ``Outcome``, and whether the process can take another."""
        start, stdout = time.monotonic(), []
        try:
            self.process.stdin.write(json.dumps({"code": snippet}) + "\n")
            self.process.stdin.flush()
        except OSError:
            pass  # it is dead already: the next message says so
        while "stdout" in (message := self._next(start + timeout - time.monotonic())):
            stdout.append(message["stdout"])
        fields = {"ok": False, "stdout": "".join(stdout), "seconds": time.monotonic() - start}
        if "done" in message:
            del message["done"]
            return fields | message | {"ok": "error_type" not in message}, self._is_sound()
        if "late" in message:
            words = f"still running after {timeout:g} s; the process was stopped"
            return fields | {"error_type": "TimeoutError", "message": words, "died": True}, False
        words = f"the process ended with exit code {self._exit_code()}{self._last_words()}"
        return fields | {"error_type": "ProcessDied", "message": words, "died": True}, False

    def stop(self) -> None:
        """End the process at once: after a failed capture an orderly end may hang."""
        self.process.kill()
        self.process.wait()
        try:
            self.process.stdin.close()
        except OSError:  # what was left to send cannot be sent any more
            pass
        for reader, pipe in zip(self.readers, (self.process.stdout, self.process.stderr), strict=True):
            reader.join(1.0)
            if not reader.is_alive():  # a process that the snippet started may still hold the pipe open
                pipe.close()

    def _is_sound(self) -> bool:
        while "stdout" in (message := self._next(PROBE_SECONDS)):
            pass  # what the probe prints is not the snippet's
        return message.get("sound", False)

    def _next(self, seconds: float) -> dict:
        """The worker's next message; {"late": True} if it does not come in time."""
        try:
            return self.messages.get(timeout=max(seconds, 0))
        except queue.Empty:
            return {"late": True}

    def _read_messages(self) -> None:
        for line in self.process.stdout:
            self.messages.put(json.loads(line))
        self.messages.put({"ended": True})

    def _read_errors(self) -> None:
        for line in self.process.stderr:
            if line.strip():
                self.last_errors.append(line.rstrip())

    def _exit_code(self) -> int | str:
        try:
            return self.process.wait(5)
        except subprocess.TimeoutExpired:  # it closed its pipes but lives on; stop() ends it
            return "unknown"

    def _last_words(self) -> str:
        """What the process wrote to standard error last, as the end of a sentence."""
        self.readers[1].join(1.0)
        return "; its last words were:\n" + "\n".join(self.last_errors) if self.last_errors else ""
