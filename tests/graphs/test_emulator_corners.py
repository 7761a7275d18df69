"""Corners that no other test turned: each fails if one small thing in the emulator is left out."""

import copy
import gc
import runpy

import numpy
import pytest
import torch
import torch.nn.functional as F
from conftest import NO_GPU, grabber
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack

from minillm import graphs
from minillm.graphs import emulator
from minillm.graphs.emulator import memory, streams
from minillm.graphs.emulator.nodes import data_edges, out_variant, races

MiB = 1 << 20
APART = pytest.mark.parametrize("backend", ["heap", pytest.param("cuda", marks=NO_GPU)], indirect=True)
emulated = grabber(emulator)


# ---- blocks
@pytest.mark.parametrize("size, blocks", [(9.75, [9.75, 10.25]), (9.25, [9.25, 9.25, 1.5])])
def test_a_large_block_is_split_if_more_than_1_mib_remains(device, grab, size, blocks):
    n = int(size * MiB)
    g, kept = grab(lambda: [torch.zeros(n, dtype=torch.uint8, device=device) for _ in range(2)])
    (segment,) = graphs.pool_map(g.pool())
    assert [b.size / MiB for b in segment.blocks] == blocks and len(kept) == 2


def test_memory_reaches_to_the_last_element_and_not_only_as_far_as_there_are_elements(device, grab):
    g, y = grab(lambda: torch.empty_strided((2, 100), (1000, 1), device=device).fill_(1))
    (segment,) = graphs.pool_map(g.pool())
    assert segment.live == 4608 and y.stride() == (1000, 1)  # 1100 numbers of 4 bytes, in whole blocks of 512


def test_the_first_pool_of_a_process_is_not_the_eager_one():
    with emulator.heap() as heap:
        assert runpy.run_path(memory.__file__)["PoolHandle"].new() != heap.device.handle


def test_fresh_memory_of_bools_holds_bools():
    x = torch.ones(3)
    _, y = emulated(lambda: x > 0)
    assert y.view(torch.uint8).tolist() == [1] * 3  # another byte is no bool, and sums to anything


@APART
def test_eager_blocks_stay_on_their_stream(cuda, device, side):
    def address():
        return torch.empty(1000, device=device).data_ptr()

    with cuda.stream(side):
        there = address(), address()
    assert there[0] == there[1] != address()


# ---- freed inputs
def test_a_freed_input_becomes_another_tensor_once():
    """What a graph then writes to the address stays there, as it would on a GPU."""
    x, y = torch.zeros(2, dtype=torch.long), torch.zeros(2, dtype=torch.long)
    g, _ = emulated(lambda: y.copy_(x.add_(1)))
    x, seen = None, []
    for _ in range(2):
        with pytest.warns(UserWarning, match="freed tensor"):
            g.replay()
        seen.append(y.tolist())
    assert seen == [[0, 0], [1, 1]]


def test_liveness_is_of_the_very_block_in_a_heap():
    with emulator.heap():
        before, x, after = [torch.ones(100, device=emulator.device) for _ in range(3)]
        assert before.data_ptr() < x.data_ptr() < after.data_ptr() < before.data_ptr() + 2 * MiB
        g, y = emulated(lambda: x + 1, check_input_liveness=True)
        before = after = None
        g.replay()
        assert y.tolist() == [2] * 100
        x = None
        with pytest.raises(RuntimeError, match="1 dead tensor"):
            g.replay()


# ---- functions that go another way on a GPU
def test_one_hot_of_one_class_is_an_integer(device, grab):
    i = torch.zeros(3, dtype=torch.long, device=device)
    g, y = grab(lambda: F.one_hot(i, 1))
    g.replay()
    assert y.dtype == torch.long and y.tolist() == [[1]] * 3


@pytest.mark.filterwarnings("ignore:The CUDA Graph is empty")
def test_tensor_split_at_places_that_are_on_the_device(device, grab):
    x = torch.arange(4.0, device=device)
    where = torch.tensor([1, 2], device=device)
    with pytest.raises(RuntimeError, match="tensor_indices_or_sections to be on cpu"):
        grab(lambda: torch.tensor_split(x, where))


@pytest.mark.filterwarnings("ignore:The CUDA Graph is empty")
def test_a_tensor_equals_itself_however_it_is_asked(device, grab):
    x = torch.ones(2, 2, device=device)
    _, same = grab(lambda: (torch.equal(x, x), x.equal(x)))
    assert same == (True, True)


