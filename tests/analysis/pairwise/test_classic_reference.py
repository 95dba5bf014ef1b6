"""Numbers that R gives for the same data (tests/reference/classic)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from isorun.analysis.agreements.agreement import agreement
from isorun.analysis.leaderboards.compare_many import (
    compare_many,
    critical_difference,
    friedman,
    kruskal,
    studentized_range_tail,
)
from isorun.analysis.pairwise import (
    f_test,
    fligner,
    levene,
    mann_whitney,
    paired_t,
    u_statistic,
    welch,
    wilcoxon_signed_rank,
)
from isorun.analysis.pairwise.effects import effect_size, hodges_lehmann
from isorun.analysis.samples import Pairs, adjusted

REFERENCE = json.loads((Path(__file__).parents[2] / "reference" / "classic" / "classic.json").read_text())
SAMPLES = REFERENCE["two_samples"]
EFFECTS = json.loads((Path(__file__).parents[2] / "reference" / "effect_sizes" / "effect_sizes.json").read_text())
PAIRED = [name for name, expected in SAMPLES.items() if "wilcoxon_p" in expected]
SHIFTED = [name for name, expected in SAMPLES.items() if "shift" in expected]


def close(expected, rel=1e-9):
    return pytest.approx(expected, rel=rel, abs=1e-12)


def both(name):
    return np.array(SAMPLES[name]["a"]), np.array(SAMPLES[name]["b"])


@pytest.mark.parametrize("name", SAMPLES)
def test_mann_whitney_equals_r_and_coin_with_and_without_ties(name):
    a, b = both(name)
    result = mann_whitney(a, b)
    assert result.u == SAMPLES[name]["u"] == u_statistic(a, b)
    assert result.p == close(SAMPLES[name]["u_p"])
    assert result.p_larger == close(SAMPLES[name]["u_p_larger"])


@pytest.mark.parametrize("name", SAMPLES)
def test_welch_equals_r(name):
    result = welch(*both(name))
    assert result.p == close(SAMPLES[name]["welch_p"])
    assert result.ci95 == close(tuple(SAMPLES[name]["welch_ci"]))


@pytest.mark.parametrize("name", SAMPLES)
def test_the_interval_of_the_effect_size_inverts_the_noncentral_t_law(name):
    assert effect_size(*both(name)).cohens_d_ci95 == close(tuple(SAMPLES[name]["delta_ci"]), rel=1e-5)


@pytest.mark.parametrize("name", EFFECTS["samples"])
def test_cohens_d_and_hedges_g_and_their_intervals_equal_rs_effectsize(name):
    """R inverts the noncentral law to six digits."""
    expected = EFFECTS["samples"][name]
    found = effect_size(np.array(expected["a"], dtype=float), np.array(expected["b"], dtype=float))
    assert (found.cohens_d, found.hedges_g) == close((expected["d"], expected["g"]))
    assert found.cohens_d_ci95 == close(tuple(expected["d_ci"]), rel=3e-6)
    assert found.hedges_g_ci95 == close(tuple(expected["g_ci"]), rel=3e-6)


@pytest.mark.parametrize("name", SAMPLES)
def test_tests_of_equal_spread_equal_r(name):
    a, b = both(name)
    outcomes = {
        "levene_median": levene([a, b]),
        "levene_mean": levene([a, b], centre="mean"),
        "fligner": fligner([a, b]),
        "f": f_test(a, b),
    }
    for test, outcome in outcomes.items():
        assert (outcome.statistic, outcome.p) == close(tuple(SAMPLES[name][test])), test


@pytest.mark.parametrize("name", SHIFTED)
def test_the_hodges_lehmann_shift_and_its_interval_equal_r(name):
    shift = hodges_lehmann(*both(name))
    assert shift.estimate == close(SAMPLES[name]["shift"])
    assert shift.ci95 == close(tuple(SAMPLES[name]["shift_ci"]))


@pytest.mark.parametrize("name", PAIRED)
def test_paired_tests_equal_r_and_coin_with_and_without_ties(name):
    a, b = both(name)
    assert wilcoxon_signed_rank(Pairs(a, b).differences).p == close(SAMPLES[name]["wilcoxon_p"])
    assert paired_t(a - b).p == close(SAMPLES[name]["paired_t_p"])
    assert paired_t(a - b).ci95 == close(tuple(SAMPLES[name]["paired_ci"]))


def test_shares_have_the_ties_of_the_counts_they_come_from():
    """0.85 - 0.80 and 0.80 - 0.75 differ in floating point."""
    a, b = both("tied_pairs")
    shares = Pairs(a / 40, b / 40)
    assert wilcoxon_signed_rank(shares.differences).p == close(SAMPLES["tied_pairs"]["wilcoxon_p"])


@pytest.mark.parametrize("name", REFERENCE["agreement"])
def test_kendall_and_spearman_equal_r(name):
    expected = REFERENCE["agreement"][name]
    found = agreement(expected["x"], expected["y"])
    assert found.kendall.estimate == close(expected["tau"])
    assert found.kendall.p == close(expected["tau_p"])
    assert found.spearman.estimate == close(expected["rho"])
    assert found.spearman.p == close(expected["rho_p"])


def test_kruskal_and_friedman_equal_r():
    groups = [np.array(values) for values in REFERENCE["kruskal"]["groups"].values()]
    assert kruskal(groups).statistic == close(REFERENCE["kruskal"]["statistic"])
    assert kruskal(groups).p == close(REFERENCE["kruskal"]["p"])
    tested = friedman(np.array(REFERENCE["friedman"]["block"]))
    assert tested.chi_square.statistic == close(REFERENCE["friedman"]["statistic"])
    assert tested.chi_square.p == close(REFERENCE["friedman"]["p"])


def test_corrections_equal_r():
    given = REFERENCE["adjusted"]
    assert adjusted(given["p"], "holm") == close(tuple(given["holm"]))
    assert adjusted(given["p"], "bh") == close(tuple(given["bh"]))
    assert adjusted(given["p"], "none") == close(tuple(given["p"]))


def test_the_range_of_normal_values_equals_r():
    table = REFERENCE["tukey"]
    for q, groups, tail in zip(table["q"], table["groups"], table["tail"], strict=True):
        assert studentized_range_tail(q, groups) == close(tail, rel=1e-8)
    assert critical_difference(4, 10) == close(table["demsar"] * np.sqrt(4 * 5 / 60), rel=1e-6)


def test_a_comparison_of_many_uses_the_same_tests():
    groups = REFERENCE["kruskal"]["groups"]
    assert compare_many(groups).outcome.p == close(REFERENCE["kruskal"]["p"])
    block = np.array(REFERENCE["friedman"]["block"])
    by_name = dict(zip("wxyz", block.T, strict=True))
    assert compare_many(by_name, paired=True, direction="lower").outcome.p == close(REFERENCE["friedman"]["p"])
