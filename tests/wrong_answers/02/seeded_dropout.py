"""Answers to 2.6."""

import torch
import torch.nn.functional as F

from minillm.grading.corpus import right, wrong
from minillm.graphs import cuda, device, warm_up


def captured(fn):
    """(graph, output) of fn, warmed up before."""
    warm_up(fn)
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        out = fn()
    return graph, out


def replayed(graph, out):
    def replay():
        graph.replay()
        return out

    return replay


@right("2.6")
def the_default_generator(x, p, seed):
    graph, out = captured(lambda: F.dropout(x, p))
    torch.manual_seed(seed)
    return replayed(graph, out), torch.manual_seed


class Dropout:
    """A generator of its own, and where() instead of a product."""

    def __init__(self, x, p, seed):
        self.generator, self.graph = torch.Generator(device=device), cuda.CUDAGraph()
        self.graph.register_generator_state(self.generator)
        self.x, self.p, self.zero = x, p, torch.zeros_like(x)
        warm_up(self.forward)
        with cuda.graph(self.graph):
            self.out = self.forward()
        self.reseed(seed)

    def forward(self):
        draws = torch.rand(self.x.shape, generator=self.generator, device=device)
        return torch.where(draws < self.p, self.zero, self.x / (1 - self.p))

    def reseed(self, seed):
        self.generator.manual_seed(seed)

    def replay(self):
        self.graph.replay()
        return self.out.clone()


@right("2.6")
def an_object(x, p, seed):
    return Dropout(x, p, seed)


@right("2.6")
def a_static_mask_drawn_within(x, p, seed):
    keep, out = torch.empty_like(x), torch.empty_like(x)
    graph = cuda.CUDAGraph()

    def body():
        keep.uniform_()
        torch.mul(x, keep >= p, out=out)
        out.mul_(1 / (1 - p))

    warm_up(body)
    with cuda.graph(graph):
        body()
    torch.manual_seed(seed)

    def replay():
        graph.replay()
        return keep, out

    return (lambda: replay()[1]), (lambda new: torch.manual_seed(new))


@right("2.6")
def seeds_before_the_capture_and_warms_up_with_another_generator(x, p, seed):
    """A capture draws nothing, so a seed from before it is as good."""

    def body(generator):
        return torch.empty_like(x).bernoulli_(1 - p, generator=generator).mul_(x).div_(1 - p)

    generator, graph = torch.Generator(device), cuda.CUDAGraph()
    warm_up(lambda: body(torch.Generator(device)))
    generator.manual_seed(seed)
    graph.register_generator_state(generator)
    with cuda.graph(graph):
        out = body(generator)
    return replayed(graph, out), generator.manual_seed


@wrong("2.6", "same-mask")
def mask_before_the_capture(x, p, seed):
    torch.manual_seed(seed)
    keep = (torch.rand_like(x) >= p) / (1 - p)
    graph, out = captured(lambda: x * keep)

    def replay():
        graph.replay()
        return out, keep

    return (lambda: replay()[0]), torch.manual_seed


@wrong("2.6", "drew-eagerly")
def redraws_the_mask_before_each_replay(x, p, seed):
    keep = torch.empty_like(x)
    graph, out = captured(lambda: x * keep / (1 - p))
    torch.manual_seed(seed)

    def replay():
        keep.bernoulli_(1 - p)
        graph.replay()
        return out

    return replay, torch.manual_seed


@wrong("2.6", "drew-eagerly")
def runs_eagerly(x, p, seed):
    torch.manual_seed(seed)
    return (lambda: F.dropout(x, p)), torch.manual_seed


@wrong("2.6", "drew-eagerly")
def redraws_the_mask_when_seeded(x, p, seed):
    keep = torch.empty_like(x)
    graph, out = captured(lambda: x * keep / (1 - p))

    def reseed(new):
        torch.manual_seed(new)
        keep.bernoulli_(1 - p)

    reseed(seed)
    return replayed(graph, out), reseed


@wrong("2.6", "reseeds-every-replay")
def seeds_before_each_replay(x, p, seed):
    graph, out = captured(lambda: F.dropout(x, p))
    now = {"seed": seed}

    def replay():
        torch.manual_seed(now["seed"])
        graph.replay()
        return out

    def reseed(new):
        now["seed"] = new

    return replay, reseed


@wrong("2.6", "reseeds-every-replay")
def puts_the_state_back_after_each_replay(x, p, seed):
    generator, graph = torch.Generator(device), cuda.CUDAGraph()
    graph.register_generator_state(generator)

    def body():
        return x * torch.empty_like(x).bernoulli_(1 - p, generator=generator) / (1 - p)

    warm_up(body)
    with cuda.graph(graph):
        out = body()
    generator.manual_seed(seed)

    def replay():
        before = generator.initial_seed()
        graph.replay()
        generator.manual_seed(before)
        return out

    return replay, generator.manual_seed


@wrong("2.6", "seed-ignored")
def seeds_only_before_the_capture(x, p, seed):
    torch.manual_seed(seed)
    graph, out = captured(lambda: F.dropout(x, p))
    return replayed(graph, out), (lambda new: None)


@wrong("2.6", "seed-ignored")
def seeds_another_generator(x, p, seed):
    graph, out = captured(lambda: F.dropout(x, p))
    generator = torch.Generator(device)
    generator.manual_seed(seed)
    return replayed(graph, out), generator.manual_seed


@wrong("2.6", "seed-ignored")
def seeds_python(x, p, seed):
    import random

    graph, out = captured(lambda: F.dropout(x, p))
    return replayed(graph, out), random.seed