@pytest.mark.parametrize("other", [lambda x: x.t(), lambda x: x[:1]], ids=["transposed", "a part"])
@pytest.mark.filterwarnings("ignore:The CUDA Graph is empty")
def test_the_same_address_is_not_the_same_tensor(device, grab, other):
    x, said = torch.arange(4.0, device=device).view(2, 2), []
    try:
        grab(lambda: said.append(torch.equal(x, other(x))))
    except RuntimeError as error:
        assert "previous error during capture" in str(error)  # it had to look
    assert said in ([], [False])


def test_tensor_split_at_a_number(device, grab):
    x = torch.arange(4.0, device=device)
    g, parts = grab(lambda: [part + 1 for part in x.tensor_split(2)])
    g.replay()
    assert [part.tolist() for part in parts] == [[1, 2], [3, 4]]


# ---- device and host apart
def test_a_heap_is_left_when_an_error_ends_it():
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            with emulator.heap():
                _ = 1 / 0
    assert streams.now.heap is None


@APART
@pytest.mark.parametrize("move", [torch.Tensor.to, torch.Tensor.type_as])
def test_a_move_to_where_another_tensor_is(device, move):
    x, host = torch.ones(4, device=device), torch.zeros(4)
    back = move(x, host)
    x.zero_()
    assert (back + host).tolist() == [1] * 4 and (move(host, x) + x).tolist() == [0] * 4


@APART
def test_numpy_by_force_copies_to_the_host_and_drops_the_gradient(device):
    x = torch.ones(4, device=device, requires_grad=True)
    array = x.numpy(force=True)
    x.detach().zero_()
    assert array.tolist() == [1] * 4


def test_numpy_by_force_takes_no_device_memory():
    with emulator.heap() as heap:
        x = torch.ones(4, device=emulator.device)
        array = x.numpy(force=True)
        assert heap.device.allocated() == 512 and array.tolist() == [1] * 4


@APART
def test_indices_of_the_host_out_of_place_and_backward(device):
    x = torch.zeros(4, device=device)
    assert x.index_put((torch.tensor([1, 3]),), torch.ones((), device=device)).tolist() == [0, 1, 0, 1]
    w = torch.ones(4, device=device, requires_grad=True)
    w[torch.tensor([0, 0, 3])].sum().backward()
    assert (w.grad + x).tolist() == [2, 0, 0, 1]


@APART
def test_results_are_on_the_device_also_below_the_function_mode(device):
    x = torch.ones(3, device=device)
    with torch._C.DisableTorchFunction():  # as within backward, and in tensor subclasses
        y = x * 2
    assert (x + y).tolist() == [3] * 3


@APART
def test_tensors_without_memory_of_their_own_pass(device):
    x = torch.ones(4, device=device)
    assert torch.empty_like(x, device="meta").device.type == x.to("meta").device.type == "meta"
    assert x.to_sparse().to_dense().tolist() == [1] * 4


HOST = {  # a number of the host is welcome, a vector is not
    "arange": lambda: torch.arange(4),
    "empty": lambda: torch.empty(4),
    "eye": lambda: torch.eye(4)[0],
    "full": lambda: torch.full((4,), 2.0),
    "linspace": lambda: torch.linspace(0, 1, 4),
    "ones": lambda: torch.ones(4),
    "rand": lambda: torch.rand(4),
    "randint": lambda: torch.randint(9, (4,)),
    "randn": lambda: torch.randn(4),
    "randperm": lambda: torch.randperm(4),
    "zeros": lambda: torch.zeros(4),
}


@pytest.mark.parametrize("name", HOST)
@pytest.mark.filterwarnings("ignore:The CUDA Graph is empty")
def test_what_is_made_without_a_device_is_on_the_host(device, grab, name):
    x = torch.ones(4, device=device)
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        grab(lambda: x + HOST[name]())


LIKE = {
    **{
        f"{name}_like": getattr(torch, f"{name}_like") for name in ("empty", "ones", "zeros", "rand", "randn")
    },
    "full_like": lambda t, device: torch.full_like(t, 2.0, device=device),
    "new_empty": lambda t, device: t.new_empty(4, device=device),
    "new_full": lambda t, device: t.new_full((4,), 2.0, device=device),
    "new_ones": lambda t, device: t.new_ones(4, device=device),
    "new_zeros": lambda t, device: t.new_zeros(4, device=device),
}


