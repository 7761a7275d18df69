"""make_graphed_callables on both backends; plain eager autograd on a copy of the module is the oracle."""

import copy
import inspect

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from minillm import graphs

# torch 2.11 warns so of a graphed module: the static outputs keep nodes of the capture's stream alive.
pytestmark = pytest.mark.filterwarnings("ignore:The AccumulateGrad node's stream does not match")

MiB = 1 << 20
NEW_IN_2_14 = "capture_error_mode" in inspect.signature(torch.cuda.make_graphed_callables).parameters


@pytest.fixture
def make(cuda):
    return cuda.make_graphed_callables


def same(got, want):
    torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-6)


def network(device):
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 4), nn.LayerNorm(4)).to(device)


def graphed_and_eager(make, device, build=network):
    """A graphed module for inputs [3, 4], and an untouched copy."""
    module = build(device)
    eager = copy.deepcopy(module)
    return make(module, (torch.randn(3, 4, device=device, requires_grad=True),)), eager


def draw(device, *shape, requires_grad=True):
    """The same random tensor twice, as two leaves."""
    x = torch.randn(*(shape or (3, 4)), device=device)
    return x.requires_grad_(requires_grad), x.detach().clone().requires_grad_(requires_grad)


def compare(f, eager, device):
    """One forward and backward of each, with a gradient that differs from element to element."""
    x, z = draw(device)
    y, want = f(x), eager(z)
    weight = torch.randn_like(want)
    (y * weight).sum().backward()
    (want * weight).sum().backward()
    same(y, want)
    same(x.grad, z.grad)


def same_gradients(module, eager):
    for a, b in zip(module.parameters(), eager.parameters(), strict=True):
        same(a.grad, b.grad)


# ---- values and gradients
def test_outputs_and_all_gradients_equal_eager(make, device):
    module, eager = graphed_and_eager(make, device)
    for _ in range(3):
        module.zero_grad()
        eager.zero_grad()
        compare(module, eager, device)
        same_gradients(module, eager)


def test_a_function_of_several_tensors(make, device):
    def f(a, b, c):
        return (a * b).sin() + c

    def sample(grad):
        return torch.randn(5, device=device, requires_grad=grad)

    graphed = make(f, (sample(True), sample(False), sample(True)))
    for _ in range(2):
        (a, a2), (b, _), (c, c2) = (draw(device, 5, requires_grad=grad) for grad in (True, False, True))
        y, want = graphed(a, b, c), f(a2, b, c2)
        y.pow(2).sum().backward()
        want.pow(2).sum().backward()
        same([y, a.grad, c.grad], [want, a2.grad, c2.grad])
        assert b.grad is None


@pytest.mark.parametrize("build", [torch.optim.SGD, torch.optim.Adam])
def test_ten_steps_of_an_optimiser_equal_eager_training(make, device, build):
    module, eager = graphed_and_eager(make, device)
    before = [p.clone() for p in module.parameters()]
    steps = [build(m.parameters(), lr=0.05) for m in (module, eager)]
    for _ in range(10):
        x, target = torch.randn(3, 4, device=device), torch.randn(3, 4, device=device)
        losses = []
        for m, optimiser in zip((module, eager), steps, strict=True):
            optimiser.zero_grad()
            loss = F.mse_loss(m(x.clone()), target)
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
        same(losses[0], losses[1])
    for p, q, old in zip(module.parameters(), eager.parameters(), before, strict=True):
        torch.testing.assert_close(p, q, rtol=1e-4, atol=1e-5)
        assert not torch.equal(p, old)


def test_several_callables_in_a_chain(make, device):
    """They share a pool: a backward may use memory only of activations that nobody needs any more."""
    modules = tuple(network(device) for _ in range(3))
    eager = copy.deepcopy(nn.Sequential(*modules))
    graphed = make(modules, tuple((torch.randn(3, 4, device=device, requires_grad=True),) for _ in modules))
    assert isinstance(graphed, tuple) and all(a is b for a, b in zip(graphed, modules, strict=True))
    for _ in range(2):
        chain = nn.Sequential(*graphed)
        chain.zero_grad()
        eager.zero_grad()
        compare(chain, eager, device)
        same_gradients(chain, eager)


