"""Intervals for few runs: known answers, and what must hold for any runs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from isorun.analysis.evidence.units import Units
from isorun.analysis.leaderboards.across_tasks import improvement_across_tasks, performance_profile
from isorun.analysis.leaderboards.aggregate import STATISTICS, aggregate, rank_intervals
from isorun.analysis.leaderboards.leaderboard import BoardOptions, BoardScores, leaderboard
from isorun.analysis.leaderboards.task_scores import LINEAR, Precision, apart, task_scores
from isorun.analysis.pairwise.effects import probability_of_improvement
from isorun.report.leaderboards import leaderboard_view

accuracies = st.lists(st.integers(80, 99).map(lambda right: right / 100), min_size=2, max_size=8)


def generator():
    return np.random.default_rng(11)


def precision(runs, statistic="mean"):
    return LINEAR[statistic](task_scores(runs), 1.0)


def test_the_mean_of_one_task_with_no_skewness_has_students_interval():
    runs = np.array([-3.0, -1.0, 0.0, 1.0, 3.0]) + 7.0
    expected = stats.t.interval(0.95, 4, 7.0, runs.std(ddof=1) / np.sqrt(5))
    assert aggregate(runs, generator(), statistic="mean").ci95 == pytest.approx(expected)


def test_a_skewed_task_bends_the_interval_to_the_long_side():
    lower, upper = aggregate([0.0, 0.1, 0.2, 0.4, 2.0], generator(), statistic="mean").ci95
    assert upper - 0.54 > 1.2 * (0.54 - lower)


def test_two_means_are_told_apart_by_welchs_test():
    rng = np.random.default_rng(2)
    a, b = rng.normal(0.5, 1, 7), rng.normal(0, 2, 12)
    assert apart(precision(a), precision(b), 0.5) == pytest.approx(stats.ttest_ind(a, b, equal_var=False).pvalue)


def test_the_iqm_of_many_runs_of_one_task_has_tukey_and_mclaughlins_interval():
    """SciPy's trimmed t test of one sample against a constant one is not to be had: the formula itself, 2,000 runs."""
    runs = np.random.default_rng(3).normal(size=2000)
    ordered, cut = np.sort(runs), 500
    drawn_in = runs.clip(ordered[cut], ordered[-cut - 1])
    error = drawn_in.std(ddof=1) / (0.5 * np.sqrt(2000))
    centre, reach = ordered[cut:-cut].mean(), stats.t.ppf(0.975, 999) * error
    assert aggregate(runs, generator()).ci95 == pytest.approx((centre - reach, centre + reach), abs=0.01 * reach)


@given(st.dictionaries(st.sampled_from("abcd"), accuracies, min_size=1), st.sampled_from(sorted(STATISTICS)))
@settings(max_examples=60, deadline=None)
def test_an_interval_has_a_width_or_no_run_differs_from_the_others_of_its_task(scores, statistic):
    found = aggregate(scores, generator(), statistic=statistic, repetitions=50)
    parts = [np.minimum(runs, 1.0) for runs in scores.values()]
    if all(len(set(runs)) == 1 for runs in parts):
        assert found.ci95 is None
    elif statistic != "median":
        assert found.ci95[0] < found.ci95[1]
        assert found.ci95[0] <= found.estimate <= found.ci95[1] or statistic != "iqm"


