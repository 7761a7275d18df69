"""One decode step of any preset, ready to call: what the lessons measure, profile and capture."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ..config import ModelConfig, default_device, default_dtype
from ..inputs import DecodeInputs
from ..kv_cache import PagedKVCache
from ..model import Transformer

BLOCK_SIZE = 16


@dataclass
class DecodeStep:
    """A model, its KV cache and one batch of inputs; calling it runs one eager decode step.

    Calling it twice is harmless: the step writes the same token's KV into the same slots again.
    """

    model: Transformer
    inputs: DecodeInputs
    kv: PagedKVCache

    def __call__(self) -> torch.Tensor:
        """Logits [batch, vocab] of one decode step."""
        with torch.inference_mode():
            return self.model.decode(self.inputs, self.kv)


def decode_step(
    preset: str,
    batch: int = 1,
    context: int = 400,
    max_context: int = 512,
    device: str | torch.device | None = None,
    dtype: torch.dtype | None = None,
    model: Transformer | None = None,
    kv: PagedKVCache | None = None,
) -> DecodeStep:
    """A decode step of ``batch`` sequences that are ``context`` tokens long, this step's token included.

    The block tables are ``max_context`` tokens wide, since the attention of the plain model gathers
    that many whatever the length. ``device`` is the backend's own when left out, ``dtype`` the
    device's default. An existing ``model`` of the same preset may be passed to save its building, and
    a ``kv`` with blocks of 16 tokens, enough of them, which several steps then share.

    Raises ValueError when ``context`` is not in 1 … ``max_context``.
    """
    if not 1 <= context <= max_context:
        raise ValueError(f"context is {context}; expected 1 to max_context = {max_context}")
    device = torch.device(device or default_device())
    config = ModelConfig.preset(preset)
    dtype = dtype or default_dtype(device)
    model = model or Transformer(config, device=device, dtype=dtype)
    width = -(-max_context // BLOCK_SIZE)
    kv = kv or PagedKVCache(config, 1 + batch * width, BLOCK_SIZE, device=device, dtype=dtype)
    # Every sequence owns `width` blocks, dealt in random order as a busy allocator would; block 0 is null.
    order = torch.randperm(batch * width, generator=torch.Generator().manual_seed(0)) + 1
    tables = order.view(batch, width).tolist()
    tokens = [(7 * row + 1) % config.vocab for row in range(batch)]
    inputs = DecodeInputs.for_sequences(
        last_tokens=tokens,
        block_tables=tables,
        context_lens=[context] * batch,
        block_size=BLOCK_SIZE,
        max_blocks=width,
        num_blocks=kv.num_blocks,
        device=device,
    )
    return DecodeStep(model, inputs, kv)
