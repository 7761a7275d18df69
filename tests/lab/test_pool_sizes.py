"""The pool experiment: its sums add up, and the emulator's sizes are those that a GPU recorded."""

import pytest
import torch

from minillm import graphs, lab
from minillm.lab.experiments.pools import BUCKETS, emulated_pool_sizes
from minillm.lab.pool_sizes import STRATEGIES, pool_sizes

MiB = 1 << 20
only_emulated = pytest.mark.skipif(graphs.backend != "emulated", reason="on a GPU the experiment measures")


def step_of(batch):
    """A step with a temporary and an output, each of ``batch`` MiB, and no product."""
    x = torch.ones(batch * MiB // 4, device=graphs.device)
    return lambda: (x + 1) * 2


# Worked by hand with the caching allocator's rules: segments of 20 MiB below 10 MiB, best fit, split.
@pytest.mark.parametrize(
    ("strategy", "order", "growth"),
    [
        ("private", [2, 4, 16], [20, 20, 32]),
        ("stream-per-bucket", [2, 4, 16], [20, 20, 32]),
        ("ascending", [2, 4, 16], [20, 0, 32]),
        ("descending", [16, 4, 2], [32, 0, 0]),
    ],
)
def test_growth_by_strategy(strategy, order, growth):
    sizes = pool_sizes(step_of, [4, 16, 2], strategy)
    assert sizes.strategy == strategy and [c.batch for c in sizes.captures] == order
    assert [c.pool_growth // MiB for c in sizes.captures] == growth
    assert sizes.reserved == sum(growth) * MiB == sizes.without_workspaces
    assert sizes.outputs == 22 * MiB and sizes.workspaces == 0
    falls = [c.graph_bytes for c in sizes.captures]
    if graphs.backend == "emulated":
        assert falls == [None] * 3
    else:
        assert all(fall >= growth for fall, growth in zip(falls, growth, strict=True))


def test_an_unknown_strategy():
    with pytest.raises(ValueError, match="'largest first'; expected one of private, stream-per-bucket"):
        pool_sizes(step_of, [1], "largest first")


@only_emulated
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_emulators_pools_are_the_gpus(strategy):
    """Within 2 % or 4 MiB, once cuBLAS's workspaces are set apart; the H200's record is the oracle."""
    recorded = lab.run(f"pools/llama-1b/{strategy}").data
    assert recorded is not None, "no fresh record: run benchmarks/pool_sizes.py with MINILLM_RECORD on a GPU"
    measured = recorded["reserved"] - recorded["workspaces"]
    emulated = emulated_pool_sizes("llama-1b", strategy)
    assert abs(emulated.reserved - measured) <= max(0.02 * measured, 4 * MiB)
    assert emulated.outputs == recorded["outputs"] and len(recorded["captures"]) == len(BUCKETS) == 12
