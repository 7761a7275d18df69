"""What the emulator shows and a GPU does not, and what it gets wrong and says so."""

import contextlib
import gc
import inspect
import pathlib
import re
import threading
import warnings
import weakref

import pytest
import torch
from torch.overrides import _get_current_function_mode_stack
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

from minillm import graphs
from minillm.graphs import emulator, limits, pool_bytes, recover
from minillm.graphs.emulator.borrowed import Borrowed
from minillm.graphs.emulator.memory import Pool, PoolHandle, Segment
from minillm.graphs.emulator.nodes import data_edges, out_variant, races, stream_edges
from minillm.graphs.emulator.recorder import Recorder
from minillm.graphs.emulator.streams import now
from tests.graphs import programs


def grab(f, **options):
    g = emulator.CUDAGraph()
    with emulator.graph(g, **options):
        out = f()
    return g, out


def pool_of(g):
    return Pool.every[g.pool()]


@pytest.fixture(autouse=True)
def emulated(monkeypatch):
    """The emulator's backend, also where there is a GPU; and a test leaves no stream or capture behind."""
    for name, value in (("backend", "emulated"), ("cuda", emulator), ("device", emulator.device)):
        monkeypatch.setattr(graphs, name, value)
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
    emulator.empty_cache()
    gc.disable()  # no reference cycles: at once
    try:
        before = len(Segment.every)
        x = torch.ones(4)
        g, out = grab(lambda: x + 1)
        g.replay()
        handle = g.pool()
        del g
        emulator.empty_cache()
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


def test_check_input_liveness_of_another_graphs_output():
    """torch/utils/_cuda_debug.py asks of every tensor that is not from the graph's own pool."""
    x = torch.ones(4)
    first, y = grab(lambda: x + 1)
    own, z = grab(lambda: y * 2, pool=first.pool(), check_input_liveness=True)
    other, z = grab(lambda: y * 2, check_input_liveness=True)
    other.replay()
    y = None
    own.replay()
    with pytest.raises(RuntimeError, match="CUDA graph replay detected 1 dead tensor"):
        other.replay()


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
    g, out = grab(lambda: torch.empty(nbytes, dtype=torch.uint8, device=emulator.device))
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


# ---- a heap
def test_liveness_knows_the_next_tensor_from_the_first():
    with emulator.heap():
        x = torch.ones(1000, device=emulator.device)
        g, y = grab(lambda: x + 1, check_input_liveness=True)
        g.replay()
        x = None
        for _ in range(2):  # first with the block free, then with another tensor in it
            with pytest.raises(RuntimeError, match="CUDA graph replay detected 1 dead tensor"):
                g.replay()
            squatter = torch.zeros(1000, device=emulator.device)
    assert squatter.tolist() == [0] * 1000


def test_liveness_when_the_heap_is_gone():
    with emulator.heap():
        x = torch.ones(1000, device=emulator.device)
        g, y = grab(lambda: x + 1, check_input_liveness=True)
    gc.collect()
    g.replay()
    x = None
    with pytest.raises(RuntimeError, match="CUDA graph replay detected 1 dead tensor"):
        g.replay()


@pytest.mark.filterwarnings("ignore:The CUDA Graph is empty")
def test_one_heap_at_a_time_and_none_inside_a_capture():
    with emulator.heap():
        with pytest.raises(RuntimeError, match="inside another heap"):
            with emulator.heap():
                pass
    with emulator.graph(emulator.CUDAGraph()):
        with pytest.raises(RuntimeError, match="inside a capture"):
            with emulator.heap():
                pass


def test_tensors_outlive_their_heap_and_memory_goes_with_them():
    gc.collect()
    before = len(Segment.every)
    with emulator.heap() as heap:
        x = torch.ones(4, device=emulator.device)
        assert heap.device.allocated() == 512 and heap.on_device(x)
    assert x.tolist() == [1] * 4 and (x + torch.ones(4)).tolist() == [2] * 4
    del x, heap
    gc.collect()
    assert len(Segment.every) == before


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


# ---- Ctrl-C and worse
def interrupted_at(monkeypatch, owner, name, times):
    """KeyboardInterrupt instead of the ``times``-th call of that method."""
    real, left = getattr(owner, name), [times]

    def method(*args, **options):
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt
        return real(*args, **options)

    monkeypatch.setattr(owner, name, method)


