"""What the emulator shows and a GPU does not, and what it gets wrong and says so."""

import gc
import inspect
import warnings
import weakref

import pytest
import torch

from minillm.graphs import emulator, pool_bytes
from minillm.graphs.emulator.memory import Borrowed, Pool, PoolHandle, Segment
from minillm.graphs.emulator.nodes import data_edges, out_variant, races, stream_edges
from minillm.graphs.emulator.streams import now


def grab(f, **options):
    g = emulator.CUDAGraph()
    with emulator.graph(g, **options):
        out = f()
    return g, out


def pool_of(g):
    return Pool.every[g.pool()]


@pytest.fixture(autouse=True)
def stream_is_restored():
    before = now.stream
    yield
    assert now.capture is None
    now.stream = before


# ---- memory
def test_fresh_memory_is_poison():
    x = torch.ones(3)
    _, (f, h, i) = grab(lambda: (x + 1, (x + 1).bfloat16(), x.argmax(-1)))
    assert f.isnan().all() and h.isnan().all() and i.item() == -1


def test_the_graph_keeps_nothing_of_yours_alive():
    x = torch.ones(4)
    seen = []

    def f():
        y = x + 1
        seen.append(weakref.ref(y))
        return y * 2

    g, out = grab(f)
    assert seen[0]() is None
    pool, gone = pool_of(g), weakref.ref(x)
    assert pool.allocated() == 512
    del out
    x = f = None
    assert pool.allocated() == 0 and gone() is None


def test_memory_goes_with_the_graph_and_its_outputs():
    gc.collect()
    gc.disable()  # no reference cycles: at once
    try:
        before = len(Segment.every)
        x = torch.ones(4)
        g, out = grab(lambda: x + 1)
        g.replay()
        handle = g.pool()
        del g
        assert out.tolist() == [2] * 4 and len(Segment.every) == before + 1 and pool_bytes(handle) == 2 << 20
        del out
        assert len(Segment.every) == before and pool_bytes(handle) == 0
        x = None
        assert not Borrowed.every
    finally:
        gc.enable()


def test_a_freed_input_is_reported_and_reads_as_poison():
    x = torch.ones(4)
    g, y = grab(lambda: x + 1)
    view = x[1:]
    x = None
    g.replay()
    assert y.tolist() == [2] * 4 and not g.dangling()  # a view is enough to keep it
    del view
    with pytest.warns(UserWarning, match="1 freed tensor"):
        g.replay()
    assert y.isnan().all()


def test_a_number_is_not_a_freed_input():
    """Whatever C++ or Python makes of a number on the way, the graph borrows x and y and no more."""
    x, y = torch.ones(4), torch.zeros(4)

    def f():
        y[:2] = 7.0
        y[x > 2] = -1.0
        z = torch.where(x > 0, x * 2 + torch.tensor(1.0), 0.0)
        return torch.clamp(z, min=0.5) ** 2 + torch.full((), 3)

    g, _ = grab(f)
    gc.collect()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        g.replay()
    assert len(g.borrowed) == 2


def test_check_input_liveness():
    x = torch.ones(4)
    g, y = grab(lambda: x + 1, check_input_liveness=True)
    g.replay()
    x = None
    with pytest.raises(RuntimeError, match="CUDA graph replay detected 1 dead tensor"):
        g.replay()


