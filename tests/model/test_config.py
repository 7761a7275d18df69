"""The presets against published sizes: parameter counts are Hugging Face's, not this package's."""

import dataclasses

import pytest
import torch

from minillm.config import PRESETS, ModelConfig, default_dtype
from minillm.model import Transformer

# "Model size" in parameters as Hugging Face counts them from the safetensors headers of each model.
PUBLISHED = {
    "llama-1b": 1_235_814_400,
    "llama2-7b": 6_738_415_616,
    "llama3-8b": 8_030_261_248,
    "llama2-13b": 13_015_864_320,
}
LLAMA3_70B = 70_553_706_496


@pytest.mark.parametrize("name", PUBLISHED)
def test_stored_weights_are_as_many_as_published(name):
    assert ModelConfig.preset(name).weight_count(include_embedding=True) == PUBLISHED[name]


def test_eight_ranks_make_the_70b_but_for_the_norms_that_each_rank_has_whole():
    rank = ModelConfig.preset("llama3-70b-tp8-rank")
    norms = (2 * 80 + 1) * 8192
    assert 8 * (rank.weight_count() - norms) + norms == LLAMA3_70B


@pytest.mark.parametrize("name", PRESETS)
def test_weight_counts_agree_with_the_model_itself(name):
    config = ModelConfig.preset(name)
    small = dataclasses.replace(config, layers=2, max_context=16, vocab=96, ffn=64, hidden=128)
    model = Transformer(small, device="cpu", dtype=torch.bfloat16)
    stored = sum(weight.numel() for weight in model.parameters())
    assert small.weight_count() == stored
    # A step reads everything but the rows of the embedding, and of a tied table it reads all as the head.
    read = stored if small.tied_head else stored - model.embedding.weight.numel()
    assert small.weight_count(include_embedding=False) == read
    assert small.weight_bytes(torch.bfloat16) == sum(w.nbytes for w in model.parameters())


def test_presets_go_from_small_to_large_and_name_their_source():
    sizes = [config.weight_bytes(torch.bfloat16) for config in PRESETS.values()]
    assert sizes == sorted(sizes)
    for name, config in PRESETS.items():
        assert config.name == name
        assert config.source.startswith("https://") or "this course" in config.source


def test_kv_bytes_of_a_token():
    # Llama 3 8B in bfloat16: 2 (key and value) × 32 layers × 8 heads × 128 × 2 bytes = 128 KiB.
    assert ModelConfig.preset("llama3-8b").kv_bytes_per_token(torch.bfloat16) == 128 * 1024
    assert ModelConfig.preset("tiny").kv_bytes_per_token(torch.float32) == 2 * 8 * 4 * 64 * 4


def test_unknown_preset_lists_the_known_ones():
    with pytest.raises(ValueError, match="'gpt2'.*reciter.*llama2-13b"):
        ModelConfig.preset("gpt2")


@pytest.mark.parametrize(
    "change, words",
    [
        ({"kv_heads": 3}, "heads is 8; expected a multiple of kv_heads, 3"),
        ({"head_dim": 63}, "even"),
        ({"max_context": 8193}, "8192 or less"),
        ({"layers": 0}, "layers is 0; expected 1 or more"),
    ],
)
def test_impossible_shapes_are_refused(change, words):
    with pytest.raises(ValueError, match=words):
        dataclasses.replace(ModelConfig.preset("tiny"), **change)


@pytest.mark.parametrize(
    "capability, dtype",
    [((7, 5), torch.float16), ((8, 0), torch.bfloat16), ((8, 9), torch.bfloat16), ((10, 0), torch.bfloat16)],
)
def test_dtype_follows_compute_capability(monkeypatch, capability, dtype):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    assert default_dtype("cuda") == dtype
    assert default_dtype("cpu") == torch.float32
