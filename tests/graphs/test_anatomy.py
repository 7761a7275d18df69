"""Nodes, edges and addresses of a captured graph, on both backends; CUDA's structures also through a fake."""

import dataclasses
import re
import struct
import sys
import types

import pytest
import torch
from fake_driver import FakeDriver, kernel, memcpy

from minillm import graphs
from minillm.graphs import emulator
from minillm.graphs.anatomy import Anatomy, Node, anatomy, driver
from minillm.graphs.anatomy.demangle import demangle
from minillm.graphs.anatomy.draw import BOX
from minillm.graphs.anatomy.kernel_names import short_name
from minillm.graphs.anatomy.layout import lay_out
from minillm.graphs.anatomy.on_cuda import read, topological
from minillm.graphs.anatomy.parameters import DeviceMemory
from minillm.graphs.emulator.extents import extent


@pytest.fixture
def look(backend):
    """look(f) -> (anatomy of f's graph, what f returned, the graph)."""
    if backend.name == "cuda":
        pytest.importorskip("cuda.bindings", reason="reading a graph on CUDA needs cuda-bindings")

    def look(f):
        graphs.warm_up(f)
        g = backend.cuda.CUDAGraph(keep_graph=True)
        with backend.cuda.graph(g):
            out = f()
        return anatomy(g), out, g

    return look


def diamond(cuda, side, x, late=False):
    def f():
        main = cuda.current_stream()
        a = x + 1
        side.wait_stream(main)
        with cuda.stream(side):
            b = a * 2
        c = a * 3
        if not late:
            main.wait_stream(side)
        d = b + c
        main.wait_stream(side)
        return a, b, c, d

    return f


# ---- both backends
def test_a_chain_and_the_addresses_in_it(look, device):
    x, y = torch.ones(8, device=device), torch.ones(8, device=device)
    a, (h, out), _ = look(lambda: (h := x + 1, h * y))
    first, last = a.nodes
    assert [n.index for n in a.nodes] == [0, 1] and a.edges == [(0, 1)]
    assert [n.kind for n in a.nodes] == ["kernel"] * 2
    assert first.name.split(" ")[0] == "add" and last.name.split(" ")[0] == "mul"
    assert first.addresses == (h.data_ptr(), x.data_ptr())
    assert last.addresses == (out.data_ptr(), h.data_ptr(), y.data_ptr())
    assert a.where(x) == [first] and a.where(y) == a.where(out) == [last] and a.where(h) == [first, last]
    assert a.where(torch.ones(8, device=device)) == a.where(x[:0]) == []


def test_an_address_inside_a_tensor_is_found(look, device):
    x = torch.ones(4, 8, device=device)
    a, _, _ = look(lambda: (x[2] + 1, x[:2] + 1))
    assert a.where(x) == a.nodes and a.where(x[2]) == [a.nodes[0]] and a.where(x[:2]) == [a.nodes[1]]
    assert a.where(x[3]) == []


@pytest.mark.parametrize("late", [False, True])
def test_a_fork_and_its_join(look, cuda, device, side, late):
    x = torch.ones(8, device=device)
    a, (_, b, c, d), _ = look(diamond(cuda, side, x, late))
    assert a.edges == [(0, 1), (0, 2), (1, 3), (2, 3)][: 2 if late else 4] + [(2, 3)] * late
    assert a.nodes[3].addresses == (d.data_ptr(), b.data_ptr(), c.data_ptr())
    if a.backend == "emulated":
        assert a.data_edges == [(0, 1), (0, 2), (1, 3), (2, 3)] and a.races == [(1, 3)] * late
    else:
        assert a.data_edges is None and a.races is None


def test_a_copy_of_all_bytes_is_a_memcpy_and_any_other_a_kernel(look, device):
    x, y, z = (
        torch.ones(4, 4, device=device),
        torch.ones(4, 4, device=device),
        torch.ones(4, 8, device=device),
    )

    def f():
        y.copy_(x)
        y.copy_(x.t())
        z[:, :4].copy_(x)
        y.t().copy_(x.t())
        return x.clone(), x.to(torch.float64)

    a, (clone, double), _ = look(f)
    assert [n.kind for n in a.nodes] == ["memcpy", "kernel", "kernel", "memcpy", "memcpy", "kernel"]
    assert a.nodes[0].addresses == a.nodes[3].addresses == (y.data_ptr(), x.data_ptr())
    assert a.nodes[4].addresses == (clone.data_ptr(), x.data_ptr())
    assert set(a.kernels.values()) <= {1, 2, 3} and sum(a.kernels.values()) == 3
    assert str(a) == "6 nodes (3 kernels, 3 memcpy), 5 edges"


