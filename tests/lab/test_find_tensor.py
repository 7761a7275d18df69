"""A tensor's address in a captured graph: against addresses asked of torch, and in kernels' parameters."""

import builtins

import pytest
import torch

from minillm import lab
from minillm.graphs import anatomy, emulator
from minillm.graphs.anatomy import Anatomy, Node
from minillm.lab.find_tensor import CHOOSE, _menu
from minillm.lab.whereabouts import MOST, holders


@pytest.fixture
def graph():
    """(anatomy, x, y, out): h = x + 1; y += h; out = h · y; all but y whole."""
    x, y, g = torch.ones(4, 8), torch.ones(4, 8), emulator.CUDAGraph(keep_graph=True)
    with emulator.graph(g):
        h = x + 1
        y.add_(h)
        out = h * y[1:3].sum()
    return anatomy(g), x, y, out


def test_the_table_of_a_tensor(graph):
    a, x, y, out = graph
    found = lab.find_tensor(a, {"x": x, "y": y, "out": out}, "y")
    w = found.shown
    assert (w.start, w.stop) == (y.data_ptr(), y.data_ptr() + 128) and w.shape == (4, 8)
    held = [(h.node.name, h.places, h.offsets, h.access, h.part) for h in w.holders]
    # an in-place addition writes its first operand; the sum reads from the second row on
    assert held == [
        ("add_", (1, 2), (0, 0), "reads and writes", None),
        ("sum", (2,), (32,), "reads", None),
    ]
    text = repr(found).splitlines()
    assert text[0] == f"y [4, 8] float32: {y.data_ptr():#x} to {y.data_ptr() + 128:#x} (128 bytes)"
    assert text[1] == "2 nodes hold an address in it."
    assert text[2].split("  ")[0] == "node" and "does" in text[2] and "part" not in text[2]
    assert "1, 2 of 3" in text[3] and f"{y.data_ptr():#x} (its start)" in text[3]
    assert f"2 of 2                  {y.data_ptr() + 32:#x} (start + 32 bytes)" in text[4]
    assert "All 3 tensors" in repr(found) and max(map(len, text)) <= 110
    last = [line.split() for line in text[-3:]]
    assert [line[0] for line in last] == ["x", "y", "out"]
    assert [int(line[1], 16) for line in last] == [x.data_ptr(), y.data_ptr(), out.data_ptr()]
    assert [line[2:] for line in last] == [["#0"], ["#1,", "#2"], ["#3"]]


def test_the_first_is_shown_where_none_is_named(graph):
    a, x, y, _ = graph
    found = lab.find_tensor(a, {"x": x, "y": y})
    assert found.shown.name == "x" and [h.access for h in found.shown.holders] == ["reads"]
    assert "uses memory again" not in repr(found)  # an input that nothing writes has its own memory
    alone = lab.find_tensor(a, {"x": x})
    assert "All" not in repr(alone) and "<details>" not in alone._repr_markdown_()


def test_in_a_notebook_it_is_tables(graph):
    a, x, y, out = graph
    markdown = lab.find_tensor(a, {"x": x, "y": y, "out": out}, "y")._repr_markdown_()
    head, tables = markdown.split("\n\n")[0], [t for t in markdown.split("\n\n") if t.startswith("|")]
    assert head.startswith("**`y`** [4, 8] float32: 0x") and len(tables) == 2
    for table in tables:
        assert len({line.count("|") for line in table.splitlines()}) == 1
    assert [line.split(" | ")[0] for line in tables[0].splitlines()[2:]] == ["| #1", "| #2"]
    assert "<details><summary>All 3 tensors" in markdown and "`out`" in tables[1]


def test_the_layer_stands_beside_the_node(captured_step):
    a, step, marks = captured_step
    tensors = {"kv.key[5]": step.kv.key[5], "cos": step.model.cos, "head": step.model.head.weight}
    found = lab.find_tensor(a, tensors, step=step)
    writes = [start for name, start, _ in marks if name == "write"]
    assert [h.part for h in found.shown.holders] == ["layer 5"] * 2
    assert found.shown.holders[0].node.index == writes[5]
    assert [h.part for h in found.tensors["head"].holders] == ["before", "after"]  # tied to the embedding
    assert "part" in repr(found) and "layer 5" in found._repr_markdown_()


def test_a_view_further_in_is_reached_from_elsewhere(captured_step):
    a, step, _ = captured_step
    block = step.kv.key[0][5]
    found = lab.find_tensor(a, {"block": block})
    assert found.shown.holders == [] and a.where(block) == []
    whole = [node.index for node in a.where(step.kv.key[0])]
    assert [node.index for node in found.shown.inside] == whole
    text = " ".join(repr(found).split())
    assert "No node holds an address in it." in text and "offset from another tensor's address" in text
    assert f"offset from an address before it: #{whole[0]} index_copy_" in text


def test_what_is_not_there_is_said(graph):
    a, x, y, _ = graph
    found = lab.find_tensor(a, {"new": torch.ones(4, 8), "empty": x[:0]}, "new")
    text = " ".join(repr(found).split())
    assert "No node holds an address in it." in text and "assigned again, or moved" in text
    assert found.tensors["empty"].finding().startswith("It has no elements") and "0x" in text
    assert [line.split()[-1] for line in repr(found).splitlines()[-2:]] == ["none", "none"]


