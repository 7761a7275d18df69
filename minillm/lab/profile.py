"""One call on a timeline: when the CPU launched, when the GPU ran. From torch.profiler (Kineto, CUPTI)."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path

from . import timing
from .timeline import Span, Timeline
from .timing import on_gpu

__all__ = ["Span", "Timeline", "profile", "timeline_from_trace"]

WINDOW = "minillm.lab.profile"  # names the annotation around the call, so that the rest can be cut away
GPU_WORK = {
    "kernel": "",
    "gpu_memcpy": "Memcpy",
    "gpu_memset": "Memset",
}  # trace category -> name's beginning
LAUNCHES = (
    "cudaLaunchKernel",
    "cuLaunchKernel",
    "cudaGraphLaunch",
    "cuGraphLaunch",
    "cudaMemcpyAsync",
    "cudaMemsetAsync",
)
WAITS = ("cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize")


def profile(fn: Callable, *, warmup: int = 2) -> Timeline:
    """The `Timeline` of one call of ``fn`` on the GPU, after ``warmup`` calls.

    The profiler slows the CPU down, so that gaps come out longer than they are without it; kernels keep
    their durations. To say how busy the GPU is in normal running, divide ``timeline.busy_us`` by the wall
    time of `measure`, taken *before*: once it was used, launches stay slower for the rest of the process
    (see `own_process`). Raises RuntimeError without a GPU: there is nothing to see on a timeline then.

    https://docs.pytorch.org/docs/stable/profiler.html
    """
    if not on_gpu():
        raise RuntimeError(
            "lab.profile needs a CUDA GPU, and none is in use here; lab.launch_queue simulates a timeline on "
            "any machine, and lab.run shows a recorded one"
        )
    import torch
    from torch.profiler import ProfilerActivity, record_function
    from torch.profiler import profile as torch_profile

    for _ in range(warmup):
        fn()
    timing.profiler_used = True
    for _ in range(2):  # the first round starts CUPTI, which delays the calls in it
        torch.cuda.synchronize()
        with torch_profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
            with record_function(WINDOW):
                fn()
            torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(path))
        trace = json.loads(path.read_text(encoding="utf-8", errors="replace"))
    timeline = timeline_from_trace(trace)
    if not timeline.kernels:
        raise RuntimeError(
            "the profiler saw no work on the GPU; expected fn to run at least one kernel, and no other "
            "profiler (nsys, ncu) to be attached to this process"
        )
    return timeline


def timeline_from_trace(trace: dict) -> Timeline:
    """The `Timeline` in a Chrome trace as torch.profiler exports it.

    Reads the complete events (``"ph": "X"``, ``ts`` and ``dur`` in µs) of the categories cpu_op,
    cuda_runtime, cuda_driver, kernel, gpu_memcpy and gpu_memset. Where the trace holds `profile`'s own
    annotation, CPU events outside it are left out. Time starts with the earliest event that is kept.
    """
    events = [event for event in trace.get("traceEvents", ()) if event.get("ph") == "X" and "dur" in event]
    window = next((e for e in events if e.get("name") == WINDOW and e.get("cat") == "user_annotation"), None)
    ops, launches, waits, kernels = [], [], [], []
    for event in events:
        name, category = str(event.get("name", "")), str(event.get("cat", "")).lower()
        span = Span(name, float(event["ts"]), float(event["ts"]) + float(event["dur"]))
        if category in GPU_WORK:
            beginning = GPU_WORK[category]
            kernels.append(span if name.startswith(beginning) else span._replace(name=f"{beginning} {name}"))
        elif window is not None and not _inside(span, window):
            continue
        elif category == "cpu_op":
            ops.append(span)
        elif category in ("cuda_runtime", "cuda_driver"):
            if name.startswith(LAUNCHES):
                launches.append(span)
            elif name.startswith(WAITS):
                waits.append(span)
    return Timeline.starting_at_zero(launches=_outermost(launches), kernels=kernels, waits=waits, ops=ops)


def _inside(span: Span, window: dict) -> bool:
    return window["ts"] <= span.start_us <= window["ts"] + window["dur"]


def _outermost(launches: list[Span]) -> list[Span]:
    """Launches without those inside another: a runtime call may show the driver call that it makes, too."""
    kept: list[Span] = []
    for span in sorted(launches, key=lambda span: (span.start_us, -span.end_us)):
        if not kept or span.end_us > kept[-1].end_us:
            kept.append(span)
    return kept
