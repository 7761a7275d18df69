"""The life of a graph: captured once, instantiated, replayed, dumped, reset."""

from .entry import CUDA_GRAPH_CPP, CUDA_GRAPHS, CUDA_TYPES, Entry, cuda_error

GRAPH_CLASS = "https://docs.pytorch.org/docs/stable/generated/torch.cuda.CUDAGraph.html"

ENTRIES = (
    Entry(
        name="captured twice",
        says=("This CUDAGraph instance already owns a captured graph",),
        cause="This CUDAGraph holds a graph already, and a second capture may not replace it.",
        cure="A new cuda.CUDAGraph() for each capture; or g.reset() first, which also lets its memory go.",
        cell="02 life",
        source=CUDA_GRAPH_CPP,
    ),
    Entry(
        name="replayed without a capture",
        says=("Called CUDAGraph::replay without a preceding successful capture",),
        cause="There is nothing to replay: no capture yet, one that failed, a graph that was reset, or "
        "replay() from within its own capture.",
        cure="Capture first. If an earlier capture raised, repair that: this error is then its consequence.",
        cell="02 life",
        source=CUDA_GRAPH_CPP,
    ),
    Entry(
        name="pool() without a capture",
        says=("Called CUDAGraph::pool() without a preceding successful capture",),
        cause="A graph has a pool only once its capture has succeeded.",
        cure="To share a pool from the start, make its handle yourself: pool = cuda.graph_pool_handle(), and "
        "pass pool=pool to every capture.",
        cell="05",
        source=CUDA_GRAPH_CPP,
    ),
    Entry(
        name="begun twice",
        says=("Cannot register the state during capturing stage",),
        cause="capture_begin() was called again, or a generator registered, on a graph whose capture is "
        "underway.",
        cure="End the capture first; call register_generator_state() before capture_begin().",
        cell="02 life",
        source=CUDA_GRAPH_CPP,
    ),
    Entry(
        name="replayed within a capture",
        says=("Cannot prepare for replay during capturing stage",),
        cause="g.replay() inside a capture: torch does not record a graph into another.",
        cure="Put the replays one after another, outside; or capture the functions of both into one graph.",
        cell="02 life",
        source=CUDA_GRAPH_CPP,
    ),
    Entry(
        name="instantiated too early",
        says=("capture_end() must have been called before calling",),
        cause="instantiate() or raw_cuda_graph() before the capture has ended, or after one that failed.",
        cure="Call it after the `with cuda.graph(g):` block. If that raised, repair it first.",
        cell="02 life",
        source=CUDA_GRAPH_CPP,
    ),
    Entry(
        name="instantiated by hand without keep_graph",
        says=("instantiate() is intended to be called by the user only when keep_graph=true",),
        cause="A graph made without keep_graph=True is instantiated at the end of its capture.",
        cure="Leave instantiate() out, or make the graph with cuda.CUDAGraph(keep_graph=True).",
        cell="02 life",
        source=GRAPH_CLASS,
    ),
    Entry(
        name="the template was not kept",
        says=("You cannot access the raw cudaGraph_t instance unless",),
        cause="raw_cuda_graph() needs the template, which torch throws away at the end of the capture.",
        cure="Make the graph with cuda.CUDAGraph(keep_graph=True) and capture again.",
        cell="02 anatomy",
        source=GRAPH_CLASS,
    ),
    Entry(
        name="ended what had not begun (CUDA error 401)",
        says=cuda_error(401, "the operation cannot be performed in the present state", "IllegalState"),
        cause="capture_end() without a capture, or a second time; or a debug_dump() of a graph that is not "
        "there.",
        cure="One capture_begin(), one capture_end(); `with cuda.graph(g):` sees to it.",
        cell="02 life",
        source=CUDA_TYPES,
    ),
    Entry(
        name="nothing was captured",
        says=("The CUDA Graph is empty",),
        cause="A warning: the capture recorded no kernel. The work ran on another stream or device, was on "
        "the CPU, was refused and the error swallowed, or consists of views, which launch nothing.",
        cure="Do the work on the current stream inside the `with`; look for tensors without device=device, "
        "for a bare `except`, and at graphs.anatomy(g).",
        cell="02 life",
        source=CUDA_GRAPHS,
    ),
    Entry(
        name="debug_dump() without debug mode",
        says=("CUDA Graphs debug not enabled, set with",),
        cause="A warning: debug_dump() before enable_debug_mode(), so no file is written.",
        cure="Before the capture: g = cuda.CUDAGraph(keep_graph=True); g.enable_debug_mode(). Without "
        "keep_graph=True torch 2.11 writes no file and says nothing.",
        cell="02 debug-dump",
        source=GRAPH_CLASS,
    ),
)
