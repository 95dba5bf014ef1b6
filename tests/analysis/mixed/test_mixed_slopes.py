"""Random slopes equal R: lme4, lmerTest and pbkrtest, on data and fits made by tests/reference/mixed/make_slopes.R.

R's own precision sets the tolerances: it minimises without derivatives, and differentiates numerically.
"""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from test_mixed_goldens import column, read_csv

from isorun.analysis.mixed.degrees_of_freedom import kenward_roger
from isorun.analysis.mixed.fit import fit_at, fit_problem, prepare
from isorun.analysis.mixed.hypotheses import variance_shares
from isorun.analysis.mixed.model import mixed_model
from isorun.analysis.mixed.products import elements
from isorun.analysis.mixed.slopes import SlopeObjective
from isorun.errors import InputError

REFERENCE = Path(__file__).parents[2] / "reference" / "mixed" / "slopes"
CASES = sorted(path.stem for path in REFERENCE.glob("*.json"))


@pytest.fixture(scope="module", params=CASES)
def golden(request):
    expected = json.loads((REFERENCE / f"{request.param}.json").read_text())
    return expected, read_csv(REFERENCE / f"{expected['data']}.csv")


@pytest.fixture(scope="module")
def fitted(golden):
    expected, data = golden
    return expected, mixed_model(data, expected["formula"])


def numbers_of(rows, *names):
    return np.array([[getattr(row, name) for name in names] for row in rows])


def test_there_are_goldens_for_every_kind_of_slope():
    assert len(CASES) >= 11


def test_the_log_likelihoods_and_the_aic_are_those_of_lme4(fitted):
    expected, result = fitted
    assert result.loglik_reml == pytest.approx(expected["loglik_reml"], abs=1e-7)
    assert result.loglik_ml == pytest.approx(expected["loglik_ml"], abs=1e-7)
    assert result.aic == pytest.approx(expected["aic"], abs=2e-7)


def test_the_variances_and_correlations_are_those_of_lme4(fitted):
    expected, result = fitted
    rows = {
        (row["grp"].removesuffix(".1").replace(".", ":"), row["var1"], row.get("var2")): row["sdcor"]
        for row in expected["random"]
        if row["grp"] != "Residual"
    }
    for row in result.random:
        assert row.sd == pytest.approx(rows.pop((row.group, row.effect, None)), rel=2e-4, abs=2e-5)
    for row in result.correlations:
        assert row.correlation == pytest.approx(rows.pop((row.group, row.a, row.b)), abs=5e-4)
    assert not rows
    assert result.residual_sd == pytest.approx(expected["sigma"], rel=1e-5)
    assert result.singular == expected["singular"]


def test_the_coefficients_and_satterthwaites_tests_are_those_of_lmertest(fitted):
    expected, result = fitted
    rows = expected["satterthwaite"]
    assert [row.name for row in result.fixed] == [row["name"] for row in rows]
    np.testing.assert_allclose([row.estimate for row in result.fixed], column(rows, "Estimate"), rtol=2e-5)
    np.testing.assert_allclose([row.se for row in result.fixed], column(rows, "Std. Error"), rtol=5e-5)
    np.testing.assert_allclose([row.df_satterthwaite for row in result.fixed], column(rows, "df"), rtol=2e-5)
    np.testing.assert_allclose([row.t for row in result.fixed], column(rows, "t value"), rtol=1e-4)


def test_kenward_rogers_tests_at_rs_own_estimates_are_those_of_pbkrtest(golden):
    expected, data = golden
    problem = prepare(data, expected["formula"])
    fit = fit_at(problem, covariances_of(expected, problem))
    tests = kenward_roger(fit).contrasts(fit.in_basis(np.eye(problem.design.rank)))
    rows = expected["kenward_roger"]
    np.testing.assert_allclose(tests.se, column(rows, "Std. Error"), rtol=1e-7)
    np.testing.assert_allclose(tests.df, column(rows, "df"), rtol=1e-6)


def covariances_of(expected, problem):
    """lme4's theta as relative covariances, or as variance ratios where all random effects are intercepts."""
    theta, known = list(np.atleast_1d(expected["theta"])), {}
    for group, columns in zip(expected["groups"], expected["columns"].values(), strict=True):
        names = tuple(np.atleast_1d(columns).tolist())
        root = np.zeros((len(names), len(names)))
        for at in range(len(names)):
            for row in range(at, len(names)):
                root[row, at] = theta.pop(0)
        known[group.removesuffix(".1"), names] = root @ root.T
    found = [known[item.term.group, item.names] for item in problem.random]
    return np.ravel(found) if all(item.is_intercept for item in problem.random) else found


