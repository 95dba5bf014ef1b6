import pytest

from isorun.analysis.sequential import (
    Look,
    against_stored,
    declared_looks,
    every,
    fractions,
    looks_within,
)
from isorun.errors import InputError


def test_a_step_always_ends_at_the_maximum():
    assert every(5, min_runs=5, max_runs=12) == (Look(5, 5), Look(10, 10), Look(12, 12))


def test_equal_sides_have_the_fraction_of_their_runs():
    assert fractions(every(5, min_runs=5, max_runs=20)) == pytest.approx((0.25, 0.5, 0.75, 1.0))


def test_a_stored_side_is_whole_at_every_look():
    assert against_stored(30, max_runs=7) == (Look(5, 30), Look(6, 30), Look(7, 30))
    assert against_stored(30, max_runs=6, stored_side="a") == (Look(30, 5), Look(30, 6))


def test_information_is_that_of_two_means():
    assert Look(10, 30).information == pytest.approx(1 / (1 / 10 + 1 / 30))


def test_looks_may_be_listed_as_runs_a_side_or_as_pairs():
    assert declared_looks([5, (6, 5), [8, 9]], min_runs=5, max_runs=30) == (Look(5, 5), Look(6, 5), Look(8, 9))


def test_a_look_needs_enough_runs_of_both_sides():
    schedule = every(1, min_runs=5, max_runs=10)
    assert [looks_within(schedule, *sizes) for sizes in ((4, 9), (5, 9), (9, 7), (40, 40))] == [0, 1, 3, 6]


@pytest.mark.parametrize("looks", [0, -1, [], [4, 6], [8, 6], [6, 6], [(6, 8), (8, 6)], [(5, 4)], [(5, 6, 7)]], ids=str)
def test_looks_that_cannot_be_are_refused(looks):
    with pytest.raises(InputError, match="looks cannot be planned"):
        declared_looks(looks, min_runs=5, max_runs=30)


@pytest.mark.parametrize(("min_runs", "max_runs"), [(4, 30), (10, 9), (5, 4)])
def test_a_plan_below_five_runs_or_upside_down_is_refused(min_runs, max_runs):
    with pytest.raises(InputError, match="at least 5 runs a side"):
        every(1, min_runs=min_runs, max_runs=max_runs)
