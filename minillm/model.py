"""The Transformer of this course: ``decode`` is the step that becomes a CUDA graph, ``prefill`` stays eager.

Llama's architecture (https://arxiv.org/abs/2302.13971, https://arxiv.org/abs/2307.09288), with the queries,
keys and values of a layer in one product and gate and up in another, as serving engines have them.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from .attention import context_slots
from .config import ModelConfig, default_device, default_dtype
from .decoder_layer import DecoderLayer, Step
from .inputs import DecodeInputs
from .kv_cache import PagedKVCache
from .layers import RMSNorm, rope_tables
from .prompts import PackedPrompts
from .validation import check_cache, checked_prompt

Ids = list[int] | torch.Tensor  # [n] numbers on the host, or an int64 or int32 tensor


class Transformer(nn.Module):
    """Embedding, layers, norm, head. Weights are random, made on the device from ``seed``, without gradients.

    ``device`` is the course's own when left out, ``dtype`` the device's default. The same seed gives the same
    weights on the same kind of device, in the same dtype and version of torch. ``seed=None`` leaves them as
    the memory happens to be, for what asks about shapes and addresses only.
    """

    @torch.inference_mode(False)  # weights made in inference mode could not be loaded outside of it
    def __init__(
        self,
        config: ModelConfig,
        device: str | torch.device | None = None,
        dtype: torch.dtype | None = None,
        seed: int | None = 0,
    ):
        super().__init__()
        device = torch.device(device or default_device())
        self.config = config
        with torch.device("meta"):  # shapes without memory: nothing is initialised twice, or on the host
            self.embedding = nn.Embedding(config.vocab, config.hidden)
            self.layers = nn.ModuleList(DecoderLayer(config) for _ in range(config.layers))
            self.norm = RMSNorm(config.hidden, config.norm_eps)
            # A tied head is the embedding itself; of either, only the weight [vocab, hidden] is used.
            self.head = self.embedding
            if not config.tied_head:
                self.head = nn.Linear(config.hidden, config.vocab, bias=False)
        self.to(dtype or default_dtype(device)).to_empty(device=device).requires_grad_(False)
        cos, sin = rope_tables(config.head_dim, config.max_context, config.rope_theta, device)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)
        if seed is not None:
            self._draw_weights(torch.Generator(device).manual_seed(seed))

    def _draw_weights(self, generator: torch.Generator) -> None:
        for weight in self.parameters():
            if weight.dim() == 1:  # a norm
                weight.fill_(1)
            else:  # a spread of 1 / sqrt(inputs) keeps 80 layers well inside of float16's range
                weight.normal_(std=weight.shape[1] ** -0.5, generator=generator)

    def decode(self, inputs: DecodeInputs, kv: PagedKVCache) -> torch.Tensor:
        """One token for each of B sequences: writes its keys and values, returns the logits [B, vocab].

        Row i feeds ``token_ids[i]`` in at ``positions[i]`` and attends to the first ``context_lens[i]``
        tokens of its block table. Never waits for the device, has no shape that depends on data, and leaves
        nothing allocated but the logits, so it can be captured. Wrong dtypes, shapes and devices raise as in
        ``DecodeInputs.validate``, before anything is written; wrong values are not looked at.
        """
        check_cache(kv, self.config, self.embedding.weight)
        inputs.validate(self.config, kv)
        slots, mask = context_slots(inputs.block_tables, inputs.context_lens, kv.block_size)
        hidden = self._run(kv, inputs.token_ids, inputs.positions, inputs.slot_mapping, slots, mask)
        return F.linear(self.norm(hidden), self.head.weight)

    def prefill(self, token_ids: Ids, kv: PagedKVCache, block_table: Ids, start: int = 0) -> torch.Tensor:
        """T prompt tokens of one sequence at once; returns the logits [vocab] after the last of them.

        The tokens [T] stand at positions ``start`` … ``start`` + T − 1; what is before them must be in the
        cache already, so a long prompt can come in chunks. ``block_table`` holds the sequence's blocks, at
        least for ``start`` + T tokens. Raises ValueError or TypeError, with the cache unchanged, for a token
        outside the vocabulary, too few blocks, a block that is not there or twice, or a context over the
        maximum; values that lie on a GPU are not looked at.
        """
        check_cache(kv, self.config, self.embedding.weight)
        tokens, blocks = checked_prompt(token_ids, block_table, start, self.config, kv)
        positions = torch.arange(start + len(tokens), device=kv.device)
        slots = blocks[positions // kv.block_size] * kv.block_size + positions % kv.block_size
        mask = positions <= positions[start:, None]  # causal: [T, start + T]
        hidden = self._run(kv, tokens, positions[start:], slots[start:], slots[None], mask[None, None])
        return F.linear(self.norm(hidden[-1]), self.head.weight)

    def prefill_packed(self, inputs: PackedPrompts, kv: PagedKVCache) -> torch.Tensor:
        """Prompt tokens of S sequences in one go; returns the logits [S, vocab] after the last of each.

        As ``prefill``, for prompts or chunks of them that lie one behind the other without padding; only
        attention sees each sequence padded to the longest. Never waits for the device.
        """
        check_cache(kv, self.config, self.embedding.weight)
        hidden = self._run(
            kv,
            inputs.token_ids,
            inputs.positions,
            inputs.slot_mapping,
            *inputs.slots_and_mask(kv.block_size),
            inputs.queries,
            inputs.tokens,
        )
        return F.linear(self.norm(hidden.index_select(0, inputs.last)), self.head.weight)

    def _run(
        self, kv, token_ids, positions, slot_mapping, slots, mask, queries=None, tokens=None
    ) -> torch.Tensor:
        hidden = self.embedding(token_ids)
        cos = self.cos.index_select(0, positions).unsqueeze(1)
        sin = self.sin.index_select(0, positions).unsqueeze(1)
        step = Step(cos, sin, slot_mapping, slots, mask, queries, tokens)
        for index, layer in enumerate(self.layers):
            hidden = layer(hidden, step, kv, index)
        return hidden