@given(st.dictionaries(st.sampled_from("abcd"), accuracies, min_size=1), st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_the_order_of_runs_and_tasks_changes_no_interval(scores, random):
    shuffled = {task: random.sample(runs, len(runs)) for task, runs in random.sample(list(scores.items()), len(scores))}
    one, other = (aggregate(runs, generator()) for runs in (scores, shuffled))
    assert one.estimate == pytest.approx(other.estimate)
    assert (one.ci95 is None) == (other.ci95 is None)
    if one.ci95 is not None:
        assert one.ci95 == pytest.approx(other.ci95, rel=1e-6, abs=1e-9)


def test_one_task_has_the_improvement_of_two_samples_and_a_bootstrap_of_no_width_is_widened():
    a, b = [5.0, 6.0, 7.0, 8.0, 9.0], [0.0, 1.0, 2.0, 3.0, 4.0]
    found = improvement_across_tasks({"x": a}, {"x": b}, generator())
    assert found.ci95 == pytest.approx(probability_of_improvement(np.array(a), np.array(b)).ci95)
    drawn = improvement_across_tasks({"x": a}, {"x": b}, generator(), interval="percentile", repetitions=100)
    assert drawn.ci95 == (1.0, 1.0)
    assert found.ci95[0] < 0.7


def test_more_tasks_narrow_the_interval_and_never_to_nothing():
    widths = []
    for tasks in (1, 4, 16):
        a = {str(task): [5.0, 6.0, 7.0, 8.0, 9.0] for task in range(tasks)}
        b = {str(task): [0.0, 1.0, 2.0, 3.0, 4.0] for task in range(tasks)}
        lower, upper = improvement_across_tasks(a, b, generator()).ci95
        widths.append(upper - lower)
    assert widths[0] > widths[1] > widths[2] > 0.01


def test_a_profile_keeps_a_width_where_every_run_is_above():
    profile = performance_profile({"x": [1.0, 2.0, 3.0, 4.0, 5.0]}, [0.0, 2.5, 9.0])
    assert profile.upper[0] == 1.0
    assert profile.lower[0] == pytest.approx(5 / (5 + 1.959964**2), abs=1e-6), "Wilson's limit of 5 of 5"
    assert profile.lower[1] == pytest.approx(stats.binomtest(3, 5).proportion_ci(method="wilson").low, abs=1e-6)
    assert profile.upper[2] == pytest.approx(1 - profile.lower[0])


def test_equal_runs_are_told_apart_only_as_far_as_so_few_can_be():
    few = rank_intervals({"a": [1.0, 1.0], "b": [2.0, 2.0]}, generator())
    assert [one.interval for one in few] == [(1, 2), (1, 2)]
    enough = rank_intervals({"a": [1.0] * 5, "b": [2.0] * 5}, generator())
    assert [(one.approach, one.interval) for one in enough] == [("b", (1, 1)), ("a", (2, 2))]
    assert apart(Precision(1.0, 0.0, 1.0), Precision(1.0, 0.0, 1.0), 0.01) == 1.0


def test_estimates_that_are_equal_but_for_rounding_share_a_rank():
    ranked = rank_intervals({"a": [0.1, 0.2, 0.3], "b": [0.2, 0.2, 0.2 + 2**-52]}, generator())
    assert [one.rank for one in ranked] == [1, 1]


def board(samples, runs=None, **options):
    scores = {name: task_scores({"acc": values}) for name, values in samples.items()}
    compared = BoardScores(scores, None, ()).compared(direction="higher", post_hoc=None, correction="holm")
    units = {name: (_repeated(values, runs[name]),) for name, values in samples.items()} if runs else None
    return leaderboard(scores, compared, options=BoardOptions(**options), units=units)


def _repeated(values, runs):
    return Units(np.array(values), tuple(map(str, range(len(values)))), np.resize(values, runs), "seed")


def sentence(samples, **more):
    return leaderboard_view(board(samples, **more)).verdict[0]


def test_the_sentence_says_what_the_interval_of_the_first_rank_supports():
    ahead, near, far = [0.95, 0.96, 0.94, 0.955, 0.945], [0.94, 0.96, 0.93, 0.95, 0.94], [0.5, 0.51, 0.49, 0.52, 0.48]
    told = sentence({"new": ahead, "old": far})
    assert told.endswith("and its runs tell it apart from the other one (95 % interval of its rank: 1).")
    open_rank = sentence({"new": ahead, "old": near, "none": far})
    assert "do not tell it apart from 1 of 2 others (95 % interval of its rank: 1 to 2)" in open_rank
    assert "surely" not in told + open_rank
    assert sentence({"new": ahead, "once": [0.99]}) == "new ranks first by iqm: no other approach can be ranked."


def test_a_board_counts_runs_and_units():
    samples = {"new": [0.9, 0.91, 0.93], "old": [0.8, 0.82, 0.81]}
    plain, repeated = board(samples), board(samples, runs={"new": 30, "old": 3})
    assert [(one.n, one.units) for one in plain.standings] == [(3, 3), (3, 3)]
    assert [(one.n, one.units) for one in repeated.standings] == [(30, 3), (3, 3)]
    assert repeated.to_json()["approaches"][0]["units"] == 3
    assert "33 runs of 6 seeds count as 6" in " ".join(leaderboard_view(repeated).verdict)


def test_runs_that_are_all_equal_have_no_interval_and_say_why():
    found = board({"new": [0.9] * 4, "old": [0.8, 0.82, 0.81, 0.83]})
    assert next(one for one in found.standings if one.approach == "new").score.ci95 is None
    assert [(one.code, one.groups) for one in found.conditions] == [("constant-runs", ("new",))]


def test_percentile_intervals_stay_to_be_had_on_a_board():
    found = board({"new": [0.9, 0.92, 0.94], "old": [0.8, 0.82, 0.81]}, interval="percentile", repetitions=200)
    assert found.improvements["new", "old"].ci95 == (1.0, 1.0)
    assert found.standings[0].score.repetitions == 200
    assert "200 bootstrap" in leaderboard_view(found).tables[0].notes[0]


@pytest.mark.parametrize("statistic", ["iqm", "mean"])
@pytest.mark.parametrize("few", [2, 3])
def test_two_or_three_runs_of_one_task_are_told_apart_from_nobody(few, statistic):
    rng = np.random.default_rng(3)
    scores = {"few": rng.normal(9, 1, few), "all alike": [5.0] * few, "many": rng.normal(0, 1, 20)}
    ranked = {one.approach: one.interval for one in rank_intervals(scores, rng, statistic=statistic)}
    assert ranked == {"few": (1, 3), "all alike": (1, 3), "many": (1, 3)}
    told = rank_intervals({"four": rng.normal(9, 1, 4), "many": rng.normal(0, 1, 20)}, rng, statistic=statistic)
    assert [one.interval for one in told] == [(1, 1), (2, 2)]
    over_tasks = {name: {f"task {k}": rng.normal(mean, 1, 2) for k in range(8)} for name, mean in (("a", 9), ("b", 0))}
    assert [one.interval for one in rank_intervals(over_tasks, rng, statistic=statistic)] == [(1, 1), (2, 2)]


def test_a_rank_and_pairs_that_say_opposite_things_are_told_to_ask_different_ones():
    samples = {
        "dqn": [1.2441, 0.6524, 0.9907, 1.2923],
        "ppo": [0.6551, 1.1133, 1.0267, 0.8923],
        "sac": [2.4677, 2.0842, 1.6135, 2.1737],
    }
    disagree = leaderboard_view(board(samples)).verdict
    assert "its runs tell it apart from all 2 others" in disagree[0]
    assert disagree[1].endswith("0 of 3 pairs differ at 0.05 (brunner-munzel).")
    assert disagree[2].startswith("The two ask different things, and here they disagree")
    assert "Yuen's tests" in disagree[2]
    more = [0.95, 0.96, 0.94, 0.955, 0.945, 0.951, 0.949, 0.958]
    agree = leaderboard_view(board({"new": more, "old": [value - 0.4 for value in more]})).verdict
    assert not any("different things" in sentence for sentence in agree)
