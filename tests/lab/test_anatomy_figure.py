"""The figure of a captured step: what its title says, and that every node has a box in the right row."""

import dataclasses

import pytest
from matplotlib.patches import Rectangle

from minillm.graphs.anatomy import Anatomy
from minillm.lab.figures import anatomy as draw_anatomy
from minillm.lab.figures.node_boxes import CELL, LOOKS, ROW
from minillm.lab.figures.show import MAX_BYTES, png_bytes
from minillm.lab.step_kinds import KINDS
from minillm.lab.step_parts import place, step_spans

ORIGIN = "NVIDIA Test · torch 2.11.0"


@pytest.fixture
def shown(monkeypatch):
    """The (figure, alternative text) pairs that were shown."""
    seen = []
    monkeypatch.setattr(draw_anatomy, "show", lambda fig, alt: seen.append((fig, alt)))
    return seen


def words(fig):
    return [text.get_text() for text in (*fig.texts, *fig.axes[0].texts)]


def rows_of_boxes(fig):
    """How many boxes each row has, from the top."""
    rows = {}
    for box in fig.axes[0].patches:
        if isinstance(box, Rectangle) and box.get_height() == pytest.approx(ROW * 0.8):
            rows[round(-box.get_y(), 6)] = rows.get(round(-box.get_y(), 6), 0) + 1
    return [rows[y] for y in sorted(rows)]


def test_an_emulated_step(shown, captured_step):
    a, step, marks = captured_step
    draw_anatomy.draw_step(a, step, layer=3)
    [(fig, alt)] = shown
    sizes = {stop - start for name, start, stop in marks if name.removeprefix("layers.").isdigit()}
    [size] = sizes  # by Python's own marks all layers are as long
    before = min(start for name, start, _ in marks if name == "layers.0")
    after = len(a.nodes) - before - 8 * size
    title = (
        f"{len(a.nodes)} nodes: 8 layers of {size}, the same in each; {before} before them and {after} after"
    )
    assert title in words(fig) and title in alt and "emulated: ATen ops, no GPU" in words(fig)
    assert rows_of_boxes(fig) == [before, *[size] * 8, after]
    first = before + 3 * size
    listed = [text for text in words(fig) if text.startswith("#")]
    assert listed[0].startswith(f"#{first} ") and len(listed) == size
    assert {"qkv", "attention_norm", "mlp.gate_up", "mlp.down", "output", "mlp_norm"} <= set(words(fig))
    assert [w for w in words(fig) if w.startswith(("kv.", "layer 3,"))].count("kv.key") == 2
    assert set(KINDS.values()) - {"not known"} <= set(words(fig)) and "not known" not in words(fig)
    assert "Layer 3 in order: " in alt and "× RoPE, 2 × KV write, 2 × KV gather, " in alt


def test_what_an_h200_gave(h200_step):
    a, spans = h200_step
    fig, alt = draw_anatomy.drawn(a, place(a.nodes, spans, 2), 0, ORIGIN)
    assert "119 nodes: 2 layers of 50, the same in each; 10 before them and 9 after" in words(fig)
    assert rows_of_boxes(fig) == [10, 50, 50, 9] and ORIGIN in words(fig)
    assert "Layer 0 in order: 8 × RMSNorm, 1 × matrix product, 18 × RoPE, 2 × KV write" in alt
    assert "#17 mul" in words(fig)  # the name without the kernel that runs it


def test_layers_that_differ(h200_step):
    a, spans = h200_step
    nodes = [dataclasses.replace(n, name="fused") if n.index == 70 else n for n in a.nodes]
    title = draw_anatomy.finding(Anatomy(nodes, [], "cuda"), place(nodes, spans, 2))
    assert title == "119 nodes: 2 layers of 50, of 2 kinds; 10 before them and 9 after"
    fewer = [n for n in a.nodes if n.index != 70]
    fewer = [dataclasses.replace(n, index=at) for at, n in enumerate(fewer)]
    title = draw_anatomy.finding(Anatomy(fewer, [], "cuda"), place(fewer, spans, 2))
    assert title.startswith("118 nodes: 2 layers of 49 to 50, of 2 kinds;")


