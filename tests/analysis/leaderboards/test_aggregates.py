from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from isorun.analysis.leaderboards.across_tasks import (
    expected_best_curve,
    expected_best_of_k,
    improvement_across_tasks,
    performance_profile,
)
from isorun.analysis.leaderboards.aggregate import STATISTICS, aggregate, rank_intervals
from isorun.analysis.leaderboards.resampling import (
    bca_interval,
    count_replicates,
    positions,
    replicates,
    sd_bootstrap_interval,
)
from isorun.analysis.leaderboards.task_scores import task_scores
from isorun.analysis.pairwise.effects import probability_of_improvement
from isorun.errors import InputError

RUNS = np.random.default_rng(0).normal(0.5, 0.4, (10, 26)) + np.linspace(-0.4, 0.4, 26)


def generator():
    return np.random.default_rng(11)


def naive_replicates(matrix, statistic, repetitions=4000):
    rng = np.random.default_rng(5)
    runs, tasks = matrix.shape
    draws = rng.integers(0, runs, (repetitions, runs, tasks))
    return np.array([statistic(matrix[draw, np.arange(tasks)]) for draw in draws])


PLAIN = {
    "iqm": lambda scores: stats.trim_mean(scores.ravel(), 0.25),
    "mean": lambda scores: scores.mean(axis=0).mean(),
    "median": lambda scores: np.median(scores.mean(axis=0)),
    "optimality-gap": lambda scores: 1 - np.minimum(scores, 1).mean(),
}


@pytest.mark.long
@pytest.mark.parametrize("statistic", STATISTICS)
def test_estimates_are_those_of_a_plain_implementation_and_intervals_agree(statistic):
    found = aggregate(RUNS, generator(), statistic=statistic, interval="percentile", repetitions=4000)
    assert found.estimate == pytest.approx(PLAIN[statistic](RUNS))
    plain = np.quantile(naive_replicates(RUNS, PLAIN[statistic]), (0.025, 0.975))
    assert found.ci95 == pytest.approx(tuple(plain), abs=0.12 * (plain[1] - plain[0]))


def test_the_same_generator_gives_the_same_interval():
    one, two = (aggregate(RUNS, generator(), interval="percentile", repetitions=500).ci95 for _ in range(2))
    assert one == two


def test_tasks_with_unequal_runs_weigh_the_same():
    scores = {"small": [0.0, 0.2], "large": [1.0] * 8}
    assert aggregate(scores, generator(), statistic="mean", repetitions=200).estimate == pytest.approx(0.55)


def test_the_weighted_iqm_equals_the_plain_one_when_runs_are_repeated():
    """A task whose every run is given twice says the same as before."""
    once = {"x": [0.1, 0.4, 0.5, 0.9], "y": [0.2, 0.3, 0.8, 1.0]}
    twice = {"x": [*once["x"], *once["x"]], "y": once["y"]}
    plain = aggregate(once, generator(), repetitions=100).estimate
    assert aggregate(twice, generator(), repetitions=100).estimate == pytest.approx(plain)


def test_single_runs_have_no_interval():
    assert aggregate({"x": [1.0], "y": [1.0, 2.0]}, generator(), repetitions=100).ci95 is None


def test_unknown_aggregates_and_empty_scores_are_refused():
    with pytest.raises(InputError, match="iqm"):
        aggregate(RUNS, generator(), statistic="iqn")
    with pytest.raises(InputError, match="no tasks"):
        aggregate({}, generator())
    with pytest.raises(InputError, match="task 'x'"):
        aggregate({"x": [1.0, np.nan]}, generator())
    with pytest.raises(InputError, match="few-runs"):
        aggregate(RUNS, generator(), interval="bca")
    with pytest.raises(InputError, match="repetitions"):
        aggregate(RUNS, generator(), interval="percentile", repetitions=0)


