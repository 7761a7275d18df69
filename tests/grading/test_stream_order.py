"""What the checks of lesson 03 take for ordered, between streams."""

import pytest
import torch

from minillm.grading.checks.lesson03.stream_order import StreamOrder
from minillm.grading.checks.lesson03.watching import Watch
from minillm.grading.device_memory import as_on_a_gpu
from minillm.graphs import cuda, device


def wait(waiting, other):
    waiting.wait_stream(other)


def event_wait(waiting, other):
    event = cuda.Event()
    event.record(other)
    event.wait(waiting)


def recorded_event_wait(waiting, other):
    waiting.wait_event(other.record_event())


def stream_on_host(_waiting, other):
    other.synchronize()


def device_on_host(_waiting, _other):
    cuda.synchronize()


def event_on_host(_waiting, other):
    other.record_event().synchronize()


WAITS = [wait, event_wait, recorded_event_wait, stream_on_host, device_on_host, event_on_host]


def nothing(_waiting, _other):
    pass


def wrong_way(waiting, other):
    other.wait_stream(waiting)


def loose(before, after, touch=lambda x: x.fill_(2.0)):
    """What is found loose where `touch` runs on a side stream, between `before` and `after`."""
    with as_on_a_gpu():
        x, watch, side, main = torch.ones(3, device=device), Watch(), cuda.Stream(), cuda.current_stream()
        order = StreamOrder(watch, x)
        with order.on(), watch.on():
            before(side, main)
            with cuda.stream(side):
                touch(x)
            after(main, side)
            order.replay()
        return order.loose


@pytest.mark.parametrize("way", WAITS, ids=lambda way: way.__name__)
def test_what_waits_is_ordered(way):
    assert loose(way, way) is None


@pytest.mark.parametrize("way", WAITS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("no", [nothing, wrong_way], ids=lambda way: way.__name__)
def test_what_waits_on_one_side_only_is_loose(way, no):
    assert "`fill_` wait for the replay" in loose(no, wait)
    assert "the replay wait for `fill_`" in loose(way, no)


def test_an_event_from_before_the_work_does_not_order_it():
    def before(side, main):
        side.wait_stream(main)
        before.event = side.record_event()

    assert "the replay wait for `fill_`" in loose(before, lambda main, side: main.wait_event(before.event))


def test_reading_on_the_side_counts_and_looking_at_the_shape_does_not():
    assert "`clone`" in loose(nothing, nothing, lambda x: x.clone())
    assert loose(nothing, nothing, lambda x: (x.shape, x[1:], len(x), x.is_contiguous())) is None
    assert loose(nothing, nothing, lambda x: torch.ones(3, device=device).add_(1)) is None


def test_what_is_handed_back_has_to_be_done_for_the_caller():
    with as_on_a_gpu():
        x, watch, side, main = torch.ones(3, device=device), Watch(), cuda.Stream(), cuda.current_stream()
        order = StreamOrder(watch, x)
        with order.on(), watch.on():
            side.wait_stream(main)
            with cuda.stream(side):
                order.replay()
                x.clone()
        assert "the caller's stream wait for `clone`" in order.loose


def test_one_stream_needs_no_waits_and_afterwards_nothing_is_watched():
    methods = [(cuda.Event, "record"), (cuda.Event, "wait"), (cuda.Event, "query"), (cuda, "synchronize")]
    before = [getattr(*each) for each in methods]
    with as_on_a_gpu():
        x, watch = torch.ones(3, device=device), Watch()
        order = StreamOrder(watch, x)
        with order.on(), watch.on():
            x.copy_(torch.zeros(3, device=device))
            order.replay()
            x.clone()
        assert order.loose is None
    assert before == [getattr(*each) for each in methods]
