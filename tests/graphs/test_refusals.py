"""What a capture refuses, in CUDA's words, and that the next capture works all the same.

The name keeps this file behind test_conformance.py: on a GPU a failed capture leaves its stream
current and the default generator unusable until the next successful capture (conftest.clean_up).
"""

import pytest
import torch


def works(cuda, device):
    """Can this process still capture?"""
    x, g = torch.arange(4.0, device=device), cuda.CUDAGraph()
    with cuda.graph(g):
        y = x + 1
    g.replay()
    return y.tolist() == [1, 2, 3, 4]


def test_replay_before_capture(cuda):
    with pytest.raises(RuntimeError, match="Called CUDAGraph::replay without a preceding successful capture"):
        cuda.CUDAGraph().replay()


def test_pool_before_capture(cuda):
    with pytest.raises(
        RuntimeError, match=r"Called CUDAGraph::pool\(\) without a preceding successful capture"
    ):
        cuda.CUDAGraph().pool()


def test_a_graph_is_captured_once(cuda, device, grab):
    x = torch.ones(4, device=device)
    g, y = grab(lambda: x + 1)
    with pytest.raises(
        RuntimeError, match="already owns a captured graph. To capture a new graph, create a new"
    ):
        g.capture_begin()
    g.replay()
    assert y.tolist() == [2] * 4


def test_a_python_error_leaves_a_partial_graph(cuda, device):
    x, g = torch.zeros(4, device=device), cuda.CUDAGraph()
    with pytest.raises(ZeroDivisionError):
        with cuda.graph(g):
            x.add_(1)
            _ = 1 / 0
    g.replay()
    assert x.tolist() == [1] * 4


@pytest.mark.parametrize("by_hand", [True, False])
def test_the_default_stream_is_refused(cuda, device, by_hand):
    g = cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match="CUDA graphs must be captured on a non-default stream"):
        if by_hand:
            g.capture_begin()
        else:
            with cuda.graph(g, stream=cuda.default_stream()):
                pass
    assert works(cuda, device)


def test_an_unknown_capture_error_mode(cuda, device):
    with pytest.raises(
        RuntimeError, match="Unknown capture error mode. Expected `global`, `thread_local`, or"
    ):
        with cuda.graph(cuda.CUDAGraph(), capture_error_mode="strict"):
            pass
    assert works(cuda, device)


SYNCS = {
    "item": lambda x: x.sum().item(),
    "bool": lambda x: bool(x[0] > 0),
    "int": lambda x: int(x[0]),
    "print": lambda x: f"{x} {x[0]}",
    "nonzero": lambda x: x.nonzero(),
    "mask": lambda x: x[x > 0],
    "mask write": lambda x: x.__setitem__(x > 0, x[0].clone()),
    "unique": lambda x: x.unique(),
    "equal": lambda x: torch.equal(x, x + 1),
    "tensor as int index": lambda x: x[x[0].long()],
    "slice": lambda x: x[: x[1].long()],
    "repeat": lambda x: x.repeat_interleave(x.long()),
}


@pytest.mark.parametrize("name", [*SYNCS, "synchronize", "stream", "event", "event query"])
def test_syncs_are_refused_and_spoil_the_capture(cuda, device, name):
    x, g, seen = torch.arange(4.0, device=device), cuda.CUDAGraph(), []
    waits = {
        "synchronize": lambda x: cuda.synchronize(),
        "stream": lambda x: cuda.current_stream().synchronize(),
        "event": lambda x: cuda.current_stream().record_event().synchronize(),
        "event query": lambda x: cuda.current_stream().record_event().query(),
    }
    with pytest.raises(RuntimeError, match="operation failed due to a previous error during capture"):
        with cuda.graph(g):
            try:
                (SYNCS | waits)[name](x)
            except RuntimeError as error:
                seen.append(str(error))  # swallowed, yet the capture is lost
    assert "captur" in seen[0]
    with pytest.raises(RuntimeError, match="without a preceding successful capture"):
        g.replay()
    assert works(cuda, device)


def test_the_first_error_stands_in_the_context_of_the_last(cuda, device):
    x = torch.arange(4.0, device=device)
    with pytest.raises(RuntimeError, match="previous error during capture") as last:
        with cuda.graph(cuda.CUDAGraph()):
            x.sum().item()
    assert "operation not permitted when stream is capturing" in str(last.value.__context__)


def test_a_failed_capture_leaves_its_stream_current(cuda, device):
    """As torch does: the stream is restored only after capture_end has succeeded."""
    x, mine = torch.arange(4.0, device=device), cuda.Stream()
    with pytest.raises(RuntimeError):
        with cuda.graph(cuda.CUDAGraph(), stream=mine):
            x.sum().item()
    assert cuda.current_stream() == mine


