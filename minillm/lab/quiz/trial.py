"""Tries a line in a capture. It runs in a worker of ``lab.in_subprocess``, since it may break the capture."""

from __future__ import annotations

import contextlib
import gc
import io
import json

import torch

from ...graphs import cuda, device, recover, warm_up
from .lines import SETTING

CAPTURED, REFUSED, BROKEN = "captured", "refused", "broken"


def trial(code: str) -> dict:
    """{"verdict", "words"}: what becomes of ``code`` within a capture, and how the first error's text begins.

    "captured": no error, and the graph replays. "refused": the line raised, but another operation could be
    captured after it, and the capture ended well. "broken": the capture was lost. Leaves the process sound,
    with ``graphs.recover()``.
    """
    names = {"torch": torch, "device": device}
    exec(SETTING, names)
    line, count = compile(code, "<line>", "exec"), torch.zeros(1, device=device)

    def run():
        exec(line, names)

    def run_and_count():
        run()
        count.add_(1)

    errors, graph, ended = [], cuda.CUDAGraph(), False
    with contextlib.redirect_stdout(io.StringIO()):
        warm_up(run_and_count)  # what loads a kernel would be refused for that reason alone
        exec(SETTING, names)  # the warm-up wrote to y
        gc.collect()  # an old graph that dies during a capture breaks it
        with noted(errors):
            with cuda.graph(graph):
                with noted(errors):
                    run()
                with noted(errors):
                    count.add_(1)
            ended = True
    if ended:
        before = count.item()
        graph.replay()
        ended = count.item() == before + 1  # the operation after the line is in the graph
    recover()
    verdict = (REFUSED if errors else CAPTURED) if ended else BROKEN
    return {"verdict": verdict, "words": errors[0] if errors else ""}


@contextlib.contextmanager
def noted(errors: list[str]):
    """Swallow an exception, and append its first line to ``errors``."""
    try:
        yield
    except Exception as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        errors.append(first.partition(" (emulated")[0])


def report(code: str) -> None:
    """`trial`, printed as a line of JSON for the process that asked."""
    print(json.dumps(trial(code)))
