"""The parts of a layer that know nothing about a KV cache: RMSNorm, rotary positions, the SwiGLU MLP.

They are written in plain elementwise operations on purpose: each operation is one kernel on a GPU, and
lesson 01 counts them. Real engines fuse them, and so does lesson 07.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F


class RMSNorm(nn.Module):
    """Divides each row by its root mean square, then scales each element: https://arxiv.org/abs/1910.07467"""

    def __init__(self, hidden: int, eps: float):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[N, hidden] to [N, hidden] of the same dtype.

        Squares and mean are taken in float32: in float16 the square of anything above 255 is infinite.
        """
        wide = x.float()
        mean_square = wide.pow(2).mean(-1, keepdim=True)
        wide = wide * torch.rsqrt(mean_square + self.eps)
        return wide.to(x.dtype) * self.weight


def rope_tables(
    head_dim: int, max_context: int, theta: float, device=None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosine and sine of every angle, each [max_context, head_dim / 2] float32.

    Position p turns pair i by p · theta^(−2i / head_dim) radians: https://arxiv.org/abs/2104.09864. The
    angles are float32, because bfloat16 cannot tell position 256 from 257.
    """
    pairs = torch.arange(0, head_dim, 2, dtype=torch.float32, device=device)
    frequencies = theta ** (-pairs / head_dim)
    angles = torch.arange(max_context, dtype=torch.float32, device=device)[:, None] * frequencies
    return angles.cos(), angles.sin()


def apply_rope(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Turn the queries or keys ``x`` [N, heads, head_dim] by the angles of their positions.

    ``cos`` and ``sin`` are [N, 1, head_dim / 2] float32; the result has the dtype of ``x``. Half-split, as in
    Hugging Face's Llama: element i of a head makes a pair with element i + head_dim / 2, not with i + 1.
    """
    first, second = x.float().chunk(2, dim=-1)
    turned = torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)
    return turned.to(x.dtype)


class SwiGLU(nn.Module):
    """The gated MLP, down(silu(gate(x)) · up(x)): https://arxiv.org/abs/2002.05202

    Gate and up are one product with a weight [2 · ffn, hidden], gate first, as serving engines have it.
    """

    def __init__(self, hidden: int, ffn: int):
        super().__init__()
        self.gate_up = nn.Linear(hidden, 2 * ffn, bias=False)
        self.down = nn.Linear(ffn, hidden, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[N, hidden] to [N, hidden]."""
        gate, up = self.gate_up(x).chunk(2, dim=-1)
        return self.down(F.silu(gate) * up)
