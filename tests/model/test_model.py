"""The Transformer against a float64 forward of the same weights without a cache, pages or batch."""

import dataclasses

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from minillm.config import ModelConfig
from minillm.graphs import device as DEVICE
from minillm.inputs import DecodeInputs
from minillm.kv_cache import BlockAllocator, PagedKVCache
from minillm.model import Transformer

torch.set_num_threads(1)
SMALL = dataclasses.replace(
    ModelConfig.preset("reciter"), layers=2, hidden=48, ffn=80, vocab=50, max_context=64
)
NOTHING_OWNED = float("nan")  # what the tests put into every slot before the first token


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def dense_forward(model, tokens):
    """Logits [T, vocab] of one sequence in float64, from the weights' names and the papers' formulas."""
    config = model.config
    weights = {name: weight.double().cpu() for name, weight in model.named_parameters(remove_duplicate=False)}
    heads, kv_heads, half = config.heads, config.kv_heads, config.head_dim // 2
    frequency = config.rope_theta ** (-torch.arange(half, dtype=torch.float64) / half)
    angle = torch.arange(len(tokens))[:, None] * frequency
    turn = torch.polar(torch.ones_like(angle), angle)[:, None]

    def rope(x):  # [T, heads, head_dim]
        turned = torch.complex(x[..., :half], x[..., half:]) * turn
        return torch.cat((turned.real, turned.imag), -1)

    x = weights["embedding.weight"][torch.tensor(tokens)]
    causal = torch.ones(len(tokens), len(tokens), dtype=torch.bool).tril()
    for layer in range(config.layers):
        w = {name.split(".", 2)[2]: t for name, t in weights.items() if name.startswith(f"layers.{layer}.")}
        h = F.rms_norm(x, (config.hidden,), w["attention_norm.weight"], config.norm_eps)
        q, k, v = (h @ w["qkv.weight"].T).split([n * 2 * half for n in (heads, kv_heads, kv_heads)], -1)
        q, k = rope(q.reshape(len(tokens), heads, -1)), rope(k.reshape(len(tokens), kv_heads, -1))
        k = k.repeat_interleave(heads // kv_heads, 1)
        v = v.reshape(len(tokens), kv_heads, -1).repeat_interleave(heads // kv_heads, 1)
        scores = torch.einsum("qhd,khd->hqk", q, k) / config.head_dim**0.5
        scores = scores.masked_fill(~causal, -float("inf")).softmax(-1)
        x = x + torch.einsum("hqk,khd->qhd", scores, v).flatten(1) @ w["output.weight"].T
        h = F.rms_norm(x, (config.hidden,), w["mlp_norm.weight"], config.norm_eps)
        gate, up = (h @ w["mlp.gate_up.weight"].T).chunk(2, -1)
        x = x + (gate * torch.sigmoid(gate) * up) @ w["mlp.down.weight"].T
    return F.rms_norm(x, (config.hidden,), weights["norm.weight"], config.norm_eps) @ weights["head.weight"].T


def random_norms(model, seed):
    """Norm weights are ones after construction, and ones would hide a norm that forgot its weight."""
    generator = torch.Generator().manual_seed(seed)
    for weight in model.parameters():
        if weight.dim() == 1:
            weight.copy_(1 + 0.3 * torch.randn(weight.shape, generator=generator))
    return model


def cache_of_nan(config, num_blocks, block_size, dtype=torch.float32):
    kv = PagedKVCache(config, num_blocks, block_size, device=DEVICE, dtype=dtype)
    for tensor in (*kv.key, *kv.value):
        tensor.fill_(NOTHING_OWNED)
    return kv


def serve(model, sequences, prompts, kv, max_blocks, order, chunk=None, padding=0):
    """Prefill each prompt, then decode all sequences together; logits of each sequence by position.

    ``sequences`` are token lists, the first ``prompts[i]`` of which are prefilled in chunks of ``chunk``.
    """
    blocks = iter(order)
    tables = [[next(blocks) for _ in range(-(-len(tokens) // kv.block_size))] for tokens in sequences]
    logits = [{} for _ in sequences]
    for row, (tokens, prompt) in enumerate(zip(sequences, prompts, strict=True)):
        step = chunk or prompt
        for start in range(0, prompt, step):
            end = min(start + step, prompt)
            logits[row][end - 1] = model.prefill(tokens[start:end], kv, tables[row], start=start)
    for distance in range(max(len(t) - p for t, p in zip(sequences, prompts, strict=True))):
        rows = [i for i, tokens in enumerate(sequences) if prompts[i] + distance < len(tokens)]
        at = [prompts[i] + distance for i in rows]
        inputs = DecodeInputs.for_sequences(
            [sequences[i][place] for i, place in zip(rows, at, strict=True)],
            [tables[i] for i in rows],
            [place + 1 for place in at],
            kv.block_size,
            max_blocks,
            device=DEVICE,
            config=model.config,
            num_blocks=kv.num_blocks,
        )
        pad = DecodeInputs.padding(padding, max_blocks, device=DEVICE)
        joined = {n: torch.cat((t, pad.tensors()[n])) for n, t in inputs.tensors().items()}
        step_logits = model.decode(DecodeInputs(**joined), kv)
        assert step_logits.shape == (len(rows) + padding, model.config.vocab)
        assert step_logits.isfinite().all()
        for row, (i, place) in enumerate(zip(rows, at, strict=True)):
            logits[i][place] = step_logits[row]
    return logits


@settings(deadline=None, max_examples=30)
@given(
    data=st.data(),
    batch=st.integers(1, 3),
    block_size=st.sampled_from([1, 3, 8, 16]),
    kv_heads=st.sampled_from([1, 2]),
    ratio=st.sampled_from([1, 2, 4]),
    head_dim=st.sampled_from([2, 16]),
    tied=st.booleans(),
    padding=st.integers(0, 2),
    seed=st.integers(0, 2**31),
)
def test_prefill_and_decode_are_the_dense_forward(
    data, batch, block_size, kv_heads, ratio, head_dim, tied, padding, seed
):
    config = dataclasses.replace(
        SMALL, heads=kv_heads * ratio, kv_heads=kv_heads, head_dim=head_dim, tied_head=tied
    )
    model = random_norms(Transformer(config, device=DEVICE, dtype=torch.float32, seed=seed), seed)
    lengths = data.draw(st.lists(st.integers(2, 18), min_size=batch, max_size=batch))
    prompts = [data.draw(st.integers(1, length)) for length in lengths]
    chunk = data.draw(st.sampled_from([None, 1, 2, 5]))
    generator = torch.Generator().manual_seed(seed)
    sequences = [torch.randint(50, (length,), generator=generator).tolist() for length in lengths]
    widest = -(-64 // block_size)
    needed = -(-18 // block_size)
    kv = cache_of_nan(config, 1 + 3 * needed, block_size)
    order = (torch.randperm(3 * needed, generator=generator) + 1).tolist()  # block 0 is left to padding
    max_blocks = data.draw(st.integers(needed, min(widest, needed + 2)))
    logits = serve(model, sequences, prompts, kv, max_blocks, order, chunk, padding)
    for tokens, prompt, got in zip(sequences, prompts, logits, strict=True):
        expected = dense_forward(model, tokens)
        assert set(range(prompt - 1, len(tokens))) <= set(got)
        for place, row in got.items():
            torch.testing.assert_close(row.double().cpu(), expected[place], rtol=1e-4, atol=1e-4)
    owned = sum(-(-length // block_size) for length in lengths)
    untouched = set(range(1, kv.num_blocks)) - set(order[:owned])
    assert all(kv.key[layer][sorted(untouched)].isnan().all() for layer in range(config.layers))


def test_the_tiny_preset_step_by_step():
    model = random_norms(Transformer(ModelConfig.preset("tiny"), device=DEVICE, dtype=torch.float32), 1)
    allocator = BlockAllocator(10)
    sequences = [torch.randint(32000, (length,)).tolist() for length in (21, 12)]
    kv = cache_of_nan(model.config, 10, 4)
    order = allocator.allocate(9)[::-1]
    logits = serve(model, sequences, [14, 9], kv, 6, order, padding=1)
    for tokens, got in zip(sequences, logits, strict=True):
        expected = dense_forward(model, tokens)
        for place, row in got.items():
            torch.testing.assert_close(row.double().cpu(), expected[place], rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_stays_near_float64(dtype):
    model = random_norms(Transformer(SMALL, device=DEVICE, dtype=dtype), 2)
    assert all(weight.dtype == dtype for weight in model.parameters())
    tokens = torch.randint(50, (20,)).tolist()
    kv = cache_of_nan(SMALL, 4, 8, dtype)
    (got,) = serve(model, [tokens], [11], kv, 3, [3, 1, 2])
    expected = dense_forward(model, tokens)
    for place, row in got.items():
        assert row.dtype == dtype
        error = (row.double().cpu() - expected[place]).norm() / expected[place].norm()
        assert error < (0.03 if dtype == torch.bfloat16 else 0.004)


@pytest.mark.parametrize("chunk", [1, 4, 7, 16, 50])
def test_prefill_in_chunks_gives_the_logits_of_the_whole(chunk):
    model = Transformer(SMALL, device=DEVICE, dtype=torch.float32)
    tokens = torch.randint(50, (50,)).tolist()
    whole, parts = cache_of_nan(SMALL, 9, 8), cache_of_nan(SMALL, 9, 8)
    table = [8, 2, 5, 1, 7, 3, 6]
    expected = model.prefill(tokens, whole, table)
    for start in range(0, 50, chunk):
        logits = model.prefill(torch.tensor(tokens[start : start + chunk]), parts, table, start=start)
    torch.testing.assert_close(logits, expected, rtol=1e-4, atol=1e-5)
    for layer in range(SMALL.layers):
        for one, other in ((whole.key, parts.key), (whole.value, parts.value)):
            torch.testing.assert_close(one[layer], other[layer], rtol=1e-4, atol=1e-5, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_eighty_layers_keep_their_activations_in_range(dtype):
    config = dataclasses.replace(SMALL, layers=80, hidden=256, ffn=512, heads=8, kv_heads=1, vocab=300)
    model = Transformer(config, device=DEVICE, dtype=dtype)
    sizes = []
    for layer in model.layers:
        layer.register_forward_hook(lambda module, args, out: sizes.append(out.float().abs().max().item()))
    kv = PagedKVCache(config, 4, 16, device=DEVICE, dtype=dtype)
    model.prefill(list(range(40)), kv, [1, 2, 3])
    inputs = DecodeInputs.for_sequences([7], [[1, 2, 3]], [41], 16, 4, device=DEVICE)
    logits = model.decode(inputs, kv).float()
    assert len(sizes) == 160 and max(sizes) < 1000  # float16 ends at 65504
    assert 0.3 < logits.std() < 3


def test_a_seed_names_the_weights_and_leaves_the_global_generator_alone():
    before = torch.get_rng_state()
    first, again, other = (Transformer(SMALL, device="cpu", seed=seed) for seed in (4, 4, 5))
    assert torch.equal(torch.get_rng_state(), before)
    for a, b in zip(first.parameters(), again.parameters(), strict=True):
        assert torch.equal(a, b) and not a.requires_grad
    assert not torch.equal(first.embedding.weight, other.embedding.weight)
    assert not torch.equal(first.layers[0].qkv.weight, first.layers[1].qkv.weight)


def test_a_tied_head_is_the_embedding_and_weights_can_be_saved_and_loaded():
    tied = Transformer(SMALL, device="cpu", seed=1)
    assert tied.head.weight is tied.embedding.weight
    untied = Transformer(dataclasses.replace(SMALL, tied_head=False), device="cpu", seed=1)
    assert untied.head.weight.data_ptr() != untied.embedding.weight.data_ptr()
    copy = Transformer(SMALL, device="cpu", seed=2)
    copy.load_state_dict(tied.state_dict())
    kv = PagedKVCache(SMALL, 2, device="cpu")
    assert torch.equal(copy.prefill([3, 1, 4], kv, [1]), tied.prefill([3, 1, 4], kv, [1]))