COPIES = {
    "cpu": lambda x: x.cpu(),
    "numpy": lambda x: x.cpu().numpy(),
    "tolist": lambda x: x.tolist(),
    "upload": lambda x: torch.tensor([1.0], device=x.device),
    "upload a number": lambda x: torch.tensor(1.0, device=x.device),
    "new_tensor": lambda x: x.new_tensor([1.0]),
    "to": lambda x: torch.tensor([1.0]).to(x.device),
    "copy from the host": lambda x: x.copy_(torch.zeros(4)),
    "copy a number from the host": lambda x: x.copy_(torch.tensor(3.0)),
    "copy to the host": lambda x: torch.zeros(4).copy_(x),
    "list index": lambda x: x[[0, 1]],
    "host index": lambda x: x[torch.tensor([0, 1])],
    "number to one element": lambda x: x.__setitem__(0, 7.0),
    "number to indices": lambda x: x.__setitem__(torch.arange(2, device=x.device), 7.0),
    "masked": lambda x: torch.masked.sum(x, mask=x > 1),
}


@pytest.mark.parametrize("name", COPIES)
@pytest.mark.filterwarnings("ignore:The CUDA Graph is empty")
def test_pageable_copies_are_refused(cuda, device, grab, name):
    x = torch.arange(4.0, device=device)
    with pytest.raises(
        RuntimeError, match="Cannot copy between CPU and CUDA tensors during CUDA graph capture unl"
    ):
        grab(lambda: COPIES[name](x))
    assert works(cuda, device)


def test_a_refused_copy_does_not_spoil_the_capture(cuda, device):
    x, g = torch.zeros(4, device=device), cuda.CUDAGraph()
    with cuda.graph(g):
        x.add_(1)
        with pytest.raises(RuntimeError):
            x.cpu()
        x.add_(1)
    g.replay()
    assert x.tolist() == [2] * 4


@pytest.mark.filterwarnings("ignore:The CUDA Graph is empty")
def test_two_devices_in_one_operation(cuda, device, grab):
    x = torch.arange(4.0, device=device)
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        grab(lambda: x + torch.zeros(4))
    assert works(cuda, device)


@pytest.mark.filterwarnings("ignore:The CUDA Graph is empty")
def test_replay_inside_a_capture(cuda, device, grab):
    x = torch.ones(4, device=device)
    g, _ = grab(lambda: x.add_(1))
    with pytest.raises(RuntimeError, match="Cannot prepare for replay during capturing"):
        grab(g.replay)
    assert works(cuda, device)


def test_a_capture_inside_a_capture(cuda, device, grab):
    x = torch.ones(4, device=device)
    with pytest.raises(RuntimeError, match="previous error during capture"):
        grab(lambda: grab(lambda: x + 1))
    assert works(cuda, device)


def test_work_on_a_stream_outside_the_capture_just_runs(cuda, device, grab, side):
    x, y = torch.zeros(4, device=device), torch.zeros(4, device=device)
    cuda.synchronize()

    def f():
        with cuda.stream(side):
            x.add_(1)
        y.add_(1)

    g, _ = grab(f)
    cuda.synchronize()
    assert x.tolist() == [1] * 4 and y.tolist() == [0] * 4
    g.replay()
    g.replay()
    assert x.tolist() == [1] * 4 and y.tolist() == [2] * 4


def test_an_unjoined_stream(cuda, device, side):
    x, g = torch.ones(8, device=device), cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match="capturing stream has unjoined work"):
        with cuda.graph(g):
            side.wait_stream(cuda.current_stream())
            with cuda.stream(side):
                x.add_(1)
    assert works(cuda, device)


def test_waiting_for_work_outside_the_capture(cuda, device, side):
    x, seen = torch.ones(8, device=device), []
    with pytest.raises(RuntimeError):
        with cuda.graph(cuda.CUDAGraph()):
            try:
                cuda.current_stream().wait_stream(side)  # side was never forked from the capture
            except RuntimeError as error:
                seen.append(str(error))
                raise
            x.add_(1)
    assert "dependency created on uncaptured work in another stream" in seen[0]
    assert works(cuda, device)


@pytest.mark.filterwarnings("ignore:The CUDA Graph is empty")
def test_an_unregistered_generator(device, cuda, grab):
    x, generator = torch.zeros(4, device=device), torch.Generator(device)
    with pytest.raises(RuntimeError):
        grab(lambda: x.uniform_(generator=generator))
    assert works(cuda, device)


def test_another_seed_during_a_capture(cuda, device):
    x, g = torch.zeros(4, device=device), cuda.CUDAGraph()
    with pytest.raises(
        RuntimeError, match="can be called during stream capture only if new seed is the same"
    ):
        with cuda.graph(g):
            x.add_(1)
            torch.manual_seed(torch.initial_seed() + 1)
            x.add_(1)
    g.replay()  # refused, but the capture was not spoilt
    assert x.tolist() == [1] * 4