@pytest.mark.filterwarnings("ignore:The CUDA Graph is empty")
@pytest.mark.parametrize("times", [1, 2, 3])
@pytest.mark.parametrize("method", ["__enter__", "__exit__", "record"])
def test_after_ctrl_c_anywhere_recover_brings_everything_back(monkeypatch, method, times):
    x = torch.ones(2, 2)
    with monkeypatch.context() as patch, contextlib.suppress(KeyboardInterrupt):
        interrupted_at(patch, Recorder, method, times)
        grab(lambda: torch.nn.functional.linear(x, x).relu() + 1)
    assert recover() is None and gc.isenabled() and now.stream is emulator.default_stream()
    assert not _get_current_dispatch_mode_stack() and not _get_current_function_mode_stack()
    assert x.sum().item() == 4 and x[x > 0].numel() == 4  # nothing waits in the way of a capture
    g, y = grab(lambda: x + 1)
    g.replay()
    assert y.tolist() == [[2, 2], [2, 2]] and len(g.nodes) == 1


def test_recover_ends_a_capture_that_was_left_open():
    x, g = torch.ones(4), emulator.CUDAGraph()
    emulator.set_stream(emulator.Stream())
    g.capture_begin()
    _ = x + 1
    assert recover() is None
    assert now.capture is None and now.stream is emulator.default_stream()
    with pytest.raises(RuntimeError, match="without a preceding successful capture"):
        g.replay()


def test_a_graph_destroyed_during_a_capture_is_named_as_the_cause():
    x = torch.ones(4)
    old = [grab(lambda: x + 1)[0]]
    with pytest.raises(RuntimeError, match="what broke it was: a graph was destroyed while this one"):
        grab(lambda: (old.clear(), x + 1))


def test_threads_have_streams_of_their_own():
    inside, leave, seen = threading.Event(), threading.Event(), []

    def other():
        with emulator.stream(emulator.Stream()):
            inside.set()
            leave.wait()
            seen.append(emulator.is_current_stream_capturing())

    thread = threading.Thread(target=other)
    thread.start()
    inside.wait()
    with emulator.stream(emulator.Stream()) as _:
        leave.set()
        thread.join()
    assert now.stream is emulator.default_stream() and seen == [False]


@pytest.mark.parametrize(("mode", "breaks"), [("global", True), ("thread_local", False), ("relaxed", False)])
def test_a_wait_in_another_thread(mode, breaks):
    x, said = torch.ones(4), []

    def wait():
        try:
            emulator.synchronize()
        except RuntimeError as error:
            said.append(str(error))

    def f():
        thread = threading.Thread(target=wait)
        thread.start()
        thread.join()
        return x + 1

    if breaks:
        with pytest.raises(RuntimeError, match="previous error during capture"):
            grab(f, capture_error_mode=mode)
    else:
        grab(f, capture_error_mode=mode)
    assert bool(said) == breaks


def test_a_stream_is_a_context_too():
    one, two = emulator.Stream(), emulator.Stream(priority=-1)
    with one, two, one:
        assert now.stream is one
    assert now.stream is emulator.default_stream() and two.priority == -1


@pytest.mark.parametrize("thing", [emulator.Stream(), emulator.Event()])
def test_what_a_stream_or_event_lacks_is_said(thing):
    with pytest.raises(AttributeError, match="the emulator's .* has no 'cuda_stream'.*run this on a GPU"):
        _ = thing.cuda_stream


def test_no_annotations():
    with pytest.raises(NotImplementedError, match="leave enable_annotations out"):
        emulator.graph(emulator.CUDAGraph(), enable_annotations=True)


def test_out_of_memory_is_torchs_error():
    with pytest.raises(torch.OutOfMemoryError, match="emulated"):
        Pool().empty((1 << 62,), (1,), torch.uint8, None)


