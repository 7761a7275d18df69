"""The engine's tests: their helpers can be imported, and a trace runs on either backend."""

import sys
from pathlib import Path

import pytest
import torch

from minillm import graphs
from minillm.graphs import emulator

sys.path.insert(0, str(Path(__file__).parent))  # helpers.py, traces.py, checked_engine.py
pytest.register_assert_rewrite("checked_engine")  # so that a failure says which values it is about

NO_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
BACKENDS = {"emulated": (emulator, emulator.device), "cuda": (torch.cuda, "cuda")}


@pytest.fixture(scope="module", params=["emulated", pytest.param("cuda", marks=NO_GPU)])
def backend(request):
    """The name of the backend that the module's tests run on, whichever is active elsewhere."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(graphs, "backend", request.param)
        patch.setattr(graphs, "cuda", BACKENDS[request.param][0])
        patch.setattr(graphs, "device", BACKENDS[request.param][1])
        yield request.param


@pytest.fixture(scope="session")
def everything(request) -> bool:
    """Whether the tests that take long were asked for."""
    return request.config.getoption("--all", default=False)
