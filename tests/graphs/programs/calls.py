"""Calls of the surface itself within a capture, and work on a stream that is not part of it."""

import gc

import torch

from . import table
from .helpers import MiB, attempt, capture, streams


def called(call, mode="global"):
    """A program: ``call(cuda, x, one)`` within a capture, its error swallowed, then one more kernel.
    ``one`` is a stream outside the capture."""

    def run(cuda, device):
        x, (one,), outcome = torch.zeros(4, device=device), streams(cuda, 1), {}
        cuda.synchronize()

        def f():
            outcome["call"] = attempt(call, cuda, x, one)
            outcome["then"] = attempt(lambda: x.add_(1) is x)

        made = capture(cuda, f, capture_error_mode=mode)
        cuda.set_stream(cuda.default_stream())
        if not made.errors:
            made.graph.replay()
            cuda.synchronize()
        return outcome | made.errors | {"x": x.tolist()}

    return run


def on(cuda, stream, f):
    with cuda.stream(stream):
        return f()


CALLS = {
    "synchronize": lambda cuda, x, one: cuda.synchronize(),
    "current stream synchronize": lambda cuda, x, one: cuda.current_stream().synchronize(),
    "current stream query": lambda cuda, x, one: cuda.current_stream().query(),
    "default stream synchronize": lambda cuda, x, one: cuda.default_stream().synchronize(),
    "default stream query": lambda cuda, x, one: cuda.default_stream().query(),
    "other stream synchronize": lambda cuda, x, one: one.synchronize(),
    "other stream query": lambda cuda, x, one: one.query(),
    "event recorded here, synchronize": lambda cuda, x, one: (
        cuda.current_stream().record_event().synchronize()
    ),
    "event recorded here, query": lambda cuda, x, one: cuda.current_stream().record_event().query(),
    "event recorded elsewhere": lambda cuda, x, one: one.record_event() is not None,
    "event recorded elsewhere, synchronize": lambda cuda, x, one: one.record_event().synchronize(),
    "event recorded elsewhere, query": lambda cuda, x, one: one.record_event().query(),
    "event recorded elsewhere, waited for here": lambda cuda, x, one: one.record_event().wait(),
    "event recorded elsewhere, waited for there": lambda cuda, x, one: one.wait_event(one.record_event()),
    "event never recorded, synchronize": lambda cuda, x, one: cuda.Event().synchronize(),
    "event never recorded, query": lambda cuda, x, one: cuda.Event().query(),
    "default stream waits for the capture": lambda cuda, x, one: cuda.default_stream().wait_stream(
        cuda.current_stream()
    ),
    "the capture waits for the default stream": lambda cuda, x, one: cuda.current_stream().wait_stream(
        cuda.default_stream()
    ),
    "other stream waits for the default stream": lambda cuda, x, one: one.wait_stream(cuda.default_stream()),
    "a new stream": lambda cuda, x, one: cuda.Stream() is not None,
    "a new graph": lambda cuda, x, one: cuda.CUDAGraph() is not None,
    "a new pool handle": lambda cuda, x, one: len(cuda.graph_pool_handle()),
    "replay of an empty graph": lambda cuda, x, one: cuda.CUDAGraph().replay(),
    "is it capturing": lambda cuda, x, one: cuda.is_current_stream_capturing(),
    "which stream": lambda cuda, x, one: cuda.current_stream() == cuda.graph.default_capture_stream,
    "gc": lambda cuda, x, one: gc.collect() >= 0,
    "seed": lambda cuda, x, one: torch.initial_seed() == torch.initial_seed(),
}
table("call", called, CALLS)

OUTSIDE = {
    "a kernel": lambda cuda, x, one: on(cuda, one, lambda: x.add_(10) is x),
    "item": lambda cuda, x, one: on(cuda, one, lambda: x.sum().item()),
    "tolist": lambda cuda, x, one: on(cuda, one, lambda: x.tolist()),
    "cpu": lambda cuda, x, one: on(cuda, one, lambda: x.cpu().tolist()),
    "print": lambda cuda, x, one: on(cuda, one, lambda: len(str(x)) > 0),
    "nonzero": lambda cuda, x, one: on(cuda, one, lambda: len(x.nonzero())),
    "upload": lambda cuda, x, one: on(cuda, one, lambda: torch.tensor([1.0], device=x.device).shape[0]),
    "allocate": lambda cuda, x, one: on(cuda, one, lambda: torch.empty(99 * MiB, device=x.device).dim()),
    "random": lambda cuda, x, one: on(cuda, one, lambda: x.uniform_(0, 0) is x),
    "on the default stream, a kernel": lambda cuda, x, one: on(
        cuda, cuda.default_stream(), lambda: x.add_(10) is x
    ),
    "on the default stream, item": lambda cuda, x, one: on(
        cuda, cuda.default_stream(), lambda: x.sum().item()
    ),
    "on the default stream, tolist": lambda cuda, x, one: on(cuda, cuda.default_stream(), x.tolist),
}
ITEM_7 = "item 7: what runs beside a capture"
table("outside", called, OUTSIDE, unfaithful=dict.fromkeys(["allocate", "random"], ITEM_7))