def cuda_like(addresses, kind="kernel"):
    """An anatomy as CUDA gives it: addresses without reads and writes."""
    names = [f"nvjet_{at}" * 12 for at in range(len(addresses))]
    nodes = [
        Node(at, kind, name, name, addresses=held)
        for at, (name, held) in enumerate(zip(names, addresses, strict=True))
    ]
    return Anatomy(nodes, [], "emulated")  # so that a tensor of this machine may be looked for


def test_in_a_kernels_parameters():
    x = torch.ones(64)
    p = x.data_ptr()
    a = cuda_like([(1, p, 2, p + 8, p), (p - 1,), (p + 255,), (p + 256,), tuple([p] * 17)])
    found = lab.find_tensor(a, {"x": x})
    object.__setattr__(found.shown, "backend", "cuda")
    rows = found.shown.rows()
    assert [(row[0], row[2]) for row in rows] == [
        ("#0", "2, 4, 5 of 5"), ("#2", "1 of 1"), ("#4", "1, 2, 3, 4, … of 17")
    ]  # fmt: skip
    assert rows[1][3] == f"{p + 255:#x} (start + 255 bytes)" and len(rows[0]) == 4
    assert len(rows[0][1]) < 50 and rows[0][1].endswith("…")
    text = " ".join(repr(found).split())
    assert found.shown.columns() == ["node", "name", "which of its addresses", "address"]
    for words in ("addresses, not lengths", "old pointer", "uses memory again"):
        assert words in text


def test_on_an_h200(h200_step):
    """Of a weight the product holds many copies of the address, and the copy behind it an old one."""
    a, spans = h200_step
    qkv = next(s for s in spans if s.part == 1 and s.name == "qkv.weight")
    nodes = [n for n in a.nodes if any(qkv.start <= x < qkv.stop for x in n.addresses)]
    found = holders(nodes, qkv.start, qkv.stop, None)
    assert [(h.node.index, h.places[:2], h.access) for h in found] == [(18, (1, 4), ""), (19, (1,), "")]


def test_a_long_table_is_cut():
    x = torch.ones(4)
    found = lab.find_tensor(cuda_like([(x.data_ptr(),)] * (MOST + 5)), {"x": x})
    assert len(found.shown.rows()) == MOST and "… 5 more nodes." in repr(found)
    assert found.shown.in_short() == f"#0, #1, #2, #3, #4, #5 and {MOST - 1} more"


def test_wrong_questions(graph):
    a, x, y, _ = graph
    with pytest.raises(TypeError, match=r"got CUDAGraph; expected graphs\.anatomy\(g\) first"):
        lab.find_tensor(emulator.CUDAGraph(), {"x": x})
    with pytest.raises(TypeError, match="tensors is list; expected a dict"):
        lab.find_tensor(a, [x])
    with pytest.raises(ValueError, match="tensors is empty; expected one or more"):
        lab.find_tensor(a, {})
    with pytest.raises(ValueError, match="shown is 'token_idz', .* such as 'token_ids'"):
        lab.find_tensor(a, {"x": x, "token_ids": y}, "token_idz")
    with pytest.raises(TypeError, match=r"tensors\['n'\]: where\(\) got int; expected a tensor"):
        lab.find_tensor(a, {"x": x, "n": 3})
    with pytest.raises(ValueError, match=r"tensors\['m'\]: where\(\) got a tensor on meta, but this graph"):
        lab.find_tensor(a, {"m": torch.ones(2, device="meta")})


def test_the_menu_shows_the_chosen_tensor(graph):
    a, x, y, out = graph
    found = lab.find_tensor(a, {"x": x, "<y>": y, "out": out})
    menu, table = _menu(found).children
    assert menu.options == (CHOOSE, "x", "<y>", "out") and table.value == ""
    menu.value = "<y>"
    assert table.value.count("<tr>") == 3 and f"{y.data_ptr():#x}" in table.value
    assert "&lt;y&gt;" in table.value and "<y>" not in table.value
    menu.value = "out"
    assert "#3" in table.value and f"{y.data_ptr():#x}" not in table.value
    menu.value = CHOOSE
    assert table.value == ""


def test_without_ipywidgets_the_tables_stand_alone(graph, monkeypatch):
    real = builtins.__import__

    def no_widgets(name, *args, **kwargs):
        if name.startswith("ipywidgets"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", no_widgets)
    a, x, y, _ = graph
    assert "1 node holds an address in it." in repr(lab.find_tensor(a, {"x": x, "y": y}))


def test_in_a_notebook_the_menu_comes_first_then_the_tables():
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    lines = [
        "import torch",
        "from minillm import lab",
        "from minillm.graphs import anatomy, emulator",
        "x, g = torch.ones(8), emulator.CUDAGraph(keep_graph=True)",
        "with emulator.graph(g):",
        "    y = x + 1",
        "lab.find_tensor(anatomy(g), {'x': x, 'y': y})",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("\n".join(lines))])
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    first, second = notebook.cells[0].outputs
    assert "application/vnd.jupyter.widget-view+json" in first.data
    assert first.data["text/plain"] == "A menu of tensors: run this cell to use it."
    assert "| #0 | add |" in second.data["text/markdown"] and "All 2 tensors" in second.data["text/plain"]