@pytest.mark.parametrize("name", LIKE)
def test_a_tensor_like_one_of_the_host_may_be_on_the_device(device, grab, name):
    x = torch.ones(4, device=device)
    g, y = grab(lambda: LIKE[name](torch.ones(4), device=device).fill_(2) + x)
    g.replay()
    assert y.tolist() == [3] * 4


def test_a_default_device_is_for_what_is_made_and_not_for_what_is_cast(device, grab):
    x, cast = torch.ones(4, device=device), []

    def f():
        cast.append(torch.zeros(2, device="cpu").to(torch.float64).tolist())
        return torch.zeros(4, device=None) + torch.zeros(4) + x

    torch.set_default_device(device)
    try:
        g, y = grab(f)
    finally:
        torch.set_default_device(None)
    g.replay()
    assert y.tolist() == [1] * 4 and cast == [[0, 0]]


def test_a_deep_copy_is_made_by_every_replay_and_once_for_each_tensor(device, grab):
    x = torch.ones(4, device=device)
    g, (a, b) = grab(lambda: copy.deepcopy([x, x]))
    x.fill_(5)
    g.replay()
    assert a is b and a.tolist() == [5] * 4 and a.data_ptr() != x.data_ptr()


NO_NUMBER = {
    "addcdiv_": lambda x, number: x.addcdiv_(x, number),
    "clamp_max": lambda x, number: x.clamp_max(number),
    "clamp_min of a scalar_tensor": lambda x, number: x.clamp_min(torch.scalar_tensor(1.0)),
}


@pytest.mark.parametrize("name", NO_NUMBER)
@pytest.mark.filterwarnings("ignore:The CUDA Graph is empty")
def test_some_operations_take_no_number_of_the_host(device, grab, name):
    x = torch.ones(4, device=device)
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        grab(lambda: NO_NUMBER[name](x, torch.tensor(1.0)))


@APART
def test_an_upload_from_pinned_memory_must_not_wait(device, grab):
    x, pinned = torch.zeros(4, device=device), torch.ones(4).pin_memory()
    g, y = grab(lambda: pinned.to(x.device, torch.float32, True))  # non_blocking, by its place
    g.replay()
    assert (y + x).tolist() == [1] * 4
    with pytest.raises(RuntimeError, match="previous error during capture"):
        grab(lambda: pinned.to(x.device))


AS_ARRAY = {
    "up": lambda x: torch.asarray(torch.ones(4), device=x.device),
    "down": lambda x: torch.asarray(x, device="cpu"),
    "like one of the host": lambda x: x.to(torch.ones(4)),
    "of numpy": lambda x: x.copy_(torch.from_numpy(numpy.ones(4, numpy.float32))),
}


@pytest.mark.parametrize("way", AS_ARRAY)
@pytest.mark.filterwarnings("ignore:The CUDA Graph is empty")
def test_arrays_are_host_memory(device, grab, way):
    x = torch.ones(4, device=device)
    with pytest.raises(RuntimeError, match="Cannot copy between CPU and CUDA tensors during CUDA graph capt"):
        grab(lambda: AS_ARRAY[way](x))


# ---- events
@pytest.mark.parametrize("kind", ["external", "interprocess"])
def test_events_that_are_not_offered(kind):
    with pytest.raises(NotImplementedError, match="neither external nor interprocess"):
        emulator.Event(**{kind: True})


def test_elapsed_time_looks_at_both_events(cuda):
    a, b = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
    with pytest.raises((ValueError, RuntimeError), match="enable_timing=True"):
        a.elapsed_time(cuda.Event())
    b.record()
    with pytest.raises((ValueError, RuntimeError), match="must be recorded"):
        a.elapsed_time(b)


def test_an_old_captures_event_on_a_stream_outside_spoils_nothing():
    x, event, outside = torch.ones(4), emulator.Event(), emulator.Stream()
    emulated(lambda: (event.record(), x + 1))

    def f():
        with pytest.raises(RuntimeError, match="CUDA error: invalid argument"):
            event.wait(outside)
        return x + 2

    g, y = emulated(f)
    g.replay()
    assert y.tolist() == [3] * 4


# ---- what is written down
def test_a_mistake_on_the_host_does_not_end_the_recording(device, grab):
    x = torch.zeros(4, device=device)

    def f():
        with pytest.raises(RuntimeError):
            torch.zeros(2) + torch.zeros(3)
        x.add_(1)

    g, _ = grab(f)
    assert x.tolist() == [0] * 4
    g.replay()
    assert x.tolist() == [1] * 4


