"""The default rule: what it claims when a new run of either side wins as often as not, and what it sees."""

import math

import numpy as np
import pytest

from isorun.analysis.sequential import SPENDING, Look, against_stored, boundaries, cumulative_error, every, fractions
from isorun.analysis.sequential.boundaries import null_scores, rejected_by
from isorun.analysis.sequential.paths import superiority_scores
from isorun.analysis.sequential.rules import sequential_rule
from isorun.analysis.sequential.trace import ends, trace
from isorun.errors import InputError

DEFAULT = every(1, min_runs=5, max_runs=30)
SCHEDULES = {
    "every run": DEFAULT,
    "every five": every(5, min_runs=5, max_runs=30),
    "new against 50 stored": against_stored(50, max_runs=30),
    "one side at a time": (Look(5, 5), Look(6, 5), Look(6, 6), Look(6, 7), Look(9, 7), Look(9, 15), Look(20, 15)),
    "up to 80": every(5, min_runs=5, max_runs=80),
}
LAWS = {
    "normal": lambda rng, shape: rng.standard_normal(shape),
    "skewed": lambda rng, shape: rng.lognormal(0, 1, shape),
    "heavy-tailed": lambda rng, shape: rng.standard_t(3, shape),
}
TIED = {
    "accuracy on 100 examples": lambda rng, shape: rng.binomial(100, 0.9, shape) / 100,
    "accuracy near its ceiling": lambda rng, shape: rng.binomial(100, 0.99, shape) / 100,
    "three values": lambda rng, shape: rng.integers(0, 3, shape).astype(float),
    "success or failure": lambda rng, shape: (rng.random(shape) < 0.5).astype(float),
    "rare failure": lambda rng, shape: (rng.random(shape) < 0.1).astype(float),
    "half of them zero": lambda rng, shape: np.where(rng.random(shape) < 0.5, 0.0, rng.random(shape)),
}


def rule_for(schedule, **options):
    return sequential_rule(schedule, "power-1.5", 0.05, **{"futility": False, **options})


def sides(law, ratio, last, comparisons, seed):
    """Two sides of one law whose spreads have this ratio, moved so that either wins as often as not."""
    rng = np.random.default_rng([seed, last.n_a, last.n_b])
    draw = LAWS[law]
    middle = np.median(draw(rng, 1_000_000) - ratio * draw(rng, 1_000_000))
    return draw(rng, (last.n_a, comparisons)) - middle, ratio * draw(rng, (last.n_b, comparisons))


def false_claims(rule, a, b):
    return float(ends(trace(rule, a, b)).decided.mean())


def highest(comparisons, rate=0.055):
    return rate + 2.5 * math.sqrt(rate * (1 - rate) / comparisons)


@pytest.mark.parametrize("ratio", [1.0, 4.0])
@pytest.mark.parametrize("law", LAWS)
def test_sides_that_win_as_often_as_not_are_told_apart_in_at_most_five_percent(law, ratio):
    rule = rule_for(DEFAULT)
    assert false_claims(rule, *sides(law, ratio, rule.schedule[-1], 6_000, 3)) <= highest(6_000, 0.05)


@pytest.mark.parametrize("metric", TIED)
def test_ties_do_not_raise_the_error_rate(metric):
    rng = np.random.default_rng(5)
    a, b = TIED[metric](rng, (30, 6_000)), TIED[metric](rng, (30, 6_000))
    assert false_claims(rule_for(DEFAULT), a, b) <= highest(6_000, 0.05)


@pytest.mark.slow
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("law", LAWS)
def test_unequal_spreads_are_held_at_every_schedule(schedule, law):
    rule = rule_for(SCHEDULES[schedule])
    for ratio in (1, 2, 4, 10, 1 / 2, 1 / 4, 1 / 10):
        claimed = false_claims(rule, *sides(law, ratio, rule.schedule[-1], 20_000, 7))
        assert claimed <= highest(20_000), f"{law} 1:{ratio:g}"


