"""Can this process still capture? A failed capture can leave stream, generator or pool unusable."""

from __future__ import annotations

import contextlib
import gc

import torch

POOL_STREAMS = 32  # torch deals its streams out in turn, so as many new ones are all that there are


def recover() -> str | None:
    """Put right what a failed capture left behind; None, or what `probe` still finds wrong.

    A capture that failed leaves its stream current, and torch's CUDA generator believing that it is still
    in that capture: random numbers raise "Offset increment outside graph capture encountered unexpectedly."
    Neither a new seed nor ``set_rng_state`` changes that; the next capture that succeeds does, whatever it
    holds. A capture that was begun by hand and never ended is ended first, as long as its graph is alive:
    on a GPU nothing else than its graph can end it. Never raises. Worked after every refused operation of
    tests/graphs on an H200 with torch 2.11.
    """
    from . import cuda, device, emulator

    try:
        if cuda is emulator:
            emulator.graphs.abandon_capture()
        else:
            _end_open_captures()
        cuda.set_stream(cuda.default_stream())
        x = torch.ones(1, device=device)
        x.add_(1)  # loads the kernel, which a capture may not do
        with cuda.graph(cuda.CUDAGraph()):
            x.add_(1)
    except Exception:
        cuda.set_stream(cuda.default_stream())
    return probe()


def _end_open_captures() -> None:
    """End what is still being captured on one of torch's streams, by the graphs that are alive."""
    for _ in range(POOL_STREAMS):
        with torch.cuda.stream(torch.cuda.Stream()):
            if torch.cuda.is_current_stream_capturing():
                for graph in _unfinished_graphs():
                    # of another stream's capture torch says so; an error of this one ends it all the same
                    with contextlib.suppress(RuntimeError):
                        graph.capture_end()


def _unfinished_graphs() -> list:
    """The CUDA graphs that are alive and have no capture that ended: to end another's would spoil it."""
    found = []
    for graph in [each for each in gc.get_objects() if issubclass(type(each), torch.cuda.CUDAGraph)]:
        try:
            graph.pool()
        except RuntimeError:
            found.append(graph)
    return found


def probe() -> str | None:
    """None if a captured addition replays right, the default stream is current and random numbers come.

    Else what is wrong: the exception's type and first line, as CUDA says it. Never raises.
    """
    from . import cuda, device, warm_up

    try:
        if cuda.current_stream() != cuda.default_stream():
            return "the current stream is not the default one: a failed capture left its own behind"
        torch.rand(1, device=device)
        x = torch.ones(4, device=device)
        warm_up(lambda: x + 1)  # loads the kernel, which a capture may not do
        graph = cuda.CUDAGraph()
        with cuda.graph(graph):
            y = x + 1
        x.fill_(4)
        graph.replay()
        cuda.synchronize()
        return None if y.tolist() == [5.0] * 4 else f"a replayed 4 + 1 gave {y.tolist()[0]:g}"
    except Exception as error:
        lines = str(error).splitlines()
        return f"{type(error).__name__}: {lines[0] if lines else ''}"
