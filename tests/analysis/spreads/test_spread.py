"""Spread, checked against the paper's printed table, numpy, and its own laws."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from isorun.analysis.spreads import pooled_sd, sd_interval, spread

NUMBERS = st.floats(min_value=-1e6, max_value=1e6, allow_nan=False)

# Table 2 of Pham et al., ASE 2020 (16 runs, one decimal printed): sd and its 90 % interval. The interval was computed
# from the unrounded sd, so a printed bound may lie anywhere that a sd rounding to the printed one allows.
PRINTED = [
    (2.6, 2.0, 3.8),
    (2.6, 2.0, 3.7),
    (38.7, 30.0, 55.6),
    (0.5, 0.4, 0.7),
    (0.6, 0.4, 0.8),
    (0.8, 0.6, 1.1),
    (24.5, 19.0, 35.2),
    (24.7, 19.1, 35.5),
    (44.5, 34.4, 63.9),
    (2.8, 2.2, 4.1),
    (13.3, 10.3, 19.1),
    (0.3, 0.2, 0.4),
    (1.3, 1.0, 1.9),
    (3.3, 2.6, 4.8),
    (16.3, 12.6, 23.4),
]


@pytest.mark.parametrize(("sd", "low", "high"), PRINTED)
def test_the_interval_of_a_standard_deviation_is_the_one_the_paper_prints(sd, low, high):
    smallest, largest = sd_interval(sd - 0.05, 16), sd_interval(sd + 0.05, 16)
    assert smallest[0] - 0.05 <= low <= largest[0] + 0.05
    assert smallest[1] - 0.05 <= high <= largest[1] + 0.05


@pytest.mark.parametrize("n", [2, 5, 16, 200])
def test_the_interval_is_that_of_the_chi_square_law(n):
    low, high = sd_interval(1.0, n)
    assert (n - 1) / low**2 == pytest.approx(stats.chi2.ppf(0.95, n - 1))
    assert (n - 1) / high**2 == pytest.approx(stats.chi2.ppf(0.05, n - 1))


def test_the_interval_holds_its_confidence():
    samples = np.random.default_rng(0).normal(size=(4000, 8))
    intervals = [sd_interval(float(sd), 8) for sd in samples.std(axis=1, ddof=1)]
    assert np.mean([low <= 1.0 <= high for low, high in intervals]) == pytest.approx(0.90, abs=0.015)


def test_known_values():
    seen = spread([2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0])
    assert (seen.n, seen.mean, seen.median, seen.minimum, seen.maximum) == (8, 5.0, 4.5, 2.0, 9.0)
    assert seen.sd == pytest.approx(math.sqrt(32 / 7))
    assert seen.max_difference == 7.0
    assert seen.relative_difference == 3.5
    assert seen.relative_sd == pytest.approx(math.sqrt(32 / 7) / 5)


def test_relative_difference_is_the_papers_ratio_over_the_fastest():
    # Table 3: the fastest LeNet5 run took 3.9 s, the difference is 158 s, RelDiff 4,014.8 %.
    assert spread([3.935, 161.92]).relative_difference == pytest.approx(40.148, abs=0.01)


def test_one_run_has_no_standard_deviation():
    seen = spread([0.97])
    assert (seen.n, seen.mean, seen.sd, seen.sd_interval, seen.max_difference) == (1, 0.97, None, None, None)


def test_no_run_has_nothing():
    seen = spread([])
    assert (seen.n, seen.mean, seen.minimum, seen.relative_sd) == (0, None, None, None)


def test_values_that_are_not_finite_are_counted_and_left_out():
    seen = spread([1.0, math.nan, 3.0, math.inf, -math.inf])
    assert (seen.n, seen.excluded, seen.mean) == (2, 3, 2.0)


def test_equal_values_vary_by_exactly_nothing():
    seen = spread([0.1] * 7)
    assert (seen.mean, seen.sd, seen.sd_interval, seen.max_difference) == (0.1, 0.0, (0.0, 0.0), 0.0)


def test_ratios_to_zero_are_unknown():
    seen = spread([0.0, 0.0])
    assert seen.relative_difference is None
    assert seen.relative_sd is None


def test_huge_values_do_not_overflow():
    seen = spread([1e308, -1e308])
    assert seen.mean == 0.0
    assert seen.sd == pytest.approx(math.sqrt(2) * 1e308)


def test_whiskers_end_at_runs_within_one_and_a_half_boxes():
    assert spread([1, 2, 3, 4, 5, 6, 7, 8, 100]).whiskers == (1.0, 8.0)


@given(st.lists(NUMBERS, min_size=2, max_size=30))
def test_mean_and_sd_are_those_of_numpy(values):
    seen = spread(values)
    assert seen.mean == pytest.approx(np.mean(values), abs=1e-6)
    assert seen.sd == pytest.approx(np.std(values, ddof=1), abs=1e-6)


@given(st.lists(NUMBERS, min_size=2, max_size=30), st.randoms())
def test_the_order_of_runs_changes_nothing(values, random):
    shuffled = list(values)
    random.shuffle(shuffled)
    assert spread(shuffled).sd == pytest.approx(spread(values).sd)
    assert spread(shuffled).max_difference == spread(values).max_difference


@given(st.lists(st.integers(-1000, 1000), min_size=2, max_size=30), st.integers(-1000, 1000))
def test_adding_a_constant_changes_no_spread(values, constant):
    moved = spread([value + constant for value in values])
    assert moved.sd == pytest.approx(spread(values).sd, abs=1e-9)
    assert moved.max_difference == spread(values).max_difference


def test_pooling_weighs_groups_by_their_degrees_of_freedom():
    groups = [spread([1.0, 3.0]), spread([10.0, 10.0, 10.0]), spread([5.0])]
    assert pooled_sd(groups) == pytest.approx(math.sqrt(2.0 / 3))
    assert pooled_sd([spread([5.0])]) is None


def test_values_of_one_draw_count_once_in_the_interval_and_each_in_the_standard_deviation():
    values = [1.0, 1.1, 2.0, 2.1, 4.0, 4.1, math.nan]
    seen = spread(values, [1, 1, 2, 2, 3, 3, 4])
    assert seen.sd == spread(values).sd
    assert seen.sd_draws == 3
    assert seen.sd_interval == pytest.approx(sd_interval(seen.sd, 3))
    assert spread(values).sd_draws == 6


def test_values_of_one_draw_alone_have_no_interval_unless_they_do_not_vary():
    assert spread([1.0, 2.0], ["a", "a"]).sd_interval is None
    assert spread([1.0, 1.0], ["a", "a"]).sd_interval == (0.0, 0.0)


@pytest.mark.parametrize("within", [0.0, 0.5, 1.0])
def test_the_interval_of_repeated_draws_holds_its_confidence(within):
    rng = np.random.default_rng(1)
    draws, held = [seed for seed in range(4) for _ in range(3)], []
    for _ in range(3000):
        values = np.repeat(rng.normal(size=4), 3) * math.sqrt(1.0 - within) + rng.normal(size=12) * math.sqrt(within)
        low, high = spread(values, draws).sd_interval
        held.append(low <= 1.0 <= high)
    assert np.mean(held) > 0.89
