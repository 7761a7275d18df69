"""Libraries inside a capture: cuBLAS, optimizers, make_graphed_callables, torch.compile."""

from .entry import PYTORCH, Entry

GRAPHED = "https://docs.pytorch.org/docs/stable/generated/torch.cuda.make_graphed_callables.html"

ENTRIES = (
    Entry(
        name="a library that was not warmed up",
        says=(
            "CUBLAS_STATUS_NOT_INITIALIZED",
            "CUBLAS_STATUS_ALLOC_FAILED",
            "CUDNN_STATUS_NOT_INITIALIZED",
            "CUSOLVER_STATUS_NOT_INITIALIZED",
        ),
        cause="cuBLAS (cuDNN, cuSOLVER) was called for the first time inside the capture; to make its handle "
        "it allocates memory, which a capture does not permit. Outside a capture the same words mostly mean "
        "that the GPU's memory is full.",
        cure="Run the same operations in the same dtype and shapes before the capture, on a side stream: "
        "graphs.warm_up(fn).",
        cell="02 warm-up-library",
        source=f"{PYTORCH}/issues/99397",
    ),
    Entry(
        name="an optimizer that is not capturable",
        says=("Attempting CUDA graph capture of step() for an instance of",),
        cause="The optimizer counts its steps on the CPU, so a graph would freeze the count.",
        cure="Make it with capturable=True, which keeps the count on the device.",
        cell="02",
        source=f"{PYTORCH}/pull/77862",
    ),
    Entry(
        name="make_graphed_callables() got what it cannot capture",
        says=(
            "Modules must not have hooks registered at the time they are passed",
            "only parameters may be trainable. All buffers must have",
            "sample_args for each callable must contain only Tensors",
            "make_graphed_callables does not support the autocast caching",
            "make_graphed_callables() has no capture_error_mode=",
        ),
        cause="Hooks would not run in a replay, a trainable buffer would get no gradient, an argument that "
        "is no tensor would be frozen, a cached cast belongs to the memory of one graph.",
        cure="Register hooks afterwards; set buffers to requires_grad=False; pass tensors only; use "
        "torch.autocast(…, cache_enabled=False); capture_error_mode= needs torch 2.14.",
        cell="02",
        source=GRAPHED,
    ),
    Entry(
        name="torch.compile skipped its graphs",
        says=("skipping cudagraphs due to",),
        cause="torch.compile(mode='reduce-overhead') found something that it will not capture, such as an "
        "input that is changed in place (a KV cache), and runs without graphs: correct, and slow.",
        cure="The message says what. For a KV cache: make it a buffer of the module, or mark it with "
        "torch._dynamo.mark_static_address().",
        cell="07",
        source="https://docs.pytorch.org/docs/stable/torch.compiler_cudagraph_trees.html",
    ),
)
