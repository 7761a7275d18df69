"""Exercise 2.1: capture a function of one tensor, and give back what it takes to replay it."""

import weakref

import torch

from minillm.grading.checks.lesson02.capture_judge import judge
from minillm.grading.checks.lesson02.observed import MISTAKES, Observed
from minillm.grading.checks.lesson02.refused import name_refusal
from minillm.grading.device_memory import as_on_a_gpu
from minillm.grading.registry import Wrong, exercise
from minillm.graphs import cuda, device

REFUSALS = {
    "wait": "waits-in-capture",
    "host copy": "waits-in-capture",
    "default stream": "default-stream",
    "early replay": "replayed-too-early",
}


_returned = weakref.WeakSet()  # the graphs that answers gave back and somebody still holds


def random_tensor(rng, *shape: int) -> torch.Tensor:
    """float32 of that shape on the device, different everywhere."""
    flat = [rng.uniform(-2, 2) for _ in range(torch.Size(shape).numel())]
    return torch.tensor(flat, device=device).view(shape)


def make_fn(rng, width: int) -> Observed:
    """A function [rows, width] -> [rows, width] of several kernels, with a weight of its own."""
    weight = random_tensor(rng, width)
    return Observed(lambda x: torch.softmax(x * weight, -1).cumsum(-1) + torch.sin(x))


@exercise(
    "2.1",
    answer="capture_and_replay",
    arguments=("fn", "x"),
    title="Capture a function and replay it",
    captures=True,
    hints=(
        "Four steps, in this order: a copy of x that will be the input, a warm-up on a side stream, the "
        "capture, one replay.",
        "static_input = x.clone(), then warm_up(lambda: fn(static_input)). Both come before the capture.",
        "The capture: graph = cuda.CUDAGraph(), then `with cuda.graph(graph):` and in it the one line "
        "static_output = fn(static_input).",
        "After the `with`, static_output has an address and no values yet. graph.replay() computes them. "
        "Then return graph, static_input, static_output.",
    ),
    mistakes={
        **MISTAKES,
        "waits-in-capture": "Something inside the capture makes the CPU wait for the device, or copies "
        "between the two. Nothing has run yet, so there is nothing to wait for; leave only fn(...) in it.",
        "default-stream": "A capture needs a stream of its own. `with cuda.graph(g):` brings one; with "
        "capture_begin() you have to be inside `with cuda.stream(...):`.",
        "replayed-too-early": "The graph was replayed before its capture had ended. It can be replayed once "
        "the `with` block is over.",
        "never-ended": "The capture was begun and never ended, so there is no graph, and everything that "
        "follows on that stream is refused. capture_end() belongs after fn; `with cuda.graph(g):` calls it.",
        "left-stream": "Another stream is current when your function returns, so what the caller does next "
        "lands there. Use `with cuda.stream(...):`, which puts the old one back.",
        "inference-input": "static_input was made in inference mode, and outside of it torch refuses every "
        "write to such a tensor: the caller could not load anything. Make it before, or use torch.no_grad().",
        "kept-from-before": "It gave back the graph of an earlier call, with another fn. Whatever is kept "
        "between calls has to know which function it belongs to.",
        "callers-tensor": "The graph works on the caller's tensor, who goes on to use it, and sees it "
        "overwritten by the next load. Capture on a copy of your own.",
        "dropped-input": "The tensor that was captured as input is gone. The graph goes on to read its "
        "address, where another tensor may live by now. Return the tensor that you captured on.",
        "another-input": "You return another tensor than the one that was captured as input, so what is "
        "copied into it never reaches the graph.",
        "input-made-in-capture": "The input was made inside the capture, so making it is a part of the "
        "graph: each replay fills it anew and overwrites what was loaded. Make it before.",
        "copy-in-graph": "The capture holds a copy that is not needed, and every replay pays for it: make "
        "copies outside of the `with` block, and return what fn was given and what fn returned.",
        "other-output": "static_output is not the tensor that fn returned during the capture. Replays do not "
        "write to it, so it keeps its values for ever.",
        "returned-before-replay": "The graph was never replayed. A capture computes nothing: static_output "
        "holds whatever lay at that address before.",
        "not-loaded": "The graph was replayed, but static_input did not hold x. Fill it with x first.",
    },
)
def check_capture_and_replay(answer, rng):
    kinds = ((3, 8, torch.float32), (5, 16, torch.float64), (3, 8, torch.float32))
    for rows, width, dtype in kinds:  # the last one like the first, for answers that keep what they made
        with as_on_a_gpu():
            fn, x = make_fn(rng, width), random_tensor(rng, rows, width).to(dtype)
            before, news = x.clone(), [random_tensor(rng, rows, width).to(dtype) for _ in range(2)]
            current = cuda.current_stream()
            try:
                returned = answer(fn, x)
            except Exception as error:
                name_refusal(error, REFUSALS)
                raise
            _judge_streams(current)
            _judge_age(returned)
            kept = [x]
            del x  # the judge lets go of the last reference when it wants to know who else has one
            judge(fn, kept, before, returned, news)


def _judge_streams(current) -> None:
    """No capture may be underway when an answer returns, and its stream may not be the current one."""
    try:
        cuda.synchronize()
    except RuntimeError as error:
        name_refusal(error, {"wait": "never-ended"})
        raise
    if cuda.current_stream() != current:
        raise Wrong("left-stream", "cuda.current_stream() is another than before the call.")


def _judge_age(returned) -> None:
    """No graph may come twice: each call has another fn."""
    for each in returned if isinstance(returned, (tuple, list)) else ():
        if isinstance(each, cuda.CUDAGraph):
            if each in _returned:
                raise Wrong("kept-from-before", "An earlier call returned the same graph.")
            _returned.add(each)