@pytest.mark.parametrize(("ddf", "key"), [("satterthwaite", "anova"), ("kenward-roger", "anova_kr")])
def test_the_type_three_f_tests_are_those_of_lmertest(golden, ddf, key):
    expected, data = golden
    result, rows = mixed_model(data, expected["formula"], ddf=ddf), expected[key]
    assert [row.term for row in result.anova] == [row["name"] for row in rows]
    for own, name, tolerance in (("f", "F value", 1e-4), ("num_df", "NumDF", 0), ("den_df", "DenDF", 2e-5)):
        np.testing.assert_allclose(
            [getattr(row, own) for row in result.anova], column(rows, name), rtol=tolerance, err_msg=name
        )


def test_satterthwaites_tests_of_a_maximum_likelihood_fit_are_those_of_lmertest(golden):
    expected, data = golden
    result, rows = mixed_model(data, expected["formula"], reml=False), expected["satterthwaite_ml"]
    assert result.aic == pytest.approx(expected["aic_ml"], abs=2e-7)
    np.testing.assert_allclose([row.estimate for row in result.fixed], column(rows, "Estimate"), rtol=2e-5)
    np.testing.assert_allclose([row.df_satterthwaite for row in result.fixed], column(rows, "df"), rtol=2e-5)


def test_the_tests_of_random_effects_are_those_of_ranova(fitted):
    expected, result = fitted
    rows = expected["ranova"]
    assert [row.term for row in result.ranova] == [row["name"] for row in rows]
    np.testing.assert_allclose([row.lrt for row in result.ranova], column(rows, "LRT"), atol=1e-6)
    assert [row.df for row in result.ranova] == column(rows, "Df").tolist()


def test_the_predicted_effects_are_those_of_ranef(fitted):
    expected, result = fitted
    for group, rows in expected["ranef"].items():
        for name in rows[0].keys() - {"level", "_row"}:
            own = result.random_effects[group if name == "(Intercept)" else f"{group}: {name}"]
            theirs = {row["level"]: row[name] for row in rows}
            scale = max(map(abs, theirs.values()))
            np.testing.assert_allclose(
                [own[level] for level in theirs], list(theirs.values()), atol=1e-3 * scale + 1e-6
            )


def simulated(seed, *, spread=1.0, groups=8, rows=90):
    rng = np.random.default_rng(seed)
    g, h = rng.integers(0, groups, rows), rng.integers(0, 4, rows)
    x, f = rng.normal(5, 2, rows), rng.integers(0, 3, rows)
    slopes = rng.normal(size=(groups, 2)) * spread
    y = 0.3 * x + slopes[g, 0] + slopes[g, 1] * x / 3 + 0.4 * rng.normal(size=4)[h] + rng.normal(size=rows)
    text = {"g": np.array(list("abcdefgh"))[g], "h": np.array(list("ABCD"))[h], "f": np.array(list("uvw"))[f]}
    return {"y": y, "x": x, **text}


FORMULAS = (
    "y ~ x + (x | g)",
    "y ~ x + (x || g) + (1 | h)",
    "y ~ f + (f | g)",
    "y ~ x + (1 | h) + (0 + x | g) + (x | h:g)",
)


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 10_000), st.sampled_from(FORMULAS), st.booleans())
def test_the_derivatives_are_those_of_the_deviance(seed, formula, reml):
    data = prepare(simulated(seed), formula).data
    target, rng = SlopeObjective(data, reml), np.random.default_rng(seed)
    sigmas = []
    for width in target.widths:
        root = rng.normal(size=(width, width))
        sigmas.append(root @ root.T + 0.3 * np.eye(width))

    def moved(place, size):
        item = elements(target.widths)[place]
        changed = [sigma.copy() for sigma in sigmas]
        changed[item.term][item.row, item.column] += size
        if item.row != item.column:
            changed[item.term][item.column, item.row] += size
        return target.at([np.linalg.cholesky(sigma) for sigma in changed])

    slope, bend = target.second_derivatives(moved(0, 0.0))
    for place in range(len(slope)):
        ahead, behind = moved(place, 1e-5), moved(place, -1e-5)
        assert (target.value(ahead) - target.value(behind)) / 2e-5 == pytest.approx(slope[place], rel=1e-4, abs=1e-4)
        change = (target.second_derivatives(ahead)[0] - target.second_derivatives(behind)[0]) / 2e-5
        np.testing.assert_allclose(bend[place], change, rtol=1e-3, atol=1e-3)


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 10_000), st.sampled_from(FORMULAS), st.floats(0.0, 1.5))
@example(3508, "y ~ x + (x || g) + (1 | h)", 0.21875)  # a step of the full length leads to the mirror image
def test_no_other_covariance_has_a_lower_deviance(seed, formula, spread):
    fit = fit_problem(prepare(simulated(seed, spread=spread), formula))
    best, rng = fit.objective.value(fit.point), np.random.default_rng(seed)
    for size in (1e-3, 1e-1):
        for _ in range(5):
            roots = [root + size * rng.normal(size=root.shape) for root in fit.point.roots]
            assert fit.objective.value(fit.objective.at(roots)) >= best - 1e-7


