"""What the checks of 2.4, 2.5 and 2.6 take for right, against code that is not theirs."""

import itertools
import random
import sys
from pathlib import Path

import nbformat
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from minillm.grading import corpus
from minillm.grading.checks.lesson02 import critical_path_cases as cases_of
from minillm.grading.checks.lesson02 import (
    critical_path_work,
    fork_join,
    fork_join_order,
    seeded_dropout,
    seeded_dropout_run,
)
from minillm.grading.checks.lesson02.critical_path_mistakes import FORMULAS
from minillm.grading.checks.lesson02.critical_path_truth import is_path, length
from minillm.grading.checks.lesson02.fork_join_program import Program
from minillm.grading.reference import lesson02
from minillm.grading.registry import Wrong
from minillm.graphs import backend, cuda, device
from minillm.graphs.anatomy.driver import CANNOT_READ

ROOT = Path(__file__).parents[2]
NAMES = {"2.4": "fork_join", "2.5": "critical_path", "2.6": "seeded_dropout"}
ENTRIES = corpus.load_corpus(ROOT / "tests" / "wrong_answers")
RIGHT = [entry for entry in ENTRIES if entry.id in NAMES and not entry.misconception]


def run_uses(names, *ids):
    """Run cells of the exercise notebook in `names`."""
    notebook = nbformat.read(ROOT / "exercises" / "02_stream_capture.ipynb", as_version=4)
    cells = {cell.id: cell.source for cell in notebook.cells}
    for id in ("imports", *ids):
        exec(cells[id], names)


@pytest.fixture
def recursion_limit():
    limit = sys.getrecursionlimit()
    yield limit
    sys.setrecursionlimit(limit)


@pytest.mark.parametrize("limit", [1000, 100_000])
def test_a_limit_that_somebody_raised_does_not_decide(limit, recursion_limit):
    deep = next(entry for entry in ENTRIES if entry.misconception == "recursion-limit")
    sys.setrecursionlimit(limit)
    assert deep.judge()[0] and sys.getrecursionlimit() == limit


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("entry", RIGHT, ids=lambda each: each.name)
def test_the_cells_that_use_an_answer_take_every_right_one(entry, capsys, recursion_limit):
    names = {"fork_join": lesson02.fork_join, NAMES[entry.id]: entry.answer}
    run_uses(names, *{"2.4": ["use-2-4"], "2.5": ["use-2-4", "use-2-5"], "2.6": ["use-2-6"]}[entry.id])
    printed = capsys.readouterr().out
    assert "nan" not in printed and f"{entry.id} is" not in printed
    if entry.id == "2.4":
        more = {"a_stream_for_each_branch": 7, "copies_on_the_way": 9}  # than six edges
        assert printed.startswith(f"{more.get(entry.answer.__name__, 6)} edges")
    if entry.id == "2.5":
        assert "25 µs, by the nodes" in printed
        assert printed.count("20 µs") == 5  # five of six are on the way


# ---- 2.5
@st.composite
def graphs(draw):
    """(nodes, edges, durations) with the nodes numbered at random."""
    nodes = draw(st.integers(0, 7))
    name = draw(st.permutations(range(nodes)))
    pairs = list(itertools.combinations(name, 2))
    edges = [pair for pair in pairs if draw(st.booleans())]
    return (
        nodes,
        draw(st.permutations(edges)),
        draw(st.lists(st.integers(0, 9), min_size=nodes, max_size=nodes)),
    )


def longest_of_all_orders(nodes, edges, durations):
    """Every sequence of nodes, and whether edges lead along it."""
    known, best = set(edges), 0
    for size in range(nodes + 1):
        for path in itertools.permutations(range(nodes), size):
            if all(pair in known for pair in itertools.pairwise(path)):
                best = max(best, sum(durations[i] for i in path))
    return best


def minute_by_minute(nodes, edges, durations):
    """A clock that ticks: what is ready begins, what has run long enough ends."""
    end, now = {}, 0
    while len(end) < nodes or any(at > now for at in end.values()):
        changed = True
        while changed:  # a node of no duration lets others begin in the same tick
            changed = False
            for j in set(range(nodes)) - set(end):
                if all(i in end and end[i] <= now for i, k in edges if k == j):
                    end[j], changed = now + durations[j], True
        now += 1
    return max(end.values(), default=0)


