"""Host memory where a capture needs device memory. These refusals leave the capture itself intact."""

from .entry import CUDA_GRAPHS, Entry

ENTRIES = (
    Entry(
        name="a copy from or to pageable host memory",
        says=(
            "Cannot copy between CPU and CUDA tensors during CUDA graph capture unless the CPU tensor is "
            "pinned",
        ),
        cause="Something copied between the host and the GPU during the capture, perhaps without saying so: "
        ".cpu(), .tolist(), torch.tensor(…, device=…), x[[0, 1]], y[0] = 7.0, .to(device). torch refuses "
        "before CUDA hears of it, so the capture goes on; what was refused is missing in it.",
        cure="Make the tensor before the capture and let the graph read it; refill it with copy_() between "
        "replays. For y[0] = 7.0 write y[:1] = 7.0 (fill) instead. A copy that has to be in the graph needs "
        "pinned memory and non_blocking=True, and reads that memory anew at every replay.",
        cell="02 refusals",
        source=CUDA_GRAPHS,
    ),
    Entry(
        name="tensors on two devices",
        says=("Expected all tensors to be on the same device",),
        cause="A tensor in host memory was an operand beside one on the GPU: most often made without "
        "device=. This is no matter of graphs, but in a capture it cannot be repaired by .to(device) on "
        "the spot, since that is a copy.",
        cure="Make it with device=device before the capture. A Python number needs no tensor. (A 0-dim host "
        "tensor is accepted by most operations, and frozen.)",
        cell="03 frozen-number",
        source=CUDA_GRAPHS,
    ),
    Entry(
        name="an index on the GPU for a tensor on the host",
        says=(
            "indices should be either on cpu or on the same device as the indexed tensor",
            "expected tensor_indices_or_sections to be on cpu",
        ),
        cause="The tensor that is indexed or split is in host memory and its indices are on the GPU, or a "
        "function wants its sizes on the host. To bring either over is a copy, which waits.",
        cure="Keep table and indices both on the device (made with device=device before the capture); give "
        "sizes as Python numbers, which the graph freezes.",
        cell="02 refusals",
        source="https://docs.pytorch.org/docs/stable/notes/cuda.html",
    ),
    Entry(
        name="numpy wants a tensor that is on the GPU",
        says=(
            "can't convert cuda:0 device type tensor to numpy",
            "can't convert … device type tensor to numpy",
        ),
        cause="numpy reads host memory only: np.asarray(x), x.numpy(), or arithmetic between a tensor and a "
        "numpy array (which asks numpy first).",
        cure="Compute in torch inside the capture; outside, x.cpu().numpy() after the replay.",
        cell="02 refusals",
        source="https://docs.pytorch.org/docs/stable/generated/torch.Tensor.numpy.html",
    ),
    Entry(
        name="two shapes that do not fit",
        says=(
            "The size of tensor a … must match the size of tensor b",
            "doesn't match the broadcast shape",
            "does not match the shape of the indexing result",
        ),
        cause="Two tensors of different shapes met. Around a graph this is usually copy_() of a batch of "
        "another size into a static input: a graph has one shape. (A batch of 1 broadcasts in silence.)",
        cure="Copy into a slice, static[:n].copy_(batch), and fill the rest with padding; or replay the "
        "graph that was captured for this size.",
        cell="03 stale-rows",
        source="https://docs.pytorch.org/docs/stable/notes/broadcasting.html",
    ),
)
