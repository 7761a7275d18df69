"""Answers to 2.1."""

import torch

from minillm.grading.corpus import right, wrong
from minillm.graphs import cuda, warm_up


@right("2.1")
def by_hand(fn, x):
    static_input = torch.empty_like(x)
    static_input.copy_(x)
    side = cuda.Stream()
    side.wait_stream(cuda.current_stream())
    with cuda.stream(side):
        for _ in range(3):
            fn(static_input)
    cuda.current_stream().wait_stream(side)
    cuda.synchronize()
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        static_output = fn(static_input)
    graph.replay()
    cuda.synchronize()
    return graph, static_input, static_output


@right("2.1")
def everything_on_one_stream_of_my_own(fn, x):
    stream = cuda.Stream()
    stream.wait_stream(cuda.current_stream())
    g = cuda.CUDAGraph()
    with cuda.stream(stream):
        inp = x.detach().clone()
        fn(inp)
        stream.synchronize()
        g.capture_begin()
        out = fn(inp)
        g.capture_end()
        g.replay()
    stream.synchronize()
    return [g, inp, out]


@right("2.1")
def filled_after_the_capture(fn, x):
    placeholder = torch.zeros_like(x)
    warm_up(lambda: fn(placeholder), times=1)
    pool = cuda.graph_pool_handle()
    graph = cuda.CUDAGraph(keep_graph=True)
    with cuda.graph(graph, pool=pool, capture_error_mode="thread_local"):
        result = fn(placeholder)
    graph.instantiate()
    placeholder.copy_(x)
    graph.replay()
    graph.replay()
    return graph, placeholder, result


@wrong("2.1", "not-captured")
def called_before_the_with(fn, x):
    static = x.clone()
    warm_up(lambda: fn(static))
    graph = cuda.CUDAGraph()
    out = fn(static)
    with cuda.graph(graph):
        out = out + 0
    graph.replay()
    return graph, static, out


@wrong("2.1", "not-captured")
def captured_the_copy(fn, x):
    static = torch.zeros_like(x)
    warm_up(lambda: fn(static))
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        static.copy_(x)
    graph.replay()
    return graph, static, fn(static)


@wrong("2.1", "no-warm-up")
def straight_to_the_capture(fn, x):
    static = x.clone()
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        out = fn(static)
    graph.replay()
    return graph, static, out


@wrong("2.1", "no-warm-up")
def a_replay_as_warm_up(fn, x):
    static, graph = x.clone(), cuda.CUDAGraph()
    with cuda.graph(graph):
        out = fn(static)
    for _ in range(3):
        graph.replay()
    cuda.synchronize()
    return graph, static, out


@wrong("2.1", "no-warm-up")
def warmed_up_with_one_row(fn, x):
    static = x.clone()
    warm_up(lambda: fn(static[:1]))
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        out = fn(static)
    graph.replay()
    return graph, static, out


@wrong("2.1", "warm-up-after")
def warmed_up_when_it_was_over(fn, x):
    static = x.clone()
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        out = fn(static)
    warm_up(lambda: fn(static))
    graph.replay()
    return graph, static, out


@wrong("2.1", "warm-up-on-default-stream")
def warmed_up_where_it_stood(fn, x):
    static = x.clone()
    for _ in range(3):
        fn(static)
    cuda.synchronize()
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        out = fn(static)
    graph.replay()
    return graph, static, out


@wrong("2.1", "captured-twice")
def warmed_up_in_the_capture(fn, x):
    static = x.clone()
    warm_up(lambda: fn(static))
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        for _ in range(3):
            out = fn(static)
    graph.replay()
    return graph, static, out


@wrong("2.1", "waits-in-capture")
def synchronises_to_be_safe(fn, x):
    static = x.clone()
    warm_up(lambda: fn(static))
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        out = fn(static)
        cuda.synchronize()
    graph.replay()
    return graph, static, out


@wrong("2.1", "waits-in-capture")
def looks_at_the_result(fn, x):
    static = x.clone()
    warm_up(lambda: fn(static))
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        out = fn(static)
        print("mean", out.mean().item())
    graph.replay()
    return graph, static, out


@wrong("2.1", "waits-in-capture")
def logs_the_values(fn, x):
    static, log = x.clone(), []
    warm_up(lambda: fn(static))
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        out = fn(static)
        log.append(out.tolist())
    graph.replay()
    return graph, static, out


@wrong("2.1", "default-stream")
def begins_where_it_stands(fn, x):
    static = x.clone()
    warm_up(lambda: fn(static))
    graph = cuda.CUDAGraph()
    graph.capture_begin()
    out = fn(static)
    graph.capture_end()
    graph.replay()
    return graph, static, out


@wrong("2.1", "replayed-too-early")
def replays_within_the_with(fn, x):
    static = x.clone()
    warm_up(lambda: fn(static))
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        out = fn(static)
        graph.replay()
    return graph, static, out


@wrong("2.1", "replayed-too-early")
def replays_to_warm_up(fn, x):
    static = x.clone()
    graph = cuda.CUDAGraph()
    graph.replay()
    with cuda.graph(graph):
        out = fn(static)
    return graph, static, out