def test_a_layer_that_is_not_found_is_said(captured_step):
    a, step, _ = captured_step
    parts = place(a.nodes, [s for s in step_spans(step) if s.part != 4], 8)
    fig, alt = draw_anatomy.drawn(a, parts, 3, ORIGIN)
    lost = len(parts.nodes_of(None))
    title = (
        f"{len(a.nodes)} nodes: 7 of 8 layers found by their weights' addresses, {lost} nodes could not be "
    )
    title += "placed"
    assert title in " ".join(words(fig)).replace("\n", " ") and title in alt
    assert any(text.startswith("not found: no node holds") for text in words(fig))
    assert {"layer 3", "not placed", "not known"} <= set(words(fig))
    assert sum(rows_of_boxes(fig)) == len(a.nodes)
    assert "Layer 3 was not found." in alt and not [text for text in words(fig) if text.startswith("#")]


def test_a_deep_model_keeps_its_ends(captured_step):
    a, step, _ = captured_step
    spans = [s for s in step_spans(step) if s.part <= 8]
    parts = place(a.nodes, spans, 80)  # of 80 layers only 8 are there
    fig, _ = draw_anatomy.drawn(a, parts, 0, ORIGIN)
    rows = [text for text in words(fig) if text.startswith(("layer ", "before", "after", "…"))]
    assert rows[0] == "before" and "layer 30" in rows and "… 47 more" in rows
    assert rows[rows.index("… 47 more") + 1 :][:3] == ["layer 78", "layer 79", "after"]


def test_words_stay_in_their_columns_and_the_picture_is_small(h200_step, captured_step):
    a, spans = h200_step
    fig, _ = draw_anatomy.drawn(a, place(a.nodes, spans, 2), 0, ORIGIN)
    for dpi in (100, 200):
        fig.set_dpi(dpi)
        fig.canvas.draw()
        ax = fig.axes[0]
        boxes = [t.get_window_extent() for t in ax.texts if t.get_text() and t.get_fontsize() == 7.5]
        for at, one in enumerate(boxes):
            assert not any(
                one.overlaps(other) and overlap(one, other) > 1.5 * dpi / 100 for other in boxes[at + 1 :]
            )
        assert max(box.x1 for box in boxes) <= fig.bbox.x1
    a, step, _ = captured_step
    fig, _ = draw_anatomy.drawn(a, place(a.nodes, step_spans(step), 8), 0, ORIGIN)
    assert len(png_bytes(fig)) <= MAX_BYTES


def overlap(one, other):
    """How many dots two boxes overlap sideways, if they stand in the same line."""
    if abs(one.y0 + one.y1 - other.y0 - other.y1) > one.height:
        return 0
    return min(one.x1, other.x1) - max(one.x0, other.x0)


def test_fills_stay_apart_without_colour():
    """A dark fill has white words, a light one black ones, each 4.5:1 or more (WCAG 2.1, 1.4.3)."""
    from matplotlib.colors import to_rgb

    def luminance(color):
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(color)]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    assert set(LOOKS) == set(KINDS) and len({fill for fill, _ in LOOKS.values()}) == len(KINDS)
    for fill, ink in LOOKS.values():
        low, high = sorted((luminance(fill), luminance(ink)))
        assert (high + 0.05) / (low + 0.05) >= 4.5


def test_wrong_questions(captured_step, shown):
    a, step, _ = captured_step
    with pytest.raises(TypeError, match="got NoneType; expected graphs.anatomy"):
        draw_anatomy.draw_step(None, step)
    for layer in (-1, 8):
        with pytest.raises(ValueError, match=f"layer is {layer}; expected 0 to 7"):
            draw_anatomy.draw_step(a, step, layer)
    assert shown == [] and CELL < ROW