@wrong("2.6", "seeded-too-early")
def seeds_before_the_warm_up(x, p, seed):
    torch.manual_seed(seed)
    graph, out = captured(lambda: F.dropout(x, p))
    return replayed(graph, out), torch.manual_seed


@wrong("2.6", "seeded-too-early")
def replays_once_to_be_sure(x, p, seed):
    graph, out = captured(lambda: F.dropout(x, p))
    torch.manual_seed(seed)
    graph.replay()
    return replayed(graph, out), torch.manual_seed


@wrong("2.6", "one-seed")
def goes_back_to_the_first_seed(x, p, seed):
    graph, out = captured(lambda: F.dropout(x, p))
    torch.manual_seed(seed)
    return replayed(graph, out), (lambda new: torch.manual_seed(seed))


@wrong("2.6", "recaptured")
def captures_for_each_seed(x, p, seed):
    now = {}

    def reseed(new):
        now["graph"], now["out"] = captured(lambda: F.dropout(x, p))
        torch.manual_seed(new)

    def replay():
        now["graph"].replay()
        return now["out"]

    reseed(seed)
    return replay, reseed


@wrong("2.6", "seeded-in-capture")
def seeds_in_the_capture(x, p, seed):
    graph = cuda.CUDAGraph()
    warm_up(lambda: F.dropout(x, p))
    with cuda.graph(graph):
        torch.manual_seed(seed)
        out = F.dropout(x, p)
    return replayed(graph, out), torch.manual_seed


@wrong("2.6", "unregistered")
def forgets_to_register(x, p, seed):
    generator = torch.Generator(device).manual_seed(seed)
    graph, out = captured(lambda: x * torch.empty_like(x).bernoulli_(1 - p, generator=generator) / (1 - p))
    return replayed(graph, out), generator.manual_seed


@wrong("2.6", "unregistered")
def makes_the_generator_in_the_capture(x, p, seed):
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        generator = torch.Generator(device)
        out = x * torch.empty_like(x).bernoulli_(1 - p, generator=generator) / (1 - p)
    generator.manual_seed(seed)
    return replayed(graph, out), generator.manual_seed


@wrong("2.6", "unregistered")
def registers_at_another_graph(x, p, seed):
    generator, graph, forgotten = torch.Generator(device), cuda.CUDAGraph(), cuda.CUDAGraph()
    forgotten.register_generator_state(generator)
    with cuda.graph(graph):
        out = x * torch.empty_like(x).bernoulli_(1 - p, generator=generator) / (1 - p)
    return replayed(graph, out), generator.manual_seed


@wrong("2.6", "synchronised")
def indexes_with_the_mask(x, p, seed):
    def body():
        out = torch.zeros_like(x)
        keep = torch.rand_like(x) >= p
        out[keep] = x[keep] / (1 - p)
        return out

    graph, out = captured(body)
    torch.manual_seed(seed)
    return replayed(graph, out), torch.manual_seed


@wrong("2.6", "stale-input")
def captures_on_a_copy(x, p, seed):
    mine = x.clone()
    graph, out = captured(lambda: F.dropout(mine, p))
    torch.manual_seed(seed)

    def replay():
        graph.replay()
        return out, mine

    return (lambda: replay()[0]), torch.manual_seed


@wrong("2.6", "overwrote-x")
def drops_in_place(x, p, seed):
    graph, out = captured(lambda: F.dropout(x, p, inplace=True))
    torch.manual_seed(seed)
    return replayed(graph, out), torch.manual_seed


@wrong("2.6", "nothing-dropped")
def not_training(x, p, seed):
    graph, out = captured(lambda: F.dropout(x, p, training=False) * 1)
    torch.manual_seed(seed)
    return replayed(graph, out), torch.manual_seed


@wrong("2.6", "keeps-p")
def bernoulli_of_p(x, p, seed):
    graph, out = captured(lambda: x * torch.empty_like(x).bernoulli_(p) / (1 - p))
    torch.manual_seed(seed)
    return replayed(graph, out), torch.manual_seed


@wrong("2.6", "keeps-p")
def compares_the_wrong_way(x, p, seed):
    graph, out = captured(lambda: x * (torch.rand_like(x) < p) / p)
    torch.manual_seed(seed)
    return replayed(graph, out), torch.manual_seed


@wrong("2.6", "not-scaled")
def forgets_the_scale(x, p, seed):
    graph, out = captured(lambda: x * (torch.rand_like(x) >= p))
    torch.manual_seed(seed)
    return replayed(graph, out), torch.manual_seed


@wrong("2.6", "wrong-scale")
def divides_by_p(x, p, seed):
    graph, out = captured(lambda: x * (torch.rand_like(x) >= p) / p)
    torch.manual_seed(seed)
    return replayed(graph, out), torch.manual_seed


@wrong("2.6", "wrong-scale")
def multiplies_by_what_is_kept(x, p, seed):
    graph, out = captured(lambda: F.dropout(x, p) * (1 - p) ** 2)
    torch.manual_seed(seed)
    return replayed(graph, out), torch.manual_seed


@wrong("2.6", "not-elementwise")
def one_draw_for_each_row(x, p, seed):
    graph, out = captured(lambda: x * (torch.rand(x.shape[0], 1, device=device) >= p) / (1 - p))
    torch.manual_seed(seed)
    return replayed(graph, out), torch.manual_seed


@wrong("2.6", "returned-nothing")
def replay_returns_nothing(x, p, seed):
    graph, _ = captured(lambda: F.dropout(x, p))
    torch.manual_seed(seed)
    return graph.replay, torch.manual_seed


@wrong("2.6", "wrong-type")
def returns_the_graph_and_its_output(x, p, seed):
    graph, out = captured(lambda: F.dropout(x, p))
    torch.manual_seed(seed)
    return graph, out