def test_a_function_and_a_module_around_eager_code(make, device):
    module = network(device)
    eager = copy.deepcopy(module)

    def square(x):
        return x * x

    samples = [(torch.ones(3, 4, device=device, requires_grad=True),) for _ in "ab"]
    first, last = make((square, module), tuple(samples))
    assert last is module
    compare(lambda x: last(first(x).cos()), lambda x: eager(square(x).cos()), device)
    same_gradients(module, eager)


def test_nested_inputs_and_outputs(make, device):
    def f(pair, named):
        return {"sum": pair[0] + pair[1], "rest": [pair[0] * named["k"], (named["k"].exp(),)]}

    def arguments(*xs):
        return [xs[0], xs[1]], {"k": xs[2]}

    graphed = make(f, arguments(*(torch.randn(3, device=device, requires_grad=True) for _ in range(3))))
    got_leaves, want_leaves = zip(*(draw(device, 3) for _ in range(3)), strict=True)
    got, want = graphed(*arguments(*got_leaves)), f(*arguments(*want_leaves))
    assert type(got) is dict and type(got["rest"]) is list and type(got["rest"][1]) is tuple
    same(got, want)
    for out in (got, want):
        (out["sum"] + 2 * out["rest"][0] + 3 * out["rest"][1][0]).sum().backward()
    same([x.grad for x in got_leaves], [x.grad for x in want_leaves])


def by_table(x, i):
    return F.embedding(i, x)


def attention(x, i):
    return F.scaled_dot_product_attention(*x.view(3, 1, 2, 4, 8).unbind(), is_causal=True)


DIFFERENTIABLE = {
    "attention": (attention, (24, 8)),
    "cat and slices": (lambda x, i: torch.cat([x[:, 3:], x[:2] @ x[0, :, None] + x[:2, :5]], 0), (2, 8)),
    "cross entropy": (lambda x, i: F.cross_entropy(x, i), (8, 8)),
    "cumsum": (lambda x, i: x.cumsum(0), (8, 8)),
    "embedding": (by_table, (8, 8)),
    "gather": (lambda x, i: x.gather(1, i[:, None]), (8, 8)),
    "gelu": (lambda x, i: F.gelu(x), (8, 8)),
    "index": (lambda x, i: x[i, i], (8, 8)),
    "index_copy": (lambda x, i: torch.zeros_like(x).index_copy(0, i, x), (8, 8)),
    "layer norm": (lambda x, i: F.layer_norm(x, (8,), x[0], x[1]), (8, 8)),
    "masked fill": (lambda x, i: x.masked_fill(x > 0, -1.0), (8, 8)),
    "max": (lambda x, i: x.max(-1).values, (8, 8)),
    "norm": (lambda x, i: x.norm(dim=1), (8, 8)),
    "rms norm": (lambda x, i: F.rms_norm(x, (8,), x[0]), (8, 8)),
    "silu times": (lambda x, i: F.silu(x) * x.flip(0), (8, 8)),
    "softmax": (lambda x, i: x.softmax(-1), (8, 8)),
    "topk": (lambda x, i: x.topk(3).values, (8, 8)),
    "view and transpose": (lambda x, i: x.view(4, 2, 8).transpose(0, 2).reshape(8, 8) * x, (8, 8)),
    "where": (lambda x, i: torch.where(x > 0, x.exp(), x * 2), (8, 8)),
}


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_a_captured_backward_gives_eager_s_gradient(make, device, name):
    """In two replays with different inputs and different incoming gradients."""
    f, shape = DIFFERENTIABLE[name]
    graphed = make(f, (torch.randn(shape, device=device, requires_grad=True), torch.arange(8, device=device)))
    for _ in range(2):
        x, z = draw(device, *shape)
        i = torch.randperm(8, device=device)
        y, want = graphed(x, i), f(z, i)
        weight = torch.randn_like(want)
        y.backward(weight)
        want.backward(weight)
        same([y, x.grad], [want, z.grad])


