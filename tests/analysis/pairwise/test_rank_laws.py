"""Exact laws against enumeration and SciPy."""

from __future__ import annotations

import math
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from isorun.analysis.agreements.agreement import kendall, spearman
from isorun.analysis.leaderboards.compare_many import compare_many, conover, dunn
from isorun.analysis.pairwise import mann_whitney, u_law, wilcoxon_signed_rank
from isorun.analysis.pairwise.effects import (
    effect_size,
    hodges_lehmann,
    probability_of_improvement,
    single_run_reversal,
    win_rate,
    win_rate_interval,
)

small_values = st.lists(st.integers(0, 6), min_size=1, max_size=5)


@given(small_values, small_values)
@settings(deadline=None)
def test_the_p_of_mann_whitney_is_the_share_of_relabelings_at_least_as_far(first, second):
    pooled = np.array(first + second, dtype=float)
    ranks = stats.rankdata(pooled)
    centre = len(first) * (pooled.size + 1) / 2
    sums = [sum(ranks[list(chosen)]) for chosen in combinations(range(pooled.size), len(first))]
    observed = sum(ranks[: len(first)])
    result = mann_whitney(pooled[: len(first)], pooled[len(first) :])
    assert result.p == pytest.approx(np.mean([abs(s - centre) >= abs(observed - centre) for s in sums]))
    assert result.p_larger == pytest.approx(np.mean([s >= observed for s in sums]))
    assert result.p_smaller == pytest.approx(np.mean([s <= observed for s in sums]))


@given(st.lists(st.integers(-4, 4), min_size=1, max_size=9))
@settings(deadline=None)
def test_the_p_of_the_signed_rank_test_is_the_share_of_signs_at_least_as_far(differences):
    moved = np.array([d for d in differences if d], dtype=float)
    result = wilcoxon_signed_rank(np.array(differences, dtype=float))
    if not moved.size:
        assert result.p is None
        return
    ranks = stats.rankdata(np.abs(moved))
    centre = ranks.sum() / 2
    sums = [sum(r for r, s in zip(ranks, signs, strict=True) if s) for signs in product([0, 1], repeat=moved.size)]
    observed = ranks[moved > 0].sum()
    assert result.p == pytest.approx(np.mean([abs(s - centre) >= abs(observed - centre) - 1e-12 for s in sums]))


@pytest.mark.parametrize(("n", "m"), [(3, 3), (10, 7), (30, 30), (49, 49)])
def test_exact_mann_whitney_equals_scipy_without_ties(n, m):
    rng = np.random.default_rng(n)
    a, b = rng.normal(0.5, 1, n), rng.normal(size=m)
    for alternative, p in (("two-sided", "p"), ("greater", "p_larger"), ("less", "p_smaller")):
        expected = stats.mannwhitneyu(a, b, alternative=alternative, method="exact").pvalue
        assert getattr(mann_whitney(a, b), p) == pytest.approx(expected, rel=1e-10)


def test_large_samples_use_the_normal_law_as_scipy_does():
    rng = np.random.default_rng(2)
    a, b = rng.integers(0, 40, 300) / 40, rng.integers(2, 42, 200) / 40
    expected = stats.mannwhitneyu(a, b, method="asymptotic")
    result = mann_whitney(a, b)
    assert (result.u, result.p) == pytest.approx((expected.statistic, expected.pvalue))
    assert not result.exact


def test_large_signed_rank_tests_use_the_normal_law_as_scipy_does():
    differences = np.round(np.random.default_rng(3).normal(0.2, 1, 80), 1)
    differences = differences[differences != 0]
    expected = stats.wilcoxon(differences, method="approx", correction=True).pvalue
    assert wilcoxon_signed_rank(differences).p == pytest.approx(expected)


def test_the_law_of_u_is_that_of_all_orders():
    assert u_law(2, 2) == pytest.approx(np.array([1, 1, 2, 1, 1]) / 6)


@given(st.lists(st.integers(0, 5), min_size=4, max_size=6), st.randoms(use_true_random=False))
@settings(max_examples=30, deadline=None)
@pytest.mark.long
def test_spearman_with_ties_is_the_share_of_orders_at_least_as_far(values, random):
    x = np.array(values, dtype=float)
    y = np.array(random.choices(range(5), k=x.size), dtype=float)
    result = spearman(x, y)
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert result.p is None
        return
    expected = stats.permutation_test(
        (x,), lambda order: stats.spearmanr(order, y).statistic, permutation_type="pairings", n_resamples=np.inf
    )
    assert result.p == pytest.approx(np.mean(np.abs(expected.null_distribution) >= abs(result.estimate) - 1e-9))


def test_kendall_equals_scipy_with_ties_and_in_large_samples():
    rng = np.random.default_rng(5)
    for x, y in ((rng.integers(0, 9, 60), rng.integers(0, 9, 60)), (rng.normal(size=70), rng.normal(size=70))):
        expected = stats.kendalltau(x, y, method="asymptotic")
        found = kendall(x.astype(float), y.astype(float))
        assert (found.estimate, found.p) == pytest.approx((expected.statistic, expected.pvalue))


def test_spearman_beyond_1290_uses_the_t_law():
    rng = np.random.default_rng(6)
    x = rng.normal(size=1300)
    y = 0.05 * x + rng.normal(size=1300)
    expected = stats.spearmanr(x, y)
    assert spearman(x, y).p == pytest.approx(expected.pvalue)


