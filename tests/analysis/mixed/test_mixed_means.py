"""Means and comparisons equal emmeans, multcomp and mvtnorm, on fits made by tests/reference/mixed/make_means.R.

mvtnorm draws at random and takes whole degrees of freedom, which sets the tolerances of Dunnett's.
"""

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from test_mixed_goldens import column, read_csv

from isorun.analysis.mixed.degrees_of_freedom import satterthwaite
from isorun.analysis.mixed.differences import (
    LargestT,
    TukeyRange,
    chosen_factors,
    critical_value,
    differences,
    marginal_means,
)
from isorun.analysis.mixed.fit import fit_problem, prepare
from isorun.analysis.mixed.model import mixed_model
from isorun.errors import InputError

REFERENCE = Path(__file__).parents[2] / "reference" / "mixed"
CASES = sorted(path.stem for path in (REFERENCE / "means").glob("*.json"))


@pytest.fixture(scope="module", params=CASES)
def golden(request):
    expected = json.loads((REFERENCE / "means" / f"{request.param}.json").read_text())
    return expected, read_csv(REFERENCE / expected["data"])


def label_of(expected):
    """factor(batch) for emmeans' batch."""
    return (
        f"factor({expected['factor']})"
        if f"factor({expected['factor']})" in expected["formula"]
        else expected["factor"]
    )


def fitted(golden, ddf, **options):
    expected, data = golden
    return mixed_model(data, expected["formula"], ddf=ddf, differences=[label_of(expected)], **options)


def close(rows, theirs, names, rtol=5e-5, atol=1e-9):
    for name in names:
        np.testing.assert_allclose(
            [getattr(row, name) for row in rows], column(theirs, name), rtol=rtol, atol=atol, err_msg=name
        )


BOTH = pytest.mark.parametrize("ddf", ["satterthwaite", "kenward-roger"])


@BOTH
def test_the_means_and_their_intervals_are_those_of_emmeans(golden, ddf):
    rows = golden[0]["ddf"][ddf]["means"]
    own = fitted(golden, ddf).means
    assert [row.label for row in own] == [row["name"] for row in rows]
    close(own, rows, ("estimate", "se", "df", "lower", "upper"))


@BOTH
@pytest.mark.parametrize("adjust", ["none", "tukey", "bonferroni"])
def test_the_adjusted_p_and_the_intervals_are_those_of_emmeans(golden, ddf, adjust):
    rows = golden[0]["ddf"][ddf][adjust]
    own = fitted(golden, ddf, adjust=adjust).differences
    close(own, rows, ("estimate", "se", "df", "lower", "upper"), rtol=2e-4, atol=2e-5 * own[0].se)
    np.testing.assert_allclose([row.p_adjusted for row in own], column(rows, "p"), rtol=5e-4, atol=1e-9)


@BOTH
@pytest.mark.parametrize("adjust", ["holm", "bh"])
def test_holms_and_benjamini_and_hochbergs_p_are_those_of_emmeans(golden, ddf, adjust):
    own = fitted(golden, ddf, adjust=adjust).differences
    rows = golden[0]["ddf"][ddf][adjust]
    np.testing.assert_allclose([row.p_adjusted for row in own], column(rows, "p"), rtol=5e-4)


@pytest.mark.long
@BOTH
def test_comparisons_against_a_control_are_those_of_emmeans(golden, ddf):
    expected = golden[0]
    own = fitted(golden, ddf, adjust="dunnett", control=expected["control"]).differences
    rows = expected["ddf"][ddf]["dunnett"]
    assert {row.b for row in own} == {expected["control"]}
    close(own, rows, ("estimate", "se", "df"))
    holm = fitted(golden, ddf, adjust="holm", control=expected["control"]).differences
    np.testing.assert_allclose(
        [row.p_adjusted for row in holm], column(expected["ddf"][ddf]["control_holm"], "p"), rtol=5e-4
    )
    if all(abs(row.df - round(row.df)) < 1e-3 for row in own):
        np.testing.assert_allclose([row.p_adjusted for row in own], column(rows, "p"), atol=1e-3)
        close(own, rows, ("lower", "upper"), atol=3e-3 * own[0].se, rtol=0)