@wrong("2.1", "callers-tensor")
def no_copy_at_all(fn, x):
    warm_up(lambda: fn(x))
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        out = fn(x)
    graph.replay()
    return graph, x, out


@wrong("2.1", "callers-tensor")
def detach_is_no_copy(fn, x):
    static = x.detach().contiguous()
    warm_up(lambda: fn(static))
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        out = fn(static)
    graph.replay()
    return graph, static, out


@wrong("2.1", "callers-tensor")
def zeroes_what_it_was_given(fn, x):
    static = x.clone()
    x.zero_()
    warm_up(lambda: fn(static))
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        out = fn(static)
    graph.replay()
    return graph, static, out


@wrong("2.1", "dropped-input")
def captured_the_callers_returned_a_copy(fn, x):
    warm_up(lambda: fn(x))
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        out = fn(x)
    graph.replay()
    return graph, x.clone(), out


@wrong("2.1", "dropped-input")
def bound_to_a_second_copy(fn, x):
    static = x.clone()
    warm_up(lambda: fn(static))
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        out = fn(static)
    static = x.clone()  # fresh, for the caller
    graph.replay()
    return graph, static, out


@wrong("2.1", "dropped-input")
def a_helper_kept_it_to_itself(fn, x):
    def record(static):
        warm_up(lambda: fn(static))
        graph = cuda.CUDAGraph()
        with cuda.graph(graph):
            out = fn(static)
        graph.replay()
        return graph, out

    mine = x + 0
    graph, out = record(x + 0)
    return graph, mine, out


KEPT = []


@wrong("2.1", "another-input")
def kept_for_good_and_another_returned(fn, x):
    KEPT[:] = [x.clone()]
    warm_up(lambda: fn(KEPT[0]))
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        out = fn(KEPT[0])
    graph.replay()
    return graph, x.clone(), out


@wrong("2.1", "another-input")
def the_two_swapped(fn, x):
    static = x.clone()
    warm_up(lambda: fn(static))
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        out = fn(static)
    graph.replay()
    return graph, out, static


@wrong("2.1", "another-input")
def copies_the_callers_in_the_capture(fn, x):
    static = x.clone()
    warm_up(lambda: fn(static))
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        out = fn(x.clone())
    graph.replay()
    return graph, static, out


@wrong("2.1", "input-made-in-capture")
def everything_within_the_with(fn, x):
    warm_up(lambda: fn(x))
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        static = x.clone()
        out = fn(static)
    graph.replay()
    return graph, static, out


@wrong("2.1", "input-made-in-capture")
def filled_within_the_with(fn, x):
    static = torch.empty_like(x)
    warm_up(lambda: fn(static))
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        static.copy_(x)
        out = fn(static)
    graph.replay()
    return graph, static, out


@wrong("2.1", "copy-in-graph")
def clones_the_output_inside(fn, x):
    static = x.clone()
    warm_up(lambda: fn(static))
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        out = fn(static).clone()
    graph.replay()
    return graph, static, out


@wrong("2.1", "copy-in-graph")
def clones_the_input_inside(fn, x):
    static = x.clone()
    warm_up(lambda: fn(static))
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        out = fn(static.clone())
    graph.replay()
    return graph, static, out


@wrong("2.1", "other-output")
def clones_the_output_at_the_end(fn, x):
    static = x.clone()
    warm_up(lambda: fn(static))
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        out = fn(static)
    graph.replay()
    return graph, static, out.clone()


@wrong("2.1", "other-output")
def returns_the_warm_ups_output(fn, x):
    static, side = x.clone(), cuda.Stream()
    side.wait_stream(cuda.current_stream())
    with cuda.stream(side):
        out = fn(static)
    cuda.current_stream().wait_stream(side)
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        fn(static)
    graph.replay()
    return graph, static, out


@wrong("2.1", "returned-before-replay")
def thinks_that_a_capture_runs(fn, x):
    static = x.clone()
    warm_up(lambda: fn(static))
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        out = fn(static)
    return graph, static, out


@wrong("2.1", "not-loaded")
def captured_on_zeros(fn, x):
    static = torch.zeros_like(x)
    warm_up(lambda: fn(static))
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        out = fn(static)
    graph.replay()
    return graph, static, out


@wrong("2.1", "wrong-value")
def loaded_after_the_replay(fn, x):
    static = torch.zeros_like(x)
    warm_up(lambda: fn(static))
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        out = fn(static)
    graph.replay()
    static.copy_(x)
    return graph, static, out


@wrong("2.1", "wrong-type")
def only_the_graph(fn, x):
    static = x.clone()
    warm_up(lambda: fn(static))
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        fn(static)
    return graph


@wrong("2.1", "wrong-type")
def a_function_that_replays(fn, x):
    static = x.clone()
    warm_up(lambda: fn(static))
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        out = fn(static)

    def run(values):
        static.copy_(values)
        graph.replay()
        return out

    return run


@wrong("2.1", "returned-nothing")
def forgot_the_return(fn, x):
    static = x.clone()
    warm_up(lambda: fn(static))
    with cuda.graph(cuda.CUDAGraph()):
        fn(static)
