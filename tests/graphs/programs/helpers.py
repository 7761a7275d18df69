"""What programs share: captures that report instead of raising, and outcomes that JSON can hold."""

import math
import types

import numpy as np
import torch

from minillm import graphs

MiB = 1 << 20


# From here on a message is the emulator's, says where torch's source stands, or changes with torch's version.
ENDS = (" (emulated", " (Triggered internally", " during CUDA graph capture. If", " INTERNAL ASSERT")
ENDS += (", but found at least", ", but got ")


def error_text(error):
    """ "Kind: first line", without what the emulator adds, and without where torch's source stands."""
    text = (str(error).splitlines() or [""])[0]
    for end in ENDS:
        text = text.partition(end)[0]
    return f"{type(error).__name__}: {text}".strip()


def plain(value):
    """``value`` as JSON can hold it: tensors as lists, floats to four digits, the unknown as its type."""
    if isinstance(value, torch.Tensor):
        return plain(value.detach().cpu().tolist())
    if isinstance(value, (np.ndarray, np.generic)):
        return plain(value.tolist())
    if isinstance(value, float):
        return float(f"{value:.4g}") if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value if value is None or isinstance(value, (bool, int, str)) else type(value).__name__


def attempt(f, *args):
    """What ``f`` returns, or {"raises": its error}."""
    try:
        return f(*args)
    except Exception as error:
        return {"raises": error_text(error)}


def capture(cuda, f, graph=None, **options):
    """.graph, .out, .errors: the error within the capture and the one that left the ``with``."""
    made = types.SimpleNamespace(graph=graph or cuda.CUDAGraph(), out=None, errors={})
    try:
        with cuda.graph(made.graph, **options):
            try:
                made.out = f()
            except Exception as error:
                made.errors["inside"] = error_text(error)
                raise
    except Exception as error:
        made.errors["outside"] = error_text(error)
    return made


def inside(op):
    """A program: ``op(x)`` for x of four floats within a capture, an error swallowed, and one more kernel.
    Outcome: the first error, the error of that kernel, the error of the ``with``; else two replays."""

    def run(cuda, device):
        x, count = torch.tensor([3.0, 1, 2, 0], device=device), torch.zeros(1, device=device)
        attempt(op, x.clone())  # warm-up
        g, out, outcome = cuda.CUDAGraph(), None, {}
        try:
            with cuda.graph(g):
                try:
                    out = op(x)
                except Exception as error:
                    outcome["first"] = error_text(error)
                try:
                    count.add_(1)
                except Exception as error:
                    outcome["then"] = error_text(error)
        except Exception as error:
            return outcome | {"with": error_text(error)}
        outcome["x after capture"], outcome["replays"] = plain(x), []
        for contents in ([3.0, 1, 2, 0], [0.0, 2, 5, 1]):
            x.copy_(torch.tensor(contents))
            g.replay()
            outcome["replays"].append(plain([out, x, count]))
        return outcome

    return run


def streams(cuda, n):
    """``n`` streams, all different, none the default one or the one that captures use (torch deals out 32
    in turn)."""
    cuda.graph(cuda.CUDAGraph())  # makes the capture stream if there is none yet
    found = [cuda.graph.default_capture_stream, cuda.default_stream()]
    while len(found) < n + 2:
        stream = cuda.Stream()
        found += [stream] if all(stream != other for other in found) else []
    return found[2:]


def segments(pool):
    """(address, bytes) of each segment of a graph's pool."""
    return [(segment.address, segment.size) for segment in graphs.pool_map(pool)]


def places(pool, addresses):
    """For each address: [which segment, in order of first use; offset in it], which no GPU can change."""
    known, seen, found = segments(pool), [], []
    for address in addresses:
        start = [a for a, size in known if a <= address < a + size]
        seen += [a for a in start if a not in seen]
        found.append([seen.index(start[0]), address - start[0]] if start else "outside the pool")
    return found