def test_a_copy_between_the_same_columns_is_a_kernel():
    x, y, g = torch.ones(4, 8), torch.ones(4, 8), emulator.CUDAGraph(keep_graph=True)
    with emulator.graph(g):
        x[:, :4].copy_(y[:, :4])  # the bytes in between are not to be touched
        x[:2].copy_(y[2:])
    assert [n.kind for n in anatomy(g).nodes] == ["kernel", "memcpy"]


def test_kernels_are_counted_most_frequent_first(look, device):
    x = torch.ones(8, device=device)
    a, _, _ = look(lambda: ((x + 1) * x * x * x).sigmoid())
    assert [name.split(" ")[0] for name in a.kernels] == ["mul", "add", "sigmoid"]
    assert list(a.kernels.values()) == [3, 1, 1]


def test_a_launch_has_a_shape_on_cuda_alone(look, backend, device):
    x = torch.ones(1 << 16, device=device)
    a, _, _ = look(lambda: x + 1)
    (node,) = a.nodes
    if backend.name == "emulated":
        assert node.grid is node.block is node.shared_bytes is None
        assert node.full_name == "aten::add.Tensor"
        assert [(s.shape, s.dtype) for s in node.reads] == [((1 << 16,), torch.float32)]
        assert [s.start for s in node.writes + node.reads] == list(node.addresses)
    else:
        threads = node.grid[0] * node.block[0]
        assert 1 << 13 <= threads <= 1 << 17 and node.grid[1:] == node.block[1:] == (1, 1)
        assert node.shared_bytes == 0 and node.reads is node.writes is None
        assert "vectorized_elementwise_kernel" in node.full_name


def test_a_matrix_product_holds_its_operands(look, device, backend):
    """On CUDA cuBLAS may pass its parameters as one buffer."""
    dtype = torch.float32 if backend.name == "emulated" else torch.float16
    x, w = torch.ones(16, 64, device=device, dtype=dtype), torch.ones(64, 64, device=device, dtype=dtype)
    a, out, _ = look(lambda: x @ w)
    assert a.where(x) and a.where(x) == a.where(w) and a.where(out)


def test_looking_changes_nothing(look, cuda, device, side):
    x = torch.ones(8, device=device)
    a, (*_, out), g = look(diamond(cuda, side, x))
    if a.backend == "emulated":
        assert not g._instantiated
    elif hasattr(g, "raw_cuda_graph_exec"):
        with pytest.raises(RuntimeError):
            g.raw_cuda_graph_exec()
    for value in (2.0, 3.0):
        x.fill_(value)
        g.replay()
        cuda.synchronize()
        assert out.tolist() == [5 * (value + 1)] * 8
        assert anatomy(g).nodes == a.nodes and anatomy(g).edges == a.edges
    g.instantiate()
    assert anatomy(g).nodes == a.nodes


def test_without_keep_graph_it_says_what_to_do(cuda, device):
    x, g = torch.ones(8, device=device), cuda.CUDAGraph()
    x + 1
    for _ in range(2):  # before the capture and after
        with pytest.raises(RuntimeError, match=r"keep_graph=True.*CUDAGraph\(keep_graph=True\) and capture"):
            anatomy(g)
        if not _:
            with cuda.graph(g):
                x + 1


def test_without_a_capture_it_says_so(cuda, device, look):
    with pytest.raises(RuntimeError, match="nothing is captured"):
        anatomy(cuda.CUDAGraph(keep_graph=True))
    x = torch.ones(8, device=device)
    _, _, g = look(lambda: x + 1)
    g.reset()
    with pytest.raises(RuntimeError, match="nothing is captured"):
        anatomy(g)