def test_a_tensor_that_is_both_operands_of_an_operation_in_place(device, grab):
    x = torch.full((4,), 3.0, device=device)
    g, y = grab(lambda: x.mul_(x))
    g.replay()
    assert y.data_ptr() == x.data_ptr() and x.tolist() == [9] * 4 and graphs.pool_bytes(g.pool()) == 0


def test_resize_to_fewer_elements_stays_where_it_is(device, grab):
    x, buffer = torch.ones(8, device=device), torch.zeros(8, device=device)
    address = buffer.data_ptr()
    g, y = grab(lambda: buffer.resize_(4).add_(x[:4]))
    g.replay()
    assert y.data_ptr() == address and y.tolist() == [1] * 4


def test_resize_is_no_kernel(device, grab):
    buffer = torch.zeros(8, device=device)
    with pytest.warns(UserWarning, match="The CUDA Graph is empty"):
        grab(lambda: buffer.resize_(4))


def test_an_operation_without_a_result_is_recorded():
    flag = torch.tensor(True)
    g, _ = emulated(lambda: torch._assert_async(flag))
    g.replay()
    flag.fill_(False)
    with pytest.raises(RuntimeError):
        g.replay()


@pytest.mark.filterwarnings("ignore:The CUDA Graph is empty")
def test_another_device_is_not_recorded():
    x = torch.empty(4, device="meta")
    with pytest.raises(RuntimeError, match="captures CPU tensors only and got one on meta"):
        emulated(lambda: x + 1)


def test_memory_of_the_graph_itself_is_no_input():
    """Or its dead intermediates would count as dead inputs."""
    with emulator.heap():
        x = torch.ones(4, device=emulator.device)
        g, y = emulated(lambda: (x + 1) * 2, check_input_liveness=True)
        g.replay()
        assert y.tolist() == [4] * 4 and len(g.borrowed) == 1


def test_a_refused_seed_is_refused_once():
    x = torch.zeros(4)

    def f():
        torch.manual_seed(torch.initial_seed() + 1)
        with pytest.raises(RuntimeError, match="only if new seed is the same"):
            x.add_(1)
        x.add_(10)

    g, _ = emulated(f)
    g.replay()
    assert x.tolist() == [10] * 4


READS = {
    "histogram without a range": lambda x: torch.histc(x, 4, 1, 1),
    "mask out of place": lambda x: x.index_put((x > 1,), x[0]),
    "masked_fill with a tensor": lambda x: x.masked_fill(x > 1, x[0]),
    "index_fill with a tensor": lambda x: x.index_fill(0, x.long(), x[0]),
    "logspace from a tensor": lambda x: torch.logspace(x[0], 2.0, 3, device=x.device),
}


@pytest.mark.parametrize("name", READS)
@pytest.mark.filterwarnings("ignore:The CUDA Graph is empty")
def test_what_looks_at_values_is_refused(device, grab, name):
    x = torch.arange(4.0, device=device)
    READS[name](x)
    with pytest.raises(RuntimeError, match="previous error during capture|Cannot copy between CPU and CUDA"):
        grab(lambda: READS[name](x))


def test_an_upload_on_another_stream_spoils_the_capture():
    x, outside, seen = torch.zeros(4), emulator.Stream(), []

    def f():
        host = torch.ones(4)
        with emulator.stream(outside):
            try:
                x.copy_(host)
            except RuntimeError as error:
                seen.append(str(error))

    with pytest.raises(RuntimeError, match="previous error during capture"):
        emulated(f)
    emulator.set_stream(emulator.default_stream())
    assert "not permitted when stream is capturing" in seen[0]


def test_synchronize_beside_a_capture_spoils_it():
    outside = emulator.Stream()

    def f():
        with emulator.stream(outside), pytest.raises(RuntimeError, match="when stream is capturing"):
            emulator.synchronize()

    with pytest.raises(RuntimeError, match="previous error during capture"):
        emulated(f)
    emulator.set_stream(emulator.default_stream())


OVERWRITE = {
    "bernoulli_": lambda x: x.bernoulli_(),
    "copy_": lambda x: x.copy_(torch.zeros((), device=x.device)),
    "exponential_": lambda x: x.exponential_(),
    "fill_": lambda x: x.fill_(2),
    "normal_": lambda x: x.normal_(),
    "random_": lambda x: x.random_(),
    "uniform_": lambda x: x.uniform_(),
    "zero_": lambda x: x.zero_(),
}


