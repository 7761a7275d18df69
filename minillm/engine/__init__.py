"""The serving engine.

To be read in this order: buffers, runner, ladder, bucketed, sampling, advance, device_batch, request,
scheduler, core, engine.
"""

from .bucketed import BucketedDecoder
from .buffers import PADDING_CONTRACT, StaticBuffers
from .engine import Engine
from .request import Request
from .runner import GraphRunner
from .sampling import Sampling
from .scheduler import Scheduler

__all__ = [
    "PADDING_CONTRACT",
    "BucketedDecoder",
    "Engine",
    "GraphRunner",
    "Request",
    "Sampling",
    "Scheduler",
    "StaticBuffers",
]
