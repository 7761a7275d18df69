"""What CUDA and PyTorch say, word for word, so that an error met here is recognised on a GPU.

Each ends in "(emulated)" or "(emulated: …)", which adds what the GPU would leave for you to guess.  Errors
that are the emulator's own say "the emulator" instead.
"""

import torch

# torch raises this kind for errors of the CUDA runtime; it is a RuntimeError.
AcceleratorError = getattr(torch, "AcceleratorError", RuntimeError)

# cudaGetErrorString, by number (cudaError_t in the CUDA runtime's documentation).
CUDA = {
    1: "invalid argument",
    401: "the operation cannot be performed in the present state",
    900: "operation not permitted when stream is capturing",
    901: "operation failed due to a previous error during capture",
    904: "capturing stream has unjoined work",
    905: "dependency created on uncaptured work in another stream",
    906: "operation would make the legacy stream depend on a capturing blocking stream",
    907: "operation not permitted on an event last recorded in a capturing stream",
}

ALREADY_CAPTURING = "Cannot register the state during capturing stage."
ALREADY_CAPTURED = (
    "This CUDAGraph instance already owns a captured graph. To capture a new graph, create a new instance."
)
CAPTURE_IN_REPLAY = "Cannot prepare for replay during capturing stage."
DEBUG_IS_OFF = "CUDA Graphs debug not enabled, set with [graph].enable_debug_mode()"
DEFAULT_STREAM = (
    "CUDA graphs must be captured on a non-default stream. (However, after capture, it's ok to replay "
    "them on the default stream.)"
)
EMPTY = (
    "The CUDA Graph is empty. This usually means that the graph was attempted to be captured on wrong "
    "device or stream."
)
EVENTS_WITHOUT_TIMING = "Both events must be created with argument 'enable_timing=True'."
EVENTS_NOT_RECORDED = "Both events must be recorded before calculating elapsed time."
GENERATOR_NOT_REGISTERED = "Attempt to increase offset for a CUDA generator not in capture mode."
INDEX_ON_DEVICE = "indices should be either on cpu or on the same device as the indexed tensor (cpu)"
INSTANTIATE_TOO_EARLY = "capture_end() must have been called before calling instantiate"
INSTANTIATE_AGAIN = "instantiate() is intended to be called by the user only when keep_graph=true"
NO_COPY = (
    "Cannot copy between CPU and CUDA tensors during CUDA graph capture unless the CPU tensor is pinned. "
    "Please use tensor.pin_memory() or allocate the tensor with pin_memory=True."
)
NO_NUMPY = (
    "can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host "
    "memory first."
)
NO_REPLAY = "Called CUDAGraph::replay without a preceding successful capture."
NO_POOL = "Called CUDAGraph::pool() without a preceding successful capture."
OTHER_STREAM = "Capture must end on the same stream it began on."
SEED = (
    "CUDAGeneratorImpl::set_current_seed can be called during stream capture only if new seed is the same "
    "as the original seed."
)
TWO_DEVICES = "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"
UNKNOWN_MODE = "Unknown capture error mode. Expected `global`, `thread_local`, or `relaxed`, got "


def cuda_error(number, why):
    """The exception that torch raises when the CUDA runtime returns ``number``."""
    return AcceleratorError(f"CUDA error: {CUDA[number]} (emulated: {why})")


def torch_error(message, why=None):
    """The RuntimeError of torch's own checks."""
    return RuntimeError(f"{message} (emulated: {why})" if why else f"{message} (emulated)")
