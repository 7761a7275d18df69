"""What each node of a captured decode step does: found by the weights that it and its neighbours hold.

Kernels have names that change with the GPU, the batch and the version of torch; a weight's address does not
lie. What stands between two weights of a layer follows from the layer's code (``decoder_layer.py``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..graphs.anatomy import Anatomy, Node
from .step_parts import USERS, StepParts, is_add

KINDS = {  # letter -> what it stands for
    "T": "slots and mask",
    "E": "embedding, cos, sin",
    "N": "RMSNorm",
    "M": "matrix product",
    "R": "RoPE",
    "W": "KV write",
    "G": "KV gather",
    "A": "attention",
    "+": "residual add",
    "S": "SiLU · up",
    "?": "not known",
}
PRODUCTS = ("qkv.weight", "output.weight", "mlp.gate_up.weight", "mlp.down.weight")
ATTENTION = re.compile(r"fmha|sdpa|flash|attention|softmax", re.I)
HELPER = re.compile(r"split.?k", re.I)  # cuBLAS may cut a product in slices and add them up


def node_kinds(a: Anatomy, parts: StepParts) -> list[str]:
    """The letter of each node's kind of work, a key of KINDS."""
    kinds = ["?"] * len(a.nodes)
    for part in range(parts.layers + 2):
        mine = parts.nodes_of(part)
        if part == 0:
            letters = ["E" if parts.holds[k] else "T" for k in mine]
        elif part > parts.layers:
            letters = _after(a.nodes, mine)
        else:
            letters = _layer(a.nodes, mine, parts)
        for k, letter in zip(mine, letters, strict=True):
            kinds[k] = letter
    for k, node in enumerate(a.nodes):
        if parts.parts[k] is None:
            kinds[k] = _by_name(node)
    return kinds


def runs(letters: Iterable[str]) -> list[tuple[str, int]]:
    """Equal neighbours as (letter, how many)."""
    found: list[tuple[str, int]] = []
    for letter in letters:
        if found and found[-1][0] == letter:
            found[-1] = (letter, found[-1][1] + 1)
        else:
            found.append((letter, 1))
    return found


def is_product(node: Node) -> bool:
    """Whether a node multiplies matrices, by its name."""
    return bool(USERS["product"].search(node.name))


def _by_name(node: Node) -> str:
    if ATTENTION.search(node.name):
        return "A"
    return "M" if is_product(node) else "?"


def _after(nodes: list[Node], mine: list[int]) -> list[str]:
    """Norm, then the head; cuBLAS may clear its workspace in between."""
    return ["M" if is_product(nodes[k]) or nodes[k].kind == "memset" else "N" for k in mine]


def _layer(nodes: list[Node], mine: list[int], parts: StepParts) -> list[str]:
    products = _products(nodes, mine, parts)
    if products is None:
        return [_by_name(nodes[k]) for k in mine]
    qkv, output, gate_up, down = products
    letters = {k: "M" for product in products for k in product}
    between = range(qkv[-1] + 1, output[0])
    letters |= dict(zip(between, _attention(nodes, between, parts), strict=True))
    letters |= dict.fromkeys(range(gate_up[-1] + 1, down[0]), "S")
    letters |= dict.fromkeys(range(down[-1] + 1, mine[-1] + 1), "+")
    added = next((k for k in range(output[-1] + 1, gate_up[0]) if is_add(nodes[k])), output[-1])
    letters |= dict.fromkeys(range(output[-1] + 1, added + 1), "+")
    return [letters.get(k, "N") for k in mine]


def _products(nodes: list[Node], mine: list[int], parts: StepParts) -> list[list[int]] | None:
    """The nodes of the four products, each with its helpers; None where they cannot be told.

    By the weights' addresses; where one is hidden, by names, if those show four products.
    """
    held = {name: [k for k in mine if any(s.name == name for s in parts.holds[k])] for name in PRODUCTS}
    found = list(held.values())
    if not all(found):
        named, found = [k for k in mine if is_product(nodes[k])], []
        for k in named:
            if found and found[-1][-1] == k - 1:
                found[-1].append(k)
            else:
                found.append([k])
    if len(found) != len(PRODUCTS) or any(x[-1] >= y[0] for x, y in zip(found, found[1:], strict=False)):
        return None
    return [_with_helpers(nodes, product, mine) for product in found]


def _with_helpers(nodes: list[Node], product: list[int], mine: list[int]) -> list[int]:
    first, last = product[0], product[-1]
    while first > mine[0] and nodes[first - 1].kind == "memset":
        first -= 1
    while last < mine[-1] and HELPER.search(nodes[last + 1].name):
        last += 1
    return list(range(first, last + 1))


def _attention(nodes: list[Node], between: range, parts: StepParts) -> list[str]:
    """RoPE, KV writes, KV gathers, attention. The first node that holds a cache's address writes it."""
    writes, gathers, seen = [], [], set()
    for k in between:
        for name in [span.name for span in parts.holds[k] if span.role == "kv"]:
            (gathers if name in seen else writes).append(k)
            seen.add(name)
    if not (writes and gathers):
        named = {k: f"{nodes[k].name} {nodes[k].full_name}" for k in between}
        writes = [k for k, name in named.items() if "index_copy" in name or "index_put" in name]
        gathers = [k for k, name in named.items() if re.search(r"gather|index_?select", name, re.I)]
    if not (writes and gathers):
        return [_by_name(nodes[k]) for k in between]
    first_gather = writes[-1] + 1
    return [
        "R" if k < writes[0] else "W" if k < first_gather else "G" if k <= gathers[-1] else "A"
        for k in between
    ]
