import math

import numpy as np
import pytest
from scipy import stats

from isorun.analysis.sequential import Look, against_stored, every
from isorun.analysis.sequential.equivalence import e_process_equivalence, plain_equivalence, spending_equivalence
from isorun.analysis.sequential.paths import moments
from isorun.analysis.sequential.rules import sequential_rule
from isorun.analysis.sequential.trace import ends, trace

SCHEDULE = every(1, min_runs=5, max_runs=30)
METRICS = {
    "normal": lambda rng, shape: rng.standard_normal(shape),
    "skewed": lambda rng, shape: rng.exponential(1, shape) - 1,
    "heavy-tailed": lambda rng, shape: rng.standard_t(3, shape) / math.sqrt(3),
    "tied": lambda rng, shape: (rng.binomial(100, 0.9, shape) - 90) / 3,
}


def claimed(rule, a, b):
    at = moments(a, b, SCHEDULE)
    return (rule.statistic(at) >= rule.critical_values(at)).any(axis=0).mean()


@pytest.mark.parametrize("margin", [0.2, 0.8, 1.5])
def test_a_single_look_equals_two_one_sided_welch_tests(margin):
    rng = np.random.default_rng(4)
    a, b = rng.normal(0, 1, (9, 200)), rng.normal(0.2, 2, (14, 200))
    lower = stats.ttest_ind(a + margin, b, equal_var=False, alternative="greater").pvalue
    upper = stats.ttest_ind(a - margin, b, equal_var=False, alternative="less").pvalue
    rule = plain_equivalence(margin, 0.05)
    at = moments(a, b, (Look(9, 14),))
    assert ((rule.statistic(at) >= rule.critical_values(at))[0] == (np.maximum(lower, upper) <= 0.05)).all()


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("border", [-1.0, 1.0])
def test_sides_that_differ_by_the_margin_are_called_equivalent_in_at_most_five_percent(metric, border):
    rng = np.random.default_rng(5)
    a, b = METRICS[metric](rng, (30, 20_000)) + border, METRICS[metric](rng, (30, 20_000))
    highest = 0.05 + 3.5 * math.sqrt(0.05 * 0.95 / 20_000)
    for spending in ("power-1.5", "obrien-fleming"):
        assert claimed(spending_equivalence(1.0, SCHEDULE, spending, 0.05), a, b) <= highest
    assert claimed(e_process_equivalence(1.0, SCHEDULE, 0.05), a, b) <= highest


def test_unequal_spread_of_normal_runs_does_not_raise_the_error_rate():
    rng = np.random.default_rng(6)
    a, b = rng.normal(1, 1, (30, 20_000)), rng.normal(0, 2, (30, 20_000))
    assert claimed(spending_equivalence(1.0, SCHEDULE, "power-1.5", 0.05), a, b) <= 0.0555


@pytest.mark.parametrize("ratio", [0.25, 1.0, 4.0])
@pytest.mark.parametrize("stored", [8, 20])
def test_unequal_spread_does_not_raise_the_error_rate_against_stored_runs(ratio, stored):
    """With boundaries for equal spreads it is .087 at 8 stored runs and 4 times the spread."""
    rng = np.random.default_rng(10)
    schedule, margin = against_stored(stored, max_runs=15), max(ratio, 1.0)
    new, kept = rng.normal(margin, ratio, (15, 20_000)), rng.normal(0, 1, (stored, 20_000))
    rule = spending_equivalence(margin, schedule, "power-1.5", 0.05)
    at = moments(new, kept, schedule)
    highest = 0.05 + 3.5 * math.sqrt(0.05 * 0.95 / 20_000)
    assert (rule.statistic(at) >= rule.critical_values(at)).any(axis=0).mean() <= highest
    assert (rule.outside(at) >= rule.critical_values(at)).any(axis=0).mean() <= highest


def test_looking_after_every_run_with_plain_tests_errs_far_more_often():
    rng = np.random.default_rng(7)
    a, b = rng.normal(1, 1, (30, 20_000)), rng.normal(0, 1, (30, 20_000))
    assert claimed(plain_equivalence(1.0, 0.05), a, b) > 0.15


def test_equal_sides_are_mostly_found_equivalent_within_a_wide_margin_and_never_given_up_for_it():
    rng = np.random.default_rng(8)
    a, b = rng.standard_normal((30, 5_000)), rng.standard_normal((30, 5_000))
    rule = sequential_rule(SCHEDULE, "power-1.5", 0.05, futility=True, test="mann-whitney")
    end = ends(trace(rule.with_equivalence(spending_equivalence(1.0, SCHEDULE, "power-1.5", 0.05)), a, b))
    assert end.equivalent.mean() > 0.9
    assert (end.favours != 0).mean() <= 0.06


def test_a_margin_that_is_out_of_reach_does_not_hinder_the_futility_stop():
    rng = np.random.default_rng(9)
    a, b = rng.standard_normal((30, 2_000)), rng.standard_normal((30, 2_000))
    rule = sequential_rule(SCHEDULE, "power-1.5", 0.05, futility=True, test="mann-whitney")
    alone = ends(trace(rule, a, b)).look.mean()
    hopeless = rule.with_equivalence(spending_equivalence(0.05, SCHEDULE, "power-1.5", 0.05))
    assert ends(trace(hopeless, a, b)).look.mean() == pytest.approx(alone)