def test_a_backward_written_in_python_is_captured_too(make, device):
    runs = []

    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, grad):
            runs.append(1)
            (x,) = ctx.saved_tensors
            return 3 * x**2 * grad

    graphed = make(Cube.apply, (torch.ones(4, device=device, requires_grad=True),), num_warmup_iters=2)
    assert len(runs) == 3  # two warm-ups and the capture
    for _ in range(2):
        compare_to = torch.randn(4, device=device, requires_grad=True)
        graphed(compare_to).sum().backward()
        same(compare_to.grad, 3 * compare_to.detach() ** 2)
    assert len(runs) == 3


def test_a_callable_that_forks_and_joins(cuda, make, device, side):
    """On a GPU the backward of what ran on a side stream runs there too, and autograd joins it."""

    def f(x):
        main = cuda.current_stream()
        side.wait_stream(main)
        with cuda.stream(side):
            a = x.sin() * 3
        b = x.exp()
        main.wait_stream(side)
        return a * b

    graphed = make(f, (torch.ones(1000, device=device, requires_grad=True),))
    for _ in range(2):
        x, z = draw(device, 1000)
        y, want = graphed(x), z.sin() * 3 * z.exp()
        y.pow(2).sum().backward()
        want.pow(2).sum().backward()
        same([y, x.grad], [want, z.grad])


# ---- warm-up
@pytest.mark.parametrize("times", [0, 1, 3])
def test_warm_ups_and_the_capture_run_python_and_no_replay_does(make, device, times):
    calls, x = [], torch.ones(3, device=device)

    def f(x):
        calls.append(1)
        return x + 1

    graphed = make(f, (x.clone(),), num_warmup_iters=times)
    same(graphed(x * 5), x * 6)
    graphed(x)
    assert len(calls) == times + 1


def test_warm_up_is_real_and_capture_is_not(make, device):
    """A running mean moves at each warm-up and at each call; the capture itself computes nothing."""
    norm, sample = nn.BatchNorm1d(4).to(device), torch.randn(6, 4, device=device, requires_grad=True)
    eager, x = nn.BatchNorm1d(4).to(device), torch.randn(6, 4, device=device)
    graphed = make(norm, (sample,), num_warmup_iters=2)
    assert norm.num_batches_tracked.item() == 2
    for batch in (sample, sample, x, x):
        eager(batch.detach())
    graphed(x)
    graphed(x)
    assert norm.num_batches_tracked.item() == 4
    same([norm.running_mean, norm.running_var], [eager.running_mean, eager.running_var])


# ---- static inputs
def test_an_input_elsewhere_is_copied_to_the_sample_s_address(make, device):
    sample = torch.zeros(4, device=device)
    graphed = make(lambda x: x + 1, (sample,))
    x = torch.arange(4.0, device=device)
    assert graphed(x).tolist() == [1, 2, 3, 4] and sample.tolist() == [0, 1, 2, 3]
    assert x.data_ptr() != sample.data_ptr()
    sample.fill_(7)  # the static input itself: nothing to copy
    assert graphed(sample).tolist() == [8] * 4
    assert graphed(torch.arange(8.0, device=device)[::2]).tolist() == [1, 3, 5, 7]


def test_an_input_that_begins_at_the_sample_s_address_is_not_copied(make, device):
    """Only the address is compared: a view of the sample with other strides is read as the sample."""
    sample = torch.arange(4.0, device=device).view(2, 2)
    graphed = make(lambda x: x * 10, (sample,))
    assert graphed(sample.t()).tolist() == [[0, 10], [20, 30]]


def test_no_sample_keeps_what_the_caller_changes_after_the_call(make, device):
    """The backward reads the copy that was made at the call."""
    graphed = make(lambda x: x * x, (torch.ones(3, device=device, requires_grad=True),))
    x = torch.full((3,), 4.0, device=device, requires_grad=True)
    y = graphed(x)
    with torch.no_grad():
        x.zero_()
    y.sum().backward()
    assert y.tolist() == [16] * 3 and x.grad.tolist() == [8] * 3


