import math

import numpy as np
import pytest
from scipy import stats

from isorun.analysis.pairwise import continuous_law, law_given_ties
from isorun.analysis.sequential import SPENDING, Look, against_stored, boundaries, every
from isorun.analysis.sequential.rules import fixed_rule, naive_rule, sequential_rule
from isorun.analysis.sequential.trace import ends, trace
from isorun.errors import InputError

DEFAULT = every(1, min_runs=5, max_runs=30)
SCHEDULES = {
    "every run": DEFAULT,
    "every five": every(5, min_runs=5, max_runs=30),
    "stored baseline": against_stored(30, max_runs=30),
    "one side at a time": (Look(5, 5), Look(6, 5), Look(6, 6), Look(6, 7), Look(9, 7), Look(9, 15), Look(20, 15)),
}
METRICS = {
    "normal": lambda rng, shape: rng.standard_normal(shape),
    "skewed": lambda rng, shape: rng.lognormal(0, 1, shape),
    "heavy-tailed": lambda rng, shape: rng.standard_cauchy(shape),
    "accuracy on 100 examples": lambda rng, shape: rng.binomial(100, 0.9, shape) / 100,
    "accuracy near its ceiling": lambda rng, shape: rng.binomial(100, 0.99, shape) / 100,
    "success or failure": lambda rng, shape: (rng.random(shape) < 0.5).astype(float),
    "rare failure": lambda rng, shape: (rng.random(shape) < 0.1).astype(float),
    "three values": lambda rng, shape: rng.integers(0, 3, shape).astype(float),
    "half of them zero": lambda rng, shape: np.where(rng.random(shape) < 0.5, 0.0, rng.random(shape)),
}


def claims(rule, metric, comparisons, effect=0.0, seed=17):
    rng = np.random.default_rng(seed)
    last = rule.schedule[-1]
    a, b = METRICS[metric](rng, (last.n_a, comparisons)), METRICS[metric](rng, (last.n_b, comparisons))
    return ends(trace(rule, a + effect, b))


def runs_a_side(rule, end):
    return np.array([max(look) for look in rule.schedule])[end.look].mean()


def highest_chance_rate(comparisons, rate=0.05):
    return rate + 3.5 * math.sqrt(rate * (1 - rate) / comparisons)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_equals_are_told_apart_in_at_most_five_percent(schedule, metric):
    rule = sequential_rule(SCHEDULES[schedule], "power-1.5", 0.05, futility=False, test="mann-whitney")
    assert claims(rule, metric, 20_000).decided.mean() <= highest_chance_rate(20_000)


@pytest.mark.slow
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("spending", SPENDING)
@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.1])
def test_the_error_rate_holds_in_two_hundred_thousand_comparisons(alpha, spending, metric):
    rule = sequential_rule(DEFAULT, spending, alpha, futility=False, test="mann-whitney")
    rate = np.mean([claims(rule, metric, 100_000, seed=seed).decided.mean() for seed in range(2)])
    assert rate <= highest_chance_rate(200_000, alpha)


@pytest.mark.long
def test_nearly_all_of_the_error_rate_is_used():
    for spending in SPENDING:
        assert 0.049 <= sequential_rule(DEFAULT, spending, 0.05, futility=False, test="mann-whitney").error_rate <= 0.05


def test_looking_after_every_run_with_a_plain_test_errs_about_one_time_in_five():
    rule = naive_rule(DEFAULT, 0.05)
    assert rule.error_rate == pytest.approx(0.205, abs=0.005)
    assert claims(rule, "skewed", 20_000).decided.mean() == pytest.approx(rule.error_rate, abs=0.01)


def test_a_single_naive_look_is_the_fixed_test():
    look = Look(12, 12)
    naive, fixed = naive_rule((look,), 0.05), fixed_rule(look, 0.05, continuous_law(*look))
    assert naive.critical == fixed.critical
    assert naive.error_rate == pytest.approx(fixed.error_rate, abs=0.001)


@pytest.mark.parametrize(
    ("spending", "effect", "power", "runs"),
    [
        ("power-1.5", 0.5, 0.393, 26.1),
        ("power-1.5", 1.0, 0.934, 16.8),
        ("power-1.5", 1.7, 1.0, 9.4),
        ("pocock", 1.0, 0.908, 16.1),
        ("obrien-fleming", 1.0, 0.946, 18.3),
    ],
)
def test_power_and_mean_runs_are_as_good_as_the_reference(spending, effect, power, runs):
    rule = sequential_rule(DEFAULT, spending, 0.05, futility=False, test="mann-whitney")
    end = claims(rule, "normal", 40_000, effect)
    assert end.decided.mean() >= power - 0.005 - 3 * math.sqrt(power * (1 - power) / 40_000)
    assert runs_a_side(rule, end) <= runs + 0.2


@pytest.mark.parametrize("spending", SPENDING)
def test_futility_ends_a_comparison_of_equals_by_22_of_30_runs_and_costs_less_than_a_point_of_power(spending):
    with_stop, without = (
        sequential_rule(DEFAULT, spending, 0.05, futility=futility, test="mann-whitney") for futility in (True, False)
    )
    assert runs_a_side(with_stop, claims(with_stop, "normal", 40_000)) <= 22
    for effect in (0.3, 0.5, 0.7, 1.0, 1.7):
        lost = claims(without, "normal", 40_000, effect).decided.mean()
        lost -= claims(with_stop, "normal", 40_000, effect).decided.mean()
        assert 0 <= lost <= 0.01


def test_futility_is_not_binding():
    with_stop, without = (
        sequential_rule(DEFAULT, "power-1.5", 0.05, futility=futility, test="mann-whitney")
        for futility in (True, False)
    )
    assert with_stop.critical == without.critical


def test_boundaries_are_the_same_every_time():
    first = sequential_rule(every(3, min_runs=6, max_runs=15), "pocock", 0.1, futility=False, test="mann-whitney")
    boundaries.boundaries.cache_clear()
    again = sequential_rule(every(3, min_runs=6, max_runs=15), "pocock", 0.1, futility=False, test="mann-whitney")
    assert first == again


def test_levels_are_the_plain_p_of_the_critical_distances():
    rule = sequential_rule(DEFAULT, "power-1.5", 0.05, futility=False, test="mann-whitney")
    assert rule.critical[0] == math.inf
    assert rule.critical[1] == 17.0  # 6 against 6: at most one of 36 pairs the other way, p = 4/924
    assert rule.levels[1] == pytest.approx(4 / 924)
    assert all(0 <= level < 0.05 for level in rule.levels)


def test_a_fixed_test_of_successes_and_failures_is_fishers_exact_test():
    a, b = np.array([0.0, 0, 0, 0, 0, 0, 1]), np.array([1.0, 1, 1, 1, 1, 1, 0])
    rule = fixed_rule(Look(7, 7), 0.05, law_given_ties(a, b))
    assert rule.levels[0] == pytest.approx(stats.fisher_exact([[6, 1], [1, 6]]).pvalue)


def test_plans_too_long_to_simulate_are_refused_with_a_way_out():
    with pytest.raises(InputError, match="e-process"):
        sequential_rule(every(10, min_runs=5, max_runs=600), "power-1.5", 0.05, futility=False, test="mann-whitney")
