"""Seeds and generators before, during and after a capture."""

import torch

from . import program, table
from .helpers import attempt, capture
from .random_numbers import alike


def within(body):
    """A program: ``body(x)`` between two kernels of a capture; then a replay and an eager draw."""

    def run(cuda, device):
        torch.manual_seed(3)
        x = torch.zeros(4, device=device)
        made = capture(cuda, lambda: [x.add_(1), attempt(body, x), attempt(lambda: x.add_(1) is x)][1:])
        made.out = [o if isinstance(o, (dict, bool)) else "done" for o in made.out or []]
        return made.errors, made.out, attempt(lambda: made.graph.replay()), x.tolist()

    return run


SEEDS = {
    "another seed": lambda x: torch.manual_seed(4),
    "the same seed": lambda x: torch.manual_seed(3),
    "the same seed twice with a draw": lambda x: [torch.rand_like(x), torch.manual_seed(3)],
    "a fresh seed": lambda x: torch.seed(),
    "initial_seed": lambda x: torch.initial_seed(),
    "get_rng_state": lambda x: torch.get_rng_state(),
    "set_rng_state": lambda x: torch.set_rng_state(torch.get_rng_state()),
    "fork_rng": lambda x: fork_rng(x),
    "a host generator": lambda x: torch.rand(2, generator=torch.Generator().manual_seed(1)),
    "an unregistered generator": lambda x: x.uniform_(generator=torch.Generator(x.device)),
    "a generator made and seeded within": lambda x: torch.Generator(x.device).manual_seed(1),
}


def fork_rng(x):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(torch.initial_seed())


ITEM_8 = "item 8: noticed at the next operation, or not at all"
LATE = ["another seed", "a fresh seed", "an unregistered generator", "a generator made and seeded within"]
table("seed", within, SEEDS, unfaithful=dict.fromkeys(LATE, ITEM_8))


@program("random: a registered generator")
def _(cuda, device):
    x, generator, seen = torch.zeros(8, device=device), torch.Generator(device), []
    g = cuda.CUDAGraph()
    g.register_generator_state(generator)
    made = capture(cuda, lambda: x.uniform_(generator=generator), graph=g)
    for seed in (3, None, 3):
        if seed is not None:
            generator.manual_seed(seed)
        g.replay()
        seen.append(x.tolist())
    eager = torch.zeros(8, device=device).uniform_(generator=generator.manual_seed(3)).tolist()
    return made.errors, alike([*seen, eager])


@program("random: exponential from a registered generator")
def _(cuda, device):
    x, generator, seen = torch.zeros(8, device=device), torch.Generator(device), []
    g = cuda.CUDAGraph()
    g.register_generator_state(generator)
    made = capture(cuda, lambda: torch.empty_like(x).exponential_(generator=generator), graph=g)
    for seed in (3, None, 3):
        if seed is not None:
            generator.manual_seed(seed)
        g.replay()
        seen.append(made.out.tolist())
    eager = torch.zeros(8, device=device).exponential_(generator=generator.manual_seed(3)).tolist()
    return made.errors, alike([*seen, eager])


@program("random: the default generator registered by hand")
def _(cuda, device):
    x, g = torch.zeros(8, device=device), cuda.CUDAGraph()
    generator = torch.cuda.default_generators[0] if device == "cuda" else torch.default_generator
    g.register_generator_state(generator)
    made = capture(cuda, lambda: x.uniform_(), graph=g)
    return made.errors, attempt(g.replay)


@program("random: capture itself draws nothing")
def _(cuda, device):
    torch.manual_seed(3)
    first = torch.rand(4, device=device).tolist()
    torch.manual_seed(3)
    capture(cuda, lambda: torch.rand(4, device=device))
    return torch.rand(4, device=device).tolist() == first


@program("random: eager draws between replays move on")
def _(cuda, device):
    made = capture(cuda, lambda: torch.rand(4, device=device))
    torch.manual_seed(3)
    made.graph.replay()
    seen = [made.out.tolist(), torch.rand(4, device=device).tolist()]
    made.graph.replay()
    return alike([*seen, made.out.tolist()])


@program("random: two graphs and one seed")
def _(cuda, device):
    a = capture(cuda, lambda: torch.rand(4, device=device))
    b = capture(cuda, lambda: torch.rand(4, device=device))
    seen = []
    for order in ((a, b), (b, a)):
        torch.manual_seed(3)
        for made in order:
            made.graph.replay()
            seen.append(made.out.tolist())
    return alike(seen)


@program("random: a draw after a capture that failed", unfaithful="item 6: the generator is spoilt on CUDA")
def _(cuda, device):
    x, main = torch.zeros(4, device=device), cuda.current_stream()
    made = capture(cuda, lambda: x.sum().item())
    cuda.set_stream(main)
    return made.errors, attempt(lambda: torch.rand(2, device=device).shape[0])


@program("random: another seed as the last thing", unfaithful="item 8: noticed only at the next operation")
def _(cuda, device):
    torch.manual_seed(3)
    x = torch.zeros(4, device=device)
    made = capture(cuda, lambda: [x.add_(1), attempt(lambda: torch.manual_seed(4) and None)][1])
    return made.errors, made.out
