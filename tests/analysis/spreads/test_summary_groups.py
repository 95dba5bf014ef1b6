from __future__ import annotations

import json
from random import Random

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from isorun.analysis.spreads import interquartile_mean, summarize
from isorun.errors import InputError

KEYS = ["group", "n", "mean", "sd", "sd_ci90", "median", "iqm", "min", "max", "max_diff", "rel_sd", "rel_max_diff"]
values = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30)


def test_the_keys_are_the_documented_ones_in_their_order():
    summary = summarize({"model": ["a"], "v": [1.0]}, value="v", by="model")[0]
    assert list(summary.to_json()) == [*KEYS, "dropped", "units", "unit", "warnings"]
    json.dumps(summary.to_json(), allow_nan=False)


def test_the_numbers_are_those_of_numpy_and_scipy():
    runs = np.random.default_rng(1).normal(0.9, 0.02, 16)
    summary = summarize({"v": runs}, value="v")[0]
    assert summary.mean == pytest.approx(runs.mean())
    assert summary.sd == pytest.approx(runs.std(ddof=1))
    assert summary.median == pytest.approx(np.median(runs))
    assert summary.iqm == pytest.approx(stats.trim_mean(runs, 0.25))
    assert summary.rel_sd == pytest.approx(runs.std(ddof=1) / runs.mean())
    assert summary.max_diff == pytest.approx(np.ptp(runs))
    assert summary.rel_max_diff == pytest.approx(np.ptp(runs) / runs.min())
    expected = runs.std(ddof=1) * np.sqrt(15 / stats.chi2.ppf([0.95, 0.05], 15))
    assert summary.sd_ci90 == pytest.approx(tuple(expected))


def test_sixteen_runs_with_sd_2_6_have_the_papers_interval():
    """Pham et al. (ASE 2020), table 2, print 2.6 (2.0-3.8), rounded; an sd of 2.62 gives it."""
    runs = np.random.default_rng(2).normal(size=16)
    runs = 90 + 2.62 * (runs - runs.mean()) / runs.std(ddof=1)
    lower, upper = summarize({"v": runs}, value="v")[0].sd_ci90
    assert (round(lower, 1), round(upper, 1)) == (2.0, 3.8)


def test_groups_are_named_by_column_and_label_and_several_columns_make_them():
    table = {"model": ["a", "a", "b"], "lr": [0.1, 0.1, 0.2], "v": [1.0, 3.0, 5.0]}
    summaries = summarize(table, value="v", by="model,lr")
    assert [dict(one.group) for one in summaries] == [{"model": "a", "lr": "0.1"}, {"model": "b", "lr": "0.2"}]
    assert [one.n for one in summaries] == [2, 1]
    assert summarize(table, value="v", by=["model"]) == summarize(table, value="v", by="model")


def test_one_run_has_no_spread_rather_than_a_spread_of_zero():
    one = summarize({"v": [2.0]}, value="v")[0]
    assert (one.n, one.mean, one.sd, one.sd_ci90, one.rel_sd) == (1, 2.0, None, None, None)


def test_constant_and_zero_values_give_no_nan():
    constant = summarize({"v": [0.0, 0.0, 0.0]}, value="v")[0]
    assert (constant.sd, constant.max_diff, constant.rel_sd, constant.rel_max_diff) == (0.0, 0.0, None, None)
    json.dumps(constant.to_json(), allow_nan=False)


def test_dropped_values_are_counted():
    summary = summarize({"v": [1.0, float("nan"), 3.0]}, value="v", drop_missing=True)[0]
    assert (summary.n, summary.dropped) == (2, 1)
    with pytest.raises(InputError, match="no finite value"):
        summarize({"v": [float("nan")]}, value="v", drop_missing=True)


@given(values, st.floats(-1e3, 1e3))
@settings(deadline=None)
def test_adding_a_constant_changes_no_spread(runs, constant):
    before = summarize({"v": runs}, value="v")[0]
    after = summarize({"v": np.array(runs) + constant}, value="v")[0]
    assert after.max_diff == pytest.approx(before.max_diff, abs=1e-6)
    if before.sd is not None:
        assert after.sd == pytest.approx(before.sd, abs=1e-6)


@given(values, st.randoms(use_true_random=False))
@example(
    runs=[1.1125369292536007e-308, 1.1125369292536007e-308, 2.2250738585e-313, 2.2250738585e-313], random=Random(1)
)
@example(runs=[5e-324, 1e-323, 0.0, 5e-324], random=Random(1))
@settings(deadline=None)
def test_the_order_of_rows_changes_nothing(runs, random):
    shuffled = random.sample(runs, len(runs))
    before, after = (summarize({"v": order}, value="v")[0].to_json() for order in (runs, shuffled))
    for key in ("n", "median", "min", "max"):
        assert before[key] == after[key]
    assert after["mean"] == pytest.approx(before["mean"], rel=1e-9, abs=1e-9)
    assert after["iqm"] == pytest.approx(before["iqm"], rel=1e-9, abs=1e-9)


@given(values)
@settings(deadline=None)
def test_the_interquartile_mean_is_scipys_trimmed_mean(runs):
    assert interquartile_mean(np.array(runs)) == pytest.approx(stats.trim_mean(runs, 0.25), abs=1e-9)


def test_what_is_to_be_known_of_all_groups_is_said_once():
    models = ["a"] * 3 + ["b"] * 6
    found = summarize(
        {"model": models, "set": ["x"] * 9, "v": [1.0, 2.0, float("nan"), 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]},
        value="v",
        by=("model", "set"),
        drop_missing=True,
    )
    told = {condition.code: condition for condition in found.all_conditions}
    assert told["few-runs"].message == "1 group with fewer than 5 runs: the spread is hardly known"
    assert told["few-runs"].groups == ("a",)
    assert told["not-finite"].message == "1 value not finite, left out as asked"
    assert len(told) == len(found.all_conditions)
