"""GraphRunner: a captured function that is called on new values, and what it notices and refuses."""

import pytest
import torch
from helpers import CONFIG, DEVICE, PLACES, sequences, small_cache, small_model
from torch import nn

from minillm import graphs
from minillm.engine import GraphRunner
from minillm.engine.addresses import Addresses


@pytest.fixture(params=PLACES, autouse=True)
def place(request):
    with PLACES[request.param]():
        torch.manual_seed(0)
        yield
        assert graphs.probe() is None


def weighted(x, scale):
    return x * scale + 1


def runner_of(fn=weighted, **options):
    x, scale = torch.ones(2, 3, device=DEVICE), torch.full((1,), 2, device=DEVICE)
    return GraphRunner(fn, {"x": x, "scale": scale}, **options)


def test_a_replay_computes_on_new_values():
    runner = runner_of()
    for number in range(3):
        x = torch.randn(2, 3, device=DEVICE)
        scale = torch.tensor([number], device=DEVICE)
        got = runner(x=x, scale=scale)
        assert torch.equal(got, x * scale + 1)
    assert torch.equal(runner.replay(), x * 2 + 1)


def test_what_is_not_loaded_keeps_its_value():
    runner = runner_of()
    runner(scale=torch.tensor([5], device=DEVICE))
    assert runner(x=torch.full((2, 3), 4.0, device=DEVICE)).tolist() == [[21.0] * 3] * 2
    assert runner().tolist() == [[21.0] * 3] * 2


def test_the_output_is_one_tensor_that_the_next_replay_overwrites():
    runner = runner_of()
    first = runner(x=torch.full((2, 3), 1.0, device=DEVICE))
    kept = first.clone()
    second = runner(x=torch.full((2, 3), 7.0, device=DEVICE))
    assert first is second is runner.output
    assert kept.tolist() == [[3.0] * 3] * 2 and first.tolist() == [[15.0] * 3] * 2


def test_the_tensors_that_it_was_given_are_its_static_inputs():
    x = torch.zeros(3, device=DEVICE)
    runner = GraphRunner(lambda x: x + 1, {"x": x})
    assert runner.inputs["x"] is x
    x.fill_(4)
    assert runner.replay().tolist() == [5.0] * 3
    runner.load(x=torch.full((3,), 8.0, device=DEVICE))
    assert x.tolist() == [8.0] * 3