def test_wrong_questions(look, device):
    with pytest.raises(TypeError, match=r"got int; expected a captured cuda\.CUDAGraph"):
        anatomy(3)
    x = torch.ones(8, device=device)
    a, _, _ = look(lambda: x + 1)
    with pytest.raises(TypeError, match="got int"):
        a.where(x.data_ptr())
    with pytest.raises(ValueError, match="on meta, but this graph"):
        a.where(torch.ones(8, device="meta"))


def test_an_empty_graph(look):
    with pytest.warns(UserWarning, match="empty"):
        a, _, _ = look(lambda: None)
    assert (a.nodes, a.edges, a.kernels, str(a)) == ([], [], {}, "0 nodes, 0 edges")
    assert repr(a) and a._repr_markdown_() and a.dot().startswith("digraph")


def test_the_table(look, device):
    x = torch.ones(8, device=device)
    a, _, _ = look(lambda: (x + 1) * x)
    text, markdown = repr(a).splitlines(), a._repr_markdown_().splitlines()
    assert text[0] == str(a) and len(text) == 4 and text[3].endswith("  0")
    assert all(f"{address:#x}" in text[2] for address in a.nodes[0].addresses)
    table = markdown[2:]
    assert len(table) == 4 and len({line.count("|") for line in table}) == 1
    assert table[1].replace("| ", "").replace(" |", "").split() == ["---"] * (table[0].count("|") - 1)


def test_a_long_table_shows_both_ends(look, device):
    x = torch.zeros(8, device=device)

    def f():
        for _ in range(50):
            x.add_(1)

    a, _, _ = look(f)
    rows = [line.split()[0] for line in repr(a).splitlines()[2:]]
    assert rows == [*map(str, range(10)), "…", "46", "47", "48", "49"] and "… 36 more" in repr(a)
    table = a._repr_markdown_().splitlines()[4:]
    assert [line.split()[1] for line in table] == rows and len({line.count("|") for line in table}) == 1


def test_a_long_name_is_cut_in_the_table_and_a_bar_escaped():
    a = Anatomy([Node(0, "kernel", "w" * 200, ""), Node(1, "kernel", "a|b", "")], [], "cuda")
    assert max(map(len, repr(a).splitlines())) < 120 and "www…" in repr(a)
    assert r"a\|b" in a._repr_markdown_() and a.kernels == {"w" * 200: 1, "a|b": 1}


# ---- Graphviz, layout, drawing
NODE = re.compile(r'  n(\d+) \[label=("(?:[^"\\]|\\.)*"), shape=\w+\];')
EDGE = re.compile(r'  n(\d+) -> n(\d+)( \[label="race", (?:\w+=(?:"[^"]*"|\w+)(?:, )?)+\])?;')


def parsed(dot):
    """Labels, edges, races of a DOT text; fails on a line that is none of these."""
    first, style, *lines, last = dot.splitlines()
    assert (first, last) == ("digraph cuda_graph {", "}") and style.startswith("  node [")
    labels, edges, raced = {}, [], []
    for line in lines:
        if node := NODE.fullmatch(line):
            labels[int(node[1])] = node[2]
        else:
            edge = EDGE.fullmatch(line)
            assert edge, line
            (raced if edge[3] else edges).append((int(edge[1]), int(edge[2])))
    return labels, edges, raced


def test_dot(look, cuda, device, side):
    x = torch.ones(8, device=device)
    a, _, _ = look(diamond(cuda, side, x, late=True))
    labels, edges, raced = parsed(a.dot())
    assert [label.split()[1].strip('"') for label in labels.values()] == ["add", "mul", "mul", "add"]
    assert edges == a.edges and raced == (a.races or [])


def test_dot_escapes_what_a_name_may_hold():
    nodes = [Node(0, "kernel", 'f<"a\\b">', ""), Node(1, "memset", "memset", "")]
    labels, edges, _ = parsed(Anatomy(nodes, [(0, 1)], "cuda").dot())
    assert "f<" in repr(Anatomy(nodes, [(0, 1)], "cuda"))
    assert labels == {0: r'"#0 f<\"a\\b\">"', 1: r'"#1 memset\nmemset"'} and edges == [(0, 1)]


