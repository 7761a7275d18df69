"""Which preset fits the memory that is free here: weights, KV cache, and room to work in."""

from __future__ import annotations

import math
import os

import torch

from ..config import PRESETS, ModelConfig, default_dtype

GIB = 2**30
SPARE = 0.25  # this part of the free memory stays free: other processes grow, and allocators fragment
ALLOWANCE = GIB // 2  # bytes for cuBLAS workspaces (32 MiB a stream), graph pools, logits and activations
BLOCK = 16  # tokens; KV is handed out in blocks, so a context is rounded up to whole ones
ON_CPU = ("tiny", "reciter")  # what a laptop's CPU runs in reasonable time
NO_SUBSTITUTE = ("reciter", "llama3-70b-tp8-rank")  # one is there to recite, one is an eighth of a model


def needed_bytes(config: ModelConfig, batch: int, context: int, dtype: torch.dtype) -> int:
    """Bytes that decoding ``batch`` sequences of up to ``context`` tokens takes in ``dtype``.

    Weights with the embedding, the KV blocks and the null block, a copy of one layer's KV (attention in
    plain PyTorch gathers it before it computes), and half a GiB for what else there is.
    """
    kv_tokens = (batch * math.ceil(context / BLOCK) + 1) * BLOCK
    kv = kv_tokens * config.kv_bytes_per_token(dtype)
    return config.weight_bytes(dtype) + kv + kv // config.layers + ALLOWANCE


def memory_limit_bytes() -> int | None:
    """MINILLM_MEMORY_LIMIT, this learner's share of a GPU in GiB, as bytes; None if it is not set."""
    text = os.environ.get("MINILLM_MEMORY_LIMIT", "").strip()
    if not text:
        return None
    try:
        gib = float(text)
    except ValueError:
        gib = math.nan
    if not (gib > 0 and math.isfinite(gib)):
        raise ValueError(
            f"MINILLM_MEMORY_LIMIT is {text!r}; it must be a number of GiB above 0, such as 8 or 7.5. "
            "Change it or unset it, and restart the kernel"
        )
    return int(gib * GIB)


def free_bytes() -> int:
    """Bytes of GPU memory that this process may still take, within MINILLM_MEMORY_LIMIT if that is set.

    Memory that torch has reserved and does not use counts as free: the next tensor goes there.
    """
    free, _ = torch.cuda.mem_get_info()
    free += torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
    limit = memory_limit_bytes()
    return free if limit is None else max(0, min(free, limit - torch.cuda.memory_allocated()))


def fits(name: str, batch: int, context: int, device: str | torch.device | None = None) -> bool:
    """True if preset ``name`` can decode ``batch`` sequences of ``context`` tokens on ``device``.

    On a GPU its bytes must leave a quarter of the free memory over; on a CPU only ``tiny`` and ``reciter``
    are offered. ``device=None`` is the course's backend. Raises ValueError for an unknown preset, a batch
    or context below 1, and a MINILLM_MEMORY_LIMIT that is no number.
    """
    config, device = _checked(name, batch, context, device)
    if context > config.max_context:
        return False
    if device.type != "cuda":
        return name in ON_CPU
    return needed_bytes(config, batch, context, default_dtype(device)) <= (1 - SPARE) * free_bytes()


def fitting_preset(
    wanted: str, batch: int, context: int, device: str | torch.device | None = None
) -> tuple[str, str]:
    """The preset to use where ``wanted`` was meant, and a note for the reader ("" if it is ``wanted``).

    The next smaller preset that ``fits`` takes its place, but neither the reciter nor the rank of the 70B.
    Raises as ``fits`` does, and MemoryError when nothing fits.
    """
    config, device = _checked(wanted, batch, context, device)
    if fits(wanted, batch, context, device):
        return wanted, ""
    sizes = [name for name in PRESETS if name not in NO_SUBSTITUTE]
    smaller = [name for name in sizes if PRESETS[name].weight_count() < config.weight_count()]
    for name in reversed(smaller):
        if fits(name, batch, context, device):
            return name, f"{wanted} {_why_not(config, batch, context, device)}, so {name} takes its place."
    raise MemoryError(
        f"{wanted} {_why_not(config, batch, context, device)}, and no smaller preset fits either. "
        "Use a smaller batch or context, shut down other notebooks, or raise MINILLM_MEMORY_LIMIT"
    )


def _checked(name: str, batch: int, context: int, device) -> tuple[ModelConfig, torch.device]:
    for what, value in (("batch", batch), ("context", context)):
        if value < 1:
            raise ValueError(f"{what} is {value}; it must be at least 1")
    if device is None:
        from ..graphs import device
    return ModelConfig.preset(name), torch.device(device)


def _why_not(config: ModelConfig, batch: int, context: int, device: torch.device) -> str:
    if context > config.max_context:
        return f"takes at most {config.max_context} tokens and not {context}"
    if device.type != "cuda":
        return "is too slow on a CPU"
    needed = needed_bytes(config, batch, context, default_dtype(device)) / GIB
    return f"needs {needed:.1f} GiB, which does not leave a quarter of the {free_bytes() / GIB:.1f} GiB free"
