"""The three capture error modes: what the capturing thread may do in each."""

import gc

import torch

from . import table
from .calls import called, on
from .helpers import MiB


def thread_local(call):
    return called(call, mode="thread_local")


def relaxed(call):
    return called(call, mode="relaxed")


CALLS = {
    "synchronize": lambda cuda, x, one: cuda.synchronize(),
    "current stream synchronize": lambda cuda, x, one: cuda.current_stream().synchronize(),
    "default stream synchronize": lambda cuda, x, one: cuda.default_stream().synchronize(),
    "other stream synchronize": lambda cuda, x, one: one.synchronize(),
    "other stream query": lambda cuda, x, one: one.query(),
    "event recorded elsewhere, synchronize": lambda cuda, x, one: one.record_event().synchronize(),
    "item": lambda cuda, x, one: x.sum().item(),
    "tolist": lambda cuda, x, one: x.tolist(),
    "upload": lambda cuda, x, one: torch.tensor([1.0], device=x.device).shape[0],
    "allocate here": lambda cuda, x, one: torch.empty(77 * MiB, device=x.device).dim(),
    "allocate outside": lambda cuda, x, one: on(
        cuda, one, lambda: torch.empty(88 * MiB, device=x.device).dim()
    ),
    "item outside": lambda cuda, x, one: on(cuda, one, lambda: x.sum().item()),
    "tolist outside": lambda cuda, x, one: on(cuda, one, x.tolist),
    "upload outside": lambda cuda, x, one: on(cuda, one, lambda: torch.ones(3).to(x.device).shape[0]),
    "print outside": lambda cuda, x, one: on(cuda, one, lambda: len(str(x)) > 0),
    "gc": lambda cuda, x, one: gc.collect() >= 0,
}
ITEM_7 = "item 7: memory beside a capture"
table("thread_local", thread_local, CALLS, unfaithful={"allocate outside": ITEM_7})
table("relaxed", relaxed, CALLS)