def test_layout_draws_a_fork_as_a_fork():
    diamond = lay_out(4, [(0, 1), (0, 2), (1, 3), (2, 3)])
    assert diamond.places == [(0, 0), (-0.5, 1), (0.5, 1), (0, 2)] and diamond.columns == 2
    uneven = lay_out(5, [(0, 1), (0, 3), (1, 2), (2, 4), (3, 4)])  # 3 beside 1, its edge beside 2
    assert uneven.places == [(0, 0), (-0.5, 1), (-0.5, 2), (0.5, 1), (0, 3)]
    assert uneven.paths[3, 4] == [(0.5, 1), (0.5, 2), (0, 3)]
    straight = lay_out(4, [(0, 3), (1, 2)])  # not crossed
    assert straight.places == [(-0.5, 0), (0.5, 0), (0.5, 1), (-0.5, 1)]
    assert lay_out(0, []).places == [] and lay_out(1, []).places == [(0, 0)]


def test_layout_of_random_graphs():
    hypothesis = pytest.importorskip("hypothesis", reason="a bare GPU machine may lack it")
    from hypothesis import strategies as st

    @hypothesis.settings(deadline=None, max_examples=60)
    @hypothesis.given(st.sets(st.tuples(st.integers(0, 7), st.integers(0, 7)).filter(lambda e: e[0] < e[1])))
    def check(edges):
        layout = lay_out(8, edges)
        assert set(layout.paths) == edges
        stops = layout.places + [stop for path in layout.paths.values() for stop in path[1:-1]]
        assert len(set(stops)) == len(stops)  # nothing lies on anything else
        for (i, j), path in layout.paths.items():
            assert (path[0], path[-1]) == (layout.places[i], layout.places[j])
            assert [layer for _, layer in path] == list(range(path[0][1], path[-1][1] + 1))

    check()


def texts_of(ax):
    return [text.get_text() for text in ax.texts]


def test_drawing(look, cuda, device, side):
    pytest.importorskip("matplotlib", reason="a bare GPU machine may lack it")
    x = torch.ones(8, device=device)
    a, _, _ = look(diamond(cuda, side, x, late=True))
    ax = a.draw()
    ax.figure.canvas.draw()
    texts = texts_of(ax)
    assert [t for t in texts if t.startswith("#")] == ["#0  add", "#1  mul", "#2  mul", "#3  add"]
    assert texts.count("race") == len(a.races or []) and ax.get_title() == str(a)
    boxes = {t: ax.texts[i].get_position() for i, t in enumerate(texts) if t.startswith("#")}
    (x0, y0), (x1, y1), (x2, y2), (x3, y3) = boxes.values()
    assert y0 > y1 == y2 > y3 and x1 < x0 == x3 < x2
    arrows = [p for p in ax.patches if "FancyArrow" in type(p).__name__]
    assert len(arrows) == len(a.edges) + len(a.races or [])
    given = ax.figure.add_axes((0, 0, 0.2, 0.2))
    assert a.draw(given) is given and max(t.get_fontsize() for t in given.texts) < 8


LONG = [
    "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x64",
    "compute_WWWW_MMMM_WWWW (vectorized_elementwise)",
    "add",
]


def test_words_fit_into_their_boxes():
    pytest.importorskip("matplotlib", reason="a bare GPU machine may lack it")
    big = tuple(
        extent(torch.zeros(128, 4096, device="meta").as_strided((128, 4096), (1, 1))) for _ in range(5)
    )
    nodes = [Node(i, "kernel", name, name, (65535, 65535, 64), (1024, 1, 1)) for i, name in enumerate(LONG)]
    nodes += [Node(1000, "memcpy", name, name, reads=big, writes=big) for name in LONG]
    a = Anatomy([dataclasses.replace(node, index=i) for i, node in enumerate(nodes)], [], "cuda")
    ax = a.draw()
    renderer = ax.figure.canvas.get_renderer()
    widths = {t.get_text(): t.get_window_extent(renderer).width / ax.figure.dpi for t in ax.texts}
    assert len(widths) >= 8 and max(widths.values()) <= BOX[0]
    assert "#0  cudnn_generated_fo" in " ".join(widths)  # no shorter than it must be


