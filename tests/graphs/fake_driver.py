"""A CUDA driver of a few lines, with real parameter bytes behind real pointers, in cuda-bindings' manners."""

import ctypes
import enum
import types

NodeType = enum.IntEnum(
    "NodeType",
    {
        f"CU_GRAPH_NODE_TYPE_{name}": i
        for i, name in enumerate("KERNEL MEMCPY MEMSET HOST GRAPH EMPTY WAIT_EVENT EVENT_RECORD".split())
    },
)
OK, INVALID_VALUE, LOSSY_QUERY = 0, 1, 402


def kernel(*parameters, func=0, kern=0, through_extra=False, grid=(1, 1, 1), block=(32, 1, 1), shared=0):
    """A kernel node; each parameter is bytes."""
    buffers = [ctypes.create_string_buffer(p, len(p)) for p in parameters]
    table = (ctypes.c_void_p * len(buffers))(*map(ctypes.addressof, buffers))
    whole = ctypes.create_string_buffer(b"".join(parameters))
    size = ctypes.c_size_t(len(whole) - 1)
    extra = (ctypes.c_void_p * 5)(1, ctypes.addressof(whole), 2, ctypes.addressof(size), 0)
    params = types.SimpleNamespace(
        func=func,
        kern=kern,
        kernelParams=0 if through_extra else ctypes.addressof(table),
        extra=ctypes.addressof(extra) if through_extra else 0,
        sharedMemBytes=shared,
        **{
            f"{what}Dim{axis}": n
            for what, dims in (("grid", grid), ("block", block))
            for axis, n in zip("XYZ", dims, strict=True)
        },
        kept_alive=(buffers, table, whole, size, extra),
    )
    return "KERNEL", params


def memcpy(source, target, size=16):
    """A memcpy node; either side is (CUmemorytype, address)."""
    sides = {}
    for name, (kind, address) in (("src", source), ("dst", target)):
        sides[f"{name}MemoryType"] = kind
        sides[f"{name}Host"] = address if kind == 1 else None
        sides[f"{name}Device"] = address if kind != 1 else 0
        sides[f"{name}XInBytes"] = 0
    return "MEMCPY", types.SimpleNamespace(WidthInBytes=size, Height=1, Depth=1, **sides)


class FakeDriver:
    """``graphs``: template -> (nodes, edges); ``kernels``: handle -> (name, sizes of parameters)."""

    def __init__(self, nodes, edges=(), kernels=None, edge_data=True, **more):
        self.graphs = {1: (list(nodes), list(edges))} | more.get("graphs", {})
        self.kernels, self.edge_data, self.asked = kernels or {}, edge_data, []
        if not edge_data:  # bindings 12: the plain one is lossy, so the _v2 is to be asked
            self.cuGraphGetEdges_v2 = self._edges

    def _node(self, handle):
        return self.graphs[handle // 100][0][handle % 100]

    def cuGraphGetNodes(self, graph, n=0):
        handles = [100 * graph + i for i in range(len(self.graphs[graph][0]))]
        return OK, handles[:n], len(handles)

    def cuGraphGetEdges(self, graph, n=0):
        return self._edges(graph, n) if self.edge_data else (LOSSY_QUERY, [], [], 0)

    def _edges(self, graph, n=0):
        edges = self.graphs[graph][1]
        columns = [[100 * graph + edge[side] for edge in edges][:n] for side in (0, 1)]
        return OK, *columns, [None] * n, len(edges)

    def cuGraphNodeGetType(self, handle):
        return OK, NodeType[f"CU_GRAPH_NODE_TYPE_{self._node(handle)[0]}"]

    def cuGraphKernelNodeGetParams(self, handle):
        return OK, self._node(handle)[1]

    cuGraphMemcpyNodeGetParams = cuGraphMemsetNodeGetParams = cuGraphKernelNodeGetParams
    cuGraphChildGraphNodeGetGraph = cuGraphKernelNodeGetParams

    def _name(self, handle):
        self.asked.append(handle)
        return OK, self.kernels[handle][0]

    def _parameter(self, handle, index):
        sizes = self.kernels[handle][1]
        return (OK, sum(sizes[:index]), sizes[index]) if index < len(sizes) else (INVALID_VALUE, 0, 0)

    def cuFuncGetName(self, handle):
        assert handle % 2 == 0, "a CUkernel was passed as a CUfunction"
        return self._name(handle)

    def cuKernelGetName(self, handle):
        assert handle % 2 == 1, "a CUfunction was passed as a CUkernel"
        return self._name(handle)

    def cuFuncGetParamInfo(self, handle, index):
        assert handle % 2 == 0
        return self._parameter(handle, index)

    def cuKernelGetParamInfo(self, handle, index):
        assert handle % 2 == 1
        return self._parameter(handle, index)