def test_callables_with_one_sample_have_one_static_input(make, device):
    """The second call overwrites what the first one's backward will read."""
    sample = torch.ones(2, device=device, requires_grad=True)
    first, second = make((lambda x: x * x, lambda x: x * x), ((sample,), (sample,)))
    x = torch.full((2,), 2.0, device=device, requires_grad=True)
    second(first(x)).sum().backward()
    assert x.grad.tolist() == [64] * 2  # (2 * 4) * (2 * 4); eager: (2 * 4) * (2 * 2)


def test_another_shape_is_refused_or_silently_broadcast(make, device):
    graphed = make(lambda x: x + 1, (torch.zeros(2, 3, device=device),))
    with pytest.raises(RuntimeError):
        graphed(torch.zeros(4, 3, device=device))
    assert graphed(torch.full((3,), 5.0, device=device)).tolist() == [[6] * 3] * 2  # 2 rows from one
    assert graphed(torch.full((3,), 5, device=device)).tolist() == [[6.0] * 3] * 2  # and from integers


def test_a_broadcast_input_gets_the_sum_of_its_gradients(make, device):
    graphed = make(lambda x: x * 2, (torch.zeros(2, 3, device=device, requires_grad=True),))
    x = torch.ones(1, 3, device=device, requires_grad=True)
    graphed(x).sum().backward()
    assert x.grad.tolist() == [[4] * 3]


def test_the_sample_decides_what_requires_a_gradient(make, device):
    def f(a, b):
        return a * b

    a, b = (torch.ones(3, device=device) for _ in "ab")
    graphed = make(f, (a.clone().requires_grad_(), b.clone()))
    y = graphed(a, b)  # nobody wants a gradient now
    assert not y.requires_grad and y.tolist() == [1] * 3
    a.requires_grad_()
    b.requires_grad_()
    graphed(a, b).sum().backward()
    assert a.grad.tolist() == [1] * 3 and b.grad is None  # silently


def test_without_gradients(make, device):
    module, eager = graphed_and_eager(make, device)
    x = torch.randn(3, 4, device=device)
    with torch.no_grad():
        y = module(x)
    assert not y.requires_grad and module(x).requires_grad
    same(y, eager(x).detach())


def test_a_frozen_module_has_no_backward(make, device):
    module, x = network(device).requires_grad_(False), torch.randn(3, 4, device=device)
    eager = copy.deepcopy(module)
    y = make(module, (torch.zeros(3, 4, device=device),))(x)
    assert not y.requires_grad
    same(y, eager(x))


def test_a_backward_that_was_not_captured(make, device):
    module, x = network(device), torch.randn(3, 4, device=device)
    with torch.no_grad():
        make(module, (x.clone(),))
    y = module(x)
    assert y.requires_grad
    with pytest.raises(RuntimeError, match="Called CUDAGraph::replay without a preceding successful capture"):
        y.sum().backward()


def test_outputs_that_need_no_gradient(make, device):
    """An integer has none; a float comes back as if it had one, and its gradient goes nowhere."""
    graphed = make(
        lambda x: (x * 2, x.detach() + 1, x.argmax()), (torch.ones(3, device=device, requires_grad=True),)
    )
    x = torch.tensor([1.0, 3, 2], device=device, requires_grad=True)
    double, constant, where = graphed(x)
    assert where.item() == 1 and not where.requires_grad and constant.requires_grad
    (double + 100 * constant).sum().backward()
    assert x.grad.tolist() == [2] * 3


def test_an_unused_input(make, device):
    def f(a, b):
        return a * 2

    def sample():
        return tuple(torch.ones(3, device=device, requires_grad=True) for _ in "ab")

    with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
        make(f, sample())
    a, b = sample()
    make(f, sample(), allow_unused_input=True)(a, b).sum().backward()
    assert a.grad.tolist() == [2] * 3 and b.grad is None


def test_an_unused_parameter(make, device):
    class Half(nn.Module):
        def __init__(self):
            super().__init__()
            self.used, self.spare = nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x):
            return self.used(x)

    with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
        make(Half().to(device), (torch.ones(3, 4, device=device),))
    module = Half().to(device)
    make(module, (torch.ones(3, 4, device=device),), allow_unused_input=True)
    module(torch.ones(3, 4, device=device)).sum().backward()
    assert module.used.bias.grad.tolist() == [3] * 4 and module.spare.bias.grad is None


