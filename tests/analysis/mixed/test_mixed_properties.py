"""What must hold for every table: order, shift, scale and names change only what they should."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isorun.analysis.mixed import deviance, products
from isorun.analysis.mixed.design import design_of
from isorun.analysis.mixed.deviance import Objective
from isorun.analysis.mixed.fit import fit_problem, prepare, refit
from isorun.analysis.mixed.formula import parse_formula
from isorun.analysis.mixed.model import mixed_model
from isorun.analysis.samples import adjusted
from isorun.errors import InputError

FORMULA = "y ~ a + x + (1|g) + (1|h)"


def simulated(seed, *, rows=60, spread=(1.0, 0.5), noise=1.0):
    rng = np.random.default_rng(seed)
    a, g, h = rng.integers(0, 3, rows), rng.integers(0, 7, rows), rng.integers(0, 4, rows)
    x = rng.normal(size=rows)
    y = a + 0.5 * x + rng.normal(size=7)[g] * spread[0] + rng.normal(size=4)[h] * spread[1]
    text = {"a": np.array(list("uvw"))[a], "g": np.array(list("abcdefg"))[g], "h": np.array(list("ABCD"))[h]}
    return {"y": y + noise * rng.normal(size=rows), "x": x, **text}


def numbers(result):
    rows = [(row.estimate, row.se, row.df_satterthwaite, row.df_kenward_roger) for row in result.fixed]
    return np.array(rows)


seeds = st.integers(0, 10_000)


@settings(deadline=None, max_examples=20)
@given(seeds)
def test_the_order_of_rows_changes_nothing(seed):
    data = simulated(seed)
    order = np.random.default_rng(seed).permutation(60)
    first, second = mixed_model(data, FORMULA), mixed_model({k: v[order] for k, v in data.items()}, FORMULA)
    np.testing.assert_allclose(numbers(first), numbers(second), rtol=2e-5)
    assert first.loglik_reml == pytest.approx(second.loglik_reml, abs=1e-8)
    assert first.singular == second.singular


@settings(deadline=None, max_examples=20)
@given(seeds, st.floats(-1e6, 1e6), st.floats(1e-3, 1e3))
def test_shift_and_scale_of_the_response_change_no_test(seed, shift, scale):
    data = simulated(seed)
    moved = {**data, "y": shift + scale * data["y"]}
    first, second = mixed_model(data, FORMULA), mixed_model(moved, FORMULA)
    np.testing.assert_allclose(
        [row.sd * scale for row in first.random], [row.sd for row in second.random], rtol=1e-3, atol=1e-4 * scale
    )
    np.testing.assert_allclose([row.p for row in first.differences], [row.p for row in second.differences], rtol=1e-3)
    np.testing.assert_allclose([row.lrt for row in first.ranova], [row.lrt for row in second.ranova], atol=1e-4)


@settings(deadline=None, max_examples=15)
@given(seeds)
def test_the_reference_level_does_not_change_differences(seed):
    data = simulated(seed)
    renamed = {**data, "a": np.array([{"u": "z", "v": "v", "w": "w"}[level] for level in data["a"]])}
    first, second = mixed_model(data, FORMULA), mixed_model(renamed, FORMULA)
    forward = {(row.a, row.b): row for row in first.differences}
    backward = {(row.a, row.b): row for row in second.differences}
    assert forward["u", "v"].estimate == pytest.approx(-backward["v", "z"].estimate, rel=1e-5)
    assert forward["u", "v"].lower == pytest.approx(-backward["v", "z"].upper, rel=1e-4, abs=1e-7)
    assert forward["u", "v"].p == pytest.approx(backward["v", "z"].p, rel=1e-4)


@settings(deadline=None, max_examples=25)
@given(seeds, st.lists(st.floats(0, 5), min_size=2, max_size=2), st.booleans())
def test_the_derivatives_are_those_of_the_deviance(seed, ratios, reml):
    target = Objective(prepare(simulated(seed), FORMULA).data, reml)
    at = np.array(ratios)

    def deviance(place):
        point = target.at(place)
        assert point is not None
        return target.value(point)

    def gradient(place):
        return target.derivatives(target.at(place))[0]

    slope, curvature = target.derivatives(target.at(at))
    for place in range(2):
        step = np.zeros(2)
        step[place] = 1e-5
        low = at + (step if at[place] < 1e-4 else 0.0)
        ahead, behind = low + step, low - step
        assert (deviance(ahead) - deviance(behind)) / 2e-5 == pytest.approx(gradient(low)[place], rel=1e-4, abs=1e-4)
        bend = (gradient(ahead) - gradient(behind)) / 2e-5
        np.testing.assert_allclose(target.derivatives(target.at(low))[1][place], bend, rtol=1e-3, atol=1e-3)
    assert np.allclose(curvature, curvature.T)
    assert np.isfinite(slope).all()


@settings(deadline=None, max_examples=40)
@given(seeds, st.floats(0, 2), st.floats(0, 2), st.booleans())
def test_no_other_variances_have_a_lower_deviance(seed, first, second, reml):
    problem = prepare(simulated(seed, spread=(first, second)), FORMULA)
    fit = fit_problem(problem, reml=reml)
    best = fit.objective.value(fit.point)
    slope, _ = fit.objective.derivatives(fit.point)
    assert (slope[fit.ratios == 0.0] > -1e-6).all()
    assert np.abs(slope * np.sqrt(fit.ratios)).max() < 1e-3
    for trial in np.random.default_rng(seed).exponential(1.0, size=(25, 2)) ** 2:
        for other in (trial, trial * [0, 1], trial * [1, 0], fit.ratios * (1 + 0.01 * (trial - 1))):
            point = fit.objective.at(np.maximum(other, 0.0))
            assert fit.objective.value(point) >= best - 1e-8


@settings(deadline=None, max_examples=60)
@given(seeds, st.lists(st.floats(-1, 1), min_size=3, max_size=3))
def test_every_start_ends_at_the_same_boundary_or_higher(seed, magnitudes):
    """Nested and crossed terms together make the deviance hard; a zero must never be kept where it falls from zero."""
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(20, 60))
    g, h = rng.integers(0, 5, rows), rng.integers(0, 4, rows)
    sd = 10.0 ** np.array(magnitudes)
    y = sd[0] * rng.normal(size=5)[g] + sd[1] * rng.normal(size=4)[h] + sd[2] * rng.normal(size=rows)
    problem = prepare({"y": y, "g": g, "h": h}, "y ~ 1 + (1|g) + (1|h) + (1|g:h)")
    fit = fit_problem(problem)
    slope, _ = fit.objective.derivatives(fit.point)
    assert (slope[fit.ratios == 0.0] > -1e-4).all()
    other = refit(fit.objective, problem, np.ones(3), np.ones(3, dtype=bool))
    assert fit.objective.value(fit.point) <= fit.objective.value(other.point) + 1e-6


def test_a_large_mean_costs_no_digits():
    data = simulated(3)
    far = {**data, "y": data["y"] + 1e9}
    first, second = mixed_model(data, FORMULA), mixed_model(far, FORMULA)
    assert first.residual_sd == pytest.approx(second.residual_sd, rel=1e-6)


@pytest.mark.parametrize("formula", [FORMULA, "y ~ a + (1|g) + (1|g:h)", "y ~ 1 + (1|h) + (1|g)"])
def test_the_sparse_and_approximate_way_of_large_models_ends_where_the_exact_one_does(monkeypatch, formula):
    data = simulated(5, rows=400)
    exact = mixed_model(data, formula)
    monkeypatch.setattr(products, "_DENSE_CELLS", 0)
    monkeypatch.setattr(deviance, "_EXACT_UP_TO", 0)
    large = mixed_model(data, formula)
    np.testing.assert_allclose(numbers(large), numbers(exact), rtol=1e-5)
    assert large.loglik_reml == pytest.approx(exact.loglik_reml, abs=1e-8)


def test_kenward_and_rogers_f_test_exists_at_exactly_two_degrees_of_freedom():
    # 2 x 3 cells of one factor's interaction with the other: R's pbkrtest gives 2 and 2 as well.
    rng = np.random.default_rng(2)
    a, s = np.repeat(["p", "q"], 15), np.tile(np.repeat(["s", "t", "u"], 5), 2)
    y = rng.normal(size=30) + 2.0 * rng.normal(size=6)[np.repeat(np.arange(6), 5)]
    rows = mixed_model({"y": y, "a": a, "s": s}, "y ~ a + s + (1|a:s)", ddf="kenward-roger").anova
    assert [(row.num_df, pytest.approx(row.den_df)) for row in rows] == [(1, 2.0), (2, 2.0)]
    assert all(0.0 < row.p < 1.0 for row in rows)


def test_too_many_levels_for_the_memory_are_refused(monkeypatch):
    monkeypatch.setattr(products, "_MOST_REST_LEVELS", 3)
    with pytest.raises(InputError, match="too many levels"):
        prepare(simulated(1), FORMULA)


def test_the_json_has_the_documented_keys_and_is_json():
    result = mixed_model(simulated(2), FORMULA)
    plain = json.loads(json.dumps(result.to_json(), allow_nan=False))
    assert list(plain) == [
        "loglik_reml", "loglik_ml", "aic", "fixed", "random", "residual_sd", "singular", "ranova", "anova",
        "differences", "means", "correlations", "interactions", "notes", "warnings",
    ]  # fmt: skip
    assert list(plain["fixed"][0]) == [
        "name", "estimate", "se", "t", "df_satterthwaite", "p_satterthwaite", "df_kenward_roger", "p_kenward_roger",
    ]  # fmt: skip
    assert list(plain["random"][0]) == ["group", "variance", "sd", "effect"]
    assert list(plain["means"][0]) == ["label", "estimate", "se", "df", "lower", "upper"]
    assert list(plain["ranova"][0]) == ["term", "lrt", "df", "p"]
    assert list(plain["anova"][0]) == ["term", "sum_sq", "mean_sq", "num_df", "den_df", "f", "p"]
    assert list(plain["differences"][0]) == ["a", "b", "estimate", "se", "lower", "upper", "p", "p_adjusted"]


def test_differences_of_several_factors_name_the_factor_in_json():
    result = mixed_model(simulated(2), "y ~ a + h + (1|g)")
    labels = {row["a"] for row in result.to_json()["differences"]}
    assert labels == {"a=u", "a=v", "h=A", "h=B", "h=C"}
    only = mixed_model(simulated(2), "y ~ a + h + (1|g)", differences=["a"])
    assert {row["a"] for row in only.to_json()["differences"]} == {"u", "v"}


def test_the_boundarys_p_is_half_of_chi_squares():
    row = mixed_model(simulated(2), FORMULA).ranova[0]
    assert row.p_boundary == row.p / 2


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_adjusted_p_are_never_smaller_and_keep_their_order(values):
    p = np.array(values)
    for method in ("holm", "bonferroni", "benjamini-hochberg", "none"):
        out = adjusted(p, method)
        assert (out >= p).all()
        assert (out <= 1.0).all()
        assert (np.diff(out[np.argsort(p, kind="stable")]) >= 0).all()


def test_adjustments_are_those_of_rs_p_adjust():
    p = np.array([0.01, 0.04, 0.03, 0.5, np.nan])
    np.testing.assert_allclose(adjusted(p, "holm"), [0.04, 0.09, 0.09, 0.5, np.nan])
    np.testing.assert_allclose(adjusted(p, "benjamini-hochberg"), [0.04, 0.16 / 3, 0.16 / 3, 0.5, np.nan])
    np.testing.assert_allclose(adjusted(p, "bonferroni"), [0.04, 0.16, 0.12, 1.0, np.nan])


def test_interactions_without_their_margins_are_coded_as_in_r():
    data = simulated(4)
    table = prepare(data, "y ~ a + a:h + (1|g)").table
    design = design_of(parse_formula("y ~ a + a:h + (1|g)"), table.variables, 60)
    assert design.names[:4] == ("(Intercept)", "av", "aw", "au:hB")
    np.testing.assert_allclose(design.basis.T @ design.basis, np.eye(design.rank), atol=1e-12)


def test_booleans_and_numbers_as_objects_are_read():
    data = simulated(6)
    flags = {**data, "b": data["x"] > 0, "y": np.array(data["y"].tolist(), dtype=object)}
    assert "bTrue" in [row.name for row in mixed_model(flags, "y ~ b + (1|g)").fixed]