@pytest.mark.parametrize(
    "bad, error, words",
    [
        ({"y": torch.ones(2, 3)}, TypeError, "no static input is called 'y'; this graph has: x, scale"),
        ({"scale": torch.ones(1)}, TypeError, "scale is torch.float32; it was captured as torch.int64"),
        (
            {"scale": torch.ones(2, dtype=torch.int64)},
            ValueError,
            r"scale has shape \[2\]; it was captured as \[1\]",
        ),
        ({"scale": torch.tensor(5)}, ValueError, r"scale has shape \[\]"),
        ({"scale": torch.ones(1, 1, dtype=torch.int64)}, ValueError, r"scale has shape \[1, 1\]"),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_is_copied(bad, error, words):
    runner = runner_of()
    good = {"x": torch.full((2, 3), 9.0, device=DEVICE)}
    bad = {name: value.to(DEVICE) for name, value in bad.items()}
    for values in ({**good, **bad}, {**bad, **good}):
        with pytest.raises(error, match=words):
            runner(**values)
        assert runner.inputs["x"].tolist() == [[1.0] * 3] * 2 and runner.inputs["scale"].tolist() == [2]


def test_a_replay_runs_no_python():
    calls = []

    def counted(x, scale):
        calls.append(1)
        return weighted(x, scale)

    runner = runner_of(counted, warm_ups=3)
    assert len(calls) == 4  # three to warm up, one captured
    for _ in range(5):
        runner(scale=torch.tensor([3], device=DEVICE))
    assert len(calls) == 4
    runner_of(counted, warm_ups=0)
    assert len(calls) == 5


def test_warming_up_runs_on_the_stream_of_the_capture():
    streams, stream = [], graphs.cuda.Stream()

    def noted(x, scale):
        streams.append(graphs.cuda.current_stream() == stream)
        return weighted(x, scale)

    runner_of(noted, stream=stream)
    assert streams == [True] * 3


def test_the_pool_is_the_one_that_was_given():
    pool = graphs.cuda.graph_pool_handle()
    runner = runner_of(pool=pool)
    assert tuple(runner.graph.pool()) == tuple(pool)
    inside = [(segment.address, segment.address + segment.size) for segment in graphs.pool_map(pool)]
    assert any(start <= runner.output.data_ptr() < end for start, end in inside)


def test_a_rebound_input_is_named():
    runner = runner_of()
    runner.check_addresses()
    runner.inputs["x"].fill_(3)
    runner.check_addresses()
    runner.inputs["x"] = runner.inputs["x"].clone()
    with pytest.raises(RuntimeError, match=r"^x was \[2, 3\] at 0x\w+ and is \[2, 3\] at 0x\w+: .*copy_\(\)"):
        runner.check_addresses()


def step_of_a_model():
    model, kv, inputs = small_model(), small_cache(), sequences([3, 7], [5, 9])
    runner = GraphRunner(
        lambda **_: model.decode(inputs, kv),
        inputs.tensors(),
        watch=lambda: {**model.state_dict(), **dict(model.named_buffers()), **kv.tensors()},
    )
    return model, kv, inputs, runner


def new_weight(model, kv):
    model.layers[0].qkv.weight = nn.Parameter(model.layers[0].qkv.weight.clone(), requires_grad=False)
    return "layers.0.qkv.weight"


def new_keys(model, kv):
    kv.key[0] = kv.key[0].clone()
    return r"kv.key\[0\]"


def new_angles(model, kv):
    model.cos = model.cos.clone()
    return "cos"


def other_shape(model, kv):
    kv.value[0] = kv.value[0].view(6, 8, CONFIG.kv_heads, CONFIG.head_dim)  # the same memory
    return r"kv.value\[0\] was \[12, 4, 1, 16\] at \w+ and is \[6, 8, 1, 16\]"


@pytest.mark.parametrize("replace", [new_weight, new_keys, new_angles, other_shape])
def test_a_replaced_weight_or_cache_is_named(replace):
    model, kv, _, runner = step_of_a_model()
    runner.check_addresses()
    name = replace(model, kv)
    with pytest.raises(RuntimeError, match=f"{name}.*the graph still uses the old memory"):
        runner.check_addresses()


def test_values_that_change_in_place_are_no_fault_and_are_used():
    model, kv, inputs, runner = step_of_a_model()
    before = runner.replay().clone()
    for weight in model.parameters():
        weight.mul_(1.1)
    runner.check_addresses()
    torch.testing.assert_close(runner.replay(), model.decode(inputs, kv), rtol=1e-5, atol=1e-5)
    assert not torch.allclose(runner.output, before, atol=1e-3)


def test_the_old_memory_is_kept_so_that_its_address_names_one_tensor_only():
    held = {"a": torch.ones(1 << 16, device=DEVICE)}
    addresses = Addresses(lambda: held)
    for _ in range(3):
        held["a"] = torch.ones(1 << 16, device=DEVICE)
        assert len(addresses.moved()) == 1
    del held["a"]
    assert addresses.moved() == ["a is gone"]
    with pytest.raises(RuntimeError, match="a is gone: the graph still uses"):
        addresses.check()


def test_random_numbers_of_a_registered_generator_differ_by_replay_and_follow_its_seed():
    generator = torch.Generator(DEVICE).manual_seed(5)
    runner = GraphRunner(
        lambda x: torch.empty_like(x).uniform_(generator=generator),
        {"x": torch.zeros(8, device=DEVICE)},
        generators=(generator,),
    )
    generator.manual_seed(7)
    first, second = runner().clone(), runner().clone()
    assert not torch.equal(first, second)
    generator.manual_seed(7)
    assert torch.equal(runner(), first) and torch.equal(runner(), second)


def test_a_capture_that_fails_raises_what_it_raised():
    def waits(x, scale):
        return x * scale.item()

    with pytest.raises(RuntimeError, match="operation not permitted|captur"):
        runner_of(waits)
    assert graphs.recover() is None
    assert runner_of()(scale=torch.tensor([3], device=DEVICE)).tolist() == [[4.0] * 3] * 2
