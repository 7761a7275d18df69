"""A tiny LLaMA-like decode step, written as one would for CUDA: static shapes, no host reads."""

import torch
import torch.nn.functional as F


class Toy(torch.nn.Module):
    def __init__(self, dim=64, layers=2, heads=4, kv_heads=2, vocab=97, pages=32, page=4, max_pages=4):
        super().__init__()
        self.heads, self.kv_heads, self.head_dim = heads, kv_heads, dim // heads
        self.page, self.max_pages = page, max_pages

        def weight(*shape):
            return torch.nn.Parameter(torch.randn(*shape) / shape[-1] ** 0.5)

        self.embed = weight(vocab, dim)
        self.layers = torch.nn.ModuleList()
        for _ in range(layers):
            layer = torch.nn.Module()
            layer.norm_1, layer.norm_2 = weight(dim), weight(dim)
            layer.qkv, layer.out = weight((heads + 2 * kv_heads) * self.head_dim, dim), weight(dim, dim)
            layer.gate_up, layer.down = weight(8 * dim, dim), weight(dim, 4 * dim)
            self.layers.append(layer)
        self.norm = weight(dim)
        slots = pages * page
        self.register_buffer("key_cache", torch.zeros(layers, slots, kv_heads, self.head_dim))
        self.register_buffer("value_cache", torch.zeros(layers, slots, kv_heads, self.head_dim))
        rate = 1e4 ** (-torch.arange(0, self.head_dim, 2) / self.head_dim)
        angle = torch.outer(torch.arange(max_pages * page).float(), rate)
        self.register_buffer("cos", angle.cos())
        self.register_buffer("sin", angle.sin())

    def rope(self, x, positions):
        cos, sin = self.cos[positions][:, None], self.sin[positions][:, None]
        a, b = x.chunk(2, -1)
        return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)

    def paged(self, cache, tables):
        pages = cache.view(-1, self.page, self.kv_heads, self.head_dim)[tables]
        return pages.flatten(1, 2).transpose(1, 2).repeat_interleave(self.heads // self.kv_heads, 1)

    def forward(self, tokens, positions, tables):
        """tokens [B], positions [B], tables [B, max_pages] of page numbers -> next token [B], logits."""
        batch = tokens.shape[0]
        x = F.embedding(tokens, self.embed)
        pages = tables.gather(1, (positions // self.page)[:, None])[:, 0]
        slots = pages * self.page + positions % self.page
        steps = torch.arange(self.max_pages * self.page, device=tokens.device)
        mask = (steps <= positions[:, None])[:, None, None]
        for i, layer in enumerate(self.layers):
            qkv = F.linear(F.rms_norm(x, x.shape[-1:], layer.norm_1), layer.qkv).view(
                batch, -1, self.head_dim
            )
            q, k, v = qkv.split([self.heads, self.kv_heads, self.kv_heads], 1)
            q, k = self.rope(q, positions), self.rope(k, positions)
            self.key_cache[i].index_copy_(0, slots, k)
            self.value_cache[i][slots] = v  # index_put_, the other way to write a cache
            keys, values = self.paged(self.key_cache[i], tables), self.paged(self.value_cache[i], tables)
            a = F.scaled_dot_product_attention(q[:, :, None], keys, values, attn_mask=mask)
            x = x + F.linear(a.flatten(1), layer.out)
            gate, up = F.linear(F.rms_norm(x, x.shape[-1:], layer.norm_2), layer.gate_up).chunk(2, -1)
            x = x + F.linear(F.silu(gate) * up, layer.down)
        logits = F.linear(F.rms_norm(x, x.shape[-1:], self.norm), self.embed)
        return logits.argmax(-1), logits


def inputs(batch, model, device):
    """Padding rows: token 0 at position 0, on page 0."""
    return (
        torch.zeros(batch, dtype=torch.long, device=device),
        torch.zeros(batch, dtype=torch.long, device=device),
        torch.zeros(batch, model.max_pages, dtype=torch.long, device=device),
    )
