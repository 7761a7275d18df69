import pytest
import torch

from minillm.config import PRESETS
from minillm.kv_cache import PagedKVCache
from minillm.lab import fit
from minillm.model import Transformer

GIB = 2**30


@pytest.fixture
def gpu_memory(monkeypatch):
    """Pretends a bfloat16 GPU; call it with the GiB that are free there, and what torch holds."""

    def pretend(free, reserved=0.0, allocated=0.0, capability=(9, 0)):
        monkeypatch.setattr(torch.cuda, "mem_get_info", lambda *_: (int(free * GIB), 999 * GIB))
        monkeypatch.setattr(torch.cuda, "memory_reserved", lambda *_: int(reserved * GIB))
        monkeypatch.setattr(torch.cuda, "memory_allocated", lambda *_: int(allocated * GIB))
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda *_: capability)

    monkeypatch.delenv("MINILLM_MEMORY_LIMIT", raising=False)
    return pretend


def test_needed_bytes_cover_what_a_model_and_its_cache_really_take():
    config, dtype = PRESETS["reciter"], torch.float32
    model = Transformer(config, device="cpu", dtype=dtype)
    cache = PagedKVCache(config, num_blocks=5 * 7 + 1, block_size=16, device="cpu", dtype=dtype)
    weights = sum(p.nbytes for p in model.parameters())
    kv = sum(t.nbytes for part in (cache.key, cache.value) for t in part)
    one_layer = cache.key[0].nbytes + cache.value[0].nbytes
    # five sequences of 100 tokens: seven blocks of 16 each
    assert fit.needed_bytes(config, 5, 100, dtype) == weights + kv + one_layer + GIB // 2


def test_a_quarter_of_the_free_memory_must_be_left(gpu_memory):
    needed = fit.needed_bytes(PRESETS["llama2-7b"], 1, 512, torch.bfloat16) / GIB
    gpu_memory(free=needed / 0.75 * 1.001)
    assert fit.fits("llama2-7b", 1, 512, "cuda")
    gpu_memory(free=needed / 0.75 * 0.999)
    assert not fit.fits("llama2-7b", 1, 512, "cuda")


@pytest.mark.parametrize(
    ("free", "wanted", "expected"),
    [
        (140, "llama2-13b", "llama2-13b"),
        (79, "llama3-70b-tp8-rank", "llama3-70b-tp8-rank"),
        (24, "llama2-13b", "llama3-8b"),  # the rank of the 70B would fit too
        (20, "llama3-70b-tp8-rank", "llama2-7b"),
        (20, "llama2-13b", "llama2-7b"),
        (14.6, "llama3-8b", "llama-1b"),  # a T4
        (2.5, "llama3-8b", "tiny"),
    ],
)
def test_the_next_smaller_preset_takes_its_place(gpu_memory, free, wanted, expected):
    gpu_memory(free=free)
    name, note = fit.fitting_preset(wanted, batch=1, context=400, device="cuda")
    assert name == expected
    assert (note == "") == (name == wanted)
    if note:
        assert wanted in note and f"{expected} takes its place" in note and f"{free:.1f} GiB free" in note


def test_batch_and_context_count(gpu_memory):
    gpu_memory(free=23)
    assert fit.fits("llama2-7b", 1, 400, "cuda")
    assert not fit.fits("llama2-7b", 32, 400, "cuda")  # 400 tokens of 32 sequences: 6.7 GB of KV


def test_memory_that_torch_holds_unused_is_free(gpu_memory):
    gpu_memory(free=1, reserved=30, allocated=2)
    assert fit.fits("llama2-7b", 1, 400, "cuda")
    gpu_memory(free=1, reserved=30, allocated=29)
    assert not fit.fits("llama2-7b", 1, 400, "cuda")


def test_a_share_of_a_gpu(gpu_memory, monkeypatch):
    gpu_memory(free=130)
    monkeypatch.setenv("MINILLM_MEMORY_LIMIT", "7.5")
    assert fit.fitting_preset("llama3-8b", 1, 400, "cuda")[0] == "llama-1b"
    gpu_memory(free=120, reserved=6, allocated=6)
    assert fit.free_bytes() == 1.5 * GIB  # what this process has taken is part of its share
    gpu_memory(free=3, allocated=0)
    assert fit.free_bytes() == 3 * GIB  # a share is a limit, not a promise


@pytest.mark.parametrize("text", ["8GB", "0", "-1", "nan", "inf", "lots"])
def test_a_share_that_is_no_number(gpu_memory, monkeypatch, text):
    gpu_memory(free=100)
    monkeypatch.setenv("MINILLM_MEMORY_LIMIT", text)
    with pytest.raises(ValueError, match=f"MINILLM_MEMORY_LIMIT is '{text}'.*GiB"):
        fit.fitting_preset("tiny", 1, 100, "cuda")


def test_nothing_fits(gpu_memory):
    gpu_memory(free=0.2)
    with pytest.raises(MemoryError, match="llama-1b needs .* GiB.*no smaller preset fits"):
        fit.fitting_preset("llama-1b", 1, 100, "cuda")


def test_a_context_that_is_too_long_for_a_preset(gpu_memory):
    gpu_memory(free=140)
    assert not fit.fits("llama2-7b", 1, 5000, "cuda")
    name, note = fit.fitting_preset("llama2-7b", 1, 5000, "cuda")
    assert name == "llama-1b" and "at most 4096 tokens" in note


def test_on_a_cpu_only_the_small_ones(monkeypatch):
    assert [name for name in PRESETS if fit.fits(name, 1, 100, "cpu")] == ["reciter", "tiny"]
    assert fit.fitting_preset("tiny", 1, 100, "cpu") == ("tiny", "")
    assert fit.fitting_preset("reciter", 1, 100, "cpu") == ("reciter", "")
    name, note = fit.fitting_preset("llama3-8b", 1, 100, "cpu")
    assert name == "tiny" and "CPU" in note


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="batch is 0"):
        fit.fits("tiny", 0, 100, "cpu")
    with pytest.raises(ValueError, match="no preset is called 'gpt'"):
        fit.fitting_preset("gpt", 1, 100, "cpu")
