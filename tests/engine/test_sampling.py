"""Drawn tokens against a float64 softmax, and what a request may ask for."""

import math
from fractions import Fraction

import pytest
import torch
from helpers import DEVICE
from hypothesis import given, settings
from hypothesis import strategies as st

from minillm.engine import GraphRunner, Sampling
from minillm.engine.sampling import MOST, greedy, sample

DRAWS = 6000


def draw(logits, temperature, top_k, seed=0):
    """Tokens, one a row; the three are lists or tensors with an entry a row."""
    return sample(
        torch.as_tensor(logits, device=DEVICE),
        torch.as_tensor(temperature, dtype=torch.float32, device=DEVICE),
        torch.as_tensor(top_k, dtype=torch.int64, device=DEVICE),
        torch.Generator(DEVICE).manual_seed(seed),
    )


def random_logits(rows, vocab, seed=0, spread=2.0):
    return spread * torch.randn(rows, vocab, generator=torch.Generator().manual_seed(seed))


def probabilities(logits, temperature, top_k):
    """Of one row, in float64; without ties at the border of the top k."""
    scaled = logits.double() / temperature
    if top_k:
        scaled[logits.argsort(descending=True)[top_k:]] = -math.inf
    return scaled.softmax(0)


def fits(tokens, expected):
    """A chi-square test of counts, those below 8 taken together; a bound far beyond one in a thousand."""
    counts = torch.bincount(tokens.cpu(), minlength=len(expected)).double()
    assert counts[expected == 0].sum() == 0, "a token that had no chance was drawn"
    expected = expected * len(tokens)
    common = expected >= 8
    seen = torch.cat((counts[common], counts[~common].sum()[None]))
    wanted = torch.cat((expected[common], expected[~common].sum()[None]))
    seen, wanted = seen[wanted > 1], wanted[wanted > 1]
    freedom = max(len(seen) - 1, 1)
    distance = ((seen - wanted) ** 2 / wanted).sum().item()
    assert distance < freedom + 5 * math.sqrt(2 * freedom) + 5, f"{distance:.1f} at {freedom} degrees"
    return True


def test_the_chi_square_test_can_fail():
    tokens = torch.multinomial(torch.tensor([0.5, 0.3, 0.2]), DRAWS, replacement=True)
    assert fits(tokens, torch.tensor([0.5, 0.3, 0.2]).double())
    with pytest.raises(AssertionError, match="degrees"):
        fits(tokens, torch.tensor([0.45, 0.33, 0.22]).double())
    with pytest.raises(AssertionError, match="no chance"):
        fits(tokens, torch.tensor([0.7, 0.3, 0.0]).double())


@pytest.mark.parametrize("vocab", [7, 40, 200])
@pytest.mark.parametrize("temperature, top_k", [(1.0, 0), (0.4, 0), (3.0, 0), (1.0, 3), (0.7, 64), (2.0, 20)])
def test_draws_follow_the_softmax(vocab, temperature, top_k):
    row = random_logits(1, vocab, seed=vocab)[0]
    tokens = draw(row.expand(DRAWS, -1), [temperature] * DRAWS, [top_k] * DRAWS, seed=top_k)
    assert fits(tokens, probabilities(row, temperature, top_k))


def test_rows_of_all_kinds_in_one_batch():
    kinds = [(0.0, 0), (0.0, 5), (1.0, 0), (1.0, 1), (0.5, 4), (2.0, 0)]
    rows = random_logits(len(kinds), 30, seed=3)
    repeat = 3000
    tokens = draw(
        rows.repeat(repeat, 1), [t for t, _ in kinds] * repeat, [k for _, k in kinds] * repeat
    ).view(repeat, -1)
    for column, (temperature, top_k) in enumerate(kinds):
        if temperature == 0 or top_k == 1:
            assert tokens[:, column].unique().tolist() == [rows[column].argmax().item()]
        else:
            assert fits(tokens[:, column], probabilities(rows[column], temperature, top_k))


