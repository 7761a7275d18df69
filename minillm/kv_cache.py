"""The paged KV cache, and the allocator that says which sequence owns which block of it.

As in vLLM (https://arxiv.org/abs/2309.06180), a sequence owns blocks of ``block_size`` tokens that may lie
anywhere in the cache; its block table lists them in order.
"""

from __future__ import annotations

import torch

from .config import ModelConfig, default_device, default_dtype


class PagedKVCache:
    """Keys and values: ``key[layer]`` and ``value[layer]`` [num_blocks, block_size, kv_heads, head_dim].

    ``device`` is the course's own when left out, ``dtype`` the device's default. Zeroed once, so that a
    kernel that reads too far finds zeros and no NaN. Raises ValueError for less than one block or slot.
    """

    # Made while inference mode is off, the cache can be written in and outside of it.
    @torch.inference_mode(False)
    def __init__(
        self,
        config: ModelConfig,
        num_blocks: int,
        block_size: int = 16,
        device: str | torch.device | None = None,
        dtype: torch.dtype | None = None,
    ):
        if num_blocks < 1 or block_size < 1:
            raise ValueError(
                f"num_blocks is {num_blocks}, block_size {block_size}; expected 1 or more of each"
            )
        device = device or default_device()
        dtype = dtype or default_dtype(device)
        shape = (num_blocks, block_size, config.kv_heads, config.head_dim)
        self.config = config
        self.num_blocks = num_blocks
        self.block_size = block_size
        self.key = [torch.zeros(shape, dtype=dtype, device=device) for _ in range(config.layers)]
        self.value = [torch.zeros(shape, dtype=dtype, device=device) for _ in range(config.layers)]
        self.device = self.key[0].device
        self.dtype = dtype

    @property
    def bytes(self) -> int:
        """Size of the whole cache in bytes."""
        return self.num_blocks * self.block_size * self.config.kv_bytes_per_token(self.dtype)

    def tensors(self) -> dict[str, torch.Tensor]:
        """All keys and values by name: ``kv.key[0]``, …, ``kv.value[0]``, …"""
        keys = {f"kv.key[{layer}]": tensor for layer, tensor in enumerate(self.key)}
        return keys | {f"kv.value[{layer}]": tensor for layer, tensor in enumerate(self.value)}

    def write(self, layer: int, slot_mapping: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> None:
        """Put the ``key`` and ``value`` [N, kv_heads, head_dim] of N tokens into their slots [N] int64."""
        self.key[layer].flatten(0, 1).index_copy_(0, slot_mapping, key)
        self.value[layer].flatten(0, 1).index_copy_(0, slot_mapping, value)


class OutOfBlocks(RuntimeError):
    """More blocks were asked for than are free; the message and the attributes say how many."""

    def __init__(self, wanted: int, free: int, owned: int):
        super().__init__(
            f"{wanted} blocks wanted, {free} free, {owned} owned by sequences: finish or preempt a sequence, "
            "or make the cache larger (num_blocks)"
        )
        self.wanted, self.free, self.owned = wanted, free, owned


class BlockAllocator:
    """Hands out the blocks 0 … ``num_blocks`` − 1 of a cache, but never block 0 while ``null_block`` is True.

    Padding rows of a batch write somewhere: the null block is where they do no harm. ``null_block=False`` is
    there to show what happens without it. Raises ValueError when no block would be left to hand out.
    """

    def __init__(self, num_blocks: int, null_block: bool = True):
        first = 1 if null_block else 0
        if num_blocks <= first:
            raise ValueError(
                f"num_blocks is {num_blocks}; expected {first + 1} or more with null_block={null_block}"
            )
        self.num_blocks = num_blocks
        self.null_block = null_block
        # A stack: the block freed last is handed out first, so a stale block table soon does visible harm.
        self._free = list(reversed(range(first, num_blocks)))
        self._owned: set[int] = set()

    @property
    def num_free(self) -> int:
        """How many blocks can still be allocated."""
        return len(self._free)

    def allocate(self, count: int) -> list[int]:
        """``count`` blocks that nobody owns; OutOfBlocks, or ValueError below 0, and then it gives none."""
        if count < 0:
            raise ValueError(f"{count} blocks wanted; expected 0 or more")
        if count > len(self._free):
            raise OutOfBlocks(count, len(self._free), len(self._owned))
        blocks = [self._free.pop() for _ in range(count)]
        self._owned.update(blocks)
        return blocks

    def free(self, blocks: list[int]) -> None:
        """Give blocks back. Raises ValueError, and frees none, when one is not owned or stands twice."""
        for block in blocks:
            if block not in self._owned:
                kind = (
                    "the null block" if block == 0 and self.null_block else "freed before, or never allocated"
                )
                raise ValueError(
                    f"block {block} is not owned by a sequence ({kind}): free what allocate gave, once"
                )
        if len(set(blocks)) < len(blocks):
            raise ValueError(f"a block stands twice in {list(blocks)}: free each once")
        self._owned.difference_update(blocks)
        self._free.extend(reversed(blocks))
