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
