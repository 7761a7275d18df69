"""Streams at the edge of a capture: outsiders, the default stream, a stream left current, races."""

import torch

from . import case
from .forks import forked, on
from .helpers import attempt


@case("stream", forked)
def event_never_recorded(cuda, x, one, two):
    cuda.Event().wait()
    return x + 1


@case("stream", forked)
def wait_for_an_outsider(cuda, x, one, two):
    cuda.current_stream().wait_stream(one)
    return x + 1


@case("stream", forked)
def wait_for_an_outsider_swallowed(cuda, x, one, two):
    first = attempt(cuda.current_stream().wait_stream, one)
    return [first, attempt(lambda: (x + 1).shape[0])]


@case("stream", forked)
def wait_for_oneself(cuda, x, one, two):
    cuda.current_stream().wait_stream(cuda.current_stream())
    return x + 1


@case("stream", forked)
def outside_work(cuda, x, one, two):
    on(cuda, one, lambda: x.add_(1))
    return torch.full((4,), 5.0, device=x.device)


@case("stream", forked)
def outside_then_drawn_in(cuda, x, one, two):
    on(cuda, one, lambda: x.add_(10))
    one.wait_stream(cuda.current_stream())
    on(cuda, one, lambda: x.add_(1))
    cuda.current_stream().wait_stream(one)


@case("stream", forked)
def default_stream_work(cuda, x, one, two):
    return on(cuda, cuda.default_stream(), lambda: attempt(lambda: (x + 1).shape[0]))


@case("stream", forked)
def default_stream_drawn_in(cuda, x, one, two):
    main, default = cuda.current_stream(), cuda.default_stream()
    default.wait_stream(main)
    a = on(cuda, default, lambda: x + 1)
    main.wait_stream(default)
    return a


@case("stream", forked)
def nothing_to_switch(cuda, x, one, two):
    with cuda.stream(None):
        return x + 1


WRECK = "item 6: the capture is never ended, and CUDA refuses the next"


@case("stream", forked, alone=True, unfaithful=WRECK)
def set_stream_within(cuda, x, one, two):
    one.wait_stream(cuda.current_stream())
    cuda.set_stream(one)
    return x + 1


@case("stream", forked)
def set_stream_and_back(cuda, x, one, two):
    main = cuda.current_stream()
    one.wait_stream(main)
    cuda.set_stream(one)
    y = x + 1
    cuda.set_stream(main)
    main.wait_stream(one)
    return y


@case("stream", forked)
def capturing_or_not(cuda, x, one, two):
    seen = [cuda.is_current_stream_capturing(), on(cuda, one, cuda.is_current_stream_capturing)]
    one.wait_stream(cuda.current_stream())
    seen.append(on(cuda, one, cuda.is_current_stream_capturing))
    x.add_(1)
    cuda.current_stream().wait_stream(one)
    return [*seen, on(cuda, one, cuda.is_current_stream_capturing)]


@case("stream", forked)
def race(cuda, x, one, two):
    """Both branches write different halves; the join makes it well defined."""
    main = cuda.current_stream()
    one.wait_stream(main)
    on(cuda, one, lambda: x[:2].add_(1))
    x[2:].add_(10)
    main.wait_stream(one)
    return x * 1


@case("stream", forked)
def freed_on_the_branch(cuda, x, one, two):
    main = cuda.current_stream()
    one.wait_stream(main)
    a = on(cuda, one, lambda: (x + 1) * 2 + 1)
    main.wait_stream(one)
    return a - x


@case("stream", forked, unfaithful="item 10: the tensor asks torch")
def recorded_stream(cuda, x, one, two):
    main = cuda.current_stream()
    a = x + 1
    one.wait_stream(main)
    a.record_stream(one)
    b = on(cuda, one, lambda: a * 2)
    main.wait_stream(one)
    return b