def test_a_long_graph_is_drawn_from_both_ends_and_where_it_races():
    pytest.importorskip("matplotlib", reason="a bare GPU machine may lack it")
    x, side, g = torch.zeros(8), emulator.Stream(), emulator.CUDAGraph(keep_graph=True)
    with emulator.graph(g):
        for i in range(100):
            if i == 60:
                side.wait_stream(emulator.current_stream())
                with emulator.stream(side):
                    x.mul_(2)
                    y = x + 1  # noqa: F841
                x.add_(2)
                emulator.current_stream().wait_stream(side)
            x.add_(1)
    a = anatomy(g)
    texts = texts_of(a.draw())
    drawn = [int(t.split()[0][1:]) for t in texts if t.startswith("#")]
    assert drawn == [*range(5), 60, 61, 62, *range(98, 103)]
    hidden = [int(t.split()[1]) for t in texts if t.startswith("…")]
    assert hidden == [55, 35] and len(drawn) + sum(hidden) == len(a.nodes) == 103
    assert texts.count("race") == len(a.races) == 2


# ---- CUDA's structures, through a driver made up
MEMORY = DeviceMemory([(0x9000, 0xA000), (0x1000, 0x2000)])


def words(*values):
    return struct.pack(f"<{len(values)}Q", *values)


def test_pointers_are_the_words_that_lie_in_memory():
    array_in_a_struct = words(7, 0x1000, 0x9FFF, 0xA000, 0xFFF, 0x2000)
    unaligned = b"\0\0\0\0" + words(0x1800) + b"\0\0\0\0"
    parameters = [struct.pack("<i", 0x1400), words(0x9000), unaligned, array_in_a_struct]
    layout = {2: (b"_Z1fv", [4, 8, 16, 48])}
    found = read(1, FakeDriver([kernel(*parameters, func=2)], kernels=layout), MEMORY).nodes[0]
    assert found.addresses == (0x9000, 0x1000, 0x9FFF)


@pytest.mark.parametrize("how", [{"func": 2}, {"kern": 3}, {"func": 2, "kern": 3}])
@pytest.mark.parametrize("through_extra", [False, True])
def test_functions_and_kernels_and_both_ways_to_pass_parameters(how, through_extra):
    node = kernel(
        words(0x1008),
        words(0x9008),
        through_extra=through_extra,
        grid=(4, 2, 1),
        block=(64, 1, 2),
        shared=48,
        **how,
    )
    driver = FakeDriver([node, node], kernels=dict.fromkeys((2, 3), (b"nvjet_tst_64x8", [8, 8])))
    a = read(1, driver, MEMORY)
    assert [n.index for n in a.nodes] == [0, 1]
    for n in a.nodes:
        assert (n.kind, n.name, n.full_name) == ("kernel", "nvjet_tst_64x8", "nvjet_tst_64x8")
        assert (n.grid, n.block, n.shared_bytes) == ((4, 2, 1), (64, 1, 2), 48)
        assert n.addresses == (0x1008, 0x9008)
    assert driver.asked == [how.get("func") or 3]  # once a kernel, not once a node


def test_copies_sets_and_the_other_kinds():
    memset = types.SimpleNamespace(dst=0x1000, elementSize=4, width=3, height=1, value=0)
    nodes = [
        memcpy((2, 0x1000), (2, 0x9000)),
        memcpy((1, 0x77), (2, 0x9000)),
        memcpy((4, 0x1000), (4, 0x77)),
        ("MEMSET", memset),
        ("HOST", None),
        ("EMPTY", None),
        ("EVENT_RECORD", None),
        ("WAIT_EVENT", None),
        ("GRAPH", 2),
    ]
    a = read(1, FakeDriver(nodes, graphs={2: ([("EMPTY", None)] * 3, [])}), MEMORY)
    assert [(n.kind, n.name, n.addresses) for n in a.nodes] == [
        ("memcpy", "memcpy DtoD", (0x9000, 0x1000)),
        ("memcpy", "memcpy HtoD", (0x9000, 0x77)),
        ("memcpy", "memcpy DtoH", (0x77, 0x1000)),
        ("memset", "memset", (0x1000,)),
        ("host", "host", ()),
        ("empty", "empty", ()),
        ("event record", "event record", ()),
        ("event wait", "event wait", ()),
        ("child graph", "graph of 3 nodes", ()),
    ]
    assert (
        a.nodes[0].full_name == "memcpy DtoD, 16 bytes" and a.nodes[3].full_name == "memset to 0x0, 12 bytes"
    )
    assert repr(a) and parsed(a.dot())[0].keys() == set(range(9))