@pytest.mark.slow
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("metric", TIED)
def test_ties_are_held_at_every_schedule(schedule, metric):
    rule = rule_for(SCHEDULES[schedule])
    rng = np.random.default_rng(11)
    a, b = (TIED[metric](rng, (size, 20_000)) for size in rule.schedule[-1])
    assert false_claims(rule, a, b) <= highest(20_000)


@pytest.mark.slow
@pytest.mark.parametrize("spending", SPENDING)
@pytest.mark.parametrize("alpha", [0.01, 0.1])
def test_other_error_rates_hold(spending, alpha):
    rule = sequential_rule(DEFAULT, spending, alpha, futility=False)
    for ratio in (1, 4, 10):
        claimed = false_claims(rule, *sides("normal", ratio, Look(30, 30), 40_000, 13))
        assert claimed <= highest(40_000, alpha)


@pytest.mark.parametrize(("effect", "power", "runs"), [(0.5, 0.37, 26.7), (1.0, 0.92, 17.5), (1.7, 0.999, 10.6)])
def test_power_and_mean_runs_of_normal_runs(effect, power, runs):
    rule = rule_for(DEFAULT)
    rng = np.random.default_rng(17)
    end = ends(trace(rule, rng.standard_normal((30, 10_000)) + effect, rng.standard_normal((30, 10_000))))
    assert (end.favours > 0).mean() >= power - 2 * math.sqrt(power * (1 - power) / 10_000)
    assert np.array([look.n_a for look in rule.schedule])[end.look].mean() <= runs


def test_futility_ends_a_comparison_of_equals_early_and_costs_less_than_a_point_of_power():
    with_stop, without = rule_for(DEFAULT, futility=True), rule_for(DEFAULT)
    rng = np.random.default_rng(19)
    a, b = rng.standard_normal((2, 30, 10_000))
    sizes = np.array([look.n_a for look in DEFAULT])
    assert sizes[ends(trace(with_stop, a, b)).look].mean() <= 22
    for effect in (0.5, 1.0):
        lost = ends(trace(without, a + effect, b)).decided.mean() - ends(trace(with_stop, a + effect, b)).decided.mean()
        assert 0 <= lost <= 0.01


def test_the_kept_boundaries_are_those_that_a_new_simulation_finds():
    """With a sixteenth of the comparisons: the same values but for noise, and the same error."""
    cumulative = cumulative_error("power-1.5", fractions(DEFAULT), 0.05)
    for test, first in (("brunner-munzel", 3), ("signed-rank", 4)):
        kept = boundaries.boundaries(test, DEFAULT, cumulative)
        again = boundaries.simulated(test, DEFAULT, cumulative, 65_536)
        assert kept.critical[:first] == again.critical[:first] == (math.inf,) * first
        assert kept.critical[first:] == pytest.approx(again.critical[first:], abs=0.15)
        assert kept.spent[-1] == pytest.approx(0.05, abs=0.0005)


def test_every_ratio_of_spreads_spends_no_more_than_it_may():
    kept = rule_for(DEFAULT)
    for ratio in (1.0, 3.0, 10.0):
        rng = np.random.default_rng(23)
        a, b = rng.standard_normal((2, 30, 8_192))
        paths = np.abs(superiority_scores(ratio * a, b, DEFAULT))
        assert rejected_by(paths, kept.critical)[-1] <= highest(8_192, 0.05)


def test_long_plans_go_on_as_brownian_motions_from_where_the_simulated_runs_end():
    paths = null_scores(every(5, min_runs=5, max_runs=120), 16_384)[0].astype(float)
    assert paths[-1].std() == pytest.approx(math.sqrt(1 - 2 / math.pi), abs=0.02)
    assert np.corrcoef(paths[-1], paths[-2])[0, 1] > 0.9


def test_plans_too_long_to_simulate_are_refused_with_a_way_out():
    with pytest.raises(InputError, match="e-process"):
        rule_for(every(10, min_runs=5, max_runs=600))


def test_a_stored_side_of_thousands_is_no_harder_than_one_of_hundreds():
    rule = rule_for(tuple(Look(n, 400) for n in range(5, 21, 5)))
    assert rule.critical[-1] < 3
