"""What must be ordered and what is: worked out by hand, and for random programs by brute force."""

import warnings

import pytest
import torch

from minillm.graphs import emulator
from minillm.graphs.anatomy import races
from minillm.graphs.emulator.extents import MOST_RUNS, extent, runs, shares_a_byte
from minillm.graphs.emulator.nodes import data_edges


def record(f):
    g = emulator.CUDAGraph()
    with emulator.graph(g):
        f()
    return g


def forked(here, there):
    """The graph of ``there()`` on a side stream, then ``here()`` on the main one, joined at the end."""
    side = emulator.Stream()

    def f():
        main = emulator.current_stream()
        side.wait_stream(main)
        with emulator.stream(side):
            there()
        here()
        main.wait_stream(side)

    return record(f)


X = torch.zeros(4, 6)


@pytest.mark.parametrize(
    "there, here, kind",
    [
        (lambda: X.mul_(2), lambda: X + 1, "read after write"),
        (lambda: X + 1, lambda: X.fill_(2), "write after read"),
        (lambda: X.zero_(), lambda: X.fill_(2), "write after write"),
    ],
    ids=["RAW", "WAR", "WAW"],
)
def test_each_kind_of_race_is_found_and_named(there, here, kind):
    found = races(forked(here, there))
    assert found == [(0, 1)] and [(i, j) for i, j in found] == [(0, 1)]
    assert found[0].kind == kind and hash(found[0]) == hash((0, 1))
    assert all(span.start == X.data_ptr() and span.shape == (4, 6) for span in found[0].extents)
    words = repr(found[0])
    assert kind in words and "[4, 6] float32" in words and f"{X.data_ptr():#x}" in words


def test_reading_the_same_bytes_is_no_race():
    assert races(forked(lambda: X + 1, lambda: X * 2)) == []


@pytest.mark.parametrize(
    "mine, theirs, clash",
    [
        (X[:, :3], X[:, 3:], False),
        (X[:, :3], X[:, 2:], True),
        (X[:2], X[2:], False),
        (X[::2], X[1::2], False),
        (X[::2], X[1:3], True),
        (X[:, ::2], X[:, 1::2], False),
        (X.t()[0], X[1:, 1], False),
        (X.t()[1], X[1, 1:], True),
        (X[0], X.view(torch.int16)[0, 11:], True),  # the last two bytes of a row
        (X[0], X.view(torch.int16)[1, :1], False),
        (X[:, :3].expand(2, 4, 3), X[:, 3:], False),
    ],
)
def test_views_clash_where_they_share_a_byte(mine, theirs, clash):
    assert bool(races(forked(lambda: mine + 1, lambda: theirs.fill_(1)))) is clash
    assert shares_a_byte(extent(mine), extent(theirs)) is shares_a_byte(extent(theirs), extent(mine)) is clash


def test_memory_without_holes_is_one_run():
    x = torch.zeros(3, 4, 6)
    for whole in (x, x.permute(2, 0, 1), x[1], x[..., None], x[:1, 2], x[0, 0, 0]):
        span = extent(whole)
        assert runs(span) == [(span.start, span.start + 4 * whole.numel())] == [(span.start, span.stop)]
    start = x.data_ptr()
    assert runs(extent(x[:, 1, ::5])) == [
        (start + 4 * e, start + 4 * e + 4) for e in (6, 11, 30, 35, 54, 59)
    ]  # single elements
    assert runs(extent(x[0, :, :2])) == [(start + 4 * e, start + 4 * e + 8) for e in (0, 6, 12, 18)]


def test_a_view_in_too_many_pieces_counts_as_a_whole():
    x = torch.zeros(MOST_RUNS + 1, 2)
    assert len(runs(extent(x[:-1, 0]))) == MOST_RUNS and len(runs(extent(x[:, 0]))) == 1
    assert races(forked(lambda: x[:-1, 0] + 1, lambda: x[:-1, 1].fill_(1))) == []
    assert races(forked(lambda: x[:, 0] + 1, lambda: x[:, 1].fill_(1))) == [
        (0, 1)
    ]  # a false alarm, documented


def test_memory_of_the_pool_that_is_used_again_is_raced_for():
    """The allocator gives a block back to its own stream only: so it takes a tensor that dies early."""
    x, side = torch.ones(4), emulator.Stream()

    def f():
        main = emulator.current_stream()
        a = x + 1  # 0
        side.wait_stream(main)
        with emulator.stream(side):
            b = a * 2  # 1 reads a ...
        del a
        c = x + 3  # 2 ... whose memory 2 writes
        main.wait_stream(side)
        return b + c  # 3

    assert races(record(f)) == [(1, 2)] and races(record(f))[0].kind == "write after read"