def test_dunnetts_p_at_whole_degrees_of_freedom_are_those_of_multcomp(golden):
    expected = golden[0]
    result = fitted(golden, "satterthwaite")
    fit, factor = result.fit, chosen_factors(result.fit, [label_of(expected)])[0]
    means = marginal_means(fit.problem.design, factor)
    control = [row.label for row in result.means].index(expected["control"])
    rows = fit.in_basis(np.delete(means - means[control], control, axis=0)[:, fit.problem.design.kept])
    covariance = rows @ fit.point.covariance @ rows.T
    sd = np.sqrt(np.diagonal(covariance))
    joint = LargestT(covariance / np.outer(sd, sd))
    own = [joint.tail(abs(t), 20.0) for t in np.atleast_1d(expected["joint_20"]["t"])]
    np.testing.assert_allclose(own, np.atleast_1d(expected["joint_20"]["p"]), atol=1e-4)


@pytest.mark.parametrize(
    ("q", "means", "df", "tail", "critical"),
    [
        (3.5, 3, 10, 0.0771033108387, 3.87677674919),
        (4.2, 5, 7.3, 0.104045661383, 5.00190851821),
        (3.0, 12, 61, 0.61009301752, 4.8053706142),
        (9.0, 6, 20, 4.29014366805e-05, 4.44523661932),
        (2.0, 3, 1e7, 0.33349932504, 3.31449315755),
    ],
)
def test_the_studentised_range_is_rs_ptukey_and_qtukey(q, means, df, tail, critical):
    own = TukeyRange(means)
    assert own.tail(q / 2**0.5, df) == pytest.approx(tail, rel=1e-6)
    assert critical_value(own.tail, 0.95, df) * 2**0.5 == pytest.approx(critical, rel=1e-7)


def test_dunnetts_table_and_mvtnorm():
    equal = np.full((4, 4), 0.5) + 0.5 * np.eye(4)
    assert LargestT(equal).tail(2.5, 12) == pytest.approx(0.0854351, abs=1e-6)
    # Dunnett's (1964) two-sided table: 5 %, 4 treatments, 12 degrees of freedom.
    assert critical_value(LargestT(equal).tail, 0.95, 12) == pytest.approx(2.81, abs=5e-3)
    uneven = np.array([[1, 0.3, 0.6], [0.3, 1, 0.1], [0.6, 0.1, 1]])
    assert LargestT(uneven).tail(2.2, 8) == pytest.approx(0.1423477, abs=5e-5)
    assert LargestT(np.array([[1.0, -0.4], [-0.4, 1.0]])).tail(2.2, 5) == pytest.approx(0.1359719, abs=5e-5)


@settings(deadline=None, max_examples=15)
@given(st.integers(2, 6), st.floats(0.05, 0.95), st.floats(2.0, 200.0), st.floats(1.0, 4.0))
def test_the_lattice_and_the_quadrature_agree(count, r, df, t):
    joint = LargestT(np.full((count, count), r) + (1 - r) * np.eye(count))
    assert joint._by_lattice(t, df) == pytest.approx(joint.tail(t, df), abs=1e-3)


def test_the_critical_values_are_exceeded_by_5_of_100_draws():
    rng, draws, df = np.random.default_rng(3), 200_000, 6.0
    spread = np.sqrt(rng.chisquare(df, size=draws) / df)
    means = rng.normal(size=(draws, 5))
    largest = np.ptp(means, axis=1) / spread / 2**0.5
    assert (largest > critical_value(TukeyRange(5).tail, 0.95, df)).mean() == pytest.approx(0.05, abs=0.002)
    sizes = np.array([0.3, 1.0, 2.0, 0.5])
    errors = (rng.normal(size=(draws, 4)) * sizes - rng.normal(size=(draws, 1))) / np.sqrt(1 + sizes**2)
    correlation = 1 / np.sqrt(np.outer(1 + sizes**2, 1 + sizes**2))
    np.fill_diagonal(correlation, 1.0)
    above = np.abs(errors).max(axis=1) / spread > critical_value(LargestT(correlation).tail, 0.95, df)
    assert above.mean() == pytest.approx(0.05, abs=0.002)


