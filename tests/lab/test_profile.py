"""The timeline read from a trace as torch.profiler exports it, worked out by hand; what is read off it."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minillm.lab import profile as public_profile
from minillm.lab import timing
from minillm.lab.profile import WINDOW, profile, timeline_from_trace
from minillm.lab.timeline import Span, Timeline


def event(name, category, ts, dur, **more):
    return {"ph": "X", "name": name, "cat": category, "ts": ts, "dur": dur, "pid": 1, "tid": 1, **more}


def trace(*events):
    return {"schemaVersion": 1, "traceEvents": [{"ph": "M", "name": "process_name", "ts": 0}, *events]}


EAGER = trace(
    event("cudaLaunchKernel", "cuda_runtime", 900.0, 5.0),  # before the call: warm-up's
    event(WINDOW, "user_annotation", 1000.0, 60.0),
    event(WINDOW, "gpu_user_annotation", 1010.0, 90.0),
    event("aten::add_", "cpu_op", 1001.0, 14.0),
    event("cudaLaunchKernel", "cuda_runtime", 1005.0, 5.0),
    event("void add(float)", "kernel", 1012.0, 3.0, args={"stream": 7}),
    event("aten::mul", "cpu_op", 1020.0, 15.0),
    event("cudaLaunchKernelExC", "cuda_runtime", 1025.0, 6.0),
    event("cuLaunchKernelEx", "cuda_driver", 1026.0, 4.0),  # the driver call inside the runtime call
    event("void mul(float)", "kernel", 1032.0, 8.0),
    event("cudaMemcpyAsync", "cuda_runtime", 1040.0, 4.0),
    event("Memcpy DtoH (Device -> Pageable)", "gpu_memcpy", 1046.0, 2.0),
    event("cudaStreamSynchronize", "cuda_runtime", 1045.0, 5.0),
    event("cudaDeviceGetAttribute", "cuda_runtime", 1052.0, 1.0),
    event("cudaDeviceSynchronize", "cuda_runtime", 1070.0, 9.0),  # the profiler's own
    {"ph": "f", "name": "ac2g", "cat": "ac2g", "ts": 1012.0, "id": 3},
)


def test_eager_trace():
    line = timeline_from_trace(EAGER)
    assert line.launches == [
        ("cudaLaunchKernel", 4.0, 9.0),
        ("cudaLaunchKernelExC", 24.0, 30.0),
        ("cudaMemcpyAsync", 39.0, 43.0),
    ]
    assert line.kernels == [
        ("void add(float)", 11.0, 14.0),
        ("void mul(float)", 31.0, 39.0),
        ("Memcpy DtoH (Device -> Pageable)", 45.0, 47.0),
    ]
    assert line.waits == [("cudaStreamSynchronize", 44.0, 49.0)]
    assert [op.name for op in line.ops] == ["aten::add_", "aten::mul"]
    assert line.wall_us == 49.0  # from the first op to the end of the wait
    assert line.busy_us == 3 + 8 + 2
    assert line.busy_fraction == pytest.approx(13 / 49)
    assert [span.kind for span in line.kernels] == ["kernel", "kernel", "memcpy"]
    assert line.durations_us == [3.0, 8.0]


def test_graph_trace_has_one_launch_and_many_kernels():
    line = timeline_from_trace(
        trace(
            event("cudaGraphLaunch", "cuda_runtime", 50.0, 12.0),
            event("Memset (Device)", "gpu_memset", 63.0, 1.0),
            *(event(f"k{i % 2}", "kernel", 65.0 + 3 * i, 2.0) for i in range(6)),
        )
    )
    assert [span.name for span in line.launches] == ["cudaGraphLaunch"]
    assert line.census() == [("k0", 3, 6.0), ("k1", 3, 6.0), ("Memset (Device)", 1, 1.0)]
    assert line.kernels[0].kind == "memset" and line.wall_us == 32.0


def test_copies_are_told_from_kernels_whatever_their_name():
    line = timeline_from_trace(trace(event("HtoD", "gpu_memcpy", 1.0, 1.0)))
    assert line.kernels[0].kind == "memcpy" and line.durations_us == []


def test_a_trace_without_events_is_an_empty_timeline():
    line = timeline_from_trace({"traceEvents": []})
    assert (line.wall_us, line.busy_us, line.busy_fraction, line.census()) == (0.0, 0.0, 0.0, [])


spans = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 60), st.integers(0, 9)), max_size=12).map(
    lambda rows: [Span(name, float(start), float(start + lasting)) for name, start, lasting in rows]
)


@settings(deadline=None, max_examples=80)
@given(spans, spans)
def test_busy_time_is_the_number_of_busy_microseconds(kernels, launches):
    line = Timeline.starting_at_zero(kernels=kernels, launches=launches)
    zero = min((s.start_us for s in kernels + launches), default=0)
    busy = sum(any(s.start_us <= zero + t < s.end_us for s in kernels) for t in range(80))
    assert line.busy_us == busy
    assert line.wall_us == max((s.end_us for s in kernels + launches), default=zero) - zero


@settings(deadline=None, max_examples=50)
@given(spans, spans, spans, spans, st.floats(0, 1e5), st.booleans())
def test_json_gives_the_timeline_back_to_a_hundredth(launches, kernels, waits, ops, shift, with_ops):
    moved = [[s._replace(start_us=s.start_us / 3 + shift, end_us=s.end_us / 3 + shift) for s in lane]
             for lane in (launches, kernels, waits, ops)]  # fmt: skip
    line = Timeline.starting_at_zero(**dict(zip(("launches", "kernels", "waits", "ops"), moved, strict=True)))
    back = Timeline.from_json(json.loads(json.dumps(line.to_json(ops=with_ops), sort_keys=True)))
    lanes = ["launches", "kernels", "waits"] + (["ops"] if with_ops else [])
    for lane in lanes:
        for ours, theirs in zip(getattr(line, lane), getattr(back, lane), strict=True):
            assert theirs.name == ours.name
            assert theirs[1:] == pytest.approx(ours[1:], abs=0.011)
    assert with_ops or back.ops == []
    assert back.wall_us == pytest.approx(line.wall_us, abs=0.006)


def test_json_is_compact():
    kernels = [
        Span("a kernel with a rather long name" * 4, 12345.678 * i, 12345.678 * i + 2.345) for i in range(400)
    ]
    text = json.dumps(Timeline.starting_at_zero(kernels=kernels).to_json())
    assert text.count("a kernel") == 4  # once, a name of four parts
    assert len(text) < 400 * 25


def test_between_takes_what_begins_there():
    part = timeline_from_trace(EAGER).between(20.0, 41.0)
    assert [span.name for span in part.launches] == ["cudaLaunchKernelExC", "cudaMemcpyAsync"]
    assert part.kernels == [("void mul(float)", 7.0, 15.0)]  # on a clock that starts with the launch at 24


def test_profile_without_a_gpu_says_what_to_do():
    if timing.on_gpu():
        pytest.skip("there is a GPU")
    with pytest.raises(RuntimeError, match="needs a CUDA GPU.*lab.launch_queue"):
        profile(lambda: None)


def test_the_public_name_is_the_function():
    assert public_profile is profile
