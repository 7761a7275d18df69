"""Patterns of allocation, small and mean, and some drawn at random."""

import random

import torch

from minillm import graphs

from . import program, table
from .helpers import MiB, capture
from .pools import pattern, sizes

PATTERNS = {
    "rounding": "a=1 b=511 c=512 d=513 e=1024",
    "small and large": "a=1M b=1M+1 c=1M-1",
    "at 10 MiB": "a=10M-1 b=10M c=10M+1",
    "20 MiB": "a=20M b=20M-1 c=20M+1",
    "at 2 MiB": "a=2M b=2M+1 c=3M",
    "odd large": "a=11M b=13M+1 c=33M",
    "fill a small segment": "a=1M b=1M c=1",
    "fill a small segment in pieces": "a=700K b=700K c=700K d=600K e=500K",
    "fill a large segment": "a=9M b=9M c=2M+1 d=2M",
    "remainder of 1 MiB is not split": "a=19M b=1M+1",
    "remainder of more than 1 MiB is": "a=18M b=1M+1 c=1M+1",
    "no remainder of large": "a=10M -a b=9M c=1M+1",
    "a remainder of just 1 MiB stays with its block": "a=9M b=8M -a c=8M -b d=2M",
    "best fit": "a=8K b=512 c=4K d=512 -a -c e=4K f=8K",
    "best fit, smaller": "a=8K b=512 c=4K d=512 -a -c e=3K f=512",
    "lowest of equals": "a=4K b=512 c=4K d=512 e=4K f=512 -e -a -c g=4K h=4K i=4K",
    "coalesce with the next": "a=4K b=4K c=512 -b -a d=8K",
    "coalesce with the previous": "a=4K b=4K c=512 -a -b d=8K",
    "coalesce both": "a=4K b=4K c=4K d=512 -a -c -b e=12K",
    "coalesce with the rest": "a=4K b=4K -b c=6K",
    "do not coalesce with the living": "a=4K b=512 c=4K d=512 -a -c e=8K",
    "stack order": "a=1K b=1K c=1K -c -b -a d=1K e=1K f=1K",
    "large reuse": "a=4M -a b=3M c=3M -b d=2M",
    "large chain": "a=16M -a b=8M -b c=4M -c d=2M",
    "rising chain": "a=2M -a b=4M -b c=8M -c d=16M -d e=32M",
    "chain of temporaries": "a=6M b=6M -a c=6M -b d=6M -c e=6M",
    "an unfit hole": "a=12M b=1K -a c=13M d=12M",
    "a large block is not cut for small": "a=12M -a b=1M c=2M",
    "next capture reuses": "a=3000 b=3000 !a | c=3000 d=3000",
    "next capture reuses the segment": "a=1000 | b=1000 | c=1000",
    "dropped within is reused": "a=3000 b=3000 -a | c=3000",
    "largest first": "a=12M -a o=512 | a=6M -a p=512 | a=3M -a q=512",
    "smallest first": "a=3M -a o=512 | a=6M -a p=512 | a=12M -a q=512",
    "largest first, under 10 MiB": "a=8M -a | a=4M -a | a=2M -a",
    "smallest first, under 10 MiB": "a=2M -a | a=4M -a | a=8M -a",
    "outputs alive": "a=3M | b=3M | c=3M",
    "outputs dropped later": "a=12M | b=12M !a | c=12M",
    "another stream for each": "@0 a=3000 -a | @1 a=3000 -a | @2 a=3000 -a",
    "the same stream again": "@0 a=3000 -a | @1 a=3000 -a | @0 b=3000 c=3000",
    "large on other streams": "@0 a=12M -a | @1 b=12M -b",
    "fork within": "a=1000 /1 b=1000 c=1000 -b /2 d=1000",
    "fork and free": "a=3000 /1 -a b=3000",
    "fork and back": "a=3000 /1 b=3000 -b /2 c=3000 -c",
    "a graph dies": "a=3000 b=3000 | c=3000 ^0 | d=3000 | e=3000 -e ^1",
    "a graph and its output die": "a=3000 !a | b=3000 ^0 | c=3000",
    "a graph dies, its output stays": "a=3000 | b=3000 ^0 !a | c=3000 d=3000",
    "all graphs die, an output stays": "a=3000 ^0 | b=3000 c=12M",
    "a graph of another stream dies": "@0 a=3000 !a | @1 b=3000 ^0 | @0 c=3000",
    "zero bytes": "a=0 b=1 c=0",
    "empty capture": "",
    "two empty captures": "|",
}


def random_pattern(seed):
    """Allocations and frees within one segment, so that where the driver puts segments cannot matter."""
    draw, words, live, room = random.Random(seed), [], {}, {"s": 2 * MiB, "l": 20 * MiB}
    for i in range(60):
        if live and draw.random() < 0.45:
            words.append("-" + live.pop(draw.choice(list(live)))[0])
            continue
        kind = draw.choice("ssl")
        amount = draw.choice([1, 512, 700, 5000, 5000, 40_000]) if kind == "s" else draw.randint(2, 6) * MiB
        if sum(a for _, a, k in live.values() if k == kind) + amount <= room[kind] / 4:
            live[i] = (f"{kind}{i}", amount, kind)
            words.append(f"{kind}{i}={amount}")
        if draw.random() < 0.1:
            words.append("|")
    return " ".join(words)


PATTERNS |= {f"random {seed}": random_pattern(seed) for seed in range(12)}
ITEM_6 = "item 6: an assertion of torch's fails"
table("pool", pattern, PATTERNS, unfaithful={"all graphs die, an output stays": ITEM_6})

DYING = {
    "all die": "a=3000 b=12M | c=512 !a !b !c ^0 ^1 | d=512",
    "all die, then another size": "a=12M !a ^0 | b=3M !b ^1 | c=30M",
    "all die, an output stays": "a=12M b=3000 !a ^0 | c=512",
    "one of two dies": "a=12M !a | b=3M !b ^0 | c=512 ^1 | d=512",
    "outputs of the dead dropped later": "a=12M ^0 | b=512 !a ^1 | c=512",
}
ASSERTS = ["all die, an output stays", "outputs of the dead dropped later"]
table("pool size", sizes, DYING, unfaithful=dict.fromkeys(ASSERTS, ITEM_6))


@program("pool: bytes of private pools of one capture repeated")
def _(cuda, device):
    x, kept = torch.zeros(3 * MiB, dtype=torch.uint8, device=device), []
    for _ in range(3):
        kept.append(capture(cuda, lambda: (x + 1) * 2))
    return [graphs.pool_bytes(made.graph.pool()) for made in kept]


@program("pool: a chain of three operations takes two blocks")
def _(cuda, device):
    x = torch.zeros(11 * MiB, dtype=torch.uint8, device=device)
    made = capture(cuda, lambda: ((x + 1) * 2) - 3)
    return graphs.pool_bytes(made.graph.pool())


@program("pool: softmax, layer_norm and sum keep their temporaries small")
def _(cuda, device):
    x = torch.ones(1024, 512, device=device)
    made = capture(cuda, lambda: (x.softmax(-1), torch.nn.functional.layer_norm(x, (512,)), x.sum(-1)))
    return graphs.pool_bytes(made.graph.pool())
