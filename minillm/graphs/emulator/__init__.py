"""CUDA graphs, emulated on CPU tensors, under the names that torch.cuda uses.

A CUDA graph is a list of kernel launches with *frozen addresses*.  Everything that surprises people
follows from that, and none of it needs a GPU:

  capture  sees every ATen call (a TorchDispatchMode sits where the CUDA driver would), finds its
           output's shape on the ``meta`` device, gives the output an address in the graph's memory
           pool, and writes down (op, addresses).  Nothing is computed.
  replay   walks the list and runs each op on those addresses.  No Python of yours runs.

The rooms, in reading order: ``memory`` (segments, blocks, pools, borrowed memory), ``streams``
(order), ``nodes`` (one launch, edges, races), ``recorder`` (capture), ``host`` (what would be a copy
from the CPU), ``graphs`` (CUDAGraph and its context manager), ``messages`` (CUDA's own words).

Not imitated
------------
1. Time.  Nothing is asynchronous, so nothing is fast or slow, and a missing wait outside a capture
   goes unpunished; ``Event.elapsed_time`` raises.  Inside a capture ``nodes.races`` finds it.
2. Kernels.  A node is one ATen op, where CUDA may launch several kernels, or one for several ops.
   Compiled code whose kernels bypass the dispatcher (inductor on CPU) and numpy or ctypes on a
   tensor's memory are not seen at all: they run during capture, and not in a replay.
3. Host tensors made before the capture, or with ``device="cpu"`` spelled out.  To the emulator they
   are device tensors, so ``copy_`` from them is recorded, ``.to("cpu")`` does nothing, and a 0-dim
   one is read at every replay instead of being frozen.  There is no pinned memory.
4. Library workspaces: cuBLAS's (about 32 MiB a stream) are missing from pool sizes, and a first
   product inside a capture does not fail.
5. Freed inputs.  A GPU hands the address to the next tensor and says nothing; here the bytes turn
   into NaN (-1 for integers) and replay warns.
6. Wreckage.  After a failed capture, torch's CUDA generator may refuse to work, and the pool may
   stay open; here only the current stream is left behind as in torch.
7. Threads.  ``capture_error_mode`` is checked and ignored; a call from another thread neither is
   recorded nor spoils the capture.
8. ``torch.manual_seed`` with another seed during capture is noticed at the next operation, and not
   at all if none follows.
9. The memory that the driver takes for the graph itself.
"""

import torch

from .graphs import CUDAGraph, graph, graph_pool_handle
from .streams import (
    Event,
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    is_current_stream_capturing,
    set_stream,
    stream,
    synchronize,
)

__all__ = [
    "CUDAGraph",
    "Event",
    "Stream",
    "StreamContext",
    "current_stream",
    "default_stream",
    "graph",
    "graph_pool_handle",
    "is_available",
    "is_current_stream_capturing",
    "set_stream",
    "stream",
    "synchronize",
]


def is_available():
    """False, which is honest: there is no CUDA here."""
    return False


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    known = "torch.cuda has it, but the emulator does not" if hasattr(torch.cuda, name) else "no such name"
    raise AttributeError(
        f"cuda.{name}: {known}. The emulator offers {', '.join(__all__)}. For anything else run this on a "
        "GPU, or guard it with `if cuda.is_available():`"
    )
