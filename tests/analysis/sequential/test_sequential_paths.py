import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from isorun.analysis.sequential import Look, every
from isorun.analysis.sequential.paths import centred_u, centred_u_of_all, moments, pooled_t, welch_t

SCHEDULE = (Look(5, 5), Look(6, 5), Look(6, 9), Look(12, 10))


@given(st.integers(0, 2**32), st.sampled_from([3, 1_000_000]))
@settings(deadline=None, max_examples=25)
def test_u_at_each_look_equals_scipy_with_and_without_ties(seed, distinct):
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, distinct, (12, 3)).astype(float), rng.integers(0, distinct, (10, 3)).astype(float)
    paths = centred_u(a, b, SCHEDULE)
    for k, (n_a, n_b) in enumerate(SCHEDULE):
        expected = stats.mannwhitneyu(a[:n_a], b[:n_b], method="asymptotic").statistic - n_a * n_b / 2
        assert paths[k] == pytest.approx(expected)


def test_u_of_sides_longer_than_a_byte_counts_is_right():
    rng = np.random.default_rng(0)
    a, b = rng.random((300, 2)), rng.random((280, 2))
    expected = stats.mannwhitneyu(a, b).statistic - 300 * 280 / 2
    assert centred_u(a, b, (Look(300, 280),))[0] == pytest.approx(expected)
    assert centred_u_of_all(a, b, (Look(300, 280),))[0] == pytest.approx(expected)
    assert centred_u(np.ones((300, 1)), np.zeros((280, 1)), (Look(300, 280),))[0, 0] == 300 * 280 / 2


def test_u_does_not_depend_on_how_comparisons_are_split_into_blocks():
    rng = np.random.default_rng(1)
    a, b = rng.random((8, 20_000)), rng.random((8, 20_000))
    schedule = every(1, min_runs=5, max_runs=8)
    assert (
        centred_u(a, b, schedule)[:, 17_000:17_005] == centred_u(a[:, 17_000:17_005], b[:, 17_000:17_005], schedule)
    ).all()


@given(st.integers(0, 2**32), st.sampled_from([0.0, 1e6]))
@settings(deadline=None, max_examples=25)
def test_t_at_each_look_equals_scipy_even_far_from_zero(seed, offset):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(offset, 1, (12, 2)), rng.normal(offset, 3, (10, 2))
    at = moments(a, b, SCHEDULE)
    for k, (n_a, n_b) in enumerate(SCHEDULE):
        welch = stats.ttest_ind(a[:n_a], b[:n_b], equal_var=False).statistic
        pooled = stats.ttest_ind(a[:n_a], b[:n_b]).statistic
        assert welch_t(at)[k] == pytest.approx(welch, rel=1e-6, abs=1e-6)
        assert pooled_t(at)[k] == pytest.approx(pooled, rel=1e-6, abs=1e-6)


def test_t_of_runs_that_do_not_vary_is_infinite_or_zero():
    at = moments(np.full((5, 3), 2.0), np.array([[1.0, 2.0, 3.0]] * 5), (Look(5, 5),))
    assert welch_t(at)[0].tolist() == [np.inf, 0.0, -np.inf]
