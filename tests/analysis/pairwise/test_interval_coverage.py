"""How often intervals hold the truth, by simulation.

The fast tests repeat little and allow for it; the slow ones hold the 93 to 97 % of every claim.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr

from isorun.analysis.leaderboards.aggregate import aggregate
from isorun.analysis.leaderboards.bootstrap import sd_bootstrap_interval
from isorun.analysis.pairwise.effect_size import effect_size
from isorun.analysis.pairwise.improvement import probability_of_improvement
from isorun.analysis.pairwise.mean_tests import paired_t, welch
from isorun.analysis.pairwise.shift import hodges_lehmann
from isorun.analysis.spreads.spread import sd_interval

SIZES = [5, 10, 16, 30]


def difference(a, b):
    return welch(a, b).ci95, 0.8


def paired_difference(a, b):
    return paired_t(a - b).ci95, 0.8


def standardized(a, b):
    return effect_size(a, b).cohens_d_ci95, 0.8


def improvement(a, b):
    return probability_of_improvement(a, b).ci95, float(ndtr(0.8 / np.sqrt(2)))


def spread_of_a(a, b):
    return sd_interval(float(a.std(ddof=1)), a.size, 0.95), 1.0


def shift(a, b):
    return hodges_lehmann(a, b).ci95, 0.8


INTERVALS = [difference, paired_difference, standardized, improvement, spread_of_a]


def coverage(interval, runs, repetitions, seed=0):
    rng = np.random.default_rng([seed, runs])
    held = 0
    for _ in range(repetitions):
        (lower, upper), truth = interval(rng.normal(0.8, 1, runs), rng.normal(0, 1, runs))
        held += lower <= truth <= upper
    return held / repetitions


@pytest.mark.parametrize("runs", SIZES)
@pytest.mark.parametrize("interval", INTERVALS)
def test_intervals_hold_the_truth_about_95_times_in_100(interval, runs):
    assert 0.92 <= coverage(interval, runs, 800) <= 0.98


@pytest.mark.slow
@pytest.mark.parametrize("runs", SIZES)
@pytest.mark.parametrize("interval", INTERVALS)
def test_intervals_cover_93_to_97_percent(interval, runs):
    assert 0.93 <= coverage(interval, runs, 8000, seed=1) <= 0.97


@pytest.mark.slow
@pytest.mark.parametrize("runs", SIZES)
def test_the_interval_of_the_shift_covers_at_least_93_percent_and_is_discrete_at_five_runs(runs):
    """Its level can only be one of few values: 96.8 % is the smallest above 95 % at five runs a side."""
    assert 0.93 <= coverage(shift, runs, 4000) <= (0.975 if runs == 5 else 0.97)


@pytest.mark.slow
@pytest.mark.parametrize("effect", [0.0, 1.7])
@pytest.mark.parametrize("sd", [1.0, 2.0])
@pytest.mark.parametrize("runs", SIZES)
def test_the_probability_of_improvement_covers_for_unequal_spread_and_large_effects(effect, sd, runs):
    rng = np.random.default_rng(7)
    truth = float(ndtr(effect / np.sqrt(1 + sd**2)))
    held = [
        lower <= truth <= upper
        for lower, upper in (
            probability_of_improvement(rng.normal(effect, sd, runs), rng.normal(size=runs)).ci95 for _ in range(6000)
        )
    ]
    assert 0.925 <= np.mean(held) <= 0.975


@pytest.mark.slow
@pytest.mark.parametrize(("runs", "documented"), [(5, 0.60), (10, 0.76), (16, 0.80), (30, 0.85)])
def test_the_bootstrap_interval_of_an_sd_is_too_short_for_few_runs_as_documented(runs, documented):
    rng = np.random.default_rng(8)
    held = []
    for _ in range(1500):
        lower, upper = sd_bootstrap_interval(rng.normal(size=runs), rng, repetitions=600)
        held.append(lower <= 1.0 <= upper)
    assert np.mean(held) == pytest.approx(documented, abs=0.04)


def iqm_coverage(runs, repetitions):
    """The interquartile mean over 26 tasks of shifted normal scores; its true value by a large simulation."""
    rng = np.random.default_rng(9)
    centres = np.linspace(0, 1, 26)
    truth = aggregate(rng.normal(centres, 0.3, (40_000, 26)), rng, repetitions=1).estimate
    held = 0
    for _ in range(repetitions):
        lower, upper = aggregate(rng.normal(centres, 0.3, (runs, 26)), rng, repetitions=1000).ci95
        held += lower <= truth <= upper
    return held / repetitions


@pytest.mark.slow
@pytest.mark.parametrize("runs", [10, 16, 30])
def test_the_iqm_over_26_tasks_covers_near_95_percent(runs):
    assert 0.92 <= iqm_coverage(runs, 1500) <= 0.97


@pytest.mark.slow
def test_the_iqm_of_five_runs_a_task_is_too_short_as_documented():
    assert 0.86 <= iqm_coverage(5, 1500) <= 0.95
