"""Leave the process as it was, whatever an answer did to it, and find out whether it still can capture."""

import random
import sys
from contextlib import contextmanager, suppress

RESTART = (
    "Your answer left CUDA in a state that cannot be repaired from here ({reason}). The result above is "
    "kept; restart the kernel before you go on."
)


@contextmanager
def guard():
    """Restore afterwards: random generators (Python, numpy, torch), grad mode, default dtype, current stream.

    What cannot be read or put back is left for `probe` to notice: a poisoned CUDA generator, for one, refuses
    both, and a check must report what the answer did and not an error of the tidying up. CUDA is never
    initialised here.
    """
    ways = []
    for save in (_python_random, _numpy_random, _torch_settings, _cuda_generator, _current_stream):
        with suppress(Exception):
            ways.append(save())
    try:
        yield
    finally:
        for put_back in ways:
            with suppress(Exception):
                put_back()


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


def _python_random():
    state = random.getstate()
    return lambda: random.setstate(state)


def _numpy_random():
    numpy = sys.modules["numpy"]
    state = numpy.random.get_state()
    return lambda: numpy.random.set_state(state)


def _torch_settings():
    torch = sys.modules["torch"]
    generator, grad, dtype = torch.get_rng_state(), torch.is_grad_enabled(), torch.get_default_dtype()

    def put_back():
        torch.set_grad_enabled(grad)
        torch.set_default_dtype(dtype)
        torch.set_rng_state(generator)

    return put_back


def _cuda_generator():
    cuda = sys.modules["torch"].cuda
    state = cuda.get_rng_state() if _in_use(cuda) else None
    return lambda: None if state is None else cuda.set_rng_state(state)


def _current_stream():
    graphs = sys.modules["minillm.graphs"]
    if graphs.backend == "cuda" and not _in_use(graphs.cuda):
        return lambda: None
    stream = graphs.cuda.current_stream()
    return lambda: graphs.cuda.set_stream(stream)


def _in_use(cuda) -> bool:
    return cuda.is_available() and cuda.is_initialized()
