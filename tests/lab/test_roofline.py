import pytest
import torch

from minillm.config import PRESETS, ModelConfig
from minillm.kv_cache import PagedKVCache
from minillm.lab.roofline import bandwidth_floor_us, step_bytes
from minillm.model import DecoderLayer, Transformer

# parameters in the checkpoints that Meta publishes, as their pages count them, embedding included
PUBLISHED = {
    "llama-1b": 1_235_814_400,
    "llama2-7b": 6_738_415_616,
    "llama3-8b": 8_030_261_248,
    "llama2-13b": 13_015_864_320,
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_weights_are_the_published_count_without_the_embedding(name):
    config = PRESETS[name]
    # a tied table is stored once, and as the head it is read
    embedding = 0 if config.tied_head else config.vocab * config.hidden
    assert step_bytes(config, 1, 1).weights == 2 * (PUBLISHED[name] - embedding)


@pytest.mark.parametrize("name", PRESETS)
def test_weights_are_what_the_layers_hold(name):
    config = PRESETS[name]
    with torch.device("meta"):
        layer = DecoderLayer(config)
    in_layers = config.layers * sum(p.numel() for p in layer.parameters())
    head, last_norm = config.vocab * config.hidden, config.hidden
    assert step_bytes(config, 1, 1, bytes_per_element=1).weights == in_layers + head + last_norm


def test_weights_of_a_model_that_really_exists():
    model = Transformer(PRESETS["reciter"], device="cpu")
    real = sum(p.nbytes for p in model.parameters())  # tied: the table counts once
    assert step_bytes(model.config, 1, 1, bytes_per_element=4).weights == real


@pytest.mark.parametrize(("batch", "context"), [(1, 1), (1, 400), (7, 33)])
def test_kv_is_that_part_of_a_real_cache(batch, context):
    config = PRESETS["reciter"]
    cache = PagedKVCache(config, num_blocks=3, block_size=16, device="cpu", dtype=torch.float16)
    everything = sum(t.nbytes for part in (cache.key, cache.value) for t in part)
    a_token = everything / (3 * 16)
    assert step_bytes(config, batch, context).kv == a_token * batch * context


def test_floor_of_llama2_7b_by_hand():
    # 6.607e9 weights x 2 bytes = 13.21 GB; KV of 400 tokens: 400 x 32 layers x 2 x 4096 x 2 bytes = 0.21 GB
    floor = bandwidth_floor_us(PRESETS["llama2-7b"], batch=1, context=400, gb_per_s=2000)
    assert floor == pytest.approx(1e6 * (13.2147e9 + 0.2097e9) / 2000e9, rel=1e-4)


def test_article_claim_13b_in_11_ms_is_beyond_an_a100():
    assert bandwidth_floor_us(PRESETS["llama2-13b"], 1, 1, gb_per_s=2039) > 11_000


def test_sequences_share_the_weights_and_not_the_kv():
    config = PRESETS["llama3-8b"]
    one, many = step_bytes(config, 1, 300), step_bytes(config, 32, 300)
    assert many.weights == one.weights and many.kv == 32 * one.kv and many.total == one.weights + 32 * one.kv


def test_bytes_per_element_scales_everything():
    config = PRESETS["tiny"]
    two, one = step_bytes(config, 3, 50, 2), step_bytes(config, 3, 50, 1)
    assert (two.weights, two.kv) == (2 * one.weights, 2 * one.kv)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"batch": 0}, "batch is 0"),
        ({"batch": 1.5}, "batch is 1.5"),
        ({"context": 0}, "context is 0"),
        ({"gb_per_s": 0}, "gb_per_s is 0"),
        ({"gb_per_s": float("nan")}, "gb_per_s is nan"),
        ({"bytes_per_element": 0}, "bytes_per_element is 0"),
    ],
)
def test_bad_values_are_named(arguments, named):
    good = {"config": ModelConfig.preset("tiny"), "batch": 1, "context": 1, "gb_per_s": 1000}
    with pytest.raises(ValueError, match=named):
        bandwidth_floor_us(**(good | arguments))
