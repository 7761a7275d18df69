"""Which sizes are captured, and which of them a step takes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minillm.engine.ladder import batch_ladder, checked_ladder, rung, width_ladder


@pytest.mark.parametrize(
    "maximum, sizes",
    [
        (1, [1]),
        (2, [1, 2]),
        (3, [1, 2, 3]),
        (8, [1, 2, 4, 8]),
        (9, [1, 2, 4, 8, 9]),
        (16, [1, 2, 4, 8, 16]),
        (17, [1, 2, 4, 8, 16, 17]),
        (64, [1, 2, 4, 8, 16, 32, 48, 64]),
    ],
)
def test_batch_sizes(maximum, sizes):
    assert batch_ladder(maximum) == sizes


@pytest.mark.parametrize(
    "maximum, least, sizes",
    [
        (1, 16, [1]),
        (16, 16, [16]),
        (17, 16, [16, 17]),
        (64, 16, [16, 32, 64]),
        (100, 16, [16, 32, 64, 100]),
        (5, 1, [1, 2, 4, 5]),
    ],
)
def test_widths(maximum, least, sizes):
    assert width_ladder(maximum, least) == sizes


def test_widths_begin_at_16_blocks():
    assert width_ladder(512) == [16, 32, 64, 128, 256, 512]


@given(maximum=st.integers(1, 3000), ladder=st.sampled_from([batch_ladder, width_ladder]))
def test_a_ladder_rises_and_ends_at_the_maximum(maximum, ladder):
    sizes = ladder(maximum)
    assert sizes == sorted(set(sizes)) and sizes[0] >= 1 and sizes[-1] == maximum
    assert checked_ladder("sizes", sizes, maximum) == sizes


@given(maximum=st.integers(1, 600))
def test_a_batch_of_any_size_has_a_rung_and_pads_by_less_than_itself(maximum):
    sizes = batch_ladder(maximum)
    for size in range(1, maximum + 1):
        chosen = rung(size, sizes)
        assert size <= chosen < 2 * size or chosen == size
        assert chosen - size < 16


@given(sizes=st.sets(st.integers(1, 60), min_size=1), size=st.integers(1, 70))
def test_a_rung_is_the_smallest_that_holds(sizes, size):
    fitting = [it for it in sizes if it >= size]
    assert rung(size, sorted(sizes)) == (min(fitting) if fitting else None)


@pytest.mark.parametrize("ladder", [batch_ladder, width_ladder])
@pytest.mark.parametrize("maximum", [0, -3])
def test_a_maximum_below_one_is_refused(ladder, maximum):
    with pytest.raises(ValueError, match=f"is {maximum}; expected 1 or more"):
        ladder(maximum)


def test_sizes_are_sorted_and_each_counts_once():
    assert checked_ladder("buckets", (8, 1, 8, 4), 8) == [1, 4, 8]
    assert checked_ladder("buckets", iter([2]), 8) == [2]


@pytest.mark.parametrize("sizes", [[], [0, 1], [-1], [1, 9]])
def test_sizes_outside_the_limits_are_refused(sizes):
    with pytest.raises(ValueError, match="buckets is .*expected one size or more, each from 1 to 8"):
        checked_ladder("buckets", sizes, 8)
