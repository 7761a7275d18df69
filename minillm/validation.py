"""What the model refuses, and in which words: kept apart so that the model itself can be read in one sitting.

The checks of a decode step look at metadata only (shape, dtype, device), since reading a value would wait
for the device, and so would make the step impossible to capture. Values are checked where they are still on
the host.
"""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING

import torch

from .config import ModelConfig

if TYPE_CHECKING:
    from .kv_cache import PagedKVCache


def check_decode_inputs(tensors: dict, dtypes: dict, config: ModelConfig, kv: PagedKVCache) -> None:
    """TypeError for a wrong dtype, ValueError for a wrong shape or device; reads metadata only."""
    batch = tensors["token_ids"].numel()
    widest = -(-config.max_context // kv.block_size)
    for name, tensor in tensors.items():
        if tensor.dtype != dtypes[name]:
            raise TypeError(f"{name} is {tensor.dtype}; expected {dtypes[name]}: convert it with .to()")
        if tensor.device != kv.device:
            raise ValueError(f"{name} is on {tensor.device}, the KV cache on {kv.device}: move one of them")
        if name != "block_tables":
            if tuple(tensor.shape) != (batch,) or batch < 1:
                raise ValueError(
                    f"{name} has shape {list(tensor.shape)}; expected one dimension, the batch of token_ids "
                    f"(now {batch}, at least 1)"
                )
        elif tensor.dim() != 2 or tensor.shape[0] != batch or not 1 <= tensor.shape[1] <= widest:
            raise ValueError(
                f"block_tables has shape {list(tensor.shape)}; expected [{batch}, 1 to {widest}]: a row for "
                f"each sequence, and columns for at most max_context = {config.max_context} tokens in blocks "
                f"of {kv.block_size}"
            )


def check_cache(kv: PagedKVCache, config: ModelConfig, weight: torch.Tensor) -> None:
    """ValueError when the cache was made for another shape than ``config``, or is no match for ``weight``."""
    theirs = kv.config
    if (theirs.layers, theirs.kv_heads, theirs.head_dim) != (config.layers, config.kv_heads, config.head_dim):
        raise ValueError(
            f"the KV cache was made for {theirs.name} ({theirs.layers} layers, {theirs.kv_heads} KV heads of "
            f"{theirs.head_dim}), the model is {config.name} ({config.layers}, {config.kv_heads} of "
            f"{config.head_dim}): make the cache from the model's config"
        )
    if kv.dtype != weight.dtype or kv.device != weight.device:
        raise ValueError(
            f"the KV cache is {kv.dtype} on {kv.device}, the model {weight.dtype} on {weight.device}: make "
            "the cache with the model's dtype and device"
        )


def check_ids(what: str, ids: list[int], limit: int | None = None) -> None:
    """TypeError for an id that is no integer, ValueError for one outside 0 … ``limit`` − 1."""
    expected = "0 or more" if limit is None else f"0 to {limit - 1}"
    for number in ids:
        if not isinstance(number, Integral):
            raise TypeError(
                f"{what} {number!r} is a {type(number).__name__}; expected an integer, {expected}"
            )
        if number < 0 or (limit is not None and number >= limit):
            raise ValueError(f"{what} {number} does not exist; expected {expected}")


def check_context(who: str, context: int, blocks: int, block_size: int, longest: int | None = None) -> None:
    """ValueError when ``context`` tokens are none, exceed ``longest`` or do not fit in ``blocks`` blocks."""
    if context < 1 or (longest is not None and context > longest):
        expected = "1 or more" if longest is None else f"1 to max_context, {longest}"
        raise ValueError(f"{who}: the context is {context} tokens; expected {expected}")
    needed = -(-context // block_size)
    if blocks < needed:
        raise ValueError(
            f"{who}: {context} tokens need {needed} blocks of {block_size}, the block table has {blocks}: "
            "allocate the missing ones first"
        )


def check_table(
    who: str, blocks: list[int], context: int, block_size: int, num_blocks: int | None = None
) -> None:
    """As ``check_ids``; ValueError also when a block stands twice among those that hold the context."""
    check_ids(f"{who}: block", blocks, num_blocks)
    used = blocks[: -(-context // block_size)]
    if len(set(used)) < len(used):
        raise ValueError(f"{who}: a block stands twice in the table {used}; every token needs its own slot")


def checked_prompt(token_ids, block_table, start: int, config: ModelConfig, kv: PagedKVCache):
    """Prompt [T] and block table as int64 tensors on the cache's device, from lists or 1-D integer tensors.

    Values that lie on a GPU are not read, so there only the lengths are checked.
    """
    for name, values in (("token_ids", token_ids), ("block_table", block_table)):
        if isinstance(values, torch.Tensor):
            if values.dim() != 1:
                raise ValueError(
                    f"{name} has shape {list(values.shape)}; expected one dimension, one sequence"
                )
            if values.dtype not in (torch.int32, torch.int64):
                raise TypeError(f"{name} is {values.dtype}; expected int64 or int32: convert it with .to()")
    if start < 0 or len(token_ids) < 1:
        raise ValueError(
            f"start is {start} with {len(token_ids)} tokens; expected start >= 0 and a token or more"
        )
    context = start + len(token_ids)
    check_context("prompt", context, len(block_table), kv.block_size, config.max_context)
    if (tokens := on_host(token_ids)) is not None:
        check_ids("prompt: token", tokens, config.vocab)
    if (blocks := on_host(block_table)) is not None:
        check_table("prompt", blocks, context, kv.block_size, kv.num_blocks)
    return tuple(torch.as_tensor(v, device=kv.device).to(torch.int64) for v in (token_ids, block_table))


def on_host(values: list[int] | torch.Tensor) -> list[int] | None:
    """The values as a list, or None where reading them would wait for the GPU."""
    if isinstance(values, torch.Tensor):
        return None if values.is_cuda else values.tolist()
    return list(values)
