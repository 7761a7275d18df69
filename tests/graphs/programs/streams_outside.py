"""Streams without a capture: which is current, what equals what."""

from . import program
from .helpers import attempt, streams


@program("event: which is what")
def _(cuda, device):
    main, (one,) = cuda.current_stream(), streams(cuda, 1)
    event = one.record_event()
    same = one.record_event(event) is event
    event.synchronize()
    return main == cuda.default_stream(), one == main, one == one, same, event.query(), one.query()


@program("event: streams nest")
def _(cuda, device):
    (one, two), seen = streams(cuda, 2), []
    with cuda.stream(one):
        with cuda.stream(two):
            seen.append(cuda.current_stream() == two)
        seen.append(cuda.current_stream() == one)
        with cuda.stream(None):
            seen.append(cuda.current_stream() == one)
        with cuda.stream(cuda.default_stream()):
            seen.append(cuda.current_stream() == cuda.default_stream())
        try:
            with cuda.stream(two):
                raise KeyError
        except KeyError:
            seen.append(cuda.current_stream() == one)
    return seen, cuda.current_stream() == cuda.default_stream()


@program("event: priorities and names of streams are taken")
def _(cuda, device):
    return [attempt(lambda p=p: cuda.Stream(priority=p) is not None) for p in (-1, 0)]


@program("event: a stream is a key")
def _(cuda, device):
    (one, two) = streams(cuda, 2)
    return {one: 1, two: 2}[one], len({one, two, one}), one in [two], cuda.current_stream() in {one: 1}
