"""The anatomy of a graph on CUDA: the driver tells nodes, edges and launch parameters."""

from __future__ import annotations

import functools
import heapq

from .demangle import demangle
from .driver import call, load
from .kernel_names import short_name
from .parameters import DeviceMemory, parameter_sizes, pointers
from .report import Anatomy, Node, count_of

# CUgraphNodeType, where the name itself does not say it
KINDS = {"GRAPH": "child graph", "WAIT_EVENT": "event wait"}
HOST, DEVICE, ARRAY = 1, 2, 3  # CUmemorytype; 4 is an address that may be either


def read(template: int, driver=None, memory: DeviceMemory | None = None) -> Anatomy:
    """``template``: the address of a cudaGraph_t; ``driver`` and ``memory`` are CUDA's own when left out."""
    driver = driver or load()
    memory = memory or DeviceMemory.of_torch()
    handles = list_of(driver, "cuGraphGetNodes", template)[0]
    at = {int(handle): i for i, handle in enumerate(handles)}
    # from, to, and for CUDA 13 and in the _v2 of 12 also the edges' data
    edges_of = "cuGraphGetEdges_v2" if hasattr(driver, "cuGraphGetEdges_v2") else "cuGraphGetEdges"
    sources, targets, *_ = list_of(driver, edges_of, template)
    edges = {(at[int(i)], at[int(j)]) for i, j in zip(sources, targets, strict=True)}
    order = topological(len(handles), edges)
    place = {old: new for new, old in enumerate(order)}
    reader = _Reader(driver, memory)
    nodes = [reader.node(new, handles[old]) for new, old in enumerate(order)]
    return Anatomy(nodes, sorted((place[i], place[j]) for i, j in edges), "cuda")


def list_of(driver, function: str, graph):
    """Lists that the driver fills: it is asked for their length first. As a tuple, without the length."""
    *_, length = call(driver, function, graph)
    *lists, _ = call(driver, function, graph, length) if length else ([], [], 0)
    return [column[:length] for column in lists]


def topological(n: int, edges) -> list[int]:
    """0 … n - 1, each after all that it waits for, else in the order that they have."""
    after, waits = [[] for _ in range(n)], [0] * n
    for i, j in edges:
        after[i].append(j)
        waits[j] += 1
    ready, order = [i for i in range(n) if not waits[i]], []
    while ready:
        order.append(heapq.heappop(ready))
        for j in after[order[-1]]:
            waits[j] -= 1
            if not waits[j]:
                heapq.heappush(ready, j)
    return order


class _Reader:
    """Describes nodes; remembers kernels, of which a graph has many times more launches."""

    def __init__(self, driver, memory):
        self.call = functools.partial(call, driver)
        self.driver, self.memory, self.kernels = driver, memory, {}

    def node(self, index: int, handle) -> Node:
        kind = self.call("cuGraphNodeGetType", handle).name.removeprefix("CU_GRAPH_NODE_TYPE_")
        describe = getattr(self, f"_{kind.lower()}", None)
        name = KINDS.get(kind, kind.lower().replace("_", " "))
        details = describe(handle) if describe else {"name": name}
        return Node(index, name, **({"full_name": details["name"]} | details))

    def _kernel(self, handle) -> dict:
        p = self.call("cuGraphKernelNodeGetParams", handle)
        key = int(p.func), int(p.kern)
        if key not in self.kernels:
            ask, function = ("cuFuncGetName", p.func) if key[0] else ("cuKernelGetName", p.kern)
            full = demangle(bytes(self.call(ask, function)).rstrip(b"\0").decode())
            self.kernels[key] = full, parameter_sizes(self.driver, p)
        full, sizes = self.kernels[key]
        return {
            "name": short_name(full),
            "full_name": full,
            "grid": (p.gridDimX, p.gridDimY, p.gridDimZ),
            "block": (p.blockDimX, p.blockDimY, p.blockDimZ),
            "shared_bytes": p.sharedMemBytes,
            "addresses": pointers(p, sizes, self.memory),
        }

    def _memcpy(self, handle) -> dict:
        p = self.call("cuGraphMemcpyNodeGetParams", handle)
        sides = []
        for side in ("dst", "src"):
            kind = int(getattr(p, f"{side}MemoryType"))
            address = int(getattr(p, f"{side}Host" if kind == HOST else f"{side}Device") or 0)
            if kind not in (HOST, DEVICE, ARRAY):
                kind = DEVICE if address in self.memory else HOST
            sides.append((kind, address + int(getattr(p, f"{side}XInBytes"))))
        (dst, to), (src, start) = sides
        letters = {HOST: "H", DEVICE: "D", ARRAY: "A"}
        addresses = tuple(a for kind, a in ((dst, to), (src, start)) if kind != ARRAY)
        size = p.WidthInBytes * max(p.Height, 1) * max(p.Depth, 1)
        name = f"memcpy {letters[src]}to{letters[dst]}"
        return {"name": name, "full_name": f"{name}, {count_of(size, 'byte')}", "addresses": addresses}

    def _memset(self, handle) -> dict:
        p = self.call("cuGraphMemsetNodeGetParams", handle)
        size = p.width * p.elementSize * max(p.height, 1)
        return {
            "name": "memset",
            "full_name": f"memset to {p.value:#x}, {count_of(size, 'byte')}",
            "addresses": (int(p.dst),),
        }

    def _graph(self, handle) -> dict:
        inner = self.call("cuGraphChildGraphNodeGetGraph", handle)
        *_, length = self.call("cuGraphGetNodes", inner)
        return {"name": f"graph of {count_of(length, 'node')}"}