@pytest.mark.parametrize("edge_data", [True, False], ids=["bindings 13", "bindings 12"])
def test_nodes_come_after_what_they_wait_for(edge_data):
    """The driver promises no order of nodes or edges."""
    a = read(
        1,
        FakeDriver([("EMPTY", None), ("HOST", None), ("EMPTY", None)], [(2, 0), (0, 1)], edge_data=edge_data),
        MEMORY,
    )
    assert [n.kind for n in a.nodes] == ["empty", "empty", "host"] and a.edges == [(0, 1), (1, 2)]
    assert topological(4, {(3, 0), (3, 2)}) == [1, 3, 0, 2]


def test_the_drivers_errors_are_not_swallowed():
    fake = FakeDriver([kernel(func=2)], kernels={2: (b"f", [])})
    fake.cuFuncGetParamInfo = lambda *args: (201, 0, 0)
    with pytest.raises(RuntimeError, match="cuFuncGetParamInfo failed: 201"):
        read(1, fake, MEMORY)

    def not_found(*args):
        raise RuntimeError('Function "cuFuncGetParamInfo" not found')

    fake.cuFuncGetParamInfo = not_found
    with pytest.raises(RuntimeError, match="driver is too old for cuFuncGetParamInfo.*12.4"):
        read(1, fake, MEMORY)


def test_without_cuda_bindings_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    with pytest.raises(
        ImportError, match=r"not installed: run `pip install .cuda-bindings==.*replay.*EMULATED|emulated"
    ):
        driver.load()
    old = types.ModuleType("cuda.bindings")
    old.driver = types.SimpleNamespace(cuGraphGetNodes=1, cuGraphGetEdges=1, cuFuncGetName=1)
    monkeypatch.setitem(sys.modules, "cuda", types.ModuleType("cuda"))
    monkeypatch.setitem(sys.modules, "cuda.bindings", old)
    with pytest.raises(
        ImportError, match=r"too old, it has no cuFuncGetParamInfo; expected 12\.4.*pip install"
    ):
        driver.load()
    old.driver.cuFuncGetParamInfo = 1
    assert driver.load() is old.driver


RAW = "You cannot access the raw cudaGraph_t instance "


@pytest.mark.parametrize(
    "torch_says, we_say",
    [
        (
            RAW + "unless CUDAGraph was initialized with keep_graph=true",
            "CUDAGraph(keep_graph=True) and capture again",
        ),
        (
            RAW + "until capture_end() has been called",
            "nothing is captured",
        ),
        ("CUDA error: an illegal memory access", "illegal memory access"),
        (None, "expected torch 2.8"),
    ],
)
def test_torchs_refusals_are_translated(monkeypatch, torch_says, we_say):
    class Real:
        def __getattr__(self, name):
            if torch_says is None or name != "raw_cuda_graph":
                raise AttributeError(name)

            def refuse():
                raise RuntimeError(torch_says)

            return refuse

    monkeypatch.setattr(torch.cuda, "CUDAGraph", Real)
    with pytest.raises(RuntimeError, match=re.escape(we_say)):
        anatomy(Real())


# ---- names, as an H200 with torch 2.11 has them
ADD = (
    "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_21CUDAFunctorOnSelf_addIfEE"
    "St5arrayIPcLm2EEEEviT0_T1_"
)


@pytest.mark.skipif(sys.platform != "linux", reason="only there the C++ library's name is known for sure")
def test_names_are_demangled():
    plain = demangle(ADD)
    assert plain.startswith(
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctorOnSelf_add"
    )
    assert short_name(plain) == "add (vectorized_elementwise)"
    assert demangle("_Z!") == "_Z!" and demangle("nvjet_tst") == "nvjet_tst"


