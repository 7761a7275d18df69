"""The CPU waited during a capture, or somebody else did; and what a capture says once it is broken."""

from .entry import CUDA_TYPES, PYTORCH, Entry, cuda_error

UNSUPPORTED = "operation not permitted when stream is capturing"
INVALIDATED = "operation failed due to a previous error during capture"

ENTRIES = (
    Entry(
        name="a wait during capture (CUDA error 900)",
        says=cuda_error(900, UNSUPPORTED, "StreamCaptureUnsupported"),
        cause="Something in the capture made the CPU wait for the GPU, which runs nothing while it is being "
        "recorded: .item(), int(x), `if x > 0`, print(x), nonzero, x[mask], torch.equal, synchronize(), an "
        "event's query, a copy without non_blocking=True. Or a library did something for the first time "
        "(allocated, loaded a kernel), or another thread called CUDA. The capture is broken for good.",
        cure="Keep the value on the device: torch.where instead of x[mask] or `if`, a 0-dim tensor instead "
        "of .item(), prints and checks after the replay. Run the same code a few times before the capture "
        "(graphs.warm_up). For another thread's calls: capture_error_mode='thread_local'.",
        cell="02 refusals",
        source="https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html"
        "#prohibited-and-unhandled-operations",
        emulated=(
            "waits for",
            "must wait",
            "asks the device",
            "nothing may wait",
            "copies between host and device",
            "made in host memory",
            "makes a host tensor",
        ),
    ),
    Entry(
        name="a capture that was broken before (CUDA error 901)",
        says=cuda_error(901, INVALIDATED, "StreamCaptureInvalidated"),
        cause="The capture was broken by an earlier error, and everything after it, the end of the `with` "
        "block included, only says so. This error hides the one that matters.",
        cure="Repair what the first error names. Afterwards, in the same process: graphs.recover(), then a "
        "new CUDAGraph and a new pool; or restart the kernel.",
        cell="02 refusals",
        source=CUDA_TYPES,
        consequence=True,
    ),
    Entry(
        name="a capture begun within a capture",
        says=(f"{UNSUPPORTED} (emulated: another capture is underway)",),
        cause="A second capture was begun while one was underway. CUDA says error 900 to this too.",
        cure="End the first capture before you begin the next; do not call a function that captures from "
        "one that is being captured.",
        cell="02 life",
        source="minillm/graphs/emulator/graphs.py",
        emulated=("another capture is underway",),
    ),
    Entry(
        name="an old graph destroyed during a capture",
        says=(f"{UNSUPPORTED} (function reset)",),
        cause="While one graph was captured, another was destroyed: by reset(), with its last reference, or "
        "by Python's garbage collector, which happened to run just then. Since torch 2.9 a capture no "
        "longer collects garbage first, so an old graph in a reference cycle can die at any moment.",
        cure="gc.collect() before the captures, gc.freeze() or gc.disable() during them, as serving engines "
        "do; reset() old graphs before you capture, and keep graphs out of reference cycles.",
        cell="02 life",
        source=f"{PYTORCH}/pull/161037",
        emulated=("a graph was destroyed while this one was captured",),
    ),
    Entry(
        name="NCCL's watchdog broke the capture",
        says=(
            f"watchdog thread terminated with exception: CUDA error: {UNSUPPORTED}",
            f"watchdog thread terminated with exception: CUDA error: {INVALIDATED}",
            f"watchdog: CUDA error: {UNSUPPORTED}",
        ),
        cause="torch.distributed has a thread that asks CUDA whether collectives have finished. In a "
        "capture with capture_error_mode='global', a query from any thread breaks the capture.",
        cure="Capture with capture_error_mode='thread_local'; let earlier collectives finish before the "
        "capture (synchronize, then begin); use a torch whose watchdog stands aside.",
        cell="02 error-modes",
        source=f"{PYTORCH}/pull/148594",
    ),
    Entry(
        name="unknown capture error mode",
        says=("Unknown capture error mode. Expected `global`, `thread_local`, or `relaxed`, got",),
        cause="capture_error_mode got a word that CUDA does not know.",
        cure="Pass 'global' (the default: nobody may do anything unsafe), 'thread_local' (only this thread "
        "is watched) or 'relaxed' (nobody is).",
        cell="02 error-modes",
        source="https://docs.pytorch.org/docs/stable/generated/torch.cuda.graph.html",
    ),
)
