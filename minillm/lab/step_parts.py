"""Which nodes of a captured decode step belong to which layer, found by the addresses that they hold.

Nothing is counted: a node that holds the address of a layer's weight or KV cache is an anchor of that
layer, and the nodes between anchors follow from their order. On CUDA a kernel's unused parameters may hold
an old pointer (see ``graphs.anatomy.parameters``), so of a tensor's holders those count that do what the
tensor is for, and an anchor that stands against the order of all others is outvoted.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass

from ..graphs.anatomy import Anatomy, Node
from .decode_setup import DecodeStep

NOT_ATTENTION = r"(?!.*(?:fmha|sdpa|flash|attention))"
# What a node is called that uses a tensor for its purpose: ATen ops when emulated, kernels on CUDA.
USERS = {
    "look-up": re.compile(r"embedding|index|gather", re.I),
    "norm": re.compile(r"mul|norm", re.I),
    "product": re.compile(
        NOT_ATTENTION + r".*(?:mm\b|gemm|gemv|nvjet|cutlass|xmma|cublas|split.?k|dot)", re.I
    ),
    "kv": re.compile(r"index|gather|scatter", re.I),
}


@dataclass(frozen=True)
class Span:
    """The bytes of one tensor: ``part`` 0 is before the layers, i + 1 layer i, the last one after them."""

    part: int
    role: str  # one of USERS
    name: str  # within its layer: "qkv.weight"
    start: int  # address of the first byte
    stop: int  # one after the last


@dataclass(frozen=True)
class StepParts:
    """``parts[k]`` is the part of node k, as a span has it, or None where it could not be placed."""

    layers: int
    parts: list[int | None]
    holds: list[list[Span]]  # the spans that node k uses, most often none or one

    @property
    def missing(self) -> list[int]:
        """The layers of which no node holds an address."""
        return [layer for layer in range(self.layers) if layer + 1 not in self.parts]

    def nodes_of(self, part: int | None) -> list[int]:
        """Indices of the nodes of a part, in order."""
        return [k for k, mine in enumerate(self.parts) if mine == part]

    def name_of(self, part: int | None) -> str:
        """ "before", "layer 3", "after", or "not placed"."""
        if part is None:
            return "not placed"
        return {0: "before", self.layers + 1: "after"}.get(part, f"layer {part - 1}")


def step_parts(a: Anatomy, step: DecodeStep) -> StepParts:
    """The part of each node of ``a``, the anatomy of a graph that captured ``step()``.

    Raises TypeError for what is no anatomy, ValueError where the step's tensors lie on another device.
    """
    if not isinstance(a, Anatomy):
        raise TypeError(f"got {type(a).__name__}; expected graphs.anatomy(g) of a captured decode step")
    a.where(step.model.embedding.weight)  # refuses another device's tensors
    return place(a.nodes, step_spans(step), len(step.model.layers))


def step_spans(step: DecodeStep) -> list[Span]:
    """Where the weights and the KV cache of a decode step lie."""
    from ..graphs.emulator.extents import extent

    model, last = step.model, len(step.model.layers) + 1
    tensors = [(0, "look-up", "embedding.weight", model.embedding.weight)]
    tensors += [(0, "look-up", "cos", model.cos), (0, "look-up", "sin", model.sin)]
    for index, layer in enumerate(model.layers):
        weights = layer.named_parameters()
        tensors += [(index + 1, "norm" if w.dim() == 1 else "product", name, w) for name, w in weights]
        cache = {"kv.key": step.kv.key[index], "kv.value": step.kv.value[index]}
        tensors += [(index + 1, "kv", name, tensor) for name, tensor in cache.items()]
    tensors.append((last, "norm", "norm.weight", model.norm.weight))
    tensors.append((last, "product", "head.weight", model.head.weight))
    return [Span(part, role, name, *extent(tensor)[:2]) for part, role, name, tensor in tensors]


def place(nodes: list[Node], spans: Iterable[Span], layers: int) -> StepParts:
    """The part of each node. A layer without an anchor is left out, and so are the nodes around it."""
    holds: list[list[Span]] = [[] for _ in nodes]
    for span in spans:
        for node in users(nodes, span):
            holds[node.index].append(span)
    anchors = in_order(holds, layers + 2)
    parts: list[int | None] = [None] * len(nodes)
    found = sorted({part for part in anchors.values()})
    edges = {part: [k for k, mine in anchors.items() if mine == part] for part in found}
    for part in found:
        parts[edges[part][0] : edges[part][-1] + 1] = [part] * (edges[part][-1] - edges[part][0] + 1)
    for one, next_one in itertools.pairwise(found):
        start, stop = edges[one][-1] + 1, edges[next_one][0]
        if next_one == one + 1:
            cut = start if one == 0 else after_the_add(nodes, start, stop)
            parts[start:stop] = [one] * (cut - start) + [next_one] * (stop - cut)
    if found and found[0] <= 1:
        first = edges[found[0]][0]
        parts[:first] = [0] * first
    if found and found[-1] >= layers + 1:
        parts[edges[found[-1]][-1] :] = [found[-1]] * (len(nodes) - edges[found[-1]][-1])
    return StepParts(layers, parts, [[s for s in held if s.part == parts[k]] for k, held in enumerate(holds)])


def users(nodes: list[Node], span: Span) -> list[Node]:
    """The nodes that hold an address in the span; where some have a fitting name, those alone."""
    holders = [n for n in nodes if any(span.start <= address < span.stop for address in n.addresses)]
    fitting = [n for n in holders if USERS[span.role].search(n.name)]
    return fitting or holders


def after_the_add(nodes: list[Node], start: int, stop: int) -> int:
    """A layer ends with the residual addition; the rest of the gap is the next norm, before its weight."""
    adds = (k for k in range(start, stop) if is_add(nodes[k]))
    return next((k + 1 for k in adds), start)


def is_add(node: Node) -> bool:
    """Whether a node adds tensors; CUDAFunctorOnSelf_add would add a number."""
    named = re.match(r"add\b", node.name) or "CUDAFunctor_add" in node.full_name
    return bool(named) and "OnSelf" not in node.full_name


def in_order(holds: list[list[Span]], parts: int) -> dict[int, int]:
    """Anchors, node -> part, such that parts never go back and as many spans as possible agree."""
    voters = [k for k, held in enumerate(holds) if held]
    best, came_from = [0] * parts, []
    for k in voters:
        back, top = [], 0
        for part in range(parts):
            top = part if best[part] > best[top] else top
            back.append(top)
        votes = [sum(span.part == part for span in holds[k]) for part in range(parts)]
        best = [best[back[part]] + votes[part] for part in range(parts)]
        came_from.append(back)
    part = max(range(parts), key=best.__getitem__)
    chosen = {}
    for k, back in zip(reversed(voters), reversed(came_from), strict=True):
        chosen[k], part = part, back[part]
    return {k: chosen[k] for k in voters if any(span.part == chosen[k] for span in holds[k])}
