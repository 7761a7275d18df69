"""Decode steps in small, second half: choosing tokens, stopping, temperatures, buckets, rotary tables."""

import torch
import torch.nn.functional as F

from . import program
from .decode_steps import decoder, step
from .helpers import capture


@program("decode: int32 block tables and lengths")
def _(cuda, device):
    pages = torch.arange(12.0, device=device).view(6, 2)
    table = torch.tensor([[0, 1], [2, 3]], dtype=torch.int32, device=device)
    made = capture(cuda, lambda: pages[table].sum((1, 2)))
    made.graph.replay()
    return made.out.tolist(), made.errors


@program("decode: greedy choice and a stop flag on the device")
def _(cuda, device):
    s, logits = decoder(device), torch.eye(17, device=device)

    def f():
        chosen = logits[(s["token"] * 3) % 17].argmax(-1)
        s["token"].copy_(torch.where(s["alive"], chosen, s["token"]))
        s["alive"].logical_and_(s["token"] != 9)

    made, seen = capture(cuda, f), []
    for _ in range(4):
        made.graph.replay()
        seen.append([s["token"].tolist(), s["alive"].tolist()])
    return seen, made.errors


@program("decode: a stop condition that waits")
def _(cuda, device):
    s = decoder(device)

    def f():
        for _ in range(4):
            step(s)
            if (s["token"] == 9).all():
                break

    return capture(cuda, f).errors


@program("decode: a loop of known length unrolls")
def _(cuda, device):
    s = decoder(device)
    made = capture(cuda, lambda: [step(s) for _ in range(3)])
    made.graph.replay()
    made.graph.replay()
    return s["position"].tolist(), s["cache"].tolist(), made.errors


@program("decode: temperature as a number and as a tensor")
def _(cuda, device):
    x, number, tensor = torch.tensor([1.0, 2], device=device), [2.0], torch.full((), 2.0, device=device)
    made, seen = capture(cuda, lambda: (x / number[0], x / tensor)), []
    for t in (2.0, 4.0):
        number[0] = t
        tensor.fill_(t)
        made.graph.replay()
        seen.append([o.tolist() for o in made.out])
    return seen


@program("decode: top-k filter")
def _(cuda, device):
    x = torch.tensor([[3.0, 1, 2], [0, 5, 4]], device=device)
    f = lambda: x.masked_fill(x < x.topk(2).values[:, -1:], float("-inf")).softmax(-1)  # noqa: E731
    f()
    made = capture(cuda, f)
    made.graph.replay()
    return made.out.tolist(), made.errors


@program("decode: top-p filter")
def _(cuda, device):
    x = torch.tensor([[0.5, 0.3, 0.2], [0.1, 0.8, 0.1]], device=device)

    def f():
        p, order = x.sort(dim=-1, descending=True, stable=True)
        p = p.masked_fill(p.cumsum(-1) - p > 0.6, 0.0)
        return torch.zeros_like(x).scatter_(-1, order, p)

    f()
    made = capture(cuda, f)
    made.graph.replay()
    return made.out.tolist(), made.errors


@program("decode: a graph for each bucket, one output buffer")
def _(cuda, device):
    x, y, graphs, seen = torch.zeros(8, device=device), torch.zeros(8, device=device), {}, []
    pool = cuda.graph_pool_handle()
    for n in (8, 4, 2):
        graphs[n] = capture(cuda, lambda n=n: y[:n].copy_(x[:n] * 10 + n), pool=pool).graph
    for n in (3, 2, 7):
        x.fill_(n)
        y.zero_()
        graphs[min(b for b in graphs if b >= n)].replay()
        seen.append(y.tolist())
    return seen


@program("decode: rotary tables looked up by position")
def _(cuda, device):
    cos = torch.arange(8.0, device=device)[:, None].cos()
    position, x = torch.tensor([1, 5], device=device), torch.ones(2, 1, device=device)
    made = capture(cuda, lambda: x * cos[position] + F.embedding(position, cos))
    made.graph.replay()
    return made.out.tolist(), made.errors


@program("decode: rotary tables computed within")
def _(cuda, device):
    position = torch.tensor([1, 5], device=device)
    f = lambda: (position.float() * 0.5 ** torch.arange(2, device=device)).sin()  # noqa: E731
    f()
    made = capture(cuda, f)
    made.graph.replay()
    return made.out.tolist(), made.errors