def test_improvement_across_tasks_is_the_mean_over_tasks():
    other = RUNS[:7] - 0.2
    found = improvement_across_tasks(RUNS, other, generator(), repetitions=1000)
    by_task = [probability_of_improvement(RUNS[:, task], other[:, task]).estimate for task in range(26)]
    assert found.estimate == pytest.approx(np.mean(by_task))
    assert found.ci95[0] < found.estimate < found.ci95[1]
    flipped = improvement_across_tasks(RUNS, other, generator(), repetitions=10, direction="lower")
    assert flipped.estimate == pytest.approx(1 - found.estimate)


def test_improvement_replicates_follow_a_plain_bootstrap():
    a, b = RUNS[:, :4], RUNS[:8, 4:8]
    rng = np.random.default_rng(1)
    plain = []
    for _ in range(1500):
        x = a[rng.integers(0, 10, a.shape), np.arange(4)]
        y = b[rng.integers(0, 8, b.shape), np.arange(4)]
        plain.append(np.mean([np.mean(np.sign(np.subtract.outer(x[:, t], y[:, t])) / 2 + 0.5) for t in range(4)]))
    found = improvement_across_tasks(a, b, generator(), interval="percentile", repetitions=3000)
    assert np.mean(found.replicates) == pytest.approx(np.mean(plain), abs=0.01)
    assert np.std(found.replicates) == pytest.approx(np.std(plain), rel=0.1)


def test_approaches_on_different_tasks_are_refused():
    with pytest.raises(InputError, match="'y'"):
        improvement_across_tasks({"x": [1.0]}, {"x": [1.0], "y": [1.0]}, generator())


def test_a_profile_falls_from_one_to_zero_between_its_limits():
    profile = performance_profile(RUNS, np.linspace(-2, 3, 21))
    assert profile.shares[0] == pytest.approx(1.0)
    assert profile.shares[-1] == 0.0
    assert all(earlier >= later for earlier, later in zip(profile.shares, profile.shares[1:], strict=False))
    assert profile.shares[10] == pytest.approx(np.mean(profile.thresholds[10] < RUNS))
    for low, share, high in zip(profile.lower, profile.shares, profile.upper, strict=True):
        assert low - 1e-6 <= share <= high + 1e-6


def test_ranks_have_intervals_and_single_runs_cannot_be_ranked():
    rng = np.random.default_rng(3)
    scores = {
        "best": rng.normal(10, 1, (8, 3)),
        "twin one": rng.normal(0, 1, (8, 3)),
        "twin two": rng.normal(0, 1, (8, 3)),
        "once": rng.normal(20, 1, (1, 3)),
    }
    ranked = {one.approach: one for one in rank_intervals(scores, generator(), repetitions=2000)}
    assert (ranked["best"].rank, ranked["best"].interval) == (1, (1, 1))
    assert ranked["twin one"].interval == (2, 3) == ranked["twin two"].interval
    assert ranked["once"].rank is None
    assert "single run" in ranked["once"].why
    lower = {one.approach: one for one in rank_intervals(scores, generator(), repetitions=200, direction="lower")}
    assert lower["best"].rank == 3


def test_equal_approaches_share_the_better_rank():
    ranked = rank_intervals({"a": [1.0, 2.0], "b": [1.0, 2.0], "c": [0.0, 0.5]}, generator(), repetitions=100)
    assert [one.rank for one in ranked] == [1, 1, 3]


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=7), st.data())
@settings(max_examples=60, deadline=None)
def test_the_expected_best_is_the_mean_over_all_draws(values, data):
    from itertools import combinations, product

    k = data.draw(st.integers(1, min(len(values), 4)))
    without = np.mean([max(drawn) for drawn in combinations(values, k)])
    assert expected_best_of_k(values, k) == pytest.approx(without, abs=1e-9)
    if len(values) <= 5:
        with_replacement = np.mean([max(drawn) for drawn in product(values, repeat=k)])
        assert expected_best_of_k(values, k, replacement=True) == pytest.approx(with_replacement, abs=1e-9)
    lowest = np.mean([min(drawn) for drawn in combinations(values, k)])
    assert expected_best_of_k(values, k, direction="lower") == pytest.approx(lowest, abs=1e-9)


