"""Layers with a state, the default device, streams of a thread, and what a capture leaves in memory."""

import threading

import torch

from . import program, table
from .helpers import capture, plain


@program("memory: a capture writes nothing, not even where its outputs will be")
def _(cuda, device):
    pool, x = cuda.graph_pool_handle(), torch.ones(1000, device=device)
    first = capture(cuda, lambda: x * 2, pool=pool)
    other = capture(cuda, lambda: first.out + 1)
    first.graph.replay()
    address = first.out.data_ptr()
    first.out = None
    second = capture(cuda, lambda: x * 5, pool=pool)  # not replayed
    other.graph.replay()
    return second.out.data_ptr() == address, other.out[0].item()


def recurrent(kind):
    """A program: two replays of that layer agree with eager."""

    def run(cuda, device):
        layer = kind()(2, 3, batch_first=True)
        with torch.no_grad():
            for weight in layer.parameters():
                weight.fill_(0.25)
        layer, x = layer.to(device).requires_grad_(False), torch.zeros(1, 4, 2, device=device)
        layer(x)
        cuda.synchronize()
        made, seen = capture(cuda, lambda: layer(x)[0]), []
        for value in (1.0, 2.0):
            x.fill_(value)
            made.graph.replay()
            seen.append(torch.allclose(made.out, layer(x)[0], atol=1e-5))
        return made.errors, seen

    return run


RECURRENT = {"GRU": lambda: torch.nn.GRU, "LSTM": lambda: torch.nn.LSTM, "RNN": lambda: torch.nn.RNN}
table("layer", recurrent, RECURRENT)


@program("device: a default device around a capture")
def _(cuda, device):
    with torch.device(device):
        x = torch.ones(4)
        made = capture(cuda, lambda: x + torch.arange(4) * torch.ones(4))
        made.graph.replay()
    return made.errors, plain(made.out)


@program("device: a default device within a capture")
def _(cuda, device):
    x = torch.ones(4, device=device)

    def f():
        with torch.device(device):
            return x + torch.arange(4)

    made = capture(cuda, f)
    made.graph.replay()
    return made.errors, plain(made.out)


@program("stream: every thread has its own current stream")
def _(cuda, device):
    torch.ones(1, device=device)
    here, seen = cuda.Stream(), []

    def look():
        seen.append(cuda.current_stream() == cuda.default_stream())
        cuda.set_stream(here)

    with cuda.stream(cuda.Stream()):
        mine = cuda.current_stream()
        other = threading.Thread(target=look)
        other.start()
        other.join()
        return seen, cuda.current_stream() == mine


@program("stream: another thread does not capture", alone=True)
def _(cuda, device):
    x, seen = torch.ones(4, device=device), []

    def f():
        other = threading.Thread(target=lambda: seen.append(cuda.is_current_stream_capturing()))
        other.start()
        other.join()
        return x + 1

    made = capture(cuda, f, capture_error_mode="thread_local")
    return made.errors, seen, cuda.is_current_stream_capturing()
