"""Nodes in layers and kinds of work: against Python's own marks when emulated, and on what an H200 gave."""

import copy
import dataclasses

import pytest

from minillm import lab
from minillm.graphs.anatomy import Anatomy, Node
from minillm.lab.step_kinds import KINDS, node_kinds, runs
from minillm.lab.step_parts import Span, in_order, is_add, place, step_parts

# By hand, from the list of kernels: of layer 0 of the tiny preset on an H200 the norm (copy to float32, pow,
# mean, add, rsqrt, mul, copy, mul), the product, RoPE, two writes, two gathers, mask and attention, …
H200_LAYER = "N" * 8 + "M" + "R" * 18 + "WWGG" + "AAAA" + "M+" + "N" * 8 + "MSSM+"
H200 = ["T" * 7 + "EEE", H200_LAYER, H200_LAYER, "N" * 8 + "M"]


def marked(marks, name):
    """The nodes that ran inside the module or function of this name, over all its calls."""
    return {k for other, start, stop in marks if other == name for k in range(start, stop)}


def test_the_layers_are_those_that_python_ran(captured_step):
    a, step, marks = captured_step
    parts = step_parts(a, step)
    layers = len(step.model.layers)
    assert parts.missing == [] and len(parts.parts) == len(a.nodes) > 300
    for layer in range(layers):
        assert set(parts.nodes_of(layer + 1)) == marked(marks, f"layers.{layer}")
    first, last = min(marked(marks, "layers.0")), max(marked(marks, f"layers.{layers - 1}"))
    assert parts.nodes_of(0) == list(range(first))
    assert parts.nodes_of(layers + 1) == list(range(last + 1, len(a.nodes)))
    names = [parts.name_of(part) for part in (0, 1, layers, layers + 1, None)]
    assert names == ["before", "layer 0", f"layer {layers - 1}", "after", "not placed"]


def test_the_kinds_are_what_python_ran(captured_step):
    a, step, marks = captured_step
    kinds = node_kinds(a, step_parts(a, step))
    letter = {k: "+" for layer in range(8) for k in marked(marks, f"layers.{layer}")}
    modules = {"attention_norm": "N", "mlp_norm": "N", "norm": "N", "embedding": "E", "mlp": "S"}
    modules |= {"qkv": "M", "output": "M", "gate_up": "M", "down": "M"}  # the last two lie within the mlp
    for module, kind in modules.items():
        for name in {name for name, _, _ in marks if name.rpartition(".")[2] == module}:
            letter |= dict.fromkeys(marked(marks, name), kind)
    letter |= dict.fromkeys(marked(marks, "rope"), "R") | dict.fromkeys(marked(marks, "write"), "W")
    for k in marked(marks, "attention"):
        letter[k] = "G" if a.nodes[k].name == "index_select" else "A"
    letter[len(a.nodes) - 1] = "M"  # the head
    known = {k: kinds[k] for k in letter}
    assert known == letter
    assert set(kinds) == set(KINDS) - {"?"}
    before = min(marked(marks, "layers.0"))
    assert sorted(letter) == [*marked(marks, "embedding"), *range(before, len(a.nodes))]


def test_on_an_h200(h200_step):
    a, spans = h200_step
    parts = place(a.nodes, spans, 2)
    kinds = node_kinds(a, parts)
    assert ["".join(kinds[k] for k in parts.nodes_of(part)) for part in range(4)] == H200
    assert parts.parts == sorted(parts.parts) and parts.missing == []


def test_an_old_pointer_does_not_move_a_node(h200_step):
    """The copy behind a layer's first product holds, in a parameter that it does not use, the weight."""
    a, spans = h200_step
    qkv = next(s for s in spans if s.part == 1 and s.name == "qkv.weight")
    holders = [n for n in a.nodes if any(qkv.start <= x < qkv.stop for x in n.addresses)]
    assert [n.name.split(" ")[0][:5] for n in holders] == ["nvjet", "direc"]  # or the fixture shows nothing
    parts = place(a.nodes, spans, 2)
    assert [n.index for n in holders if any(s.name == "qkv.weight" for s in parts.holds[n.index])] == [18]
    # As bad as it could be: the last weight of layer 0 in every kernel of layer 1, its first one in the head.
    down = next(s for s in spans if s.part == 1 and s.name == "mlp.down.weight")
    norm = next(s for s in spans if s.part == 2 and s.name == "attention_norm.weight")
    late = {k: down for k in range(60, 109)} | {118: norm, 5: norm}
    nodes = [
        dataclasses.replace(n, addresses=(*n.addresses, *([late[n.index].start] if n.index in late else [])))
        for n in a.nodes
    ]
    assert place(nodes, spans, 2).parts == parts.parts


@pytest.mark.parametrize(
    "hidden", ["qkv.weight", "output.weight", "mlp.down.weight", "kv", "product", "norm"]
)
def test_where_an_address_is_hidden_others_do(h200_step, hidden):
    a, spans = h200_step
    seen = [s for s in spans if hidden not in (s.name, s.role)]
    parts = place(a.nodes, seen, 2)
    kinds = node_kinds(a, parts)
    assert parts.missing == []
    if hidden != "norm":  # the other layers' ends are found by the weights of the norms
        assert ["".join(kinds[k] for k in parts.nodes_of(part)) for part in range(4)] == H200
    assert [n for n, part in enumerate(parts.parts) if part == 1] == list(range(10, 60))