def test_the_expected_best_grows_with_k_and_ends_at_the_maximum():
    curve = expected_best_curve([3.0, 1.0, 2.0])
    assert curve == pytest.approx((2.0, 8 / 3, 3.0))
    with pytest.raises(InputError, match="1 to 3"):
        expected_best_of_k([1.0, 2.0, 3.0], 4)


@pytest.mark.parametrize("sizes", [[3, 1, 5], [10] * 4, [13, 2], [129], [1], [70_000]])
def test_draws_take_as_many_of_each_stratum_as_it_has(sizes):
    draws = replicates(positions(sizes), lambda draws: draws.astype(float), 50, generator())
    assert draws.shape == (50, sum(sizes))
    stratum = np.repeat(np.arange(len(sizes)), sizes)
    for row in draws.astype(int):
        assert np.bincount(stratum[row], minlength=len(sizes)).tolist() == sizes


@pytest.mark.parametrize("size", [2, 5, 10, 12, 200])
def test_every_member_is_drawn_as_often_as_binomial_draws_are(size):
    """The number of times a member is drawn is binomial, whatever the width of the tuples it is drawn in."""
    counts = count_replicates([size], lambda counts: counts.astype(float), 6000, generator())
    assert counts.sum(axis=1) == pytest.approx(np.full(6000, size))
    assert counts.mean(axis=0) == pytest.approx(np.ones(size), abs=5 / np.sqrt(6000))
    assert counts.var() == pytest.approx(1 - 1 / size, rel=0.06)
    together = np.mean(counts[:, 0] * counts[:, -1])
    assert together == pytest.approx(1 - 1 / size, abs=0.08)


def test_the_number_of_cores_changes_no_result(monkeypatch):
    several = aggregate(RUNS, generator(), interval="percentile", repetitions=5000).ci95
    monkeypatch.setattr("isorun.analysis.leaderboards.resampling._cores", lambda: 1)
    assert aggregate(RUNS, generator(), interval="percentile", repetitions=5000).ci95 == several


def test_the_bca_interval_equals_scipys():
    sample = np.random.default_rng(4).exponential(size=25)
    found = bca_interval(sample, lambda samples: samples.mean(axis=-1), generator(), repetitions=40_000)
    expected = stats.bootstrap((sample,), np.mean, n_resamples=40_000, rng=np.random.default_rng(9)).confidence_interval
    assert found == pytest.approx((expected.low, expected.high), abs=0.015)


def test_the_bootstrap_interval_of_a_constant_or_of_two_runs_is_absent():
    assert sd_bootstrap_interval(np.array([1.0, 1.0, 1.0]), generator()) is None
    assert sd_bootstrap_interval(np.array([1.0, 2.0]), generator()) is None


def test_scores_are_read_from_arrays_and_mappings_alike():
    assert task_scores(np.array([[1.0, 2.0], [3.0, 4.0]])).of("1").tolist() == [2.0, 4.0]
    assert task_scores([1.0, 2.0]).sizes == (2,)
    with pytest.raises(InputError, match="runs x tasks"):
        task_scores(np.zeros((2, 2, 2)))


def test_the_smallest_optimality_gap_ranks_first():
    rng = np.random.default_rng(2)
    scores = {"weak": {"t": [0.2, 0.3, 0.25]}, "strong": {"t": [0.8, 0.9, 0.85]}}
    ranked = rank_intervals(scores, rng, statistic="optimality-gap", repetitions=200)
    assert [one.approach for one in ranked] == ["strong", "weak"]
    with pytest.raises(InputError, match="higher is better"):
        rank_intervals(scores, rng, statistic="optimality-gap", direction="lower", repetitions=200)
