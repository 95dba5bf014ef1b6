"""Pairs: the verdict, the interval and the sentence are those of the differences."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from isorun.analysis.pairwise import wilcoxon_signed_rank
from isorun.analysis.pairwise.effects import pairing_effect
from isorun.analysis.sequential import Look, every
from isorun.analysis.sequential.paths import signed_rank_scores
from isorun.analysis.sequential.rules import sequential_rule
from isorun.analysis.sequential.trace import ends, trace
from isorun.analysis.sequential.verdict import METHODS, Verdict, decide, next_action
from isorun.errors import InputError

DEFAULT = every(1, min_runs=5, max_runs=30)
SYMMETRIC = {
    "normal": lambda rng, shape: rng.standard_normal(shape),
    "heavy-tailed": lambda rng, shape: rng.standard_cauchy(shape),
    "two humps": lambda rng, shape: rng.choice([-1.0, 1.0], shape) * (1 + 0.1 * rng.random(shape)),
    "tied": lambda rng, shape: np.round(rng.standard_normal(shape)),
    "mostly equal": lambda rng, shape: rng.choice([-1.0, 0.0, 0.0, 0.0, 1.0], shape),
}


def pairs(effect, n, seed=0, shared=1.0, own=0.3):
    rng = np.random.default_rng(seed)
    seeds = shared * rng.standard_normal(n)
    return seeds + own * rng.standard_normal(n) + effect, seeds + own * rng.standard_normal(n)


@given(st.lists(st.integers(-5, 5), min_size=6, max_size=14), st.integers(0, 99))
@settings(deadline=None)
def test_a_fixed_verdict_of_pairs_is_wilcoxons_exact_test(differences, seed):
    base = np.random.default_rng(seed).integers(0, 50, len(differences)) / 10
    moved = np.array(differences) / 10
    decision = decide(base + moved, base, direction="higher", method="fixed", paired=True)
    expected = wilcoxon_signed_rank(np.array(differences, dtype=float)).p
    assert decision.test == "signed-rank"
    if expected is None:
        assert "both runs of every pair" in decision.why
    else:
        assert decision.path[0].p_value == pytest.approx(expected)
        assert (decision.verdict is not Verdict.UNDECIDED) == (expected <= 0.05 + 1e-12)


@given(st.integers(0, 2**32))
@settings(deadline=None, max_examples=20)
def test_the_signed_rank_score_at_each_look_is_that_of_scipy(seed):
    differences = np.random.default_rng(seed).standard_normal((12, 2))
    schedule = (Look(5, 5), Look(6, 6), Look(12, 12))
    scores = signed_rank_scores(differences, schedule)
    for k, (n, _) in enumerate(schedule):
        sums = [stats.wilcoxon(differences[:n, c], alternative="greater").statistic for c in range(2)]
        expected = (np.array(sums) - n * (n + 1) / 4) / math.sqrt(n * (n + 1) * (2 * n + 1) / 24)
        assert scores[k] == pytest.approx(expected)


@pytest.mark.parametrize("law", SYMMETRIC)
def test_symmetric_differences_are_claimed_in_at_most_five_percent(law):
    rule = sequential_rule(DEFAULT, "power-1.5", 0.05, futility=False, test="signed-rank")
    rng = np.random.default_rng(3)
    a, b = SYMMETRIC[law](rng, (30, 15_000)), np.zeros((30, 15_000))
    assert ends(trace(rule, a, b)).decided.mean() <= 0.05 + 3.5 * math.sqrt(0.05 * 0.95 / 15_000)


def test_pairs_that_move_together_are_decided_where_two_sides_are_not():
    a, b = pairs(0.35, 14, seed=2)
    paired = decide(a, b, direction="higher", paired=True)
    assert paired.verdict is Verdict.A_BETTER
    assert "pairs of runs" in paired.why
    assert decide(a, b, direction="higher").verdict is Verdict.UNDECIDED
    assert paired.ci95[1] - paired.ci95[0] < 1.0
    assert "paired differences" in paired.estimate_of


@pytest.mark.parametrize("method", METHODS)
def test_swapping_the_sides_and_turning_the_direction_do_what_they_say(method):
    a, b = pairs(0.8, 12, seed=4)
    options = {"method": method, "paired": True, "max_runs": 12, "margin": 0.05}
    there = decide(a, b, direction="higher", **options)
    back = decide(b, a, direction="higher", **options)
    turned = decide(-a, -b, direction="lower", **options)
    assert there.verdict is Verdict.A_BETTER
    assert back.verdict is Verdict.B_BETTER
    assert turned.verdict is Verdict.A_BETTER
    assert back.estimate == pytest.approx(-there.estimate)
    assert turned.estimate == pytest.approx(-there.estimate)
    assert turned.ci95 == pytest.approx((-there.ci95[1], -there.ci95[0]))
    json.dumps(there.to_json(), allow_nan=False)


def test_a_fixed_interval_of_pairs_is_students():
    a, b = pairs(0.2, 15, seed=5)
    decision = decide(a, b, direction="higher", method="fixed", paired=True)
    expected = stats.ttest_rel(a, b).confidence_interval(0.95)
    assert decision.ci95 == pytest.approx((expected.low, expected.high))
    assert decision.estimate == pytest.approx((a - b).mean())


@pytest.mark.parametrize("margin", [0.1, 0.3])
def test_fixed_equivalence_of_pairs_is_two_one_sided_paired_t_tests(margin):
    a, b = pairs(0.05, 20, seed=6)
    lower = stats.ttest_rel(a + margin, b, alternative="greater").pvalue
    upper = stats.ttest_rel(a - margin, b, alternative="less").pvalue
    decision = decide(a, b, direction="higher", method="fixed", paired=True, margin=margin)
    assert (decision.verdict is Verdict.EQUIVALENT) == (max(lower, upper) <= 0.05)


def test_sequential_equivalence_of_pairs_holds_at_the_border():
    rng = np.random.default_rng(7)
    rule = sequential_rule(DEFAULT, "power-1.5", 0.05, futility=False, test="signed-rank")
    from isorun.analysis.sequential.equivalence import spending_equivalence

    rule = rule.with_equivalence(spending_equivalence(0.5, DEFAULT, "power-1.5", 0.05, paired=True))
    a, b = rng.standard_normal((30, 15_000)) + 0.5, np.zeros((30, 15_000))
    assert trace(rule, a, b).equivalent.any(axis=0).mean() <= 0.05 + 3.5 * math.sqrt(0.05 * 0.95 / 15_000)


def test_following_the_next_action_of_pairs_ends_in_a_stop():
    a, b = pairs(0.1, 30, seed=8)
    n, decision = 1, decide(a[:1], b[:1], direction="higher", paired=True)
    while not next_action(decision).stop:
        n += max(next_action(decision).runs_a, next_action(decision).runs_b)
        decision = decide(a[:n], b[:n], direction="higher", paired=True)
    assert n <= 30


def test_unequally_many_runs_make_no_pairs():
    with pytest.raises(InputError, match="equally many"):
        decide([1.0] * 6, [2.0] * 7, direction="higher", paired=True)


def test_equal_differences_are_equal_whatever_floating_point_makes_of_them():
    a, b = np.array([0.85, 0.80, 0.75, 0.9, 0.6, 0.7]), np.array([0.80, 0.75, 0.80, 0.85, 0.65, 0.65])
    decision = decide(a, b, direction="higher", method="fixed", paired=True)
    assert decision.path[0].p_value == pytest.approx(wilcoxon_signed_rank(np.array([1.0, 1, -1, 1, -1, 1])).p)


def test_what_pairing_gained_is_the_ratio_of_the_variances():
    a, b = pairs(0.0, 12, seed=9)
    found = pairing_effect(a, b)
    assert found.correlation == pytest.approx(np.corrcoef(a, b)[0, 1])
    assert found.worth == pytest.approx(12 * (a.var(ddof=1) + b.var(ddof=1)) / (a - b).var(ddof=1))
    assert found.sentence.startswith("pairing gained")
    assert not found.conditions()


def test_pairs_that_go_against_each_other_are_warned_about():
    rng = np.random.default_rng(10)
    seeds = rng.standard_normal(20)
    decision = decide(seeds + 0.2 * rng.standard_normal(20), -seeds, direction="higher", paired=True)
    assert [warning.code for warning in decision.conditions] == ["pairing-cost"]
    assert "pairing cost" in decision.pairing.sentence
    assert decision.pairing.worth < 20


@pytest.mark.parametrize("sides", [([1.0] * 5, [2.0] * 5), ([1.0, 2, 3, 4, 5], [2.0, 3, 4, 5, 6]), ([1.0], [2.0])])
def test_what_pairing_gained_is_not_told_of_runs_that_do_not_vary(sides):
    found = pairing_effect(*map(np.array, sides))
    assert found.worth is None
    assert "cannot be told" in found.sentence
    assert not found.conditions()