def test_where_nothing_demangles_names_stay_as_they_are(monkeypatch):
    module = sys.modules["minillm.graphs.anatomy.demangle"]
    monkeypatch.setattr(module, "_demangler", lambda: None)
    demangle.cache_clear()
    assert demangle(ADD) == ADD and short_name(ADD) == ADD
    demangle.cache_clear()


N = "at::native::"
VEC, END = f"void {N}vectorized_elementwise_kernel<4, ", ", std::array<char*, 2ul> >(int)"
LAMBDA = "::{lambda()#2}::operator()() const::{lambda(float)#1}"
REDUCE = f"void {N}reduce_kernel<512, 1, {N}ReduceOp<float, "


@pytest.mark.parametrize(
    "short, full",
    [
        (
            "mul (vectorized_elementwise)",
            f"{VEC}{N}AUnaryFunctor<float, float, float, {N}binary_internal::MulFunctor<float> >{END}",
        ),
        ("fill (vectorized_elementwise)", f"{VEC}{N}FillFunctor<float>{END}"),
        (
            "pow_tensor_scalar (vectorized_elementwise)",
            f"{VEC}{N}(anonymous namespace)::pow_tensor_scalar_kernel_impl<float, float>"
            f"(at::TensorIteratorBase&, float)::{{lambda(float)#1}}{END}",
        ),
        (
            "rsqrt (vectorized_elementwise)",
            f"{VEC}{N}rsqrt_kernel_cuda(at::TensorIteratorBase&){LAMBDA}{END}",
        ),
        (
            "maximum (vectorized_elementwise)",
            f"{VEC}{N}BinaryFunctor<float, float, float, "
            f"{N}maximum_kernel_cuda(at::TensorIteratorBase&){LAMBDA}>{END}",
        ),
        (
            "clamp_scalar (vectorized_elementwise)",
            f"{VEC}{N}(anonymous namespace)::launch_clamp_scalar(at::TensorIteratorBase&, c10::Scalar)"
            f"{LAMBDA}{END}",
        ),
        (
            "direct_copy (elementwise)",
            f"void {N}elementwise_kernel<128, 2, {N}gpu_kernel_impl_nocast<"
            f"{N}direct_copy_kernel_cuda(at::TensorIteratorBase&){LAMBDA}>(at::TensorIteratorBase&)>(int)",
        ),
        (
            "sum (reduce)",
            f"{REDUCE}{N}func_wrapper_t<float, {N}sum_functor<float, float, float>::operator()"
            "(at::TensorIterator&)::{lambda(float, float)#1}>, unsigned int, float, 4, 4> >()",
        ),
        ("mean (reduce)", f"{REDUCE}{N}MeanOps<float, float, float, float>, unsigned int, float, 4, 4> >()"),
        ("max_nan (reduce)", f"{REDUCE}{N}func_wrapper_t<float, {N}MaxNanFunctor<float> >, float, 4, 4> >()"),
        (
            "arange (elementwise_kernel_with_index)",
            f"void (anonymous namespace)::elementwise_kernel_with_index<int, "
            f"{N}arange_cuda_out(c10::Scalar const&){LAMBDA}>(int)",
        ),
        (
            "normal (distribution_elementwise_grid_stride)",
            f"void {N}(anonymous namespace)::distribution_elementwise_grid_stride_kernel<float, 4, "
            f"{N}templates::cuda::normal_and_transform<float, float, at::CUDAGeneratorImpl*, "
            f"{N}templates::cuda::normal_kernel<at::CUDAGeneratorImpl*>(at::TensorBase const&)>(int)",
        ),
        (
            "vectorized_layer_norm_kernel",
            f"void {N}(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float, true>(int)",
        ),
        ("gemmSN_NN_kernel", "void gemmSN_NN_kernel<float, 128, 2, 4, false>(cublasGemmSmallNParams<float>)"),
        ("cutlass_80_gemm_relu_64x64", "void cutlass::Kernel2<cutlass_80_gemm_relu_64x64>(Params)"),
        ("nvjet_sm90_tst_64x8_1x1_h_bz_NNT", "nvjet_sm90_tst_64x8_1x1_h_bz_NNT"),
        ("triton_poi_fused_add_0", "triton_poi_fused_add_0"),
    ],
)
def test_short_names(short, full):
    assert short_name(full) == short