@settings(deadline=None, max_examples=12)
@given(st.integers(0, 10_000), st.floats(1e-3, 1e3), st.floats(-100, 100))
def test_units_and_origin_of_a_covariate_with_a_correlated_intercept_change_no_fit(seed, scale, shift):
    data = simulated(seed)
    first = mixed_model(data, "y ~ x + (x | g)")
    second = mixed_model({**data, "x": shift + scale * data["x"]}, "y ~ x + (x | g)")
    # REML depends on the units of X through its determinant, ML does not.
    assert first.loglik_ml == pytest.approx(second.loglik_ml, abs=1e-5)
    assert first.fixed[1].df_kenward_roger == pytest.approx(second.fixed[1].df_kenward_roger, rel=1e-3)
    assert first.fixed[1].t == pytest.approx(second.fixed[1].t, rel=1e-4, abs=1e-4)


def test_slopes_and_intercepts_alone_give_the_same_where_the_slopes_are_left_out():
    data = simulated(3)
    data["one"] = np.ones(90)
    plain = mixed_model(data, "y ~ x + (1 | g) + (1 | h)")
    general = mixed_model(data, "y ~ x + (0 + one | g) + (1 | h)")
    assert general.loglik_reml == pytest.approx(plain.loglik_reml, abs=1e-8)
    np.testing.assert_allclose(
        numbers_of(general.fixed, "se", "df_satterthwaite", "df_kenward_roger"),
        numbers_of(plain.fixed, "se", "df_satterthwaite", "df_kenward_roger"),
        rtol=1e-5,
    )


def test_a_factor_without_correlations_leaves_out_the_intercept_that_its_levels_contain_and_says_so():
    result = mixed_model(simulated(5), "y ~ f + (f || g)")
    assert [row.effect for row in result.random] == ["fu", "fv", "fw"]
    assert "(1 | g) was left out" in result.notes[0]
    assert result.loglik_reml == pytest.approx(mixed_model(simulated(5), "y ~ f + (f | g)").loglik_reml, abs=1e-7)


def test_a_slope_alone_is_tested_against_none_at_all():
    row = mixed_model(simulated(6), "y ~ x + (0 + x | g)").ranova[0]
    assert (row.term, row.df) == ("x in (0 + x | g)", 1)
    assert row.lrt > 0


def test_shares_of_slopes_are_of_the_mean_variance_over_the_rows():
    data = simulated(7)
    result = mixed_model(data, "y ~ x + (x | g)")
    covariance = result.fit.covariances[0]
    design = np.column_stack([np.ones(90), data["x"]])
    mean = float(np.einsum("ia,ab,ib->i", design, covariance, design).mean())
    shares = variance_shares(result)
    assert shares[0].share == pytest.approx(mean / (mean + result.residual_sd**2), rel=1e-9)
    assert shares[0].lower < shares[0].share < shares[0].upper
    assert math.isclose(sum(row.share for row in shares), 1.0)


@pytest.mark.parametrize(
    ("formula", "says"),
    [
        ("y ~ x + (x + x2 | g)", "depend on each other"),
        ("y ~ x + (x | row)", "as many levels as there are rows"),
        ("y ~ x + (x + f | pair)", "as many coefficients as there are rows"),
        ("y ~ x + (x | k)", "there is no column 'k'"),
    ],
)
def test_slopes_that_cannot_be_fitted_are_said(formula, says):
    data = simulated(1)
    data |= {"x2": 2.0 * data["x"], "row": np.arange(90), "pair": np.arange(90) // 2}
    with pytest.raises(InputError) as caught:
        mixed_model(data, formula)
    assert says in str(caught.value)
