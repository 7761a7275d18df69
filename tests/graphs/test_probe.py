"""The probe says None in a healthy process and the reason in one that a failed capture left behind."""

import torch

from minillm import graphs
from minillm.graphs import emulator, probe


def test_a_healthy_process():
    assert probe() is None


def test_what_is_wrong_is_said(monkeypatch):
    def broken(*size, **options):
        raise RuntimeError("Offset increment outside graph capture encountered unexpectedly.\nmore")

    monkeypatch.setattr(torch, "rand", broken)
    assert probe() == "RuntimeError: Offset increment outside graph capture encountered unexpectedly."


def test_a_stream_that_was_left_behind(monkeypatch):
    monkeypatch.setattr(graphs, "cuda", emulator)
    monkeypatch.setattr(graphs, "device", "cpu")
    with emulator.stream(emulator.Stream()):
        assert "left its own behind" in probe()
    assert probe() is None


def test_a_replay_that_computes_something_else(monkeypatch):
    monkeypatch.setattr(graphs, "cuda", emulator)
    monkeypatch.setattr(graphs, "device", "cpu")
    monkeypatch.setattr(emulator.CUDAGraph, "replay", lambda self: None)
    assert probe().startswith("a replayed 4 + 1 gave")


def test_a_capture_that_nobody_ended_is_ended():
    """As after a Python error between capture_begin and capture_end; on a GPU its stream is gone as well."""
    x = torch.ones(4, device=graphs.device)
    graphs.warm_up(lambda: x + 1)
    done, open_one = graphs.cuda.CUDAGraph(), graphs.cuda.CUDAGraph()
    with graphs.cuda.graph(done):
        y = x + 1
    with graphs.cuda.stream(graphs.cuda.Stream()):
        open_one.capture_begin()
        z = x + 2
    assert graphs.recover() is None
    done.replay()
    assert y.tolist() == [2.0] * 4 and z.shape == (4,)
