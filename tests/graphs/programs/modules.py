"""Modules within a capture: made, moved, cast, loaded and run, and the state that they keep."""

import torch
from torch import nn

from . import case
from .helpers import attempt, capture


def ones(layer):
    for parameter in layer.parameters():
        parameter.requires_grad_(False).fill_(1)
    return layer


def captured(make):
    """A program: ``make(x) -> f``; ``f(x)`` once eagerly, then captured, then two replays."""

    def run(cuda, device):
        x, main = torch.tensor([[1.0, 2, 3, 4], [4, 3, 2, 1]], device=device), cuda.current_stream()
        f = make(x)
        attempt(f, x)
        made = capture(cuda, lambda: f(x))
        cuda.set_stream(main)
        if made.errors:
            return made.errors
        seen = []
        for _ in range(2):
            made.graph.replay()
            seen.append(made.out.tolist() if isinstance(made.out, torch.Tensor) else None)
            x.add_(1)
        return seen

    return run


@case("module", captured)
def batch_norm(x):
    layer = ones(nn.BatchNorm1d(4, device=x.device))
    return lambda x: [layer(x), layer.running_mean * 1][1]


@case("module", captured)
def tracked(x):
    layer = nn.BatchNorm1d(4, device=x.device)
    return lambda x: [layer(x), layer.num_batches_tracked][1]


@case("module", captured)
def moved_within(x):
    layer = ones(nn.Linear(4, 1, bias=False))
    return lambda x: layer.to(x.device)(x)


@case("module", captured)
def cast_within(x):
    layer = ones(nn.Linear(4, 1, bias=False, device=x.device))
    return lambda x: layer.double()(x.double())


@case("module", captured)
def made_within(x):
    return lambda x: ones(nn.LayerNorm(4, device=x.device))(x)


@case("module", captured)
def embedding_made_within(x):
    return lambda x: ones(nn.Embedding(8, 2, device=x.device))(x.long())


@case("module", captured)
def loaded_within(x):
    layer = ones(nn.Linear(4, 1, bias=False, device=x.device))
    return lambda x: [layer.load_state_dict({"weight": torch.full((1, 4), 2.0)}), layer(x)][1]


@case("module", captured)
def loaded_from_the_device_within(x):
    layer, new = ones(nn.Linear(4, 1, bias=False, device=x.device)), torch.full((1, 4), 2.0, device=x.device)
    return lambda x: [layer.load_state_dict({"weight": new}), layer(x)][1]


@case("module", captured)
def attention(x):
    layer = ones(nn.MultiheadAttention(4, 2, batch_first=True, device=x.device)).eval()
    return lambda x: layer(x[None], x[None], x[None], need_weights=False)[0]


@case("module", captured)
def encoder_layer(x):
    layer = ones(nn.TransformerEncoderLayer(4, 2, 4, 0.0, batch_first=True, device=x.device)).eval()
    return lambda x: layer(x[None])


@case("module", captured)
def sequential(x):
    layer = ones(nn.Sequential(nn.Linear(4, 4, device=x.device), nn.GELU(), nn.RMSNorm(4, device=x.device)))
    return layer


@case("module", captured)
def hooked(x):
    layer, seen = ones(nn.Linear(4, 1, device=x.device)), []
    layer.register_forward_hook(lambda module, args, out: seen.append(out.sum().item()))
    return layer


@case("module", captured)
def buffer_that_counts(x):
    layer = nn.Module()
    layer.register_buffer("count", torch.zeros((), device=x.device))
    return lambda x: layer.count.add_(1)
