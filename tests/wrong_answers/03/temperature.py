"""Answers to 3.4."""

import torch

from minillm.grading.corpus import right, wrong
from minillm.graphs import cuda, device, warm_up


def captured(step, warm=True):
    """(graph, what `step()` returned within its capture)."""
    if warm:
        warm_up(step)
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        out = step()
    return graph, out


@right("3.4")
class TemperatureStep:
    """A callable object, a [1, 1] tensor, and a copy of the result."""

    def __init__(self, logits):
        self.temperature = torch.full((1, 1), 1.0, device=device)
        self.graph, self.out = captured(lambda: torch.softmax(torch.div(logits, self.temperature), dim=1))

    def __call__(self, temperature):
        self.temperature[:] = temperature
        self.graph.replay()
        return self.out.clone()


@right("3.4")
def inverse_inside_and_a_tensor_a_row(logits):
    temperature = torch.ones(logits.shape[0], 1, device=device)
    out = torch.empty_like(logits)

    def step():
        out.copy_(torch.softmax(logits * temperature.reciprocal(), -1))

    graph, _ = captured(step)

    def run(value):
        temperature.copy_(torch.full_like(temperature, value))
        graph.replay()
        return out

    return run


@right("3.4")
def stores_the_inverse(logits):
    inverse = torch.ones((), dtype=torch.float64, device=device)
    scaled = []

    def step():
        scaled[:] = [logits * inverse]
        powers = (scaled[0] - scaled[0].amax(-1, keepdim=True)).exp()
        return powers / powers.sum(-1, keepdim=True)

    graph, out = captured(step, warm=False)
    return lambda value: (inverse.fill_(1 / value), graph.replay(), out)[-1]


@right("3.4")
def copies_from_the_host(logits):
    temperature = torch.tensor([1.0]).to(device)
    graph, out = captured(lambda: torch.nn.functional.softmax(logits / temperature, dim=-1))

    def run(value):
        temperature.copy_(torch.tensor([value]))
        graph.replay()
        return out

    return run


@right("3.4")
def with_a_graphed_callable(logits):
    temperature = torch.ones((), device=device)
    with torch.enable_grad():  # as graphed callables are made for training
        graphed = cuda.make_graphed_callables(lambda x, t: (x / t).softmax(-1), (logits, temperature))

    def run(value):
        return graphed(logits, temperature.fill_(value))

    return run


@wrong("3.4", "frozen-number")
def a_number_of_the_closure(logits):
    temperature = 1.0
    graph, out = captured(lambda: (logits / temperature).softmax(-1))

    def run(value):
        nonlocal temperature
        temperature = value
        graph.replay()
        return out

    return run


@wrong("3.4", "frozen-number")
class NumberOfAnObject:
    def __init__(self, logits):
        self.temperature = 1.0
        self.graph, self.out = captured(lambda: torch.softmax(logits / self.temperature, -1))

    def __call__(self, temperature):
        self.temperature = temperature
        self.graph.replay()
        return self.out


@wrong("3.4", "frozen-number")
def filled_inside_the_capture(logits):
    state = {"temperature": 1.0}

    def step():
        temperature = torch.full((), state["temperature"], device=device)
        return (logits / temperature).softmax(-1)

    graph, out = captured(step)

    def run(value):
        state["temperature"] = value
        graph.replay()
        return out

    return run


@wrong("3.4", "frozen-number")
def item_before_the_capture(logits):
    tensor = torch.ones((), device=device)
    temperature = tensor.item()
    graph, out = captured(lambda: (logits / temperature).softmax(-1))

    def run(value):
        tensor.fill_(value)
        graph.replay()
        return out

    return run


@wrong("3.4", "rebound")
def rebinds_a_variable(logits):
    temperature = torch.ones((), device=device)
    graph, out = captured(lambda: (logits / temperature).softmax(-1))

    def run(value):
        nonlocal temperature
        temperature = torch.tensor(value, device=device)
        graph.replay()
        return out

    return run


@wrong("3.4", "rebound")
class RebindsAnAttribute:
    def __init__(self, logits):
        self.first = self.temperature = torch.ones(1, device=device)
        self.graph, self.out = captured(lambda: (logits / self.temperature).softmax(-1))

    def __call__(self, temperature):
        self.temperature = torch.full((1,), temperature, device=device)
        self.graph.replay()
        return self.out


@wrong("3.4", "rebound")
def replaces_its_data(logits):
    temperature = torch.ones((), device=device)
    graph, out = captured(lambda: (logits / temperature).softmax(-1))

    def run(value):
        temperature.data = torch.tensor(value, device=device)
        graph.replay()
        return out

    return run


@wrong("3.4", "dropped-temperature")
def hopes_for_the_same_address(logits):
    temperature = torch.ones(1, device=device)
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        out = (logits / temperature).softmax(-1)
    del temperature

    def run(value):
        temperature = torch.full((1,), value, device=device)
        graph.replay()
        assert temperature.numel() == 1
        return out

    return run


@wrong("3.4", "made-in-capture")
def makes_it_in_the_capture(logits):
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        temperature = torch.tensor(1.0, device=device)
        out = (logits / temperature).softmax(-1)

    def run(value):
        temperature.fill_(value)
        graph.replay()
        return out

    return run


@wrong("3.4", "made-in-capture")
def moves_it_in_the_capture(logits):
    host = torch.tensor(1.0)
    graph, out = captured(lambda: (logits / host.to(device)).softmax(-1))

    def run(value):
        host.fill_(value)
        graph.replay()
        return out

    return run