# ---- static outputs
def test_the_next_call_overwrites_the_last_output(make, device):
    graphed = make(lambda x: x + 1, (torch.zeros(2, device=device),))
    first = graphed(torch.full((2,), 1.0, device=device))
    kept = first.clone()
    second = graphed(torch.full((2,), 5.0, device=device))
    assert first is not second and first.data_ptr() == second.data_ptr()
    assert first.tolist() == second.tolist() == [6] * 2 and kept.tolist() == [2] * 2


def test_an_output_hangs_on_one_node_of_its_own(make, device):
    """Of the captured computation no trace is left: the node before it is the input's."""
    graphed = make(lambda x: (x * 2).sin().exp(), (torch.ones(2, device=device, requires_grad=True),))
    x = torch.zeros(2, device=device, requires_grad=True)
    one, two = graphed(x), graphed(x)
    assert not one.is_leaf and one.grad_fn is not two.grad_fn
    nodes = [node for node, _ in one.grad_fn.next_functions if node is not None]
    assert [node.variable is x for node in nodes] == [True]


def test_writing_to_an_output_does_not_reach_the_graph(make, device):
    graphed = make(lambda x: x * 2, (torch.ones(2, device=device, requires_grad=True),))
    x = torch.ones(2, device=device, requires_grad=True)
    graphed(x).mul_(10)
    y = graphed(x)
    y.sum().backward()
    assert y.tolist() == [2] * 2 and x.grad.tolist() == [2] * 2


def test_a_backward_belongs_to_the_last_forward(make, device):
    """Two forwards, then the first one's backward: it uses the activations of the second."""
    graphed = make(lambda x: x.pow(3), (torch.ones(2, device=device, requires_grad=True),))
    first = torch.full((2,), 1.0, device=device, requires_grad=True)
    second = torch.full((2,), 2.0, device=device, requires_grad=True)
    y = graphed(first)
    graphed(second)
    y.sum().backward()
    assert first.grad.tolist() == [12] * 2  # 3 * 2², where eager says 3 * 1²


def test_gradients_that_are_accumulated_are_wrong(make, device):
    """pytorch#181723: autograd takes the static buffer for .grad, the next replay writes there, and the
    buffer is then added to itself.  Set to None between steps, all is well; zeroed in place, not."""
    w = nn.Linear(1, 1, bias=False).to(device)
    make(w, (torch.ones(1, 1, device=device),))
    seen = []
    for value in (1.0, 10.0):
        w(torch.full((1, 1), value, device=device)).sum().backward()
        seen.append(w.weight.grad.item())
    assert seen == [1, 20]  # eager: 1, 11
    w.zero_grad(set_to_none=False)
    w(torch.full((1, 1), 3.0, device=device)).sum().backward()
    assert w.weight.grad.item() == 6  # eager: 3
    w.zero_grad(set_to_none=True)
    w(torch.full((1, 1), 3.0, device=device)).sum().backward()
    assert w.weight.grad.item() == 3


def test_gradients_accumulate_into_a_grad_that_was_there(make, device):
    """The cure: a .grad of its own, zeroed in place."""
    w = nn.Linear(1, 1, bias=False).to(device)
    make(w, (torch.ones(1, 1, device=device),))
    w.weight.grad = torch.zeros_like(w.weight)
    for value in (1.0, 10.0):
        w(torch.full((1, 1), value, device=device)).sum().backward()
    assert w.weight.grad.item() == 11


