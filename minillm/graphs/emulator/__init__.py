"""CUDA graphs, emulated on CPU tensors, under the names that torch.cuda uses.

A CUDA graph is a list of kernel launches with *frozen addresses*.  Everything that surprises people
follows from that, and none of it needs a GPU:

  capture  sees every ATen call (a TorchDispatchMode sits where the CUDA driver would), finds its
           output's shape on the ``meta`` device, gives the output an address in the graph's memory
           pool, and writes down (op, addresses).  Nothing is computed.
  replay   walks the list and runs each op on those addresses.  No Python of yours runs.

The rooms, in reading order: ``memory`` (segments, blocks, pools), ``borrowed`` (what a graph uses and
does not own), ``streams`` and ``events`` (order), ``extents`` and ``nodes`` (one launch, edges, races),
``recorder`` (capture), ``refusals`` (what a GPU would not capture), ``host`` and ``branches`` (what the
dispatcher does not see), ``graphs`` (CUDAGraph), ``capture`` (its context manager), ``messages`` (CUDA's
own words).
Two annexes: ``graphed_callables``, and ``heap``, in which device memory is apart from host memory and is
handed out again.

Not imitated
------------
1. Time.  Nothing is asynchronous, so nothing is fast or slow, and a missing wait outside a capture
   goes unpunished; ``Event.elapsed_time`` raises.  Inside a capture ``races`` finds it.
2. Kernels.  A node is one ATen op, where CUDA may launch several kernels, or one for several ops.
   Compiled code whose kernels bypass the dispatcher (inductor on CPU) and numpy or ctypes on a
   tensor's memory are not seen at all: they run during capture, and not in a replay.
3. Host tensors made before the capture.  They count as device tensors, so ``copy_`` from them is
   recorded, a 0-dim one is read at every replay instead of being frozen, and outside a capture
   ``.cpu()`` and ``.to(device)`` do not copy.  So does what ``torch.frombuffer`` makes in a capture.
   There is no pinned memory.  Within a ``heap`` all this is as on a GPU, but for a default device, which
   is always the GPU, and for pickles: to write one needs no copy, and what is read from one, or by
   ``torch.load``, is on the host.
4. Library workspaces: cuBLAS's (about 32 MiB a stream) are missing from pool sizes, and a first
   product inside a capture does not fail.
5. Freed inputs.  A GPU hands the address to the next tensor and says nothing; here the bytes turn
   into NaN (-1 for integers) and replay warns.  Within a ``heap`` it is as on a GPU.
6. Wreckage.  After a failed capture, torch's CUDA generator refuses to work and the pool stays open;
   here only the current stream is left behind as in torch.  Nor are torch's own bugs imitated, such
   as its assertion when a pool is used again after its graphs died and an output did not.
7. What runs beside a capture.  Another thread's operations are neither recorded nor refused, and on
   another stream memory and random numbers may be asked for, which CUDA refuses.
8. Seeds and generators made during a capture: ``torch.manual_seed`` with another seed is noticed at the
   next operation, and not at all if none follows; a new ``torch.Generator`` is not refused.
9. The memory that the driver takes for the graph itself.
10. Who asks torch instead of this module: ``x.is_cuda``, ``torch.cuda.is_current_stream_capturing()``,
    and so the ``capturable=`` of torch's optimizers; ``x.record_stream`` takes no emulated stream.
    ``x.device.type`` is "cpu", and that string, spelled out, means the host.
11. Autograd's detours.  A backward operation is recorded on the current stream and not on that of its
    forward operation, and a few formulas (``prod``) take a way round the wait that CUDA would refuse.
12. Mistakes that only a kernel finds, such as a product of two dtypes: they come at the replay, and
    sometimes in other words.  Warming up finds them first, here as on a GPU.
13. Garbage.  Python's collector pauses during a capture; on a GPU it may find an old graph just then,
    whose end breaks the capture.
14. Memory that grows: ``resize_``, ``set_`` or a too small ``out=`` raise for a graph's output outside
    a capture, and for any tensor in a ``heap``.
15. Tensors that are not dense (sparse, nested, quantized) cannot be captured, nor kept in a ``heap``.
"""

import torch

from .capture import graph
from .events import Event
from .graphed_callables import make_graphed_callables
from .graphs import CUDAGraph, graph_pool_handle
from .heap import heap as heap  # not a name of torch.cuda either
from .host import device as device  # not a name of torch.cuda: what minillm.graphs calls `device`
from .memory import empty_cache
from .streams import (
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
    "empty_cache",
    "graph",
    "graph_pool_handle",
    "is_available",
    "is_current_stream_capturing",
    "make_graphed_callables",
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