@wrong("3.4", "host-tensor")
def without_a_device(logits):
    temperature = torch.tensor(1.0)
    graph, out = captured(lambda: (logits / temperature).softmax(-1))

    def run(value):
        temperature.fill_(value)
        graph.replay()
        return out

    return run


@wrong("3.4", "recaptured")
def captures_for_each_temperature(logits):
    graphs = {}

    def run(value):
        if value not in graphs:
            graphs[value] = captured(lambda: (logits / value).softmax(-1))
        graph, out = graphs[value]
        graph.replay()
        return out

    return run


@wrong("3.4", "recaptured")
def captures_in_each_run(logits):
    def run(value):
        graph, out = captured(lambda: torch.softmax(logits / value, dim=-1))
        graph.replay()
        return out.clone()

    return run


@wrong("3.4", "eager")
def no_graph_at_all(logits):
    return lambda value: (logits / value).softmax(-1)


@wrong("3.4", "eager")
def divides_eagerly_and_replays_the_rest(logits):
    scaled = logits.clone()
    graph, out = captured(lambda: scaled.softmax(-1))

    def run(value):
        scaled.copy_(logits / value)
        graph.replay()
        return out

    return run


@wrong("3.4", "not-replayed")
def forgets_to_replay(logits):
    temperature = torch.ones((), device=device)
    graph, out = captured(lambda: (logits / temperature).softmax(-1))

    def run(value):
        temperature.fill_(value)
        return out

    run.graph = graph
    return run


@wrong("3.4", "multiplied")
def multiplies(logits):
    temperature = torch.ones((), device=device)
    graph, out = captured(lambda: (logits * temperature).softmax(-1))

    def run(value):
        temperature.fill_(value)
        graph.replay()
        return out

    return run


@wrong("3.4", "written-elsewhere")
def inverse_before_the_capture(logits):
    temperature = torch.ones((), device=device)
    inverse = 1 / temperature
    graph, out = captured(lambda: (logits * inverse).softmax(-1))

    def run(value):
        temperature.fill_(value)
        graph.replay()
        return out

    return run


@wrong("3.4", "written-elsewhere")
def writes_into_a_cast(logits):
    temperature = torch.ones((), dtype=torch.float64, device=device)
    graph, out = captured(lambda: (logits / temperature).softmax(-1))
    single = temperature.float()

    def run(value):
        single.copy_(torch.tensor(value))
        graph.replay()
        return out

    return run


@wrong("3.4", "one-late")
def writes_after_the_replay(logits):
    temperature = torch.ones((), device=device)
    graph, out = captured(lambda: (logits / temperature).softmax(-1))

    def run(value):
        graph.replay()
        temperature.fill_(value)
        return out

    return run


@wrong("3.4", "integer-temperature")
def a_tensor_of_one(logits):
    temperature = torch.tensor(1, device=device)
    graph, out = captured(lambda: (logits / temperature).softmax(-1))

    def run(value):
        temperature.fill_(value)
        graph.replay()
        return out

    return run


@wrong("3.4", "rounded-temperature")
def in_bfloat16(logits):
    temperature = torch.ones((), dtype=torch.bfloat16, device=device)
    graph, out = captured(lambda: (logits / temperature).softmax(-1))

    def run(value):
        temperature.fill_(value)
        graph.replay()
        return out

    return run


@wrong("3.4", "waits-in-capture")
def item_in_the_capture(logits):
    temperature = torch.ones((), device=device)
    graph, out = captured(lambda: (logits / temperature.item()).softmax(-1))

    def run(value):
        temperature.fill_(value)
        graph.replay()
        return out

    return run


@wrong("3.4", "waits-in-capture")
def branches_on_it_in_the_capture(logits):
    temperature = torch.ones((), device=device)
    graph, out = captured(
        lambda: (logits / temperature).softmax(-1) if temperature > 0 else logits.softmax(-1)
    )

    def run(value):
        temperature.fill_(value)
        graph.replay()
        return out

    return run


@wrong("3.4", "changed-logits")
def divides_in_place(logits):
    temperature = torch.ones((), device=device)
    graph, out = captured(lambda: logits.div_(temperature).softmax(-1))

    def run(value):
        temperature.fill_(value)
        graph.replay()
        return out

    return run


@wrong("3.4", "other-logits")
def own_copy_of_the_logits(logits):
    temperature, static = torch.ones((), device=device), logits.clone()
    graph, out = captured(lambda: (static / temperature).softmax(-1))

    def run(value):
        temperature.fill_(value)
        graph.replay()
        return out

    run.static = static
    return run


@wrong("3.4", "other-logits")
def copy_that_nobody_holds(logits):
    temperature = torch.ones((), device=device)
    static = logits * 1
    graph, out = captured(lambda: (static / temperature).softmax(-1))

    def run(value):
        temperature.fill_(value)
        graph.replay()
        return out

    return run


@wrong("3.4", "wrong-dimension")
def softmax_over_the_batch(logits):
    temperature = torch.ones((), device=device)
    graph, out = captured(lambda: (logits / temperature).softmax(0))

    def run(value):
        temperature.fill_(value)
        graph.replay()
        return out

    return run


@wrong("3.4", "wrong-type")
def returns_a_pair(logits):
    temperature = torch.ones((), device=device)
    graph, out = captured(lambda: (logits / temperature).softmax(-1))

    def run(value):
        temperature.fill_(value)
        graph.replay()

    return run, out


@wrong("3.4", "returned-nothing")
def run_returns_nothing(logits):
    temperature = torch.ones((), device=device)
    graph, out = captured(lambda: (logits / temperature).softmax(-1))

    def run(value):
        temperature.fill_(value)
        graph.replay()
        out.sum()

    return run