UNLIKE_OTHERS = {
    "sparse_coo": lambda: torch.eye(2).to_sparse(),
    "sparse_csr": lambda: torch.eye(2).to_sparse_csr(),
    "quantized": lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", UNLIKE_OTHERS)
def test_tensors_that_are_not_dense_are_refused_by_name(kind):
    t = UNLIKE_OTHERS[kind]()
    with pytest.raises(NotImplementedError, match=f"dense tensors only and met a {kind} one of shape"):
        grab(lambda: t * 2)


@pytest.mark.filterwarnings("ignore:The CUDA Graph is empty")
def test_the_cache_of_a_heap_is_emptied():
    with emulator.heap() as heap:
        x, y = (torch.ones(3 << 20, device=emulator.device) for _ in "xy")
        del x
        emulator.empty_cache()
        assert pool_bytes(heap.device.handle) == 12 << 20 and y[0].item() == 1
        del y
        grab(lambda: None)  # every capture begins with it
        assert pool_bytes(heap.device.handle) == 0


def test_functorch_in_a_heap():
    with emulator.heap():
        x = torch.arange(3.0, device=emulator.device)
        assert torch.func.vmap(lambda t: t * 2)(x).tolist() == [0, 2, 4]
        assert torch.func.grad(lambda t: (t * t).sum())(x).tolist() == [0, 2, 4]


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
        with pytest.raises(RuntimeError, match="CUDA error: invalid argument"):
            use()


def test_capture_end_without_a_beginning():
    with pytest.raises(RuntimeError, match="cannot be performed in the present state"):
        emulator.CUDAGraph().capture_end()
    with emulator.stream(emulator.Stream()):
        with pytest.raises(RuntimeError, match="Capture must end on the same stream"):
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
    with pytest.raises(
        RuntimeError, match=r"\(emulated: what broke it was: .*_local_scalar_dense must"
    ) as last:
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


ONLY_EMULATED = {"dangling", "nodes"}
NEW = {"check_input_liveness", "enable_annotations"}  # in torch 2.13 and 2.12
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
            if (
                parameter.name in ("check_input_liveness", "enable_annotations")
                and parameter.name not in known
            ):
                continue  # new in torch 2.13 and 2.12
            assert parameter.name in known, (b, parameter)
            assert parameter.default == known[parameter.name].default, (b, parameter)


# ---- what it gets wrong: see the package's docstring, "Not imitated"
def test_unfaithful_a_host_number_from_before_the_capture_is_live():
    """Item 3."""
    x, scale = torch.ones(2), torch.tensor(3.0)
    g, y = grab(lambda: x * scale)
    scale.fill_(5)
    g.replay()
    assert y.tolist() == [5, 5]  # a GPU: 3, frozen


def test_unfaithful_a_host_tensor_from_before_the_capture_can_be_copied():
    """Item 3."""
    x, host = torch.zeros(2), torch.ones(2)
    g, _ = grab(lambda: x.copy_(host))
    g.replay()
    assert x.tolist() == [1, 1]  # a GPU: refused, unless pinned


def test_unfaithful_numpy_is_not_recorded():
    """Item 2."""
    x = torch.zeros(2)
    array = x.numpy()
    g, _ = grab(lambda: (array.__iadd__(1), x.add_(0)))
    assert x.tolist() == [1, 1]  # ran during capture
    g.replay()
    assert x.tolist() == [1, 1]  # and not in the replay


def test_unfaithful_no_kernel_is_launched_twice():
    """Item 2."""
    x = torch.ones(4)
    g, _ = grab(lambda: torch.nn.functional.scaled_dot_product_attention(*[x.view(1, 1, 2, 2)] * 3))
    assert len(g.nodes) == 1  # a GPU: several kernels, their number depends on shape and version


def test_unfaithful_there_is_no_driver_to_ask_for_free_memory():
    """Item 9: on a GPU every capture takes some, beside its pool."""
    assert not hasattr(emulator, "mem_get_info")


def test_unfaithful_the_garbage_collector_waits_for_the_end_of_a_capture():
    """Item 13: on a GPU it may destroy an old graph in the middle, which breaks the capture."""
    x, was = torch.ones(4), gc.isenabled()
    for enabled in (True, False):
        (gc.enable if enabled else gc.disable)()
        try:
            g, inside = grab(lambda: (x.add_(1), gc.isenabled())[1])
            with pytest.raises(ZeroDivisionError):
                grab(lambda: (x.add_(1), 1 / 0))
            assert not inside and gc.isenabled() == enabled
        finally:
            (gc.enable if was else gc.disable)()


def test_every_item_of_the_list_has_a_test():
    """A program that must differ from what a GPU recorded, or a test called unfaithful."""
    items = set(re.findall(r"^(\d+)\. ", limits(), re.M))
    here = pathlib.Path(__file__).parent
    sources = "".join(file.read_text("utf-8") for file in here.glob("test_*.py"))
    tested = set(re.findall(r'def test_unfaithful_.*\n    """(Item \d+)', sources))
    tested |= {p.unfaithful for p in programs.load().values() if p.unfaithful}
    numbers = {re.match("item (\\d+)", text, re.I)[1] for text in tested}
    assert numbers == items
