"""Equal to R on the goldens that are not shipped: sleepstudy, penicillin and 1,074 rows of repeated few-shot runs."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from test_mixed_goldens import read_csv

from isorun.analysis.mixed.degrees_of_freedom import kenward_roger
from isorun.analysis.mixed.fit import fit_at, prepare
from isorun.analysis.mixed.model import mixed_model

SHARED = Path(os.environ.get("ISORUN_SHARED_DATA", Path(__file__).parents[4] / "shared" / "data"))
GOLDENS = SHARED / "mixed-model-goldens"
CASES = {"sleepstudy_ri": "sleepstudy", "penicillin": "penicillin", "fewshot_repeat": "fewshot_repeat"}

pytestmark = pytest.mark.skipif(not GOLDENS.is_dir(), reason="the shared goldens are not here")


@pytest.fixture(scope="module", params=CASES)
def case(request):
    expected = json.loads((GOLDENS / f"{request.param}.json").read_text())
    data = read_csv(GOLDENS / f"{CASES[request.param]}.csv")
    return expected, data, mixed_model(data, expected["formula"])


def table(expected, key):
    return np.array(expected[key]["values"], dtype=float)


def test_likelihoods_variances_and_coefficients_hold_the_stated_tolerances(case):
    expected, _, result = case
    assert result.loglik_reml == pytest.approx(expected["reml"]["logLik"], abs=1e-7)
    assert result.loglik_ml == pytest.approx(expected["ml"]["logLik"], abs=1e-7)
    assert result.aic == pytest.approx(expected["reml"]["AIC"], abs=2e-7)
    variances = {row["grp"]: row["vcov"] for row in expected["varcomp"]}
    for row in result.random:
        assert row.variance == pytest.approx(variances[row.group], rel=1e-5)
    rows = table(expected, "satterthwaite")
    np.testing.assert_allclose([row.estimate for row in result.fixed], rows[:, 0], rtol=1e-6)
    np.testing.assert_allclose([row.se for row in result.fixed], rows[:, 1], rtol=1e-5)
    np.testing.assert_allclose([row.df_satterthwaite for row in result.fixed], rows[:, 2], rtol=1e-5)


def test_kenward_roger_at_the_golden_theta_is_equal_to_nine_digits(case):
    expected, data, _ = case
    problem = prepare(data, expected["formula"])
    theta = [expected["reml"]["theta"][f"{group}.(Intercept)"] for group in problem.groups]
    fit = fit_at(problem, np.array(theta) ** 2)
    tests = kenward_roger(fit).contrasts(fit.in_basis(np.eye(problem.design.rank)))
    rows = table(expected, "kenward_roger")
    np.testing.assert_allclose(tests.se, rows[:, 1], rtol=1e-9)
    np.testing.assert_allclose(tests.df, rows[:, 2], rtol=1e-9)


def test_random_effects_and_their_tests_are_those_of_r(case):
    expected, _, result = case
    rows = dict(zip(expected["ranova"]["rows"][1:], expected["ranova"]["values"][1:], strict=True))
    for row in result.ranova:
        assert row.lrt == pytest.approx(rows[row.term][3], abs=1e-6)
    for group, effects in result.random_effects.items():
        own = expected["ranef"][group]
        np.testing.assert_allclose(
            [effects[level] for level in own["rows"]], np.array(own["values"])[:, 0], rtol=1e-4, atol=1e-6
        )


def test_all_66_differences_of_the_repeated_study_are_those_of_emmeans():
    data = read_csv(GOLDENS / "fewshot_repeat.csv")
    result = mixed_model(data, "metric ~ experiment + (1|config) + (1|seed) + (1|repeat_id)", adjust="none")
    rows = json.loads((GOLDENS / "fewshot_repeat_emmeans.json").read_text())["pairs_unadj"]
    assert [f"{row.a} - {row.b}" for row in result.differences] == [row["contrast"] for row in rows]
    assert len(rows) == 66
    for own, name in (("estimate", "estimate"), ("se", "SE"), ("df", "df"), ("lower", "lower.CL")):
        np.testing.assert_allclose(
            [getattr(row, own) for row in result.differences], [row[name] for row in rows], rtol=1e-5
        )