def test_equal_logits_are_drawn_equally_often():
    assert fits(draw(torch.zeros(DRAWS, 10), [0.3] * DRAWS, [0] * DRAWS), torch.full((10,), 0.1).double())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("top_k", [1, 2, 5, 8])
def test_with_ties_at_the_border_exactly_k_tokens_are_drawn(top_k, dtype):
    row = torch.tensor([1.0, 3.0, 2.0, 2.0, 2.0, 0.0, 2.0, 2.0, 1.0, 1.0], dtype=dtype)
    tokens = draw(row.expand(DRAWS, -1), [1.0] * DRAWS, [top_k] * DRAWS)
    counts = torch.bincount(tokens.cpu(), minlength=10)
    assert (counts > 0).sum() == top_k
    kth = row.sort(descending=True).values[top_k - 1]
    assert (row[counts > 0] >= kth).all()
    chosen = torch.where(counts > 0, row.double(), -math.inf).softmax(0)
    assert fits(tokens, chosen)


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 2**31),
    vocab=st.integers(1, 90),
    rows=st.lists(
        st.tuples(st.sampled_from([0.0, 1e-9, 0.5, 50.0]), st.integers(0, MOST)), min_size=1, max_size=6
    ),
)
def test_what_is_drawn_is_among_the_k_most_likely(seed, vocab, rows):
    logits = random_logits(len(rows), vocab, seed)
    tokens = draw(logits, [t for t, _ in rows], [k for _, k in rows], seed).tolist()
    assert len(tokens) == len(rows)
    for row, token, (temperature, top_k) in zip(logits, tokens, rows, strict=True):
        rank = (row > row[token]).sum().item()
        if temperature < 1e-6:  # greedy, or so cold that it comes to the same but for a photo finish
            assert rank == 0 or (temperature and row.max() - row[token] < 1e-3)
        assert rank < (top_k or vocab)


def test_greedy_is_the_largest_logit():
    logits = random_logits(5, 40).to(DEVICE)
    assert greedy(logits).tolist() == [row.index(max(row)) for row in logits.tolist()]
    assert draw(logits, [0.0] * 5, [0] * 5).tolist() == greedy(logits).tolist()
    assert draw(logits, [1.0] * 5, [1] * 5).tolist() == greedy(logits).tolist()


@pytest.mark.parametrize("top_k", [0, 4])
def test_greedy_draws_nothing_not_even_in_a_photo_finish(top_k):
    row = torch.tensor([0.5, 1.0, 1.0 + 2**-20, 1.0, 0.0])
    tokens = draw(row.expand(500, -1), [0.0] * 500, [top_k] * 500)
    assert tokens.unique().tolist() == [2]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("whole", [True, False])
def test_a_row_that_is_no_number_disturbs_no_other_and_gives_a_token_that_exists(bad, whole):
    logits = random_logits(6, 80, seed=1)
    kinds = [0.0, 1.0, 1.0, 0.7, 1.0, 0.0], [0, 0, 5, 0, 64, 3]
    good = draw(logits, *kinds, seed=4).tolist()
    spoilt = logits.clone()
    for row in (1, 2, 5):
        spoilt[row, :: 1 if whole else 9] = bad
    tokens = draw(spoilt, *kinds, seed=4).tolist()
    assert [tokens[row] for row in (0, 3, 4)] == [good[row] for row in (0, 3, 4)]
    assert all(0 <= token < 80 for token in tokens)


def test_a_token_of_logit_minus_infinity_is_never_drawn():
    row = torch.tensor([0.0, -math.inf, 1.0, -math.inf])
    for top_k in (0, 4):
        tokens = draw(row.expand(DRAWS, -1), [2.0] * DRAWS, [top_k] * DRAWS)
        assert fits(tokens, (row.double() / 2).softmax(0))


