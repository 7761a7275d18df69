"""Can this process still capture? A failed capture can leave stream, generator or pool unusable."""

from __future__ import annotations

import torch


def recover() -> str | None:
    """Put right what a failed capture left behind; None, or what `probe` still finds wrong.

    A capture that failed leaves its stream current, and torch's CUDA generator believing that it is still
    in that capture: random numbers raise "Offset increment outside graph capture encountered unexpectedly."
    Neither a new seed nor ``set_rng_state`` changes that; the next capture that succeeds does, whatever it
    holds. On a GPU a capture that is still open must be ended first, with its graph's own ``capture_end()``.
    Never raises. Worked after every refused operation of tests/graphs on an H200 with torch 2.11.
    """
    from . import cuda, device, emulator

    try:
        if cuda is emulator:
            emulator.graphs.abandon_capture()
        cuda.set_stream(cuda.default_stream())
        x = torch.ones(1, device=device)
        x.add_(1)  # loads the kernel, which a capture may not do
        with cuda.graph(cuda.CUDAGraph()):
            x.add_(1)
    except Exception:
        cuda.set_stream(cuda.default_stream())
    return probe()


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
