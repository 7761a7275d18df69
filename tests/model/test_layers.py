"""RMSNorm against torch's own, RoPE against complex multiplication, SwiGLU against its formula in float64."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from minillm.layers import RMSNorm, SwiGLU, apply_rope, rope_tables

TOLERANCE = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}  # a few roundings of the dtype
MODEST = settings(deadline=None, max_examples=25)


@MODEST
@given(
    rows=st.integers(1, 5),
    hidden=st.integers(1, 200),
    dtype=st.sampled_from(list(TOLERANCE)),
    scale=st.sampled_from([1e-2, 1.0, 300.0]),
    seed=st.integers(0, 2**31),
)
def test_rms_norm_is_torchs(rows, hidden, dtype, scale, seed):
    generator = torch.Generator().manual_seed(seed)
    x = (scale * torch.randn(rows, hidden, generator=generator)).to(dtype)
    norm = RMSNorm(hidden, eps=1e-5).to(dtype).requires_grad_(False)
    norm.weight.copy_(torch.randn(hidden, generator=generator))
    expected = F.rms_norm(x.double(), (hidden,), norm.weight.double(), eps=1e-5)
    assert norm(x).dtype == dtype
    torch.testing.assert_close(norm(x).double(), expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


def test_rms_norm_survives_squares_that_float16_cannot_hold():
    x = torch.tensor([[300.0, -400.0, 0.0, 0.0]], dtype=torch.float16)
    out = RMSNorm(4, eps=1e-5).half()(x)
    torch.testing.assert_close(out.float(), torch.tensor([[1.2, -1.6, 0, 0]]), rtol=2e-3, atol=1e-4)


@MODEST
@given(
    head_dim=st.sampled_from([2, 6, 32, 64, 128]),
    theta=st.sampled_from([1e4, 5e5]),
    heads=st.integers(1, 3),
    positions=st.lists(st.integers(0, 8191), min_size=1, max_size=6),
    dtype=st.sampled_from(list(TOLERANCE)),
    seed=st.integers(0, 2**31),
)
def test_rope_is_a_complex_rotation(head_dim, theta, heads, positions, dtype, seed):
    x = torch.randn(len(positions), heads, head_dim, generator=torch.Generator().manual_seed(seed)).to(dtype)
    cos, sin = rope_tables(head_dim, 8192, theta)
    at = torch.tensor(positions)
    turned = apply_rope(x, cos[at].unsqueeze(1), sin[at].unsqueeze(1))
    # The oracle: element i and element i + head_dim / 2 are one complex number.
    half = head_dim // 2
    frequency = theta ** (-torch.arange(half, dtype=torch.float64) / half)
    turn = torch.polar(torch.ones(()).double(), at[:, None].double() * frequency)[:, None]
    numbers = torch.complex(x[..., :half].double(), x[..., half:].double()) * turn
    expected = torch.cat((numbers.real, numbers.imag), dim=-1)
    assert turned.dtype == dtype
    # An angle of 8191 radians has an error of half a float32 step, 2.4e-4, and so has what it turns.
    error = TOLERANCE[dtype] + 1e-3
    torch.testing.assert_close(turned.double(), expected, rtol=error, atol=error)


def test_rope_tables_are_float32_and_start_without_a_turn():
    cos, sin = rope_tables(64, 100, 1e4)
    assert cos.dtype == sin.dtype == torch.float32
    assert cos.shape == sin.shape == (100, 32)
    assert torch.equal(cos[0], torch.ones(32)) and torch.equal(sin[0], torch.zeros(32))
    # bfloat16 angles would give position 257 the angles of 256
    assert not torch.equal(rope_tables(64, 258, 1e4)[1][256], rope_tables(64, 258, 1e4)[1][257])


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_swiglu_is_its_formula(dtype):
    torch.manual_seed(3)
    mlp = SwiGLU(24, 40).to(dtype).requires_grad_(False)
    x = torch.randn(5, 24).to(dtype)
    weight = mlp.gate_up.weight.double()
    gate, up = x.double() @ weight[:40].T, x.double() @ weight[40:].T
    expected = (gate / (1 + torch.exp(-gate)) * up) @ mlp.down.weight.double().T
    torch.testing.assert_close(mlp(x).double(), expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])
