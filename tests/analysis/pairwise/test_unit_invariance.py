"""No answer depends on the unit of a metric: fractions or percent, scaled or shifted, every p stays what it is.

Results are whole numbers over 100, as accuracies are written. Multiplied or shifted, their differences are equal or not
by the accidents of floating point, and a rank test that believes them gives another p in percent.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isorun.analysis.agreements.agreement import agreement
from isorun.analysis.leaderboards.aggregate import STATISTICS, aggregate, rank_intervals
from isorun.analysis.leaderboards.compare_many import compare_many
from isorun.analysis.pairwise import f_test, fligner, levene, mann_whitney, paired_t, welch, wilcoxon_signed_rank
from isorun.analysis.pairwise.effects import (
    effect_size,
    hodges_lehmann,
    probability_of_improvement,
    single_run_reversal,
)
from isorun.analysis.samples import Pairs

UNITS = st.sampled_from([100.0, 0.01, 1 / 3, 1e-6, 12345.678])
OFFSETS = st.sampled_from([0.0, 0.5, -0.93, 7.0, 100 / 3])
runs = st.lists(st.integers(0, 30).map(lambda right: (70 + right) / 100), min_size=5, max_size=9)


def paired(test):
    return lambda a, b: test(Pairs(*(side[: min(a.size, b.size)] for side in (a, b))).differences)


def many(**options):
    def p_values(a, b):
        size = min(a.size, b.size)
        samples = {"a": a[:size], "b": b[:size], "c": np.concatenate([a, b])[-size:]}
        compared = compare_many(samples, **options)
        return [compared.outcome.p, *(pair.p for pair in compared.pairs)]

    return p_values


def correlations(a, b):
    found = agreement(*(side[: min(a.size, b.size)] for side in (a, b)))
    return [found.kendall.estimate, found.kendall.p, found.spearman.estimate, found.spearman.p]


ANSWERS = {
    "levene": lambda a, b: levene([a, b]).p,
    "levene of means": lambda a, b: levene([a, b], centre="mean").p,
    "fligner": lambda a, b: fligner([a, b]).p,
    "f": lambda a, b: f_test(a, b).p,
    "mann-whitney": lambda a, b: mann_whitney(a, b).p,
    "welch": lambda a, b: welch(a, b).p,
    "wilcoxon": paired(lambda d: wilcoxon_signed_rank(d).p),
    "paired t": paired(lambda d: paired_t(d).p),
    "kruskal and dunn": many(),
    "kruskal and mann-whitney": many(post_hoc="mann-whitney"),
    "friedman and nemenyi": many(paired=True),
    "friedman and conover": many(paired=True, post_hoc="conover"),
    "friedman and wilcoxon": many(paired=True, post_hoc="wilcoxon"),
    "kendall and spearman": correlations,
    "cohen": lambda a, b: effect_size(a, b).cohens_d,
    "hedges": lambda a, b: effect_size(a, b).hedges_g,
    "interval of hedges": lambda a, b: effect_size(a, b).hedges_g_ci95,
    "improvement": lambda a, b: probability_of_improvement(a, b).estimate,
    "interval of improvement": lambda a, b: probability_of_improvement(a, b).ci95,
    "reversal": single_run_reversal,
    "ranks": lambda a, b: [(one.approach, one.interval) for one in rank_intervals({"a": a, "b": b}, None)],
}
if find_spec("isorun.analysis.pairwise"):
    brunner_munzel = import_module("isorun.analysis.pairwise").brunner_munzel
    ANSWERS["brunner-munzel"] = lambda a, b: brunner_munzel(a, b).p


def same(one, other):
    if isinstance(one, list | tuple) and one and not isinstance(one[0], tuple):
        return all(same(x, y) for x, y in zip(one, other, strict=True))
    return one == other if one is None or isinstance(one, list) else one == pytest.approx(other, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("name", ANSWERS)
@given(a=runs, b=runs, unit=UNITS, offset=OFFSETS)
@settings(max_examples=20, deadline=None)
def test_no_answer_depends_on_the_unit(name, a, b, unit, offset):
    x, y = np.array(a), np.array(b)
    answer = ANSWERS[name]
    assert same(answer(x, y), answer(unit * x, unit * y))
    assert same(answer(x, y), answer(unit * (x + offset), unit * (y + offset)))


@pytest.mark.parametrize("statistic", STATISTICS)
@given(a=runs, b=runs, unit=UNITS, offset=OFFSETS)
@settings(max_examples=12, deadline=None)
def test_scores_move_with_the_unit(statistic, a, b, unit, offset):
    """The optimality gap is a distance to a target, which moves along."""
    plain, moved = (
        aggregate(
            {"x": scale * (np.array(a) + shift), "y": scale * (np.array(b) + shift)},
            np.random.default_rng(1),
            statistic=statistic,
            repetitions=200,
            target=scale * (0.9 + shift),
        )
        for scale, shift in ((1.0, 0.0), (unit, offset))
    )
    back = 0.0 if statistic == "optimality-gap" else offset
    for one, other in zip((plain.estimate, *(plain.ci95 or ())), (moved.estimate, *(moved.ci95 or ())), strict=True):
        assert unit * (one + back) == pytest.approx(other, rel=1e-6, abs=1e-9 * unit)


@given(a=runs, b=runs, unit=UNITS, offset=OFFSETS)
@settings(max_examples=12, deadline=None)
def test_the_shift_moves_with_the_unit(a, b, unit, offset):
    x, y = np.array(a), np.array(b)
    plain, moved = hodges_lehmann(x, y), hodges_lehmann(unit * (x + offset), unit * (y + offset))
    assert unit * plain.estimate == pytest.approx(moved.estimate, rel=1e-6, abs=1e-9 * unit)
    assert unit * np.array(plain.ci95) == pytest.approx(np.array(moved.ci95), rel=1e-6, abs=1e-9 * unit)


def test_fligner_ties_equal_distances_of_accuracies_in_any_unit():
    """The distances 0.01, 0.02, … are equal in exact numbers only; their ranks decided the p."""
    a, b = np.array([90, 91, 93, 94, 96, 90, 92]), np.array([88, 91, 92, 95, 97, 91])
    exact = fligner([a.astype(float), b.astype(float)]).p
    assert fligner([a / 100, b / 100]).p == pytest.approx(exact, rel=1e-12)
    assert fligner([a / 300 + 0.1, b / 300 + 0.1]).p == pytest.approx(exact, rel=1e-12)


def test_means_of_the_same_numbers_in_another_order_tie():
    first, second = np.mean([0.1, 0.2, 0.3]), np.mean([0.3, 0.1, 0.2]) + 2**-54
    assert first != second
    tied = compare_many({"a": [first, 0.5], "b": [second, 0.4]}, paired=True)
    assert tied.mean_ranks == {"a": 1.25, "b": 1.75}


def test_a_constant_side_has_no_f_test_whatever_its_mean_rounds_to():
    varied = np.array([0.1, 0.2, 0.4])
    assert f_test(np.full(3, 0.1), varied).p is None
    assert f_test(varied, np.full(7, 0.7)).p is None
