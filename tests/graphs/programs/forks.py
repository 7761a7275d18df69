"""Fork and join in every shape, events used again, and which stream is current afterwards."""

import torch

from . import case
from .helpers import capture, streams


def forked(body):
    """A program: ``body(cuda, x, one, two)`` within a capture, x four ones, and two replays."""

    def run(cuda, device):
        x, (one, two) = torch.ones(4, device=device), streams(cuda, 2)
        cuda.synchronize()
        made = capture(cuda, lambda: body(cuda, x, one, two))
        main = cuda.default_stream()
        current = "main" if cuda.current_stream() == main else "left behind"
        if not made.errors:
            made.graph.replay()
            made.graph.replay()
            cuda.synchronize()
            out = made.out.tolist() if isinstance(made.out, torch.Tensor) else made.out
            return {"current": current, "out": out, "x": x.tolist()}
        cuda.set_stream(main)
        return {"current": current, **made.errors, "x": x.tolist()}

    return run


def on(cuda, stream, f):
    with cuda.stream(stream):
        return f()


@case("stream", forked)
def fork_join(cuda, x, one, two):
    main = cuda.current_stream()
    one.wait_stream(main)
    a = on(cuda, one, lambda: x + 1)
    b = x + 2
    main.wait_stream(one)
    return a * b


@case("stream", forked)
def two_forks(cuda, x, one, two):
    main = cuda.current_stream()
    one.wait_stream(main)
    two.wait_stream(main)
    a, b = on(cuda, one, lambda: x + 1), on(cuda, two, lambda: x * 3)
    main.wait_stream(one)
    main.wait_stream(two)
    return a * b


@case("stream", forked)
def fork_of_a_fork(cuda, x, one, two):
    main = cuda.current_stream()
    one.wait_stream(main)
    a = on(cuda, one, lambda: x + 1)
    two.wait_stream(one)
    b = on(cuda, two, lambda: a * 3)
    main.wait_stream(two)
    return a * b


@case("stream", forked)
def fork_of_a_fork_joined_through(cuda, x, one, two):
    main = cuda.current_stream()
    one.wait_stream(main)
    two.wait_stream(one)
    b = on(cuda, two, lambda: x * 3)
    one.wait_stream(two)
    a = on(cuda, one, lambda: b + 1)
    main.wait_stream(one)
    return a * b


@case("stream", forked)
def one_branch_unjoined(cuda, x, one, two):
    main = cuda.current_stream()
    one.wait_stream(main)
    two.wait_stream(main)
    a = on(cuda, one, lambda: x + 1)
    on(cuda, two, lambda: x * 3)
    main.wait_stream(one)
    return a


@case("stream", forked)
def work_after_join(cuda, x, one, two):
    y = fork_join(cuda, x, one, two)
    on(cuda, one, lambda: x + 1)
    return y


@case("stream", forked)
def forked_without_work(cuda, x, one, two):
    one.wait_stream(cuda.current_stream())
    return x + 1


@case("stream", forked)
def forked_after_work_without_work(cuda, x, one, two):
    y = x + 1
    one.wait_stream(cuda.current_stream())
    return y
