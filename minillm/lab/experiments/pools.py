"""Lesson 05: what the memory pools of twelve graphs hold, and what each graph costs beside its pool."""

from __future__ import annotations

from dataclasses import asdict

import torch

from ... import attention, decoder_layer, layers
from ... import model as model_file
from ...config import ModelConfig
from ...kv_cache import PagedKVCache
from ...model import Transformer
from .. import pool_sizes as pool_sizes_file
from ..decode_setup import BLOCK_SIZE, decode_step
from ..pool_sizes import PoolSizes, pool_sizes
from . import DoesNotFit, experiment

BUCKETS = (1, 2, 4, 8, *range(16, 129, 16))  # sequences: the article's sizes, twelve of them
CONTEXT, MAX_CONTEXT = 400, 512  # tokens


def steps_of(preset: str, device=None, dtype: torch.dtype = torch.bfloat16):
    """A function from a batch to a decode step of it; all of them share a model and a KV cache.

    The weights are whatever the memory holds, since only shapes and addresses matter here.
    """
    config, blocks = ModelConfig.preset(preset), 1 + max(BUCKETS) * MAX_CONTEXT // BLOCK_SIZE
    model = Transformer(config, device=device, dtype=dtype, seed=None)
    kv = PagedKVCache(config, blocks, BLOCK_SIZE, device=device, dtype=dtype)
    return lambda batch: decode_step(preset, batch, CONTEXT, MAX_CONTEXT, device, dtype, model, kv)


def emulated_pool_sizes(preset: str, strategy: str) -> PoolSizes:
    """`pool_sizes` of the preset's decode steps on the emulator, which has to be the backend in use.

    RuntimeError on a GPU: there the experiment measures.
    """
    from ...graphs import backend, device

    if backend != "emulated":
        raise RuntimeError(
            "the backend is a GPU, where the experiment itself measures: set MINILLM_BACKEND=emulated"
        )
    return pool_sizes(steps_of(preset, device), BUCKETS, strategy)


@experiment(
    "pools/{preset}/{strategy}",
    claim="C8",
    uses=[
        pool_sizes_file,
        steps_of,
        BUCKETS,
        CONTEXT,
        MAX_CONTEXT,
        decode_step,
        model_file,
        decoder_layer,
        layers,
        attention,
    ],
    own_process=True,
)
def pools(preset: str, strategy: str) -> dict:
    """Twelve decode graphs under one strategy of `STRATEGIES`: all sizes in bytes. In bfloat16 on every GPU,
    so that the sizes compare (nothing is replayed, so it need not be a dtype that the GPU computes fast)."""
    from ..fit import fits

    if not fits(preset, max(BUCKETS), MAX_CONTEXT):
        raise DoesNotFit(f"{preset} at batch {max(BUCKETS)} does not fit this GPU's free memory")
    return asdict(pool_sizes(steps_of(preset, "cuda"), BUCKETS, strategy))
