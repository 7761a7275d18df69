"""The anatomy of an emulated graph: its nodes know what they read and write."""

from __future__ import annotations

from torch import Tensor
from torch.utils._pytree import tree_leaves

from ..emulator import nodes as emulator_nodes
from .report import Anatomy, Node


def read(nodes) -> Anatomy:
    """``nodes``: those of a captured ``emulator.CUDAGraph``."""

    def described(node):
        reads, writes = tuple(node.reads), tuple(node.writes)
        return Node(
            node.index,
            "memcpy" if is_plain_copy(node) else "kernel",
            node.name,
            f"{node.schema.name}.{node.schema.overload_name or 'default'}",
            addresses=tuple(span.start for span in writes + reads),
            reads=reads,
            writes=writes,
        )

    return Anatomy(
        [described(node) for node in nodes],
        emulator_nodes.stream_edges(nodes),
        "emulated",
        emulator_nodes.data_edges(nodes),
        emulator_nodes.races(nodes),
    )


def is_plain_copy(node) -> bool:
    """Whether torch would call cudaMemcpyAsync and launch no kernel: both sides the same bytes, without
    holes.  Source: memcpy_eligible in aten/src/ATen/native/cuda/Copy.cu."""
    if node.name not in ("copy_", "clone", "_to_copy"):
        return False
    tensors = [t for t in tree_leaves((node.args, node.kwargs)) if isinstance(t, Tensor)]
    x, y = tensors + [out for _, out in node.outs]
    dense = x.numel() == 1 + sum((n - 1) * s for n, s in zip(x.shape, x.stride(), strict=True))
    same_order = all(n == 1 or s == r for n, s, r in zip(x.shape, x.stride(), y.stride(), strict=False))
    return x.dtype == y.dtype and x.shape == y.shape and same_order and dense
