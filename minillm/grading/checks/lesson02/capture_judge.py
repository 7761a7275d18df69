"""What came back from a capture: whether it can be replayed on new values, and if not, why."""

import torch

from minillm.grading.checks.lesson02.observed import Call, Observed, judge_calls
from minillm.grading.checks.lesson02.occupancy import in_use, poison, same, squat
from minillm.grading.device_memory import on_device
from minillm.grading.registry import Wrong
from minillm.graphs import cuda


def judge(fn: Observed, kept: list, before: torch.Tensor, returned, news: list[torch.Tensor]) -> None:
    """Raise Wrong unless `returned` is (graph, static_input, static_output), filled for the caller's tensor.

    kept      holds the caller's tensor, and the only reference to it that is not the answer's
    before    what the caller's tensor held
    news      values to replay with
    """
    graph, static, output = _parts(returned)
    call = judge_calls(fn)
    if static.is_inference():
        raise Wrong("inference-input", "static_input.is_inference() is True.")
    captured, callers = call.inputs["x"], kept[0].data_ptr()
    if static.data_ptr() == callers or not same(kept[0], before):
        aliased = static.data_ptr() == callers
        raise Wrong("callers-tensor", "static_input has the address of x." if aliased else "x was changed.")
    if static.data_ptr() != captured:
        at = f"Captured at {captured:#x}; static_input is at {static.data_ptr():#x}."
        if captured == callers:
            at = f"fn was captured on x itself, which the caller let go of since. {at}"
            kept.clear()
        _explain_input(fn, call, captured, graph, static, output, news[0], at)
    if output.data_ptr() != call.output:
        follows = _follows(fn, graph, static, output, news[0])
        at = f"fn returned {call.output:#x} then, you return {output.data_ptr():#x}."
        raise Wrong("copy-in-graph" if follows else "other-output", at)
    if not fn.replays:
        raise Wrong("returned-before-replay", "Counted on the device: fn ran only where it was called.")
    if not same(static, before):
        raise Wrong("not-loaded", _differ("static_input", static, "x", before))
    if not same(output, right := fn.compute(before)):
        raise Wrong("wrong-value", _differ("static_output", output, "fn(x)", right))
    kept.clear()
    _replay(fn, graph, static, output, news)


def _parts(returned):
    if returned is None:
        raise Wrong("returned-nothing")
    wanted = "It has to be graph, static_input, static_output"
    if not isinstance(returned, (tuple, list)) or len(returned) != 3:
        count = f" of {len(returned)}" if isinstance(returned, (tuple, list)) else ""
        raise Wrong("wrong-type", f"{wanted}; you return a {type(returned).__name__}{count}.")
    graph, static, output = returned
    if not isinstance(graph, cuda.CUDAGraph) or not all(
        isinstance(t, torch.Tensor) for t in (static, output)
    ):
        kinds = ", ".join(type(each).__name__ for each in returned)
        raise Wrong("wrong-type", f"{wanted}; you return {kinds}.")
    for name, tensor in (("static_input", static), ("static_output", output)):
        if not on_device(tensor):
            raise Wrong("wrong-type", f"{wanted}, on the device; your {name} is in host memory.")
    return graph, static, output


def _explain_input(fn: Observed, call: Call, captured: int, graph, static, output, new, at: str) -> None:
    """static_input is not what was captured. What was? `at` says where both are."""
    if static.data_ptr() == call.output:
        raise Wrong("another-input", "You return fn's output as static_input.")
    alive = in_use(captured)
    if alive is None:  # in the graph's own pool
        raise Wrong("copy-in-graph" if _follows(fn, graph, static, output, new) else "another-input", at)
    if alive:
        raise Wrong("another-input", at)
    squatters = squat(new)
    taken = any(each.data_ptr() == captured for each in squatters)
    raise Wrong("dropped-input", at + " A new tensor was given that address at once." * taken)


def _follows(fn: Observed, graph, static, output, new) -> bool:
    """Whether what is loaded into `static` comes out at `output`, whatever lies between."""
    poison(output)
    static.copy_(new)
    graph.replay()
    return same(output, fn.compute(new))


def _replay(fn: Observed, graph, static, output, news) -> None:
    squatters = squat(static)  # noqa: F841  they hold the addresses that the answer let go of
    for new in news:
        poison(output)
        static.copy_(new)
        graph.replay()
        if not same(static, new):
            raise Wrong("input-made-in-capture", _differ("static_input", static, "what was loaded", new))
        if not same(output, right := fn.compute(new)):
            raise Wrong("wrong-value", "At a replay: " + _differ("static_output", output, "fn(x)", right))


def _differ(name: str, value: torch.Tensor, other: str, right: torch.Tensor) -> str:
    cuda.synchronize()
    if value.shape != right.shape or value.dtype != right.dtype:
        kinds = [f"{str(t.dtype).removeprefix('torch.')} {list(t.shape)}" for t in (value, right)]
        return f"{name} is {kinds[0]}, {other} is {kinds[1]}."
    first = [f"{float(t.flatten()[0]):.4g}" for t in (value, right)]
    return f"{name} begins with {first[0]}, {other} with {first[1]}."
