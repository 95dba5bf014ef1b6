"""Intervals of Kendall's tau: against scipy's tau, by hand, and by simulated coverage."""

import math

import numpy as np
import pytest
from scipy import stats

from isorun.analysis.agreements.agreement import tau_difference_interval, tau_interval

X = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 9.0]
Y = [2.0, 1.0, 4.0, 3.0, 6.0, 5.0, 8.0, 7.0, 7.0, 10.0]


def by_hand(x, y):
    """The jackknife with scipy's tau-b, on the scale of Fisher's z."""
    n, tau = len(x), stats.kendalltau(x, y).statistic
    out = np.array([stats.kendalltau(np.delete(x, i), np.delete(y, i)).statistic for i in range(n)])
    error = math.sqrt((n - 1) / n * ((out - out.mean()) ** 2).sum())
    reach = stats.t.ppf(0.975, n - 1) * error / (1 - tau**2)
    return math.tanh(math.atanh(tau) - reach), math.tanh(math.atanh(tau) + reach)


def test_the_interval_is_the_jackknifes_of_scipys_tau_with_ties():
    assert tau_interval(X, Y) == pytest.approx(by_hand(X, Y))


def test_a_difference_of_a_pair_from_itself_is_none():
    assert tau_difference_interval((X, Y), (X, Y)) == (0.0, 0.0)


def test_the_difference_turns_with_its_sides():
    low, high = tau_difference_interval((X, Y), (Y, X[::-1]))
    assert tau_difference_interval((Y, X[::-1]), (X, Y)) == pytest.approx((-high, -low))


@pytest.mark.parametrize(("x", "y"), [(X[:7], Y[:7]), (X, X), ([1.0] * 10, Y)])
def test_too_few_seeds_perfect_agreement_and_constants_have_no_interval(x, y):
    assert tau_interval(x, y) is None


@pytest.mark.slow
@pytest.mark.parametrize("tau", [0.0, 0.3, 0.6])
def test_intervals_cover_the_tau_of_normal_values_in_about_95_of_100_cases(tau):
    generator = np.random.default_rng(2)
    r = math.sin(tau * math.pi / 2)
    hits = 0
    for _ in range(2_000):
        x, noise = generator.normal(size=(2, 50))
        low, high = tau_interval(x, r * x + math.sqrt(1 - r * r) * noise)
        hits += low <= tau <= high
    assert 0.93 <= hits / 2_000 <= 0.975


@pytest.mark.slow
@pytest.mark.parametrize(("first", "second"), [(0.6, 0.6), (0.6, 0.3)])
def test_intervals_cover_the_difference_of_two_taus_over_the_same_seeds(first, second):
    generator = np.random.default_rng(3)
    loads = [math.sqrt(math.sin(tau * math.pi / 2)) for tau in (first, first, second, second)]
    hits = 0
    for _ in range(2_000):
        seed, *noise = generator.normal(size=(5, 50))
        x, y, u, v = (load * seed + math.sqrt(1 - load**2) * part for load, part in zip(loads, noise, strict=True))
        low, high = tau_difference_interval((x, y), (u, v))
        hits += low <= first - second <= high
    assert 0.94 <= hits / 2_000 <= 0.985
