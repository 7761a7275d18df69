"""Find out whether this process can still capture a graph, after an answer that may have spoilt that."""

RESTART = (
    "Your answer left CUDA in a state that cannot be repaired from here ({reason}). The result above is "
    "kept; restart the kernel before you go on."
)


def probe() -> str | None:
    """Capture and replay one addition. None if that works; else the reason, in CUDA's words."""
    try:
        import torch

        from minillm.graphs import cuda, device

        number = torch.ones(1, device=device)
        stream = cuda.Stream()
        with cuda.stream(stream):
            number.add_(1)
        cuda.synchronize()
        graph = cuda.CUDAGraph()
        with cuda.graph(graph):
            number.add_(1)
        graph.replay()
        cuda.synchronize()
        torch.rand(1, device=device)
        return None if number.item() == 3 else "a replayed addition gave a wrong sum"
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