def test_a_seed_names_the_draws():
    logits, kind = random_logits(50, 60), ([1.0] * 50, [0] * 50)
    assert draw(logits, *kind, seed=1).tolist() == draw(logits, *kind, seed=1).tolist()
    assert draw(logits, *kind, seed=1).tolist() != draw(logits, *kind, seed=2).tolist()


def test_in_a_graph_each_replay_draws_anew_and_a_seed_repeats_them():
    row, generator = random_logits(1, 20, seed=5)[0], torch.Generator(DEVICE).manual_seed(0)
    rows = row.expand(2000, -1).contiguous().to(DEVICE)
    runner = GraphRunner(
        lambda logits, temperature, top_k: sample(logits, temperature, top_k, generator),
        {
            "logits": rows,
            "temperature": torch.full((2000,), 0.8, device=DEVICE),
            "top_k": torch.full((2000,), 6, device=DEVICE),
        },
        generators=(generator,),
    )
    generator.manual_seed(11)
    tokens = [runner().clone() for _ in range(3)]
    assert not torch.equal(tokens[0], tokens[1]) and not torch.equal(tokens[1], tokens[2])
    assert fits(torch.cat(tokens), probabilities(row, 0.8, 6))
    generator.manual_seed(11)
    assert all(torch.equal(runner(), before) for before in tokens)
    warm = runner(temperature=torch.full((2000,), 5.0, device=DEVICE))
    assert fits(warm, probabilities(row, 5.0, 6))


@pytest.mark.parametrize(
    "choice",
    [
        {},
        {"max_tokens": 1},
        {"temperature": 0, "top_k": 1, "stop_token": 0},
        {"temperature": Fraction(1, 2), "top_k": 64},
        {"temperature": 1e-12},
        {"max_tokens": 10**9, "temperature": 1e9},
    ],
)
def test_what_can_be_asked_for(choice):
    sampling = Sampling(**choice)
    assert {name: getattr(sampling, name) for name in choice} == choice


def test_the_default_is_greedy_without_a_limit():
    assert Sampling() == Sampling(max_tokens=None, temperature=0.0, top_k=None, stop_token=None)


# Also what `Engine.add` and `Engine.generate` must refuse.
REFUSED = [
    ({"max_tokens": 0}, ValueError, "max_tokens is 0; expected 1 or more, or None"),
    ({"max_tokens": -3}, ValueError, "max_tokens is -3; expected 1 or more"),
    ({"max_tokens": 2.0}, TypeError, "max_tokens is 2.0; expected a whole number, 1 or more, or None"),
    ({"max_tokens": True}, TypeError, "max_tokens is True; expected a whole number"),
    ({"max_tokens": "5"}, TypeError, "max_tokens is '5'"),
    ({"top_k": 0}, ValueError, "top_k is 0; expected 1 to 64, or None"),
    ({"top_k": 65}, ValueError, "top_k is 65; expected 1 to 64, or None"),
    ({"top_k": 1.5}, TypeError, "top_k is 1.5; expected a whole number, 1 to 64, or None"),
    ({"temperature": -0.1}, ValueError, r"temperature is -0.1; expected 0 \(greedy\) or more, and finite"),
    ({"temperature": math.nan}, ValueError, "temperature is nan; expected 0"),
    ({"temperature": math.inf}, ValueError, "temperature is inf; expected 0"),
    ({"temperature": "hot"}, TypeError, "temperature is 'hot'; expected a number"),
    ({"temperature": None}, TypeError, "temperature is None; expected a number"),
    ({"temperature": True}, TypeError, "temperature is True; expected a number"),
    ({"stop_token": -1}, ValueError, "stop_token is -1; expected 0 or more, or None"),
    ({"stop_token": 1.0}, TypeError, "stop_token is 1.0; expected a whole number"),
    ({"heat": 1}, TypeError, "heat"),
]


@pytest.mark.parametrize("choice, error, words", REFUSED)
def test_what_is_refused(choice, error, words):
    with pytest.raises(error, match=words):
        Sampling(**choice)
