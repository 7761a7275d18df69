"""Answers to 2.4."""

import torch

from minillm.grading.corpus import right, wrong
from minillm.graphs import cuda


@right("2.4")
def with_events(left, right, combine, side):
    forked, done = cuda.Event(), cuda.Event()
    forked.record()
    side.wait_event(forked)
    with cuda.stream(side):
        b = right()
        done.record()
    a = left()
    cuda.current_stream().wait_event(done)
    return combine(a, b)


@right("2.4")
def left_on_the_side_and_a_switch_by_hand(left, right, combine, side):
    main = cuda.current_stream()
    side.wait_stream(main)
    cuda.set_stream(side)
    a = left()
    cuda.set_stream(main)
    b = right()
    main.wait_stream(side)
    return combine(a, b)


@right("2.4")
def combines_on_the_side(left, right, combine, side):
    main = cuda.current_stream()
    side.wait_stream(main)
    a = left()
    with cuda.stream(side):
        b = right()
        side.wait_event(main.record_event())
        result = combine(a, b)
    main.wait_stream(side)
    return result


@right("2.4")
def a_stream_for_each_branch(left, right, combine, side):
    main, results = cuda.current_stream(), []
    for branch, stream in ((left, cuda.Stream()), (right, side)):
        stream.wait_stream(main)
        with cuda.stream(stream):
            results.append(branch())
        joined = stream.record_event()
        results.append(joined)
    a, first, b, second = results
    main.wait_event(first)
    main.wait_event(second)
    return combine(a, b)


@right("2.4")
def copies_on_the_way(left, right, combine, side):
    main = cuda.current_stream()
    side.wait_stream(main)
    with side:
        b = right()
    a = left()
    main.wait_event(side.record_event())
    return combine(a.clone(), b.clone()).clone()


@wrong("2.4", "unjoined")
def never_joins(left, right, combine, side):
    side.wait_stream(cuda.current_stream())
    with cuda.stream(side):
        b = right()
    return combine(left(), b)


@wrong("2.4", "unjoined")
def records_the_event_before_the_work(left, right, combine, side):
    main = cuda.current_stream()
    side.wait_stream(main)
    done = side.record_event()
    with cuda.stream(side):
        b = right()
    a = left()
    main.wait_event(done)
    return combine(a, b)


@wrong("2.4", "unjoined")
def waits_in_the_wrong_direction(left, right, combine, side):
    main = cuda.current_stream()
    side.wait_stream(main)
    with cuda.stream(side):
        b = right()
    a = left()
    side.wait_stream(main)
    return combine(a, b)


@wrong("2.4", "joined-late")
def joins_after_combine(left, right, combine, side):
    main = cuda.current_stream()
    side.wait_stream(main)
    with cuda.stream(side):
        b = right()
    a = left()
    out = combine(a, b)
    main.wait_stream(side)
    return out


@wrong("2.4", "joined-late")
def combines_on_the_side_without_waiting_for_left(left, right, combine, side):
    main = cuda.current_stream()
    side.wait_stream(main)
    a = left()
    with cuda.stream(side):
        out = combine(a, right())
    main.wait_stream(side)
    return out


@wrong("2.4", "unforked")
def never_forks(left, right, combine, side):
    with cuda.stream(side):
        b = right()
    a = left()
    cuda.current_stream().wait_stream(side)
    return combine(a, b)


@wrong("2.4", "unforked")
def neither_forks_nor_joins(left, right, combine, side):
    with cuda.stream(side):
        b = right()
    return combine(left(), b)


@wrong("2.4", "unforked")
def waits_for_the_default_stream(left, right, combine, side):
    side.wait_stream(cuda.default_stream())
    with cuda.stream(side):
        b = right()
    a = left()
    cuda.current_stream().wait_stream(side)
    return combine(a, b)


@wrong("2.4", "unforked")
def forks_within_the_block(left, right, combine, side):
    """Within the block the current stream is the side stream itself."""
    main = cuda.current_stream()
    with cuda.stream(side):
        side.wait_stream(cuda.current_stream())
        b = right()
    a = left()
    main.wait_stream(side)
    return combine(a, b)


@wrong("2.4", "unforked")
def forks_only_a_stream_that_is_not_captured_yet(left, right, combine, side):
    """The fork also orders: a side stream that was drawn in earlier has not waited for what came since."""
    main = cuda.current_stream()
    with cuda.stream(side):
        drawn_in = cuda.is_current_stream_capturing()
    if not drawn_in:
        side.wait_stream(main)
    with cuda.stream(side):
        b = right()
    a = left()
    main.wait_stream(side)
    return combine(a, b)


