"""Equal to R: lme4, lmerTest, pbkrtest and emmeans on simulated data, made by tests/reference/mixed/make_goldens.R.

Satterthwaite's tolerances are R's own: it differentiates numerically.
"""

import csv
import json
import math
from pathlib import Path

import numpy as np
import pytest

from isorun.analysis.mixed.degrees_of_freedom import kenward_roger
from isorun.analysis.mixed.fit import fit_at, prepare
from isorun.analysis.mixed.model import mixed_model

REFERENCE = Path(__file__).parents[2] / "reference" / "mixed"
CASES = sorted(path.stem for path in REFERENCE.glob("*.json"))


def read_csv(path):
    with path.open() as file:
        rows = list(csv.DictReader(file))
    columns = {}
    for name in rows[0]:
        cells = [row[name] for row in rows]
        try:
            columns[name] = np.array([float(cell) for cell in cells])
        except ValueError:
            columns[name] = np.array(cells)
    return columns


@pytest.fixture(scope="module", params=CASES)
def golden(request):
    return json.loads((REFERENCE / f"{request.param}.json").read_text()), read_csv(REFERENCE / f"{request.param}.csv")


@pytest.fixture(scope="module")
def fitted(golden):
    expected, data = golden
    return expected, mixed_model(data, expected["formula"])


def column(rows, name):
    return np.array([math.nan if row[name] is None else row[name] for row in rows])


def test_there_are_goldens_for_every_kind_of_design():
    assert len(CASES) >= 7


def test_the_log_likelihoods_and_the_aic_are_those_of_r(fitted):
    expected, result = fitted
    assert result.loglik_reml == pytest.approx(expected["loglik_reml"], abs=1e-7)
    assert result.loglik_ml == pytest.approx(expected["loglik_ml"], abs=1e-7)
    assert result.aic == pytest.approx(expected["aic"], abs=2e-7)


def test_the_variances_are_those_of_r_and_zero_is_exactly_zero(fitted):
    expected, result = fitted
    variances = {row["grp"]: row["vcov"] for row in expected["random"]}
    assert result.singular == expected["singular"]
    assert result.residual_sd == pytest.approx(math.sqrt(variances.pop("Residual")), rel=1e-5)
    assert {row.group for row in result.random} == set(variances)
    for row in result.random:
        assert (row.variance == 0.0) == (variances[row.group] == 0.0)
        assert row.variance == pytest.approx(variances[row.group], rel=2e-5)


def test_the_coefficients_and_satterthwaites_tests_are_those_of_lmertest(fitted):
    expected, result = fitted
    rows = expected["satterthwaite"]
    assert [row.name for row in result.fixed] == [row["name"] for row in rows]
    np.testing.assert_allclose([row.estimate for row in result.fixed], column(rows, "Estimate"), rtol=1e-6)
    np.testing.assert_allclose([row.se for row in result.fixed], column(rows, "Std. Error"), rtol=1e-5)
    np.testing.assert_allclose([row.df_satterthwaite for row in result.fixed], column(rows, "df"), rtol=1e-5)
    np.testing.assert_allclose([row.p_satterthwaite for row in result.fixed], column(rows, "Pr(>|t|)"), rtol=2e-4)


def test_kenward_rogers_tests_at_rs_own_estimates_are_those_of_pbkrtest(golden):
    expected, data = golden
    problem = prepare(data, expected["formula"])
    theta = dict(zip(np.atleast_1d(expected["theta_names"]), np.atleast_1d(expected["theta"]), strict=True))
    fit = fit_at(problem, np.array([theta[group] for group in problem.groups]) ** 2)
    tests = kenward_roger(fit).contrasts(fit.in_basis(np.eye(problem.design.rank)))
    rows = expected["kenward_roger"]
    np.testing.assert_allclose(tests.se, column(rows, "Std. Error"), rtol=1e-9)
    np.testing.assert_allclose(tests.df, column(rows, "df"), rtol=1e-9)
    np.testing.assert_allclose(tests.p, column(rows, "Pr(>|t|)"), rtol=1e-8)


def test_kenward_rogers_columns_of_the_result_are_those_of_r(fitted):
    expected, result = fitted
    rows = expected["kenward_roger"]
    np.testing.assert_allclose([row.se_kenward_roger for row in result.fixed], column(rows, "Std. Error"), rtol=1e-5)
    np.testing.assert_allclose([row.df_kenward_roger for row in result.fixed], column(rows, "df"), rtol=1e-4)


@pytest.mark.parametrize(("ddf", "key"), [("satterthwaite", "anova"), ("kenward-roger", "anova_kr")])
def test_the_type_three_f_tests_are_those_of_lmertest(golden, ddf, key):
    expected, data = golden
    result = mixed_model(data, expected["formula"], ddf=ddf)
    rows = expected[key]
    assert [row.term for row in result.anova] == [row["name"] for row in rows]
    for own, name, tolerance in (
        ("sum_sq", "Sum Sq", 1e-5),
        ("mean_sq", "Mean Sq", 1e-5),
        ("num_df", "NumDF", 0),
        ("den_df", "DenDF", 2e-5),
        ("f", "F value", 2e-5),
        ("p", "Pr(>F)", 2e-4),
    ):
        np.testing.assert_allclose(
            [getattr(row, own) for row in result.anova], column(rows, name), rtol=tolerance, err_msg=name
        )


def test_satterthwaites_tests_of_a_maximum_likelihood_fit_are_those_of_lmertest(golden):
    expected, data = golden
    result = mixed_model(data, expected["formula"], reml=False)
    rows = expected["satterthwaite_ml"]
    assert result.aic == pytest.approx(expected["aic_ml"], abs=2e-7)
    np.testing.assert_allclose([row.estimate for row in result.fixed], column(rows, "Estimate"), rtol=1e-6)
    np.testing.assert_allclose([row.df_satterthwaite for row in result.fixed], column(rows, "df"), rtol=1e-5)


def test_the_tests_of_random_effects_are_those_of_ranova(fitted):
    expected, result = fitted
    rows = {row["name"]: row for row in expected["ranova"]}
    assert {row.term for row in result.ranova} == set(rows)
    for row in result.ranova:
        assert row.lrt == pytest.approx(rows[row.term]["LRT"], abs=2e-6)
        assert row.df == rows[row.term]["Df"] == 1
        assert row.p == pytest.approx(rows[row.term]["Pr(>Chisq)"], rel=1e-5, abs=2e-3 if row.lrt < 1e-5 else 0)


def test_the_mean_differences_are_those_of_emmeans(golden):
    expected, data = golden
    result = mixed_model(data, expected["formula"], adjust="none")
    rows = expected["differences"]
    assert len(result.differences) == len(rows)
    for own, name in (("estimate", "estimate"), ("se", "se"), ("lower", "lower"), ("upper", "upper")):
        np.testing.assert_allclose(
            [getattr(row, own) for row in result.differences], column(rows, name), rtol=2e-5, atol=1e-9, err_msg=name
        )
    np.testing.assert_allclose([row.df for row in result.differences], column(rows, "df"), rtol=2e-5)
    np.testing.assert_allclose([row.p for row in result.differences], column(rows, "p"), rtol=2e-4)


def test_holms_adjustment_is_that_of_emmeans(fitted):
    expected, result = fitted
    unknown = {row["factor"] for row in expected["differences"] if row["estimate"] is None}
    pairs = [
        (own.p_adjusted, row["holm"])
        for own, row in zip(result.differences, expected["differences"], strict=True)
        if row["factor"] not in unknown
    ]
    np.testing.assert_allclose([own for own, _ in pairs], [other for _, other in pairs], rtol=2e-4)