@given(graphs())
@settings(deadline=None, max_examples=60)
def test_the_longest_path_is_that_of_brute_force_and_of_a_clock(graph):
    us, path = lesson02.critical_path(*graph)
    assert length(*graph) == us == minute_by_minute(*graph)
    if graph[0] < 6:
        assert us == longest_of_all_orders(*graph)
    assert is_path(path, graph[1]) and sum(graph[2][i] for i in path) == us


@pytest.mark.parametrize("seed", range(5))
def test_no_mistake_gives_the_truth_on_every_case(seed):
    cases = cases_of.small(random.Random(seed))
    for key, formulas in FORMULAS.items():
        for formula in formulas if isinstance(formulas, list) else [formulas]:
            values = [formula(*case) for case in cases]
            assert any(
                value != pytest.approx(length(*case)) for value, case in zip(values, cases, strict=True)
            ), key


def test_the_numbers_of_the_task():
    assert lesson02.critical_path(4, [(0, 1), (0, 2), (1, 3), (2, 3)], [5, 20, 3, 4]) == (29, [0, 1, 3])
    assert lesson02.critical_path(3, [(2, 0)], [4, 9, 6]) == (10, [2, 0])
    diamond = [(0, 1), (1, 2), (2, 3), (0, 4), (3, 5), (4, 5)]
    assert lesson02.critical_path(6, diamond, [5] * 6) == (25, [0, 1, 2, 3, 5])


# ---- 2.4
def by_hand(fork=True, join="before", order="parallel", swap=False):
    """An answer with the waits that are asked for."""

    def answer(left, right, combine, side):
        main, results = cuda.current_stream(), {}
        first = [("left", left)] if order == "left first" else []
        for name, branch in first:
            results[name] = branch()
        if fork:
            side.wait_stream(main)
        with cuda.stream(side):
            results["right"] = right()
        if order == "right first":
            main.wait_stream(side)
        if not first:
            results["left"] = left()
        if join == "before":
            main.wait_stream(side)
        out = combine(results["left"], results["right"])
        main.wait_stream(side)
        return out

    return answer


ORDERS = {
    "right": ({}, (True, True, False)),
    "joined late": ({"join": "after"}, (True, False, False)),
    "not forked": ({"fork": False}, (False, True, False)),
    "left first": ({"order": "left first"}, (True, True, True)),
    "right first": ({"order": "right first"}, (True, True, True)),
}


def program_of(answer, slow=None):
    program = Program(40, (2.0, 3.0, 5.0), drawn_in=True, slow=slow)
    program.capture(answer)
    return program


def replay_as_late_as_possible(program):
    """What a GPU may do when the part `slow` takes long: all that does not wait for it comes first."""
    nodes, written = program.graph.nodes, {"scale": "scaled", "left": "l", "right": "r"}[program.slow]
    spans = {extent.start for node in nodes for extent in node.writes}
    start = getattr(program, written).data_ptr()
    assert start in spans
    late = set()
    for node in nodes:
        slow_itself = any(extent.start == start for extent in node.writes)
        if slow_itself or late & set(node.after):
            late.add(node.index)
    for node in sorted(nodes, key=lambda node: (node.index in late, node.index)):
        node.launch()


@pytest.mark.skipif(backend == "cuda", reason="schedules the emulator's nodes")
@pytest.mark.parametrize("kind", ORDERS)
def test_slow_branches_and_edges_tell_the_same(kind, monkeypatch):
    """Who waits for whom, read from the edges and, without them, from what a slow part leaves behind."""
    options, expected = ORDERS[kind]
    answer = by_hand(**options)
    program = program_of(answer)
    found = fork_join_order.by_edges(program, fork_join_order.anatomy(program.graph))
    assert (found.forked, found.joined, found.serial) == expected

    def slow_program(part):
        made = program_of(answer, slow=part)
        monkeypatch.setattr(made.graph, "replay", lambda: replay_as_late_as_possible(made), raising=False)
        return made

    x = torch.linspace(-3, 3, 40, device=device)
    assert fork_join_order.by_slow_branches(slow_program, x) == found


@pytest.mark.parametrize("error", CANNOT_READ)
def test_where_a_graph_cannot_be_read_slow_branches_are_asked(monkeypatch, error):
    def missing(graph):
        raise error("cuda-bindings")

    monkeypatch.setattr(fork_join_order, "anatomy", missing)
    asked = []
    monkeypatch.setattr(
        fork_join_order, "by_slow_branches", lambda make, x: asked.append(make("left")) or "x"
    )
    program = program_of(by_hand())
    assert fork_join_order.order_of(program, lambda slow: slow, None) == "x" and asked == ["left"]


