"""The two backends behind one set of fixtures, so that the same test runs on a GPU and without one."""

import contextlib
import pathlib
import sys
import types

import pytest
import torch

from minillm import graphs
from minillm.graphs import emulator
from minillm.graphs.emulator import streams

sys.path.insert(0, str(pathlib.Path(__file__).parent))  # toy.py

NO_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
SURFACES = {
    "emulated": types.SimpleNamespace(name="emulated", cuda=emulator, device=emulator.device),
    "cuda": types.SimpleNamespace(name="cuda", cuda=torch.cuda, device="cuda"),
}


@pytest.fixture(params=["emulated", "heap", pytest.param("cuda", marks=NO_GPU)])
def backend(request, monkeypatch):
    """.name, .cuda, .device; and `graphs.warm_up` and its like follow it.  "heap" is the emulator with
    device memory of its own, for the whole test."""
    surface = SURFACES["emulated" if request.param == "heap" else request.param]
    monkeypatch.setattr(graphs, "cuda", surface.cuda)
    monkeypatch.setattr(graphs, "device", surface.device)
    monkeypatch.setattr(graphs, "backend", surface.name)
    torch.set_num_threads(2)
    before = surface.cuda.current_stream()
    torch.manual_seed(0)
    with emulator.heap() if request.param == "heap" else contextlib.nullcontext():
        yield surface
        clean_up(surface, before)


@pytest.fixture
def cuda(backend):
    return backend.cuda


@pytest.fixture
def device(backend):
    return backend.device


@pytest.fixture
def side(cuda):
    """A stream that is not the one that captures use.  torch has 32 streams and deals them out in
    turn, so a new one may well be an old one."""
    stream = cuda.Stream()
    return cuda.Stream() if stream == cuda.graph.default_capture_stream else stream


@pytest.fixture
def grab(cuda):
    """grab(f, **options) -> (graph, what f returned while it was captured)."""
    return grabber(cuda)


def grabber(cuda):
    def grab(f, **options):
        g = cuda.CUDAGraph()
        with cuda.graph(g, **options):
            out = f()
        return g, out

    return grab


def clean_up(surface, stream):
    """After a capture that broke, its stream is current and the generator unusable: `recover` must cure both,
    after whatever a test did."""
    if surface.name == "emulated" and streams.now.capture is not None:
        with contextlib.suppress(RuntimeError):
            streams.now.stream = streams.now.capture.stream
            streams.now.capture.graph.capture_end()
    if surface.cuda.current_stream() != stream:
        assert graphs.recover() is None