def test_two_graphs_may_borrow_the_same_weight():
    w = torch.ones(4)
    g1, a = grab(lambda: w + 1)
    g2, b = grab(lambda: w + 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        g1.replay()
        g2.replay()
    w = None
    assert len(g1.dangling()) == len(g2.dangling()) == 1


def test_a_resized_input_is_an_error_and_not_a_crash():
    x = torch.ones(4)
    g, _ = grab(lambda: x + 1)
    x.resize_(1 << 20)
    with pytest.raises(RuntimeError, match="resized"):
        g.replay()


@pytest.mark.parametrize(
    "nbytes, reserved",
    [(1, 2), (1 << 20, 2), ((1 << 20) + 1, 20), ((10 << 20) - 512, 20), (10 << 20, 10), ((11 << 20) + 1, 12)],
)
@pytest.mark.filterwarnings("ignore:The CUDA Graph is empty")
def test_segment_sizes(nbytes, reserved):
    g, out = grab(lambda: torch.empty(nbytes, dtype=torch.uint8))
    # torch.empty without a device is host memory; with one it is the pool's.
    assert pool_bytes(g.pool()) == 0 and g.nodes == []
    g, out = grab(lambda: torch.empty(nbytes, dtype=torch.uint8, device="cpu"))
    assert pool_bytes(g.pool()) == reserved << 20 and out.data_ptr() % 512 == 0 and g.nodes == []


def test_coalescing():
    pool = Pool()
    parts = [pool.empty((n,), (1,), torch.uint8, None) for n in (600, 512, 2000, 1)]
    assert [b.size for b in pool.segments[0].blocks[:4]] == [
        1024,
        512,
        2048,
        512,
    ] and pool.allocated() == 4096
    for k in (1, 3, 0, 2):
        parts[k] = None
    assert pool.allocated() == 0 and [b.size for b in pool.segments[0].blocks] == [2 << 20]


def test_a_pool_is_asked_for_by_its_handle():
    x = torch.ones(4)
    g, _ = grab(lambda: x + 1)
    assert isinstance(g.pool(), PoolHandle) and emulator.graph_pool_handle() != emulator.graph_pool_handle()
    with pytest.raises(TypeError, match="pool= got CUDAGraph; expected the handle"):
        grab(lambda: x + 1, pool=g)


# ---- nodes and order
def test_nodes_are_kernels_and_views_are_not():
    x, w = torch.ones(2, 4), torch.ones(4, 4)

    def f():
        return torch.softmax(torch.nn.functional.linear(x, w).view(2, 2, 2), -1).transpose(0, 1).reshape(-1)

    for mode in (torch.no_grad, torch.inference_mode, torch.enable_grad):
        with mode():
            g, out = grab(f)
        assert [n.name for n in g.nodes] == ["mm", "_softmax", "clone"], mode
    assert data_edges(g.nodes) == stream_edges(g.nodes) == [(0, 1), (1, 2)] and races(g.nodes) == []
    last = repr(g.nodes[-1])
    assert last.startswith("#2 clone(") and f"{out.data_ptr():#x}" in last


def test_numbers_are_not_kernels():
    """The mask of attention becomes torch.where(mask, 0.0, -inf): one kernel, whose numbers ride along."""
    q, mask = torch.ones(1, 1, 2, 2), torch.ones(2, 2, dtype=torch.bool)
    g, y = grab(lambda: torch.nn.functional.scaled_dot_product_attention(q, q, q, attn_mask=mask))
    assert "scalar_tensor" not in [n.name for n in g.nodes]
    g.replay()
    assert torch.equal(y, q)


def test_data_edges_are_fewer_than_stream_edges():
    x = torch.ones(4)
    g, _ = grab(lambda: (x + 1) * (x + 2))
    assert data_edges(g.nodes) == [(0, 2), (1, 2)] and stream_edges(g.nodes) == [(0, 1), (1, 2)]


def diamond(join_before_use, with_events):
    x, side = torch.zeros(4), emulator.Stream()

    def f():
        main, joined = emulator.current_stream(), emulator.Event()
        a = x + 1
        side.wait_stream(main)
        with emulator.stream(side):
            b = a * 2
            joined.record()
        c = a * 3
        if join_before_use:
            joined.wait() if with_events else main.wait_stream(side)
        d = b + c
        main.wait_stream(side)
        return d

    return grab(f)[0].nodes


@pytest.mark.parametrize("with_events", [True, False])
def test_fork_join_is_a_diamond_and_a_late_join_is_a_race(with_events):
    nodes = diamond(True, with_events)
    assert stream_edges(nodes) == [(0, 1), (0, 2), (1, 3), (2, 3)] and races(nodes) == []
    assert races(diamond(False, with_events)) == [(1, 3)]  # joined, but too late for the last kernel


def test_an_event_marks_the_moment_it_was_recorded():
    """Not what is put on its stream later."""
    x, side = torch.zeros(4), emulator.Stream()

    def f():
        main = emulator.current_stream()
        side.wait_stream(main)
        with emulator.stream(side):
            a = x + 1
            early = side.record_event()
            b = a + 1
        main.wait_event(early)
        c = a * 2
        main.wait_stream(side)
        return b, c

    g, _ = grab(f)
    assert stream_edges(g.nodes) == [(0, 1), (0, 2)]


@pytest.mark.parametrize("op", ["add.Tensor", "mm.default", "cat.default", "index.Tensor", "silu.default"])
def test_results_are_written_in_place_where_torch_can(op):
    packet, overload = op.split(".")
    func = getattr(getattr(torch.ops.aten, packet), overload)
    out = out_variant(func)
    assert out._schema.arguments[-1].is_out and out.overloadpacket is func.overloadpacket


def test_results_are_copied_where_writing_in_place_is_not_safe():
    """binary_cross_entropy uses out= as scratch, and would move it."""
    x, target = torch.rand(6), torch.rand(6)
    assert out_variant(torch.ops.aten.binary_cross_entropy.default) is None
    g, y = grab(lambda: torch.nn.functional.binary_cross_entropy(x, target))
    address = y.data_ptr()
    g.replay()
    assert torch.equal(y, torch.nn.functional.binary_cross_entropy(x, target)) and y.data_ptr() == address


def test_a_dump_is_a_dot_file(tmp_path):
    x, path = torch.ones(4), tmp_path / "graph.dot"
    g, _ = grab(lambda: (x + 1) * 2)
    with pytest.warns(UserWarning, match="debug not enabled"):
        g.debug_dump(str(path))
    assert not path.exists()
    g = emulator.CUDAGraph(keep_graph=True)
    with emulator.graph(g):
        _ = (x + 1) * 2
    g.debug_dump(str(path))
    text = path.read_text()
    assert text.startswith("digraph") and '"0 add"' in text and '"1 mul"' in text and "n0 -> n1;" in text


def test_debug_mode_without_keep_graph_writes_nothing_as_in_torch(tmp_path, monkeypatch):
    monkeypatch.setattr(emulator.CUDAGraph, "_debug", False)
    x, path = torch.ones(4), tmp_path / "graph.dot"
    g = emulator.CUDAGraph()
    g.enable_debug_mode()
    with emulator.graph(g):
        _ = x + 1
    g.debug_dump(str(path))
    assert not path.exists()


def test_compiled_code_is_seen_op_by_op():
    f = torch.compile(lambda x: (x * 2 + 1).relu(), backend="eager")
    x = torch.ones(4)
    f(x)
    g, y = grab(lambda: f(x))
    g.replay()
    assert y.tolist() == [3] * 4 and len(g.nodes) == 3


# ---- what it says
def test_there_is_no_clock():
    a, b = emulator.Event(enable_timing=True), emulator.Event(enable_timing=True)
    a.record()
    b.record()
    with pytest.raises(RuntimeError, match="no clock"):
        a.elapsed_time(b)


def test_an_event_of_a_finished_capture_marks_a_node():
    x, event = torch.ones(4), emulator.Event()

    def f():
        event.record()
        return x + 1

    grab(f)
    for use in (event.wait, event.query, event.synchronize):
        with pytest.raises(RuntimeError, match="last recorded in a capturing stream"):
            use()


def test_capture_end_without_a_beginning():
    with pytest.raises(RuntimeError, match="capture_end.. without a capture_begin"):
        emulator.CUDAGraph().capture_end()


def test_after_the_first_error_nothing_more_is_captured():
    x, seen = torch.ones(4), []
    with pytest.raises(RuntimeError, match="previous error"):
        with emulator.graph(emulator.CUDAGraph()):
            for f in (x.sum().item, lambda: x + 1):
                try:
                    f()
                except RuntimeError as error:
                    seen.append(str(error))
    assert "not permitted when stream is capturing" in seen[0] and "previous error during capture" in seen[1]


def test_errors_add_what_was_emulated():
    x = torch.ones(4)
    with pytest.raises(RuntimeError, match=r"\(emulated: .*cause") as last:
        grab(lambda: x.sum().item())
    first = last.value.__context__
    assert "(emulated: aten._local_scalar_dense must wait" in str(first)
    assert type(first) is type(last.value) is getattr(torch, "AcceleratorError", RuntimeError)


def test_a_name_that_is_not_offered():
    with pytest.raises(
        AttributeError, match="torch.cuda has it, but the emulator does not.*CUDAGraph, Event"
    ):
        _ = emulator.mem_get_info
    with pytest.raises(AttributeError, match="cuda.CudaGraph: no such name"):
        _ = emulator.CudaGraph
    with pytest.raises(AttributeError, match="no 'raw_cuda_graph'"):
        emulator.CUDAGraph().raw_cuda_graph()
    assert not hasattr(emulator, "memory_snapshot") and not emulator.is_available()


ONLY_EMULATED = {"dangling"}
NOT_IN_A_CPU_BUILD = set() if torch.backends.cuda.is_built() else {"register_generator_state"}
NOT_ALIKE = {"debug_dump"}  # its parameters change in torch 2.14


@pytest.mark.parametrize("name", emulator.__all__)
def test_the_surface_is_torch_cudas(name):
    """Every name exists there, and every parameter has the same name and default."""
    theirs, ours = getattr(torch.cuda, name), getattr(emulator, name)
    pairs = [(theirs, ours)]
    if inspect.isclass(ours):
        offered = {m for m in vars(ours) if not m.startswith("_")} - ONLY_EMULATED - NOT_IN_A_CPU_BUILD
        pairs = [
            (getattr(theirs, m), getattr(ours, m)) for m in offered - NOT_ALIKE if callable(getattr(ours, m))
        ]
        pairs += [(theirs.__init__, ours.__init__)] if name in ("graph", "StreamContext") else []
        assert all(hasattr(theirs, m) for m in offered)
    for a, b in pairs:
        try:
            known = inspect.signature(a).parameters
        except ValueError:  # written in C++, without a signature
            continue
        for parameter in inspect.signature(b).parameters.values():
            if parameter.name == "check_input_liveness" and parameter.name not in known:
                continue  # new in torch 2.13
            assert parameter.name in known, (b, parameter)
            assert parameter.default == known[parameter.name].default, (b, parameter)


# ---- what it gets wrong: see the package's docstring, "Not imitated"
def test_unfaithful_a_host_number_from_before_the_capture_is_live():
    x, scale = torch.ones(2), torch.tensor(3.0)
    g, y = grab(lambda: x * scale)
    scale.fill_(5)
    g.replay()
    assert y.tolist() == [5, 5]  # a GPU: 3, frozen


def test_unfaithful_a_host_tensor_from_before_the_capture_can_be_copied():
    x, host = torch.zeros(2), torch.ones(2)
    g, _ = grab(lambda: x.copy_(host))
    g.replay()
    assert x.tolist() == [1, 1]  # a GPU: refused, unless pinned


def test_unfaithful_numpy_is_not_recorded():
    x = torch.zeros(2)
    array = x.numpy()
    g, _ = grab(lambda: (array.__iadd__(1), x.add_(0)))
    assert x.tolist() == [1, 1]  # ran during capture
    g.replay()
    assert x.tolist() == [1, 1]  # and not in the replay


def test_unfaithful_no_kernel_is_launched_twice():
    x = torch.ones(4)
    g, _ = grab(lambda: torch.nn.functional.scaled_dot_product_attention(*[x.view(1, 1, 2, 2)] * 3))
    assert len(g.nodes) == 1  # a GPU: several kernels, their number depends on shape and version