@wrong("2.4", "one-stream")
def ignores_the_side_stream(left, right, combine, side):
    return combine(left(), right())


@wrong("2.4", "one-stream")
def both_on_the_side(left, right, combine, side):
    main = cuda.current_stream()
    side.wait_stream(main)
    with cuda.stream(side):
        a, b = left(), right()
    main.wait_stream(side)
    return combine(a, b)


@wrong("2.4", "one-stream")
def switches_no_stream(left, right, combine, side):
    main = cuda.current_stream()
    side.wait_stream(main)
    cuda.stream(side)
    b = right()
    a = left()
    main.wait_stream(side)
    return combine(a, b)


@wrong("2.4", "serialised")
def forks_after_left(left, right, combine, side):
    main = cuda.current_stream()
    a = left()
    side.wait_stream(main)
    with cuda.stream(side):
        b = right()
    main.wait_stream(side)
    return combine(a, b)


@wrong("2.4", "serialised")
def joins_before_left(left, right, combine, side):
    main = cuda.current_stream()
    side.wait_stream(main)
    with cuda.stream(side):
        b = right()
    main.wait_stream(side)
    return combine(left(), b)


@wrong("2.4", "synchronised")
def synchronises_the_side_stream(left, right, combine, side):
    side.wait_stream(cuda.current_stream())
    with cuda.stream(side):
        b = right()
    a = left()
    side.synchronize()
    return combine(a, b)


@wrong("2.4", "synchronised")
def synchronises_the_device(left, right, combine, side):
    main = cuda.current_stream()
    side.wait_stream(main)
    with cuda.stream(side):
        b = right()
    a = left()
    cuda.synchronize()
    main.wait_stream(side)
    return combine(a, b)


@wrong("2.4", "synchronised")
def waits_for_an_event_on_the_cpu(left, right, combine, side):
    side.wait_stream(cuda.current_stream())
    with cuda.stream(side):
        b = right()
        done = side.record_event()
    a = left()
    done.synchronize()
    return combine(a, b)


@wrong("2.4", "synchronised")
def captures_the_branch_in_a_graph_of_its_own(left, right, combine, side):
    inner = cuda.CUDAGraph()
    with cuda.graph(inner, stream=side):
        b = right()
    a = left()
    inner.replay()
    return combine(a, b)


@wrong("2.4", "side-left-current")
def stays_on_the_side(left, right, combine, side):
    main = cuda.current_stream()
    side.wait_stream(main)
    a = left()
    cuda.set_stream(side)
    b = right()
    side.wait_stream(main)
    out = combine(a, b)
    main.wait_stream(side)
    return out


@wrong("2.4", "called-once")
def warms_up_within(left, right, combine, side):
    main = cuda.current_stream()
    left(), right()
    side.wait_stream(main)
    with cuda.stream(side):
        b = right()
    a = left()
    main.wait_stream(side)
    return combine(a, b)


@wrong("2.4", "called-once")
def calls_no_combine(left, right, combine, side):
    main = cuda.current_stream()
    side.wait_stream(main)
    with cuda.stream(side):
        b = right()
    a = left()
    main.wait_stream(side)
    return torch.sub(a, b)


@wrong("2.4", "swapped")
def right_comes_first(left, right, combine, side):
    main = cuda.current_stream()
    side.wait_stream(main)
    with cuda.stream(side):
        b = right()
    a = left()
    main.wait_stream(side)
    return combine(b, a)


@wrong("2.4", "dropped-result")
def returns_a_branch(left, right, combine, side):
    main = cuda.current_stream()
    side.wait_stream(main)
    with cuda.stream(side):
        b = right()
    a = left()
    main.wait_stream(side)
    combine(a, b)
    return a


@wrong("2.4", "returned-nothing")
def returns_nothing(left, right, combine, side):
    main = cuda.current_stream()
    side.wait_stream(main)
    with cuda.stream(side):
        b = right()
    a = left()
    main.wait_stream(side)
    combine(a, b)


@wrong("2.4", "wrong-type")
def returns_all_three(left, right, combine, side):
    main = cuda.current_stream()
    side.wait_stream(main)
    with cuda.stream(side):
        b = right()
    a = left()
    main.wait_stream(side)
    return a, b, combine(a, b)