def test_values_flow_from_every_writer_of_what_is_read():
    x, y = torch.zeros(2, 6), torch.zeros(3)

    def halves():
        x[:, :3].fill_(1)  # 0
        x[:, 3:].fill_(2)  # 1
        x + 1  # 2 reads both
        x.copy_(x.clone())  # 3, 4: overwrites both, and does not read them
        x[:, 3:] + 1  # 5
        y.add_(x[0, :3])  # 6
        y.zero_()  # 7: nothing flows into it
        torch.add(x[0, :3], 1, out=y)  # 8: nor from it

    assert data_edges(record(halves).nodes) == [
        (0, 2),
        (0, 3),
        (1, 2),
        (1, 3),
        (3, 4),
        (4, 5),
        (4, 6),
        (4, 8),
    ]


def test_a_number_from_the_host_has_no_address():
    x = torch.ones(3)
    (node,) = record(lambda: x + torch.tensor(0.5)).nodes
    assert [span.start for span in node.reads] == [x.data_ptr()]


@pytest.mark.parametrize(
    "g, error, words", [(3, TypeError, "got int"), (None, RuntimeError, "capture first")]
)
def test_races_wants_a_captured_graph(g, error, words):
    with pytest.raises(error, match=words):
        races(emulator.CUDAGraph() if g is None else g)


def test_on_cuda_races_says_why_not_and_what_to_do(monkeypatch):
    class Real:
        pass

    monkeypatch.setattr(torch.cuda, "CUDAGraph", Real)
    with pytest.raises(NotImplementedError, match="which bytes.*MINILLM_BACKEND=emulated"):
        races(Real())


# ---- random programs: sets of elements and of predecessors are the oracle
BASE = torch.zeros(4, 6)
CUTS = [
    lambda t: t[0:2, 0:3],
    lambda t: t[1:3, 0:3],
    lambda t: t[:2, ::2],
    lambda t: t[:2, 1::2],
    lambda t: t[2:, 3:],
    lambda t: t[::2, 2:5],
    lambda t: t.t()[:2, :3],
    lambda t: t[3:, :3].expand(2, 3),
]
ELEMENTS = [frozenset(cut(torch.arange(24).view(4, 6)).flatten().tolist()) for cut in CUTS]


def run_and_predict(program):
    """program: [("wait", stream) | (op, stream, target, source)] -> graph, races, data edges."""
    streams = [None, emulator.Stream()]
    seen, before, reads, writes = [set(), set()], [], [], []

    def note(stream, read, written):
        before.append(frozenset(seen[stream]))
        seen[stream].add(len(reads))
        reads.append(read)
        writes.append(written)

    def f():
        streams[0] = emulator.current_stream()
        streams[1].wait_stream(streams[0])
        for op, stream, *operands in program:
            if op == "wait":
                streams[stream].wait_stream(streams[1 - stream])
                seen[stream].update(seen[1 - stream])
                continue
            target, source = (CUTS[k](BASE) for k in operands)
            mine, other = (ELEMENTS[k] for k in operands)
            with emulator.stream(streams[stream]):
                target.add_(source) if op == "add" else target.copy_(source)
            note(stream, other | mine if op == "add" else other, mine)
        streams[0].wait_stream(streams[1])

    g = record(f)
    n, last, flow = len(reads), {}, set()
    clash = [
        (i, j)
        for i in range(n)
        for j in range(i + 1, n)
        if i not in before[j] and (writes[i] & (reads[j] | writes[j]) or reads[i] & writes[j])
    ]
    for j in range(n):
        flow |= {(last[e], j) for e in reads[j] if e in last}
        last.update(dict.fromkeys(writes[j], j))
    return g, clash, sorted(flow)


def test_the_oracle_finds_races_itself():
    _, clash, flow = run_and_predict([("add", 0, 0, 4), ("copy", 1, 1, 4), ("wait", 1, 0), ("copy", 1, 4, 0)])
    assert clash == [(0, 1)] and flow == [(0, 2), (1, 2)]


def test_random_programs_on_two_streams():
    hypothesis = pytest.importorskip("hypothesis", reason="a bare GPU machine may lack it")
    from hypothesis import strategies as st

    cut, stream = st.integers(0, len(CUTS) - 1), st.integers(0, 1)
    target = st.integers(0, len(CUTS) - 2)  # what is written is not expanded
    step = st.one_of(
        st.tuples(st.sampled_from(["add", "copy"]), stream, target, cut),
        st.tuples(st.just("wait"), stream),
    )
    seen = set()

    @hypothesis.settings(deadline=None, max_examples=120)
    @hypothesis.given(st.lists(step, max_size=10))
    @hypothesis.example([("copy", 0, 0, 4), ("copy", 1, 4, 0)])  # one of each kind at least
    @hypothesis.example([("copy", 0, 4, 0), ("copy", 1, 0, 1)])
    @hypothesis.example([("copy", 0, 0, 4), ("copy", 1, 0, 4)])
    @hypothesis.example([("add", 0, 0, 4)])
    def check(program):
        g, clash, flow = run_and_predict(program)
        assert sorted(races(g)) == clash and data_edges(g.nodes or []) == flow
        seen.update({"race"} if clash else {"none"}, {race.kind for race in races(g)})
        for race in races(g):
            assert shares_a_byte(*race.extents)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an empty capture
        check()
    assert seen == {"race", "none", "read after write", "write after read", "write after write"}
