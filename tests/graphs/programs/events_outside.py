"""Events and streams around a capture: recorded before, waited for after, asked for their time."""

import torch

from . import program
from .helpers import attempt, capture


def after(cuda, device, prepare, within=lambda event: None, outside=lambda event: None):
    """One event, recorded or not before the capture, used within it and after it."""
    x, event = torch.ones(4, device=device), cuda.Event()
    prepare(event)
    cuda.synchronize()

    def f():
        x.add_(1)
        return attempt(within, event)

    made, main = capture(cuda, f), cuda.default_stream()
    cuda.set_stream(main)
    return {"within": made.out, **made.errors, "outside": attempt(outside, event)}


@program("event: recorded outside, waited for inside")
def _(cuda, device):
    return after(cuda, device, lambda e: e.record(), lambda e: e.wait())


@program("event: recorded outside, recorded again inside")
def _(cuda, device):
    return after(cuda, device, lambda e: e.record(), lambda e: e.record(), lambda e: e.query())


@program("event: recorded inside, waited for outside")
def _(cuda, device):
    return after(cuda, device, lambda e: None, lambda e: e.record(), lambda e: e.wait())


@program("event: recorded inside, synchronized outside")
def _(cuda, device):
    return after(cuda, device, lambda e: None, lambda e: e.record(), lambda e: e.synchronize())


@program("event: recorded inside, recorded again outside")
def _(cuda, device):
    return after(cuda, device, lambda e: None, lambda e: e.record(), lambda e: [e.record(), e.synchronize()])


@program("event: queried inside, never recorded")
def _(cuda, device):
    return after(cuda, device, lambda e: None, lambda e: e.query())


@program("event: synchronized inside, recorded outside")
def _(cuda, device):
    return after(cuda, device, lambda e: e.record(), lambda e: e.synchronize())


@program("event: queried inside, recorded outside")
def _(cuda, device):
    return after(cuda, device, lambda e: e.record(), lambda e: e.query())


@program("event: queried inside, recorded inside")
def _(cuda, device):
    return after(cuda, device, lambda e: None, lambda e: [e.record(), e.query()])


@program("event: made inside and used outside")
def _(cuda, device):
    x = torch.ones(4, device=device)

    def f():
        x.add_(1)
        return cuda.Event()

    event = capture(cuda, f).out
    return attempt(event.query), attempt(event.record), attempt(event.synchronize), attempt(event.query)


@program("event: of one capture in the next")
def _(cuda, device):
    x, event = torch.ones(4, device=device), cuda.Event()
    first = capture(cuda, lambda: [x.add_(1), event.record()])
    second = capture(cuda, lambda: [x.add_(1), event.wait()])
    return first.errors, second.errors


@program("event: elapsed time without timing and without records")
def _(cuda, device):
    a, b = cuda.Event(), cuda.Event(enable_timing=True)
    first = attempt(a.elapsed_time, b)
    return "raises" in first, "enable_timing=True" in first["raises"]


@program("event: elapsed time of a replay", unfaithful="item 1: the emulator has no clock")
def _(cuda, device):
    x, a, b = torch.ones(4, device=device), cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
    g = capture(cuda, lambda: x + 1).graph
    a.record()
    g.replay()
    b.record()
    cuda.synchronize()
    return attempt(lambda: a.elapsed_time(b) > 0)


@program("event: timing events inside")
def _(cuda, device):
    x, a, b = torch.ones(4, device=device), cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)

    def f():
        a.record()
        y = x + 1
        b.record()
        return y

    made = capture(cuda, f)
    made.graph.replay()
    cuda.synchronize()
    timed = attempt(lambda: a.elapsed_time(b))
    return made.errors, made.out.tolist(), isinstance(timed, dict)