def simulated(seed, effect=1.0):
    rng = np.random.default_rng(seed)
    a, g = rng.integers(0, 4, 70), rng.integers(0, 7, 70)
    y = effect * a + rng.normal(size=7)[g] + rng.normal(size=70)
    return {"y": y, "a": np.array(list("pqrs"))[a], "g": np.array(list("tuvwxyz"))[g]}


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10_000), st.sampled_from(["tukey", "dunnett", "holm", "bonferroni", "bh", "none"]))
def test_an_interval_leaves_out_zero_exactly_when_its_p_is_below_alpha(seed, adjust):
    control = "q" if adjust == "dunnett" else None
    for row in mixed_model(simulated(seed, 0.4), "y ~ a + (1|g)", adjust=adjust, control=control).differences:
        assert (row.lower > 0 or row.upper < 0) == (row.p_adjusted < 0.05)
        assert row.lower < row.estimate < row.upper
        assert row.p_adjusted >= row.p * (1 - 1e-9)


def test_two_levels_need_no_adjustment():
    data = simulated(2)
    data["a"] = np.where(np.isin(data["a"], ["p", "q"]), "p", "q")
    rows = [mixed_model(data, "y ~ a + (1|g)", adjust=adjust).differences[0] for adjust in ("tukey", "holm", "none")]
    for row in rows:
        assert (row.p_adjusted, row.lower) == pytest.approx((rows[0].p, rows[0].lower), rel=1e-7)


def test_only_factors_with_the_control_are_compared_and_all_have_means():
    data = {**simulated(3), "b": np.array(["m", "n"] * 35)}
    result = mixed_model(data, "y ~ a + b + (1|g)", adjust="dunnett", control="n")
    assert {(row.factor, row.a, row.b) for row in result.differences} == {("b", "m", "n")}
    assert {row["label"] for row in result.to_json()["means"]} == {"a=p", "a=q", "a=r", "a=s", "b=m", "b=n"}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"adjust": "dunnett"}, "--control LABEL"),
        ({"adjust": "dunnett", "control": "x"}, "there is no level 'x'"),
        ({"adjust": "tukey", "control": "p"}, "every pair"),
        ({"adjust": "tuckey"}, "did you mean 'tukey'"),
    ],
)
def test_comparisons_that_cannot_be_made_are_said(options, says):
    with pytest.raises(InputError) as caught:
        mixed_model(simulated(1), "y ~ a + (1|g)", **options)
    assert says in str(caught.value)


@pytest.mark.slow
def test_simultaneous_intervals_cover_all_differences_at_once_in_95_of_100():
    equal = np.full((3, 3), 0.5) + 0.5 * np.eye(3)
    tails = {"tukey": TukeyRange(4).tail, "dunnett": LargestT(equal).tail}
    critical = cache(lambda name, df: critical_value(tails[name], 0.95, df))
    rng, repetitions, covered = np.random.default_rng(21), 1500, dict.fromkeys(tails, 0)
    a, g = np.repeat(np.arange(4), 6), np.tile(np.arange(6), 4)
    for _ in range(repetitions):
        y = rng.normal(size=6)[g] + rng.normal(size=24)
        data = {"y": y, "a": np.array(list("pqrs"))[a], "g": np.array(list("uvwxyz"))[g]}
        fit = fit_problem(prepare(data, "y ~ a + (1|g)"))
        factor = chosen_factors(fit, None)[0]
        for name, control in (("tukey", None), ("dunnett", "p")):
            rows = differences(fit, satterthwaite(fit), factor, level=0.95, adjust="none", control=control)
            largest = max(abs(row.estimate / row.se) for row in rows)
            covered[name] += largest <= critical(name, round(rows[0].df, 3))
    for count in covered.values():
        assert abs(count / repetitions - 0.95) <= 3.0 * stats.binom.std(repetitions, 0.95) / repetitions
