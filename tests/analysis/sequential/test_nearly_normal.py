"""What t tests take for granted: when runs are told to be skewed, and what becomes of their spreads."""

import numpy as np
import pytest
from scipy import stats

from isorun.analysis.comparison import compare
from isorun.analysis.sequential import Look, Verdict, every
from isorun.analysis.sequential.nearly_normal import are_skewed, interval_of, moments_of, success_or_failure
from isorun.analysis.sequential.paths import moments


def expected(new, stored):
    """The test with scipy's skewness."""
    z = total = 0.0
    for runs in (new, stored):
        n = len(runs)
        total += (n - 2) ** 2 * 6 * n * (n - 1) / ((n - 2) * (n + 1) * (n + 3))
        z = z + (n - 2) * stats.skew(runs, bias=False)
    return abs(z) / np.sqrt(total) > stats.norm.ppf(0.95)


@pytest.mark.parametrize("sizes", [(5, 8), (5, 20), (12, 3)])
def test_skewness_is_that_of_both_sides_together(sizes):
    rng = np.random.default_rng(1)
    new, stored = (rng.exponential(1, (size, 300)) for size in sizes)
    told = are_skewed(new, stored)
    assert told.tolist() == expected(new, stored).tolist()
    assert are_skewed(7.0 - 100 * new, 3.0 - 0.01 * stored).tolist() == told.tolist()
    assert are_skewed(stored, new).tolist() == told.tolist()


@pytest.mark.parametrize("sizes", [(5, 5), (5, 20), (8, 200)])
def test_normal_runs_are_told_to_be_skewed_in_a_tenth(sizes):
    rng = np.random.default_rng(2)
    told = are_skewed(*(rng.normal(0, spread, (size, 20_000)) for size, spread in zip(sizes, (1, 4), strict=True)))
    assert 0.085 < told.mean() < 0.11


def test_a_side_that_does_not_vary_tells_nothing_of_skewness():
    rng = np.random.default_rng(3)
    stored = rng.exponential(1, (20, 50))
    constant = np.full((5, 50), 0.1 + 0.2)
    alone = np.abs(stats.skew(stored, bias=False)) / np.sqrt(6 * 20 * 19 / (18 * 21 * 23)) > stats.norm.ppf(0.95)
    assert are_skewed(constant, stored).tolist() == alone.tolist()
    assert not are_skewed(constant, constant).any()


def test_spreads_stay_but_for_that_of_fewer_skewed_runs():
    rng = np.random.default_rng(4)
    a, b = rng.exponential(1, (9, 400)), rng.exponential(2, (14, 400))
    even = every(1, min_runs=5, max_runs=9)
    assert np.array_equal(moments_of(a, b, even).var_a, moments(a, b, even).var_a)
    looks = (Look(5, 14), Look(9, 14), Look(9, 5))
    plain, taken = moments(a, b, looks), moments_of(a, b, looks)
    for k, look in enumerate(looks):
        skewed = are_skewed(a[: look.n_a], b[: look.n_b])
        most = np.maximum(plain.var_a[k], plain.var_b[k])
        fewer_a = look.n_a < look.n_b
        assert np.array_equal(taken.var_a[k], np.where(skewed & fewer_a, most, plain.var_a[k]))
        assert np.array_equal(taken.var_b[k], np.where(skewed & (not fewer_a), most, plain.var_b[k]))


def test_the_interval_is_welchs_where_nothing_is_skewed():
    rng = np.random.default_rng(5)
    a, b = rng.normal(1e6, 1, 6), rng.normal(1e6, 2, 9)
    assert not are_skewed(a[:, None], b[:, None])[0]
    known = stats.ttest_ind(a, b, equal_var=False).confidence_interval(0.9)
    assert interval_of(a, b, 0.9) == pytest.approx((known.low, known.high), rel=1e-6)
    assert interval_of(np.ones(5), np.ones(6), 0.9) is None


def test_a_comparison_within_a_margin_says_what_its_tests_take_for_granted():
    skewed = np.array([0.90, 0.91, 0.90, 0.92, 0.91, 0.90, 0.93, 0.91, 0.90, 0.91, 0.92, 0.99])
    few = [0.902, 0.903, 0.901, 0.904, 0.903]
    told = compare(few, skewed, margin=0.03)
    assert told.verdict is Verdict.UNDECIDED
    assert "skewed-runs" in [one.code for one in told.conditions]
    assert "skewed-runs" not in [one.code for one in compare(few, skewed).conditions]
    succeeded = compare([1.0] * 5, [1.0] * 20, margin=0.05)
    assert succeeded.verdict is Verdict.UNDECIDED
    assert "success or failure" in succeeded.decision.why
    assert compare([1.0] * 60, [1.0] * 60, margin=0.05).verdict is Verdict.EQUIVALENT


def test_shares_of_other_numbers_than_success_and_failure_are_left_alone():
    assert success_or_failure(np.array([0.5] * 5), np.array([0.5] * 8), 0.1, 0.05) == ()
    assert success_or_failure(np.array([0.0, 1.0] * 10), np.array([1.0, 0.0] * 10), 0.1, 0.05) == ()
    assert success_or_failure(np.array([0.0, 100.0] * 4), np.array([100.0] * 10), 10.0, 0.05)


@pytest.mark.slow
@pytest.mark.parametrize("border", [-2.0, 2.0])
def test_few_skewed_runs_against_many_are_called_equivalent_in_at_most_five_percent(border):
    rng = np.random.default_rng(6)
    sides = ((rng.exponential(1, 5) + border, rng.exponential(1, 20)) for _ in range(3000))
    found = [compare(*side, margin=2.0).verdict is Verdict.EQUIVALENT for side in sides]
    assert np.mean(found) <= stats.binom.ppf(0.9999, 3000, 0.05) / 3000
