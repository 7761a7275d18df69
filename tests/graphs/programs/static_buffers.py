"""Static buffers: outputs, frozen numbers, freed inputs, weights, graphs that feed each other."""

import gc

import torch

from . import program
from .helpers import capture


@program("static: each replay overwrites the output")
def _(cuda, device):
    x, kept, copies = torch.zeros(2, device=device), [], []
    made = capture(cuda, lambda: x + 1)
    for i in range(3):
        x.fill_(i)
        made.graph.replay()
        kept.append(made.out)
        copies.append(made.out.clone())
    return [k.tolist() for k in kept], [c.tolist() for c in copies]


@program("static: the output may be written by hand")
def _(cuda, device):
    x = torch.zeros(2, device=device)
    made = capture(cuda, lambda: x + 1)
    made.out.fill_(7)
    before_replay = made.out.tolist()
    made.graph.replay()
    return before_replay, made.out.tolist()


@program("static: clone within the capture is overwritten too")
def _(cuda, device):
    x, kept = torch.zeros(2, device=device), []
    made = capture(cuda, lambda: (x + 1).clone())
    for i in range(2):
        x.fill_(i)
        made.graph.replay()
        kept.append(made.out)
    return [k.tolist() for k in kept], kept[0].data_ptr() == kept[1].data_ptr()


@program("static: numbers and branches are frozen, tensors are not")
def _(cuda, device):
    x, state = torch.ones(2, device=device), {"k": 2, "flag": True, "t": torch.full((), 2.0, device=device)}

    def f():
        y = x * state["k"] + state["t"]
        return y if state["flag"] else -y

    made = capture(cuda, f)
    state.update(k=100, flag=False)
    state["t"].fill_(5)
    made.graph.replay()
    return made.out.tolist()


@program("static: a freed input reads as something else", unfaithful="item 5: the bytes turn into NaN")
def _(cuda, device):
    def build():
        x = torch.zeros(1 << 20, device=device)
        return capture(cuda, lambda: x + 1)

    made = build()
    gc.collect()
    squatter = torch.full((1 << 20,), 41.0, device=device)
    made.graph.replay()
    return made.out[0].item(), squatter[0].item()


@program("static: outputs are not there before the first replay")
def _(cuda, device):
    x = torch.full((4,), 3.0, device=device)
    made = capture(cuda, lambda: x * 5)
    return made.out.tolist() == [15] * 4, made.out.shape[0], made.out.is_contiguous()


@program("static: weights copied, loaded, rebound")
def _(cuda, device):
    layer, x = (
        torch.nn.Linear(2, 1, bias=False, device=device).requires_grad_(False),
        torch.ones(1, 2, device=device),
    )
    layer.weight.fill_(1)
    layer(x)
    made, seen = capture(cuda, lambda: layer(x)), []
    for change in (
        lambda: layer.weight.fill_(2),
        lambda: layer.load_state_dict({"weight": torch.full((1, 2), 3.0)}),
        lambda: layer.load_state_dict({"weight": torch.full((1, 2), 4.0, device=device)}, assign=True),
    ):
        keep = layer.weight
        change()
        made.graph.replay()
        seen.append([made.out.tolist(), keep.data_ptr() == layer.weight.data_ptr()])
    return seen


@program("static: a graph fed by another's output, in any order")
def _(cuda, device):
    x = torch.ones(2, device=device)
    a = capture(cuda, lambda: x + 1)
    b = capture(cuda, lambda: a.out * 10)
    seen = []
    for value, order in ((1, (a, b)), (2, (b, a)), (3, (a, b))):
        x.fill_(value)
        for made in order:
            made.graph.replay()
        seen.append(b.out.tolist())
    return seen


@program("static: a shared pool's dropped output is overwritten")
def _(cuda, device):
    x, pool = torch.ones(1000, device=device), cuda.graph_pool_handle()
    a = capture(cuda, lambda: x + 1, pool=pool)
    address, a.out = a.out.data_ptr(), None
    b = capture(cuda, lambda: x + 2, pool=pool)
    b.graph.replay()
    seen = [b.out[0].item()]
    a.graph.replay()
    return b.out.data_ptr() == address, [*seen, b.out[0].item()]
