"""Memory of graphs: pools left open, freed inputs, overwritten outputs, too little of it."""

from .entry import PYTORCH, Entry, cuda_error

VLLM = "https://github.com/vllm-project/vllm"

ENTRIES = (
    Entry(
        name="a pool that a failed capture left open",
        says=(
            "beginAllocateToPool: already recording to",
            "captures_underway.empty() INTERNAL ASSERT FAILED",
        ),
        cause="A capture into this pool failed, and torch's allocator still believes in it (in older "
        "torch, and where the capture was never ended). Or two threads capture into one pool.",
        cure="A new pool for the next attempt: cuda.graph_pool_handle(). The memory of the old one may stay "
        "reserved until the process ends. Repair the capture that failed.",
        cell="02 life",
        source=f"{PYTORCH}/pull/180395",
        consequence=True,
    ),
    Entry(
        name="a pool used again after all its graphs died",
        says=("it->second->use_count > 0",),
        cause="All graphs of this pool were destroyed while one of their outputs was still alive, and then "
        "something was captured into the pool again. An assertion of torch's allocator.",
        cure="Keep one graph of the pool alive, or drop the outputs first, or take a new pool.",
        cell="05",
        source=f"{VLLM}/issues/28426",
    ),
    Entry(
        name="a pool that is no pool",
        says=("expected the handle of a pool", "is the handle of a GPU's pool, and no GPU is here"),
        cause="pool= takes the handle of a pool: not a graph, not a number, not one of another backend.",
        cure="Pass what cuda.graph_pool_handle() or a captured graph's pool() returned.",
        cell="05",
        source="minillm/graphs/pools.py",
    ),
    Entry(
        name="inputs of a graph that were freed",
        says=("CUDA graph replay detected … dead tensor(s)", "this graph uses … freed tensor(s)"),
        cause="A tensor that the capture used has no owner any more, so its memory is handed out to others, "
        "and the graph goes on using it. By itself a GPU says nothing: this comes from "
        "check_input_liveness (torch 2.13), or from the emulator.",
        cure="Keep every input, weight and buffer of a graph alive as long as the graph: in an attribute "
        "beside it, never only in a local variable.",
        cell="03 freed-input",
        source=f"{PYTORCH}/blob/main/torch/cuda/graphs.py",
    ),
    Entry(
        name="an output that the next replay has overwritten",
        says=("accessing tensor output of CUDAGraphs that has been overwritten by a subsequent run",),
        cause="torch.compile(mode='reduce-overhead') uses CUDA graphs: an output's memory belongs to the "
        "graph, and a later run reuses it. With a CUDAGraph of your own nothing is said.",
        cure="clone() the output, outside the compiled function, before the next run. "
        "torch.compiler.cudagraph_mark_step_begin() marks where a step begins, and keeps nothing alive.",
        cell="03 aliased-output",
        source=f"{PYTORCH}/issues/170604",
    ),
    Entry(
        name="an illegal address or index during a replay (CUDA errors 700 and 710)",
        says=(
            *cuda_error(700, "an illegal memory access was encountered", "IllegalAddress"),
            *cuda_error(710, "device-side assert triggered", "Assert"),
        ),
        cause="A kernel of the graph used an address or index that is not valid any more: stale positions, "
        "slots or block tables in the padding rows, an index out of range, a freed input, or a cuBLAS "
        "workspace that went with another graph of the same stream (pytorch #193402). The replay returns at "
        "once, so the error comes up later, somewhere else.",
        cure="The process is lost: restart it, with CUDA_LAUNCH_BLOCKING=1 and compute-sanitizer to find the "
        "kernel. Fill the padded tail of every input before each replay; hold all inputs; check addresses.",
        cell="03 stale-rows",
        source="https://github.com/sgl-project/sglang/pull/24401",
    ),
    Entry(
        name="out of memory",
        says=("CUDA out of memory", "CUDA error: out of memory", "OutOfMemoryError", "no memory for … bytes"),
        cause="At a capture: a graph's pool keeps its memory for as long as the graph lives, and the driver "
        "takes some for the graph itself. A KV cache sized before the captures leaves nothing for them.",
        cure="Share one pool and one capture stream, capture the largest batch first, capture fewer sizes, "
        "and size the KV cache after the captures (or leave room for them).",
        cell="05",
        source=f"{VLLM}/issues/57475",
    ),
)