def test_the_shift_of_many_pairs_is_found_without_forming_them():
    rng = np.random.default_rng(7)
    a, b = rng.normal(0.3, 1, 1200), rng.normal(size=1100)
    pairs = np.sort(np.subtract.outer(a, b), axis=None)
    shift = hodges_lehmann(a, b)
    assert shift.estimate == pytest.approx(np.median(pairs), abs=1e-12)
    assert shift.ci95[0] < 0.3 < shift.ci95[1]
    assert min(abs(pairs - shift.ci95[0])) < 1e-12


def test_the_shift_has_no_interval_where_no_95_percent_interval_exists():
    assert hodges_lehmann(np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0])).ci95 is None
    assert hodges_lehmann(np.array([1.0]), np.array([4.0])).estimate == -3.0


def test_cohens_d_and_hedges_g_have_their_textbook_values():
    a, b = np.array([3.0, 4.0, 5.0]), np.array([1.0, 2.0, 3.0])
    found = effect_size(a, b)
    assert found.cohens_d == pytest.approx(2.0)
    assert found.hedges_g == pytest.approx(2.0 * 0.7978845608, rel=1e-9)  # gamma(2) / (sqrt(2) gamma(1.5))


def test_three_runs_have_a_d_and_no_g():
    found = effect_size(np.array([1.0, 2.0]), np.array([3.0]))
    assert found.cohens_d == pytest.approx(-1.5 / math.sqrt(0.5))
    assert (found.hedges_g, found.hedges_g_ci95) == (None, None)


def test_the_probability_of_improvement_counts_ties_as_half_and_respects_the_direction():
    a, b = np.array([1.0, 2.0, 3.0]), np.array([2.0, 2.0])
    assert probability_of_improvement(a, b).estimate == pytest.approx((0 + 1 + 2) / 6)
    b = np.array([1.5, 0.5])
    assert probability_of_improvement(a, b).estimate == pytest.approx(5 / 6)
    assert probability_of_improvement(a, b, direction="lower").estimate == pytest.approx(1 / 6)


def test_the_interval_of_a_certain_improvement_has_a_width():
    lower, upper = probability_of_improvement(np.arange(6.0) + 10, np.arange(6.0)).ci95
    assert 0.5 < lower < 0.9
    assert upper == 1.0


def test_both_ends_of_the_improvement_interval_solve_the_score_equation():
    """|theta - estimate| = t se(theta), with one t for both ends and the variance at theta itself."""
    rate = win_rate(np.array([1.0, 4, 6, 8]), np.array([2.0, 3, 5, 7]))
    lower, upper = win_rate_interval([rate])
    errors = [np.sqrt(end * (1 - end) * (1 - 0.1 * (2 * end - 1) ** 2) * rate.spread) for end in (lower, upper)]
    distances = [abs(end - rate.estimate) / error for end, error in zip((lower, upper), errors, strict=True)]
    assert distances[0] == pytest.approx(distances[1], rel=1e-6)
    assert 1.96 < distances[0] < 2.78


def test_the_side_that_varies_more_carries_the_variance_of_the_win_rate():
    rng = np.random.default_rng(1)
    wide, narrow = rng.normal(0, 20, 40), rng.normal(0, 1, 40)
    rate = win_rate(wide, narrow)
    assert rate.first_share > 0.85
    assert rate.second_share < 0.15
    alike = win_rate(rng.normal(size=4000), rng.normal(size=4000))
    assert (alike.first_share, alike.second_share) == pytest.approx((1 / 3, 1 / 3), abs=0.02)


def test_separated_sides_keep_a_wide_interval():
    """Binomial with five runs at most: 5 of 5 leaves 0.57 to 1 open (Wilson)."""
    apart = probability_of_improvement(np.arange(10.0, 15), np.arange(5.0))
    assert apart.estimate == apart.ci95[1] == 1.0
    assert 0.5 < apart.ci95[0] < 0.7


def test_single_run_reversal_counts_strict_reversals_only():
    a, b = np.array([1.0, 3.0]), np.array([1.0, 2.0])
    assert single_run_reversal(a, b) == pytest.approx(1 / 4)
    assert single_run_reversal(b, a) == pytest.approx(1 / 4)
    assert single_run_reversal(a, a) is None


def test_dunns_test_has_its_hand_computed_value():
    samples = [np.array([1.0, 2, 3]), np.array([4.0, 5, 6]), np.array([7.0, 8, 9])]
    z = 3 / np.sqrt(9 * 10 / 12 * (2 / 3))
    assert dunn(samples)[0] == pytest.approx(2 * stats.norm.sf(z))
    assert dunn(samples)[1] == pytest.approx(2 * stats.norm.sf(2 * z))


def test_conovers_test_is_the_t_test_of_rank_sums():
    block = np.array([[1.0, 2, 3], [1, 3, 2], [2, 1, 3], [1, 2, 3]])
    sums = block.sum(axis=0)
    unit = np.sqrt(2 * (4 * (block**2).sum() - (sums**2).sum()) / 6)
    assert conover(list(block.T))[0] == pytest.approx(2 * stats.t.sf(abs(sums[0] - sums[1]) / unit, 6))


def test_the_mean_rank_of_the_best_approach_is_smallest():
    runs = {"good": [0.9, 0.8, 0.95], "bad": [0.1, 0.2, 0.3]}
    for paired in (False, True):
        ranks = compare_many(runs, paired=paired).mean_ranks
        assert ranks["good"] < ranks["bad"]
        lower = compare_many(runs, paired=paired, direction="lower").mean_ranks
        assert lower["good"] > lower["bad"]
