"""Where a graph cannot be read, a lesson's cells say so and go on."""

import dataclasses
import sys
from pathlib import Path

import nbformat
import pytest
import torch

from minillm import lab
from minillm.graphs import anatomy, device, emulator
from minillm.graphs.anatomy.driver import DriverTooOld
from minillm.lab.figures import anatomy as draw_anatomy

LESSON = Path(__file__).parents[2] / "notebooks" / "02_stream_capture.ipynb"


@pytest.fixture
def graph():
    x, g = torch.ones(4), emulator.CUDAGraph(keep_graph=True)
    with emulator.graph(g):
        (x + 1) * 2
    return g


@pytest.fixture(params=[ImportError, DriverTooOld])
def unreadable(request, monkeypatch):
    """Makes every graph unreadable; the reason."""

    def refuse(g):
        raise request.param('install it with `pip install "cuda-bindings==13.*"`')

    assert lab.node_count  # loads the module, which the function of its name hides
    monkeypatch.setattr(sys.modules["minillm.lab.read_anatomy"], "anatomy", refuse)
    return "pip install"


@pytest.fixture
def shown(monkeypatch):
    """The (figure, alternative text) pairs that were shown."""
    seen = []
    monkeypatch.setattr(draw_anatomy, "show", lambda fig, alt: seen.append((fig, alt)))
    return seen


def test_what_can_be_read_is_the_anatomy(graph, shown):
    a = lab.read_anatomy(graph)
    assert [n.name for n in a.nodes] == [n.name for n in anatomy(graph).nodes] == ["add", "mul"]
    assert lab.node_count(graph) == "2 nodes"
    assert lab.order_of(a) == "1 edge: each node waits for the one before it"
    apart = dataclasses.replace(a, edges=[])
    assert lab.order_of(apart) == "0 edges: not every node waits for the one before it"
    draw_anatomy.draw_graph(a, ", in a row")
    [(fig, alt)] = shown
    texts = [text.get_text() for text in (*fig.texts, *fig.axes[0].texts)]
    assert "2 nodes, in a row" in texts and {"#0  add", "#1  mul"} <= set(texts) and "2 nodes" in alt


def test_a_mistake_of_the_caller_is_still_an_error():
    with pytest.raises(RuntimeError, match="keep_graph=True"):
        lab.read_anatomy(emulator.CUDAGraph())
    with pytest.raises(TypeError):
        lab.node_count("g")


def test_what_cannot_be_read_says_why(graph, shown, unreadable):
    a = lab.read_anatomy(graph)
    assert unreadable in repr(a) and unreadable in lab.node_count(graph)
    assert unreadable in lab.order_of(a)
    assert lab.find_tensor(a, {"x": torch.ones(4)}) is a
    draw_anatomy.draw_step(a, None)
    draw_anatomy.draw_graph(a, "")
    assert len(shown) == 2
    for fig, alt in shown:
        assert unreadable in alt and any("cuda-bindings" in text.get_text() for text in fig.axes[0].texts)


def test_the_lesson_goes_on_without_it(unreadable, shown, monkeypatch, capsys):
    """Every cell of lesson 02 that reads a graph, run in order on a machine that cannot."""
    cells = {c.id: c.source for c in nbformat.read(LESSON, as_version=4).cells if c.cell_type == "code"}
    names = {}
    exec(cells["imports"], names)
    names["x"] = torch.full((4,), 3.0, device=device)
    needed = ("warm-up-lazy", "warm-up", "clone-helper", "clone", "anatomy-capture", "anatomy", "address")
    needed += ("fork-join-forked", "fork-join-capture", "fork-join")
    for id in needed:
        exec(cells[id], names)
    assert not any("anatomy(" in source for id, source in cells.items() if id not in needed)
    assert len(shown) == 2 and capsys.readouterr().out.count(unreadable) == 6
