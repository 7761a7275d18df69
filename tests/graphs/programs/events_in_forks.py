"""Forks written with events: used again, waited for twice, recorded too early."""

from . import case
from .forks import forked, on


@case("stream", forked)
def fork_twice(cuda, x, one, two):
    main = cuda.current_stream()
    for _ in range(3):
        one.wait_stream(main)
        on(cuda, one, lambda: x.add_(1))
        main.wait_stream(one)
        x.mul_(2)
    return x


@case("stream", forked)
def events(cuda, x, one, two):
    begin, end = cuda.Event(), cuda.Event()
    a = x + 1
    begin.record()
    begin.wait(one)
    with cuda.stream(one):
        b = a * 2
        end.record()
    cuda.current_stream().wait_event(end)
    return a + b


@case("stream", forked)
def event_used_again(cuda, x, one, two):
    event, main = cuda.Event(), cuda.current_stream()
    for _ in range(2):
        event.record(main)
        one.wait_event(event)
        on(cuda, one, lambda: x.add_(1))
        event.record(one)
        main.wait_event(event)
    return x * 1


@case("stream", forked)
def event_waited_for_twice(cuda, x, one, two):
    main = cuda.current_stream()
    event = main.record_event()
    one.wait_event(event)
    two.wait_event(event)
    a, b = on(cuda, one, lambda: x + 1), on(cuda, two, lambda: x + 2)
    for stream in (one, two):
        main.wait_event(stream.record_event())
    return a * b


@case("stream", forked)
def event_before_its_work(cuda, x, one, two):
    main = cuda.current_stream()
    one.wait_stream(main)
    event = one.record_event()
    on(cuda, one, lambda: x.add_(1))
    main.wait_event(event)
    return x * 1
