"""What is inside a captured graph: nodes, edges, the addresses baked into them; on either backend.

Reading order: ``report`` (what a user gets), ``emulated`` and ``on_cuda`` (where it comes from; ``driver``
calls CUDA, ``parameters`` finds pointers in a kernel's parameter bytes, ``kernel_names`` shortens names),
``table``, ``dot``, ``layout`` and ``draw`` (how it is shown).
"""

from __future__ import annotations

import torch

from ..emulator import CUDAGraph
from ..emulator import nodes as emulator_nodes
from .report import Anatomy, Node

__all__ = ["Anatomy", "Node", "anatomy", "races"]

NOT_KEPT = (
    "this graph's template is gone: torch throws it away once the graph can be launched, and only the "
    "template says what is inside; expected a graph made with keep_graph=True: write "
    "g = cuda.CUDAGraph(keep_graph=True) and capture again"
)
NOT_CAPTURED = "nothing is captured in this graph yet: capture first, with `with cuda.graph(g): ...`"


def anatomy(g) -> Anatomy:
    """Nodes, edges and baked-in addresses of a captured graph.  Reads only: ``g`` stays as it is.

    g: a ``cuda.CUDAGraph(keep_graph=True)`` of either backend, after its capture.  It may have been
    instantiated and replayed, or not.
    Raises TypeError for anything else, RuntimeError without ``keep_graph=True`` or before a capture, and
    on CUDA ImportError where the cuda-bindings package is missing or too old.
    """
    if isinstance(g, CUDAGraph):
        if not g.keep_graph:
            raise RuntimeError(NOT_KEPT)
        if g.nodes is None:
            raise RuntimeError(NOT_CAPTURED)
        from .emulated import read

        return read(g.nodes)
    if not isinstance(g, torch.cuda.CUDAGraph):
        raise TypeError(
            f"anatomy() got {type(g).__name__}; expected a captured cuda.CUDAGraph(keep_graph=True)"
        )
    template = _template(g)
    from .on_cuda import read

    return read(template)


def races(g) -> list[emulator_nodes.Race]:
    """Pairs (i, j) of nodes that touch the same bytes, at least one writing, with no path between them.

    g: an emulated graph after its capture; ``keep_graph`` does not matter.  Each entry equals and unpacks
    as the pair of node indices, i before j in the program; ``.kind`` ("read after write", "write after
    read", "write after write") and ``.extents`` say what clashes, and so does printing it.  What an index
    selects counts as the whole tensor: two writes to different slots of one KV cache are a race here.
    Raises NotImplementedError for a graph on CUDA, TypeError for what is no graph, RuntimeError before a
    capture.
    """
    if isinstance(g, CUDAGraph):
        if g.nodes is None:
            raise RuntimeError(NOT_CAPTURED)
        return emulator_nodes.races(g.nodes)
    if isinstance(g, torch.cuda.CUDAGraph):
        raise NotImplementedError(
            "races() needs to know which bytes a node reads and writes, and CUDA does not tell: a kernel's "
            "parameters are addresses without lengths. Capture the same code on the emulator, which knows: "
            "set MINILLM_BACKEND=emulated before the first import of minillm.graphs"
        )
    raise TypeError(f"races() got {type(g).__name__}; expected a captured cuda.CUDAGraph")


def _template(g) -> int:
    """The address of torch's cudaGraph_t, which stays torch's."""
    if not hasattr(g, "raw_cuda_graph"):
        raise RuntimeError(
            f"torch {torch.__version__} cannot show a graph's template; expected torch 2.8 or newer"
        )
    try:
        return int(g.raw_cuda_graph())
    except RuntimeError as error:
        if "keep_graph" in str(error):
            raise RuntimeError(NOT_KEPT) from error
        if "capture_end" in str(error):
            raise RuntimeError(NOT_CAPTURED) from error
        raise
