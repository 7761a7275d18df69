"""Random programs: captured against eager, and the pool against what its tensors hold."""

import pytest
import torch

from minillm.graphs.emulator.memory import Pool

pytest.importorskip("hypothesis", reason="a bare GPU machine may lack it")

from hypothesis import HealthCheck, given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

STEPS = [
    lambda a, b: a + b,
    lambda a, b: a * 0.5 - b,
    lambda a, b: torch.maximum(a, b.flip(0)),
    lambda a, b: a.add_(b),
    lambda a, b: a[:3].mul_(-1),
    lambda a, b: a.view(2, 3).t().reshape(6),
    lambda a, b: a.softmax(0),
    lambda a, b: a.sum() + b,
    lambda a, b: torch.where(a > b, a, b),
    lambda a, b: a.copy_(b),
]


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(st.sampled_from(range(len(STEPS))), st.integers(0, 3), st.integers(0, 3)), max_size=12)
)
def test_random_programs_agree_with_eager(device, grab, program):
    """In place, through views, and with results dropped so that their memory is used again."""

    def run(x, y):
        live = [x, y, x + y, x * y]
        for step, a, b in program:
            result = STEPS[step](live[a], live[b])
            live[a] = result if result.shape == (6,) else live[a]
        return torch.stack(live)

    static = torch.zeros(2, 6, device=device)
    run(*static.clone().unbind())  # warm-up
    g, out = grab(lambda: run(*static.unbind()))
    for _ in range(2):
        new = torch.randn(2, 6)
        static.copy_(new)
        eager = new.to(device)
        want = run(*eager.unbind())
        g.replay()
        assert torch.equal(out, want) and torch.equal(static, eager)


SIZES = st.sampled_from([1, 511, 512, 513, 5000, 1 << 19, 1 << 20, (1 << 20) + 1, 3 << 20, 9 << 20, 11 << 20])


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(SIZES, st.integers(0, 1), st.booleans(), st.integers(0, 99)), max_size=30))
def test_live_tensors_never_overlap_and_blocks_tile_their_segments(program):
    """(bytes, stream, free one afterwards?, which): the tensors' contents are the oracle."""
    pool, live, marks = Pool(), [], iter(range(1, 100))
    for size, stream, drop, which in program:
        t, mark = pool.empty((size,), (1,), torch.uint8, stream), next(marks)
        t[0] = t[-1] = mark
        live.append((t, mark, size))
        del t
        if drop:
            live.pop(which % len(live))
        for t, mark, _ in live:
            assert t[0] == t[-1] == mark
        t = None
        assert pool.allocated() >= sum(-(-size // 512) * 512 for *_, size in live)
        for segment in pool.segments:
            ends = [0] + [b.offset + b.size for b in segment.blocks]
            assert [b.offset for b in segment.blocks] + [segment.size] == ends
    live.clear()
    assert pool.allocated() == 0 and all(len(s.blocks) == 1 for s in pool.segments)
