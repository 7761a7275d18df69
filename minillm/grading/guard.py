"""Leave the process as it was, whatever an answer did to it."""

import os
import random
import sys
import warnings
from contextlib import contextmanager, suppress


@contextmanager
def guard():
    """Restore afterwards: random generators (Python, numpy, torch), torch's grad mode, default dtype, default
    device and number of threads, the current stream, warnings filters, working folder, stdout and stderr.

    What cannot be read or put back is left to `recover`: a generator that a failed capture left unusable, for
    one. A check must report what the answer did and not an error of the tidying up. CUDA is never
    initialised here.
    """
    ways = []
    for save in SAVERS:
        with suppress(Exception):
            ways.append(save())
    try:
        yield
    finally:
        for put_back in ways:
            with suppress(Exception):
                put_back()


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


def _torch_device():
    torch = sys.modules["torch"]
    before = torch.get_default_device()

    def put_back():
        if torch.get_default_device() != before:
            torch.set_default_device(None)
            context = torch._GLOBAL_DEVICE_CONTEXT
            if getattr(context, "device_context", True) is None:
                del context.device_context  # torch 2.8 asks the None that it left there for its device
        if torch.get_default_device() != before:  # it was another than torch's own
            torch.set_default_device(before)

    return put_back


def _torch_threads():
    torch = sys.modules["torch"]
    before = torch.get_num_threads()
    return lambda: None if torch.get_num_threads() == before else torch.set_num_threads(before)


def _warnings():
    filters = warnings.catch_warnings()
    filters.__enter__()
    return lambda: filters.__exit__(None, None, None)


def _working_folder():
    before = os.getcwd()
    return lambda: os.chdir(before)


def _standard_streams():
    before = sys.stdout, sys.stderr

    def put_back():
        sys.stdout, sys.stderr = before

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


SAVERS = (
    _python_random,
    _numpy_random,
    _torch_settings,
    _torch_device,
    _torch_threads,
    _cuda_generator,
    _current_stream,
    _warnings,
    _working_folder,
    _standard_streams,
)