@pytest.mark.parametrize("drawn_in", [False, True])
def test_the_program_computes_what_it_says(drawn_in):
    x = torch.linspace(-3, 3, 40, device=device)
    program = Program(40, (2.0, 3.0, 5.0), drawn_in)
    program.capture(lesson02.fork_join)
    by_numbers = [((v * 2 + 3) * 2 - (v * 2 * 5 + 1)) * 3 for v in x.tolist()]
    assert program.replay(x).tolist() == pytest.approx(by_numbers, rel=1e-4, abs=1e-4)


def test_an_error_of_the_answer_stays_its_own():
    def divides_by_zero(left, right, combine, side):
        side.wait_stream(cuda.current_stream())
        with cuda.stream(side):
            right()
        return 1 / 0

    with pytest.raises(ZeroDivisionError):
        fork_join.check_fork_join(divides_by_zero, random.Random(0))


# ---- 2.6
def made_of(masks_of_seed, p=0.25):
    """An answer without a graph: masks_of_seed(seed, n) is the n-th mask that is dropped after a seed."""

    def answer(x, p, seed):
        now = {"seed": seed, "n": 0}

        def replay():
            now["n"] += 1
            return torch.where(masks_of_seed(now["seed"], now["n"], p), torch.zeros_like(x), x / (1 - p))

        return replay, lambda new: now.update(seed=new, n=0)

    return answer


def numpy_mask(seed, n, p):
    import numpy

    drawn = numpy.random.default_rng([seed, n]).random(seeded_dropout_run.SHAPE)
    return torch.from_numpy(drawn < p).to(device)


MASKS = {
    "right": (numpy_mask, None),
    "every replay equal": (lambda seed, n, p: numpy_mask(seed, 0, p), "reseeds-every-replay"),
    "one seed": (lambda seed, n, p: numpy_mask(0, n, p), "one-seed"),
    "frozen": (lambda seed, n, p: numpy_mask(0, 0, p), "same-mask"),
    "keeps p": (lambda seed, n, p: ~numpy_mask(seed, n, p), "keeps-p"),
    "a row at a time": (lambda seed, n, p: numpy_mask(seed, n, p)[:, :1].expand(64, 64), "not-elementwise"),
    "a column at a time": (lambda seed, n, p: numpy_mask(seed, n, p)[:1].expand(64, 64), "not-elementwise"),
}


@pytest.mark.parametrize("kind", MASKS)
def test_the_judge_of_dropout_looks_at_masks(kind, monkeypatch):
    """numpy's draws instead of a graph: that is refused, but here only what comes out is judged."""
    monkeypatch.setattr(seeded_dropout, "judge_draws", lambda run: None)
    masks, expected = MASKS[kind]
    for seed in range(3):
        try:
            seeded_dropout.check_seeded_dropout(made_of(masks), random.Random(seed))
            found = None
        except Wrong as wrong:
            found = wrong.key
        assert found == expected


def test_draws_in_a_replay_are_seen_and_draws_of_a_graph_are_not():
    x = torch.ones(seeded_dropout_run.SHAPE, device=device)
    replay, reseed = lesson02.seeded_dropout(x, 0.5, 3)
    with seeded_dropout_run.Draws() as draws:
        replay()
        reseed(4)
    assert not draws.eager and not draws.captured
    with draws:
        torch.rand_like(x)
        lesson02.seeded_dropout(x, 0.5, 3)
    assert "rand_like" in draws.eager and draws.captured


@pytest.mark.parametrize("nodes_each", (1, 2))
def test_only_cubic_work_on_a_chain_is_refused(nodes_each):
    def works(power):
        def answer(nodes, edges, durations):
            for _ in range(nodes_each * nodes**power):
                pass

        return answer

    for power in (1, 2):
        critical_path_work.refuse_cubic(works(power), random.Random(0))
    with pytest.raises(Wrong) as found:
        critical_path_work.refuse_cubic(works(3), random.Random(0))
    assert found.value.key == "all-pairs"


def test_a_loop_without_end_is_stopped_and_the_trace_put_back():
    before = sys.gettrace()
    with pytest.raises(Wrong) as found:
        critical_path_work.lines_of(endless, ())
    assert found.value.key == "endless" and sys.gettrace() is before


def endless():
    while True:
        pass
