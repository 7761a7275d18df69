"""The engine's benchmark: its requests, what it counts on a CPU, its tables, and the command."""

import dataclasses

import pytest
import torch

from minillm import cli, graphs
from minillm.config import ModelConfig
from minillm.lab import bench_engine, records
from minillm.lab.results import Origin, Result
from minillm.lab.serving import MAX_CONTEXT, requests_of, serve, serving_engine
from minillm.model import Transformer

torch.set_num_threads(1)


def test_the_requests_are_those_of_the_claim_and_always_the_same():
    requests = requests_of(96)
    assert requests == requests_of(96) != requests_of(96, seed=1)
    lengths, outputs = [len(prompt) for prompt, _ in requests], [tokens for _, tokens in requests]
    assert len(requests) == 64 and all(0 <= token < 96 for prompt, _ in requests for token in prompt)
    assert 16 <= min(lengths) < 30 and 115 < max(lengths) <= 128
    assert 256 <= min(outputs) < 280 and 490 < max(outputs) <= 512
    assert max(map(sum, zip(lengths, outputs, strict=True))) <= MAX_CONTEXT


@pytest.mark.parametrize("use_graphs", [False, True])
def test_serving_counts_what_was_asked_for(use_graphs, monkeypatch):
    config = dataclasses.replace(ModelConfig.preset("reciter"), layers=1)
    monkeypatch.setattr("minillm.lab.serving.BUCKETS", (1, 2, 3))
    monkeypatch.setattr("minillm.lab.serving.WIDTHS", (4, 64))
    engine = serving_engine(Transformer(config), 3, use_graphs)
    requests = [([1, 2, 3], 9), ([4] * 20, 4), ([5], 1), ([6, 7], 6)]
    for _ in range(2):  # the second time counts from zero
        found = serve(engine, requests)
        assert found["tokens"] == 9 + 4 + 1 + 6
        # Of each request the prefill chooses the first token, decode steps the others.
        decoded = found["decode_tokens_per_second"] * (found["seconds"] - found["prefill_seconds"])
        assert round(decoded) == found["tokens"] - len(requests)
        assert found["captured"] == (6 if use_graphs else 0)
        steps = sum(row["hits"] for row in found["buckets"]) + sum(found["fallbacks"].values())
        assert steps == found["steps"] >= 8
        assert ("eager" in found["mode"].split(",")[0]) is not use_graphs


def served(**change):
    one = {
        "decode_tokens_per_second": 1000.0,
        "tokens_per_second": 900.0,
        "first_token_ms": {"p50": 30.0, "p99": 40.0},
        "per_token_ms": {"p50": 12.0, "p99": 14.0},
        "prefill_seconds": 0.03,
        "seconds": 8.0,
        "captured": 24,
        "capture_seconds": 2.5,
        "pool_bytes": 134 << 20,
        "device_bytes": 306 << 20,
        "buckets": [{"rows": 64, "blocks": 32, "hits": 190, "padded_rows": 519}],
        "fallbacks": {},
    }
    return one | change


GPU = Origin.recorded({"gpu": "NVIDIA T4", "date": "2026-01-02", "torch": "2.9.0"})


def test_the_table_has_ratios_in_which_more_is_better_and_says_whose_they_are():
    fast = served(decode_tokens_per_second=5000.0, per_token_ms={"p50": 3.0, "p99": 7.0}, seconds=2.0)
    data = {"requests": 64, "rows": 32, "eager": served(), "graph": fast}
    lines = bench_engine.throughput_table(Result("engine/throughput/tiny/rows=32", data, GPU)).splitlines()
    assert lines[0].startswith("tiny: 64 requests") and "32 at a time" in lines[0] and GPU.label in lines[0]
    numbers = {line[:34].strip(): line[34:].replace(",", "").split() for line in lines[2:10]}
    assert numbers["decode, tokens/s"] == ["1000.00", "5000.00", "5.00"]
    assert numbers["time per output token, median, ms"] == ["12.00", "3.00", "4.00"]
    assert numbers["all, s"] == ["8.00", "2.00", "4.00"]
    assert any("134 MiB, 306 MiB" in line for line in lines)
    assert any(line.split() == ["64", "×", "32", "190", "519"] for line in lines)


def test_the_cost_table_counts_in_adds_and_says_what_is_missing():
    data = {"step_us": 2000.0, "replay_us": 1900.0, "host_us": 50.0, "adds_us": 120.0, "replay_call_us": 9.0}
    data["host_adds"] = 5.5
    results = [
        Result("engine/step-cost/tiny/B=32", data, GPU),
        Result("engine/step-cost/llama-1b/B=32", None, Origin.missing()),
    ]
    text = bench_engine.cost_table(results)
    row = next(line for line in text.splitlines() if line.startswith("tiny")).split()
    assert row == ["tiny", "2,000", "1,900", "5.0%", "50.0", "120.0", "5.5", "9.0"]
    assert "llama-1b    to be recorded on a GPU" in text and GPU.label in text


@pytest.mark.skipif(graphs.backend == "cuda", reason="would measure")
def test_without_a_gpu_the_command_shows_the_record(capsys):
    assert cli.main(["bench", "engine"]) == 0
    said = capsys.readouterr().out
    recorded = records.read(records.FOLDER / "nvidia-h200.json")["experiments"]
    assert said.count("recorded on NVIDIA H200") >= 3 and "NaN" not in said
    for rows in (64, 32):
        data = recorded[f"engine/throughput/llama-1b/rows={rows}"]["data"]
        ratio = data["graph"]["decode_tokens_per_second"] / data["eager"]["decode_tokens_per_second"]
        assert f"{ratio:.2f}" in said


def test_an_unknown_preset_or_benchmark_is_refused_with_the_names(capsys):
    for arguments, name in ((["engine", "--preset", "gpt"], "llama-1b"), (["serving"], "engine")):
        with pytest.raises(SystemExit) as left:
            cli.main(["bench", *arguments])
        assert left.value.code == 2 and name in capsys.readouterr().err