def test_a_second_derivative_is_refused(make, device):
    graphed = make(lambda x: x.pow(3), (torch.ones(2, device=device, requires_grad=True),))
    x = torch.ones(2, device=device, requires_grad=True)
    (grad,) = torch.autograd.grad(graphed(x).pow(2).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        grad.sum().backward()


# ---- modules
def test_a_module_stays_itself_and_follows_its_weights(make, device):
    module, x = nn.Linear(2, 2, bias=False).to(device), torch.eye(2, device=device)
    assert make(module, (x.clone(),)) is module
    with torch.no_grad():
        module.weight.fill_(2)
        assert module(x).tolist() == [[2, 2]] * 2
        module.weight = nn.Parameter(torch.full((2, 2), 9.0, device=device))  # another address
        assert module(x).tolist() == [[2, 2]] * 2


def test_eval_falls_back_to_the_module_s_own_forward(make, device):
    module = nn.Dropout(0.5)
    make(module, (torch.ones(64, device=device),))
    x = torch.ones(10, 3, device=device)  # not the sample's shape
    module.eval()
    assert torch.equal(module(x), x) and torch.equal(module(input=x), x)
    module.train()
    with pytest.raises(RuntimeError):
        module(x)
    assert set(module(torch.ones(64, device=device)).tolist()) == {0, 2}


@pytest.mark.filterwarnings("ignore:The CUDA Graph is empty")
def test_captured_in_eval_it_falls_back_in_training(make, device):
    module = nn.Dropout(0.5).eval()
    make(module, (torch.ones(64, device=device),))
    x = torch.ones(10, 30, device=device)
    assert set(module.train()(x).unique().tolist()) == {0, 2}
    assert module.eval()(x[0, :1].expand(64)).tolist() == [1] * 64


def test_dropout_differs_from_replay_to_replay_and_its_backward_agrees(make, device):
    graphed = make(
        lambda x: F.dropout(x, 0.5), (torch.ones(64, device=device, requires_grad=True),), num_warmup_iters=1
    )
    drawn = []
    for seed in (1, 2, None, 1):
        if seed is not None:
            torch.manual_seed(seed)
        x = torch.ones(64, device=device, requires_grad=True)
        y = graphed(x)
        y.sum().backward()
        assert torch.equal(x.grad, y) and set(y.tolist()) == {0, 2}
        drawn.append(y.tolist())
    assert drawn[0] == drawn[3] and drawn[0] != drawn[1] != drawn[2] != drawn[0]


HOOKS = {
    "forward": lambda module: module.register_forward_hook(lambda *_: None),
    "forward pre": lambda module: module.register_forward_pre_hook(lambda *_: None),
    "backward": lambda module: module.register_full_backward_hook(lambda *_: None),
}


@pytest.mark.parametrize("name", HOOKS)
def test_a_module_with_a_hook_is_refused(backend, make, device, name):
    module = network(device)
    hook = HOOKS[name](module)
    with pytest.raises(AssertionError, match="Modules must not have hooks registered at the time") as error:
        make(module, (torch.ones(3, 4, device=device),))
    assert ("(emulated: " in str(error.value)) == (backend.name == "emulated")
    hook.remove()
    assert make(module, (torch.ones(3, 4, device=device),)) is module


def test_a_hook_registered_later_runs_and_a_submodule_s_only_while_recorded(make, device):
    module, inner, outer = network(device), [], []
    module[1].register_forward_hook(lambda *_: inner.append(1))
    make(module, (torch.ones(3, 4, device=device),))
    module.register_forward_hook(lambda *_: outer.append(1))
    for _ in range(2):
        module(torch.ones(3, 4, device=device))
    assert len(inner) == 4 and len(outer) == 2  # three warm-ups and the capture; two calls


def test_a_buffer_that_requires_a_gradient_is_refused(make, device):
    module = network(device)
    module[0].register_buffer("scale", torch.ones(1, device=device, requires_grad=True))
    with pytest.raises(AssertionError, match="only parameters may be trainable. All buffers must have"):
        make(module, (torch.ones(3, 4, device=device),))


@pytest.mark.parametrize("other", [2.0, None])
def test_a_sample_that_is_no_tensor_is_refused(make, device, other):
    with pytest.raises(AssertionError, match="for each callable must contain only Tensors. Other types are"):
        make(lambda x, k: x, (torch.ones(3, device=device), [other]))


def test_keyword_arguments_are_refused(make, device):
    module = nn.Linear(4, 4).to(device)
    make(module, (torch.ones(3, 4, device=device),))
    with pytest.raises(TypeError):
        module(input=torch.ones(3, 4, device=device))


def test_autocast_only_without_its_cache(make, device):
    module, x = nn.Linear(4, 4).to(device), torch.randn(3, 4, device=device)
    eager = copy.deepcopy(module)
    with torch.autocast(device, torch.bfloat16):
        with pytest.raises(RuntimeError, match="does not support the autocast caching. Please set `cache_en"):
            make(module, (torch.ones(3, 4, device=device),))
    with torch.autocast(device, torch.bfloat16, cache_enabled=False):
        make(module, (torch.ones(3, 4, device=device),))
        y, want = module(x), eager(x)
    assert y.dtype == torch.bfloat16
    torch.testing.assert_close(y, want)
    y.float().sum().backward()
    want.float().sum().backward()
    same_gradients(module, eager)


# ---- memory
def test_all_graphs_use_the_pool_that_is_given(cuda, make, device):
    pool, samples = cuda.graph_pool_handle(), [torch.zeros(2 * MiB, device=device) for _ in "ab"]
    for x in samples:
        x.requires_grad_()
    assert graphs.pool_bytes(pool) == 0
    first = make(lambda x: x.exp().sum(), (samples[0],), pool=pool)
    assert graphs.pool_bytes(pool) == 22 * MiB  # exp and its gradient, 8 MiB each; the sum in a small block
    second = make(lambda x: x.exp().sum(), (samples[1],), pool=pool)
    # exp's block is free after the first backward, for whoever captures on the same stream
    assert graphs.pool_bytes(pool) == (44 if NEW_IN_2_14 else 42) * MiB
    for f in (first, second):
        x = torch.zeros(2 * MiB, device=device, requires_grad=True)
        f(x).backward()
        assert x.grad.unique().tolist() == [1]


def test_without_a_pool_each_call_makes_its_own(make, device):
    """What one set of graphs leaves free another does not write on: they may run interleaved."""
    built = [
        make(lambda x: x.exp() * x.sin(), (torch.ones(1000, device=device, requires_grad=True),))
        for _ in "ab"
    ]
    leaves = [torch.full((1000,), v, device=device, requires_grad=True) for v in (1.0, 2.0)]
    outs = [f(x) for f, x in zip(built, leaves, strict=True)]
    for y in outs:
        y.sum().backward()
    for x in leaves:
        v = x.detach()
        same(x.grad, v.exp() * (v.sin() + v.cos()))


def test_the_mode_for_other_threads_is_a_parameter_since_torch_2_14(make, device):
    sample = (torch.ones(3, device=device),)
    if not NEW_IN_2_14:
        with pytest.raises(TypeError, match="capture_error_mode"):
            make(lambda x: x + 1, sample, capture_error_mode="relaxed")
    else:
        with pytest.raises(RuntimeError, match="Unknown capture error mode"):
            make(lambda x: x + 1, sample, capture_error_mode="strict")
        assert make(lambda x: x + 1, sample, capture_error_mode="relaxed")(*sample).tolist() == [2] * 3


# ---- last, because they break a capture
def test_unfaithful_a_backward_that_waits_for_the_device(backend, make, device):
    """Item 11: the product's derivative asks how many zeros there are, unless a TorchDispatchMode is active.
    Then autograd takes another way, without a wait, and the emulator captures what a GPU refuses."""
    f, x = torch.prod, torch.tensor([2.0, 3, 5], device=device, requires_grad=True)
    if backend.name == "emulated":
        make(f, (torch.ones_like(x).requires_grad_(),))(x).backward()
        assert x.grad.tolist() == [15, 10, 6]
    else:
        with pytest.raises(RuntimeError, match="operation failed due to a previous error during capture"):
            make(f, (torch.ones_like(x).requires_grad_(),))


def test_a_callable_that_waits_for_the_device_fails_in_the_capture_not_in_the_warm_up(make, device):
    calls = []

    def f(x):
        calls.append(1)
        return x * x.sum().item()

    with pytest.raises(RuntimeError, match="operation failed due to a previous error during capture"):
        make(f, (torch.ones(3, device=device),))
    assert len(calls) == 4
