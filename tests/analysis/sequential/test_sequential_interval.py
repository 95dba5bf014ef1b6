"""Intervals that hold although the comparison stopped when it looked good."""

import numpy as np
import pytest
from scipy import stats

from isorun.analysis.pairwise import welch
from isorun.analysis.sequential import Look, every
from isorun.analysis.sequential.rules import sequential_rule
from isorun.analysis.sequential.trace import ends, estimate_after_looks, estimate_under, trace
from isorun.analysis.sequential.verdict import Verdict, decide

DEFAULT = every(1, min_runs=5, max_runs=30)
LAWS = {
    "normal": lambda rng, shape: rng.standard_normal(shape),
    "skewed": lambda rng, shape: rng.exponential(1, shape),
}


def test_a_single_look_has_welchs_interval():
    rng = np.random.default_rng(1)
    a, b = rng.normal(1, 1, 9), rng.normal(0, 3, 14)
    expected = stats.ttest_ind(a, b, equal_var=False).confidence_interval(0.95)
    decision = decide(a, b, direction="higher", method="fixed")
    assert decision.ci95 == pytest.approx((expected.low, expected.high))
    assert decision.estimate == pytest.approx(a.mean() - b.mean())


def test_a_metric_that_is_better_when_lower_keeps_its_sign():
    rng = np.random.default_rng(2)
    a, b = rng.normal(1, 1, 9), rng.normal(3, 1, 9)
    decision = decide(a, b, direction="lower", method="fixed")
    assert decision.estimate == pytest.approx(a.mean() - b.mean())
    assert decision.ci95[0] < decision.estimate < decision.ci95[1] < 0


def test_after_looks_the_estimate_is_drawn_back_and_the_interval_is_no_narrower():
    rng = np.random.default_rng(3)
    a, b = rng.standard_normal(30) + 1.2, rng.standard_normal(30)
    decision = decide(a, b, direction="higher")
    assert decision.verdict is Verdict.A_BETTER
    n = next(point.n_a for point in decision.path if point.statistic >= (point.upper or np.inf))
    plain = welch(a[:n], b[:n])
    assert decision.estimate < plain.difference
    assert decision.ci95[0] <= plain.ci95[0]
    assert decision.ci95[1] >= plain.ci95[1]


def test_boundaries_that_are_never_near_change_nothing():
    rng = np.random.default_rng(4)
    plain = welch(rng.standard_normal(20), rng.standard_normal(20))
    schedule = every(5, min_runs=5, max_runs=20)
    found = estimate_after_looks(plain, schedule, (8.0, 8.0, 8.0, 8.0))
    assert found.difference == pytest.approx(plain.difference, abs=1e-6)
    assert found.ci95 == pytest.approx(plain.ci95, abs=1e-6)


def test_two_looks_agree_with_a_simulated_walk():
    """The estimate is the drift under which half of all outcomes are at least as far in favour of A."""
    rng = np.random.default_rng(5)
    a, b = rng.standard_normal(2_000) + 0.09, rng.standard_normal(2_000)
    plain = welch(a, b)
    schedule, boundary = (Look(1_000, 1_000), Look(2_000, 2_000)), 2.2
    found = estimate_after_looks(plain, schedule, (boundary, boundary))
    drift = found.difference / plain.standard_error
    walk = np.cumsum(rng.standard_normal((2, 400_000)) * np.sqrt(0.5) + drift / 2, axis=0)
    first, last = walk[0] / np.sqrt(0.5), walk[1]
    more = (first >= boundary) | ((np.abs(first) < boundary) & (last >= plain.t))
    assert more.mean() == pytest.approx(0.5, abs=0.005)


def test_runs_that_do_not_vary_have_no_interval():
    decision = decide([1.0] * 9, [2.0] * 9, direction="higher")
    assert decision.ci95 is None
    assert decision.estimate == -1.0


def test_without_a_maximum_the_interval_is_the_confidence_sequence():
    rng = np.random.default_rng(6)
    a, b = rng.standard_normal(40) + 0.1, rng.standard_normal(40)
    decision = decide(a, b, direction="higher", max_runs=None)
    plain = decide(a, b, direction="higher", method="fixed")
    assert decision.ci95[1] - decision.ci95[0] > plain.ci95[1] - plain.ci95[0]
    assert np.mean(decision.ci95) == pytest.approx(decision.estimate)


@pytest.mark.slow
@pytest.mark.parametrize("effect", [0.0, 0.5, 1.0, 1.7])
@pytest.mark.parametrize("law", LAWS)
def test_the_interval_covers_after_a_sequential_stop(law, effect):
    rule = sequential_rule(DEFAULT, "power-1.5", 0.05, futility=True)
    rng = np.random.default_rng([37, int(10 * effect)])
    comparisons = 1_000
    a, b = LAWS[law](rng, (30, comparisons)) + effect, LAWS[law](rng, (30, comparisons))
    end = ends(trace(rule, a, b))
    found = [estimate_under(rule, a[:, c], b[:, c], int(end.look[c])) for c in range(comparisons)]
    covered = np.mean([estimate.ci95[0] <= effect <= estimate.ci95[1] for estimate in found])
    assert 0.93 - 0.01 <= covered <= 0.97 + 0.01
    if law == "normal":
        assert np.mean([estimate.difference > effect for estimate in found]) == pytest.approx(0.5, abs=0.05)