@pytest.mark.parametrize("name", OVERWRITE)
def test_what_overwrites_does_not_read(name):
    x = torch.ones(4)
    g, _ = emulated(lambda: (x.add_(1), OVERWRITE[name](x)))
    assert (0, len(g.nodes) - 1) not in data_edges(g.nodes) and g.nodes[-1].name == name


def test_an_empty_slice_is_no_memory():
    x, side = torch.ones(4), emulator.Stream()

    def f():
        main = emulator.current_stream()
        side.wait_stream(main)
        with emulator.stream(side):
            x[2:2].add_(1)
        x.mul_(2)
        main.wait_stream(side)

    g, _ = emulated(f)
    assert [node.writes == [] for node in g.nodes] == [True, False] and races(g.nodes) == []


def test_a_replay_writes_results_where_they_belong():
    """And does not compute them elsewhere first, where torch offers that."""
    x = torch.ones(4)
    g, _ = emulated(lambda: x + 1)
    assert g.nodes[0].func is torch.ops.aten.add.out and g.nodes[0].name == "add"


# ---- the life of a graph
def test_reset_lets_go_of_the_pool(cuda, device, grab):
    x = torch.ones(4, device=device)
    g, y = grab(lambda: x + 1)
    pool = g.pool()
    del y
    g.reset()
    cuda.empty_cache()
    assert graphs.pool_bytes(pool) == 0


def test_a_graph_without_a_capture_borrows_nothing():
    x, g = torch.ones(4), emulator.CUDAGraph()
    assert g.dangling() == []
    with emulator.graph(g):
        x.add_(1)
    g.reset()
    x = None
    assert g.dangling() == []


def test_another_capture_by_hand_spoils_the_first():
    x = torch.ones(4)

    def f():
        with pytest.raises(RuntimeError, match="not permitted when stream is capturing"):
            emulator.CUDAGraph().capture_begin()
        return x + 1

    with pytest.raises(RuntimeError, match="previous error during capture"):
        emulated(f)
    emulator.set_stream(emulator.default_stream())


def test_a_collector_that_was_off_stays_off(device, grab):
    x = torch.ones(4, device=device)
    gc.disable()
    try:
        grab(lambda: x + 1)
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_an_instantiated_graph_cannot_be_captured_again(cuda, device):
    x, g = torch.zeros(4, device=device), cuda.CUDAGraph(keep_graph=True)
    with cuda.graph(g):
        x.add_(1)
    g.instantiate()
    with pytest.raises(RuntimeError, match="already owns a captured graph"):
        with cuda.graph(g):
            x.add_(1)
    graphs.recover()
    g.replay()
    assert x.tolist() == [1] * 4