def test_a_layer_that_is_not_found_is_not_guessed(captured_step):
    a, step, marks = captured_step
    from minillm.lab.step_parts import step_spans

    parts = place(a.nodes, [s for s in step_spans(step) if s.part != 4], 8)
    assert parts.missing == [3] and parts.nodes_of(4) == []
    lost = set(parts.nodes_of(None))
    assert lost >= marked(marks, "layers.3")
    # Beside it, what stands before the next layer's first weight and after the last one's last weight.
    norm = marked(marks, "layers.4.attention_norm")
    assert lost <= marked(marks, "layers.3") | norm | {max(marked(marks, "layers.2"))}
    kinds = node_kinds(a, parts)
    assert {kinds[k] for k in lost} == {"M", "A", "?"}
    nothing = place(a.nodes, [], 8)
    assert nothing.missing == list(range(8)) and set(nothing.parts) == {None}
    first = place(a.nodes, [s for s in step_spans(step) if s.part not in (0, 1, 9)], 8)
    assert first.missing == [0] and first.parts[0] is None and first.parts[-1] is None


def test_a_product_in_slices_is_one_product():
    """cuBLAS clears its workspace, multiplies, and adds the slices up: memset, splitK, splitKreduce."""
    names = ["mul", "memset", "nvjet_splitK", "splitKreduce_kernel", "add", "mul"]
    weights = {"attention_norm.weight": 100, "qkv.weight": 200, "output.weight": 300}
    weights |= {"mlp_norm.weight": 400, "mlp.gate_up.weight": 500, "mlp.down.weight": 600}
    nodes, spans = [], []
    for name, start in weights.items():
        role = "norm" if "norm" in name else "product"
        spans.append(Span(1, role, name, start, start + 10))
        for kernel in names[:1] if role == "norm" else names[1:5]:
            kind = "memset" if kernel == "memset" else "kernel"
            held = (start,) if kernel in ("mul", "nvjet_splitK") else ()
            nodes.append(Node(len(nodes), kind, kernel, kernel, addresses=held))
    nodes.append(Node(len(nodes), "kernel", "mul", "mul", addresses=(800,)))
    nodes.append(Node(len(nodes), "kernel", "gemv2T_kernel", "gemv", addresses=(900,)))
    spans += [Span(2, "norm", "norm.weight", 800, 810), Span(2, "product", "head.weight", 900, 910)]
    parts = place(nodes, spans, 1)
    kinds = node_kinds(Anatomy(nodes, [], "cuda"), parts)
    assert "".join(kinds) == "N" + "MMM" + "?" + "MMM" + "+" + "N" + "MMM" + "S" + "MMM" + "+" + "NM"
    assert parts.nodes_of(1) == list(range(18)) and parts.nodes_of(2) == [18, 19]


def test_attention_out_of_matrix_products_is_attention(h200_step):
    """Where no fused attention fits, torch multiplies matrices: their kernels hold no weight of the layer."""
    a, spans = h200_step
    nodes = [
        dataclasses.replace(n, name="ampere_fp16_s16816gemm") if "sdpa" in n.name else n for n in a.nodes
    ]
    kinds = node_kinds(Anatomy(nodes, [], "cuda"), place(nodes, spans, 2))
    assert "".join(kinds[10:60]) == H200_LAYER


def test_kv_nodes_are_told_by_their_addresses(h200_step):
    """Whatever the kernels are called: of a cache's address the first holder writes."""
    a, spans = h200_step
    fused = {name: "paged_kernel" for name in ("index_elementwise_kernel", "vectorized_gather_kernel")}
    nodes = [dataclasses.replace(n, name=fused.get(n.name, n.name)) for n in a.nodes]
    nodes = [dataclasses.replace(n, full_name=n.name) if n.name == "paged_kernel" else n for n in nodes]
    kinds = node_kinds(Anatomy(nodes, [], "cuda"), place(nodes, spans, 2))
    assert "".join(kinds[10:60]) == H200_LAYER
    unseen = [s for s in spans if s.role != "kv"]  # neither address nor name: not known, and not guessed
    kinds = node_kinds(Anatomy(nodes, [], "cuda"), place(nodes, unseen, 2))
    assert "".join(kinds[10:60]) == H200_LAYER.replace("R", "?").replace("WWGGAAA", "???????")


def test_adding_a_number_is_no_residual(h200_step):
    a, _ = h200_step
    adds = [n.index for n in a.nodes if n.index < 60 and is_add(n)]
    assert {46, 59} <= set(adds) and not {13, 50} & set(adds)  # residuals; the eps of the norms


def test_parts_never_go_back_and_most_spans_decide():
    def spans(*parts):
        return [Span(part, "norm", "w", 0, 1) for part in parts]

    votes = [spans(0), spans(1, 1), spans(0), spans(1), [], spans(2)]
    assert in_order(votes, 3) == {0: 0, 1: 1, 3: 1, 5: 2}  # node 2 is outvoted
    assert in_order([spans(2), spans(0), spans(0)], 3) == {1: 0, 2: 0}
    assert in_order([spans(0, 2), spans(1), spans(0, 2)], 3) == {0: 0, 1: 1, 2: 2}  # a head that is tied
    assert in_order([], 3) == in_order([[], []], 3) == {}


def test_equal_neighbours_make_a_run():
    assert runs("NNMN") == [("N", 2), ("M", 1), ("N", 1)] and runs("") == []


def test_another_models_step_is_not_found(captured_step):
    a, step, _ = captured_step
    with pytest.raises(TypeError, match=r"got int; expected graphs\.anatomy"):
        step_parts(3, step)
    other = step_parts(a, lab.decode_step("tiny", device="cpu"))
    assert other.missing == list(range(8)) and set(other.parts) == {None}
    with pytest.raises(ValueError, match="on meta, but this graph holds addresses on cpu"):
        step_parts(a, dataclasses.replace(step, model=copy.deepcopy(step.model).to("meta")))
