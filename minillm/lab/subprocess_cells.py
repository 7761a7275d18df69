"""Run snippets that break rules in a process of their own, so that the notebook's stays clean.

A failed capture can poison the process it happens in: the pool stays in "recording", the random generator
refuses to work, the capture's stream stays current. So a cell that shows an error shows it from here.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .subprocess_handle import WorkerHandle

# lines that torch adds below every CUDA error; ``message`` keeps them, the printed outcome leaves them out
_ADVICE = (
    "Search for `cuda",
    "CUDA kernel errors might be",
    "For debugging consider",
    "Compile with `TORCH_USE",
)


@dataclass
class Outcome:
    """What became of one snippet. Printing it shows the snippet's output, then the error as CUDA words it.

    ``stdout`` has what was printed, warnings included; ``error_type`` and ``message`` tell the exception
    (None if there was none), ``context`` the exceptions before it as "Type: message", latest first: a
    failed capture often raises the consequence and keeps the cause there. ``died``: the process ended
    (``sys.exit``, a crash; ``error_type`` is "ProcessDied") or was stopped after the time-out
    ("TimeoutError"). ``seconds`` is how long the snippet ran.
    """

    ok: bool
    stdout: str = ""
    error_type: str | None = None
    message: str | None = None
    context: list[str] = field(default_factory=list)
    died: bool = False
    seconds: float = 0.0

    def __repr__(self) -> str:
        lines = [self.stdout.rstrip("\n")] if self.stdout.strip() else []
        if not self.ok:
            lines.append(_without_advice(f"{self.error_type}: {self.message}"))
            lines += [_without_advice(f"  raised after {earlier}") for earlier in self.context]
        return "\n".join(lines) or "(ran without an error and printed nothing)"


class Outcomes(list):
    """A list of ``Outcome``s that a cell shows as text: one as it is, several with their numbers."""

    def __repr__(self) -> str:
        if len(self) == 1:
            return repr(self[0])
        return "\n\n".join(f"[{number}] {outcome!r}" for number, outcome in enumerate(self))


def _without_advice(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if line.strip() and not line.startswith(_ADVICE))


def in_subprocess(snippets: str | list[str], timeout: float = 60.0) -> Outcomes:
    """Run each snippet of Python in a worker process; returns a list with an ``Outcome`` for each, in order.

    The snippets share one worker, each with a namespace of its own. The worker is replaced when it has
    died, when a snippet took longer than ``timeout`` seconds, and when it can no longer capture a graph or
    draw a random number after a snippet. What a snippet does never raises here; RuntimeError if a worker
    cannot be started at all.
    """
    snippets = [snippets] if isinstance(snippets, str) else list(snippets)
    outcomes = Outcomes()
    worker = None
    try:
        for snippet in snippets:
            worker = worker or WorkerHandle()
            fields, sound = worker.run(snippet, timeout)
            outcomes.append(Outcome(**fields))
            if not sound:
                worker.stop()
                worker = None
    finally:
        if worker:
            worker.stop()
    return outcomes