class Calls(TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.seen.append(func)
        return func(*args, **(kwargs or {}))


class Operations(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.append(func)
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("mode", [Calls, Operations])
def test_no_mode_sees_a_replay(device, grab, mode):
    x = torch.zeros(4, device=device)
    g, _ = grab(lambda: x.add_(1))
    with mode() as spy:
        g.replay()
    assert spy.seen == [] and x.tolist() == [1] * 4


def test_two_registered_generators(cuda, device):
    x, y = torch.zeros(4, device=device), torch.zeros(4, device=device)
    a, b = torch.Generator(device), torch.Generator(device)
    g = cuda.CUDAGraph()
    g.register_generator_state(a)
    g.register_generator_state(b)
    with cuda.graph(g):
        x.uniform_(generator=a)
        y.uniform_(generator=b)
    a.manual_seed(3)
    b.manual_seed(3)
    g.replay()
    assert torch.equal(x, y) and x.unique().numel() > 1


MAKERS = {
    "rand": lambda **given: torch.rand(64, **given),
    "randn": lambda **given: torch.randn(64, **given),
    "randint": lambda **given: torch.randint(0, 1000, (64,), **given),
    "randperm": lambda **given: torch.randperm(64, **given),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_a_factory_function_draws_from_a_registered_generator(cuda, device, make):
    generator, g, seen = torch.Generator(device), cuda.CUDAGraph(), []
    g.register_generator_state(generator)
    with cuda.graph(g):
        y = make(generator=generator, device=device)
    for seed in (3, None, 3):
        if seed is not None:
            generator.manual_seed(seed)
        g.replay()
        seen.append(y.tolist())
    assert y.shape == (64,) and seen[0] == seen[2] != seen[1]


def test_a_dump_before_the_capture_writes_nothing(tmp_path):
    emulator.CUDAGraph(keep_graph=True).debug_dump(str(tmp_path / "graph.dot"))
    assert list(tmp_path.iterdir()) == []


# ---- pools, streams and races, as they are shown
def test_a_map_is_in_order_of_streams_and_addresses(cuda, device, grab):
    pool, streams, kept = cuda.graph_pool_handle(), (cuda.Stream(), cuda.Stream()), []
    for _ in range(4):
        for stream in streams:
            kept += grab(
                lambda: torch.zeros(12 * MiB, dtype=torch.uint8, device=device), pool=pool, stream=stream
            )
    shown = [(segment.stream, segment.address) for segment in graphs.pool_map(pool)]
    assert shown == sorted(shown) and [stream for stream, _ in shown] == [0] * 4 + [1] * 4


def test_a_race_is_first_of_all_a_read_of_what_was_written():
    x, side = torch.ones(4), emulator.Stream()

    def f():
        main = emulator.current_stream()
        side.wait_stream(main)
        with emulator.stream(side):
            x.add_(1)
        x.mul_(2)
        main.wait_stream(side)

    (race,) = races(emulated(f)[0].nodes)
    assert race.kind == "read after write"


@pytest.mark.parametrize("name", ["addmm", "bmm", "baddbmm", "index_select", "gather", "sum", "mean"])
def test_reductions_and_products_are_written_in_place(name):
    func = getattr(torch.ops.aten, name)
    overload = getattr(func, {"sum": "dim_IntList", "mean": "dim"}.get(name, "default"))
    assert out_variant(overload)._schema.arguments[-1].is_out


def test_a_warm_up_runs_twice_on_a_stream_of_its_own_and_is_waited_for(cuda, device, grab):
    x, seen = torch.zeros(4, device=device), []

    def step():
        seen.append(cuda.current_stream())
        x.add_(1)

    graphs.warm_up(step)
    assert seen[0] == seen[1] != cuda.current_stream() and x.tolist() == [2] * 4
    g, _ = grab(lambda: graphs.warm_up(step, 1))  # waits inside a capture are a fork and a join
    g.replay()
    assert len(seen) == 3 and x.tolist() == [3] * 4


# ---- what stands around it
def test_a_lessons_heap_is_the_emulators_or_nothing(monkeypatch):
    monkeypatch.setattr(graphs, "cuda", emulator)
    with graphs.heap():
        assert streams.now.heap is not None
    monkeypatch.setattr(graphs, "cuda", torch.cuda)
    with graphs.heap():
        assert streams.now.heap is None


def test_what_recovery_cannot_cure_is_said(monkeypatch):
    def refuse(*args):
        raise RuntimeError("no capture today")

    monkeypatch.setattr(graphs, "cuda", emulator)
    monkeypatch.setattr(graphs, "device", emulator.device)
    monkeypatch.setattr(emulator.CUDAGraph, "capture_begin", refuse)
    assert graphs.recover() == "RuntimeError: no capture today"
    emulator.set_stream(emulator.default_stream())


def test_a_message_with_nothing_to_add_says_no_more():
    with pytest.raises(RuntimeError, match=r"successful capture\. \(emulated\)$"):
        emulator.CUDAGraph().replay()


def test_an_error_without_words_is_named(monkeypatch):
    def silent(*args, **options):
        raise RuntimeError

    monkeypatch.setattr(torch, "rand", silent)
    assert graphs.probe() == "RuntimeError: "


def test_a_list_of_limits_that_is_gone_is_missed(monkeypatch):
    monkeypatch.setattr(emulator, "__doc__", "Everything is imitated.")
    with pytest.raises(RuntimeError, match="no section 'Not imitated'"):
        graphs.limits()


def test_a_heap_that_ends_within_a_capture_leaves_no_mode_behind():
    stacks = _get_current_dispatch_mode_stack, _get_current_function_mode_stack
    before = [list(stack()) for stack in stacks]
    with emulator.heap(), emulator.stream(emulator.Stream()):
        graph = emulator.CUDAGraph()
        graph.capture_begin()  # and no end
    assert [list(stack()) for stack in stacks] == before
    assert not emulator.is_current_stream_capturing() and graphs.probe() is None


def test_warm_up_says_what_it_takes():
    x = torch.ones(2)
    for arguments in ((x,), (torch.sin, x)):
        with pytest.raises(TypeError, match="write warm_up"):
            graphs.warm_up(*arguments)
