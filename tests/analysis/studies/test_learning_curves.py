"""Curves of a group: the same quantiles as step by step, for series of any length."""

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isorun.analysis.studies.class_values import PickedRow
from isorun.analysis.studies.selection import BAND, best_place, learning_curves
from isorun.analysis.studies.study_result import analyse_study
from isorun.study.cells import cells_of
from isorun.study.records import Series
from record_builder import make_record, make_series, make_study

VALUES = st.floats(-1e3, 1e3) | st.sampled_from([float("nan"), float("inf"), 1e308, -1e308, 0.5])
RUNS = st.lists(
    st.lists(st.tuples(st.sampled_from([0.0, 1.0, 2.0, 2.5, 7.0]), VALUES), min_size=1, max_size=8),
    min_size=1,
    max_size=6,
)


def series(points):
    steps = tuple(step for step, _ in points)
    return Series(steps, steps, tuple(value for _, value in points))


def step_by_step(runs):
    by_step = {}
    for run in runs:
        for step, value in zip(run.steps, run.values, strict=True):
            if np.isfinite(value):
                by_step.setdefault(step, []).append(value)
    steps = sorted(step for step, values in by_step.items() if 2 * len(values) >= len(runs))
    with np.errstate(over="ignore", invalid="ignore"):
        return {step: np.percentile(by_step[step], (BAND[0], 50.0, BAND[1])).tolist() for step in steps}


@given(RUNS)
def test_curves_are_the_percentiles_of_each_step(points):
    runs = [series(one) for one in points]
    curves = learning_curves("acc", [make_record(series={"acc": run}) for run in runs])
    long_enough = [run for run in runs if len(set(run.steps)) > 1]
    if not long_enough:
        assert curves is None
        return
    expected = step_by_step(long_enough)
    assert curves.steps == tuple(expected)
    found = np.array([curves.low, curves.median, curves.high]).T
    np.testing.assert_allclose(found, np.array(list(expected.values())).reshape(-1, 3), rtol=1e-12)


@given(st.lists(st.lists(st.floats(-10, 10), min_size=5, max_size=5), min_size=1, max_size=6))
def test_runs_that_log_the_same_steps_give_exactly_the_same_numbers(rows):
    runs = [make_series(row) for row in rows]
    curves = learning_curves("acc", [make_record(series={"acc": run}) for run in runs])
    assert [list(band) for band in zip(curves.low, curves.median, curves.high, strict=True)] == [
        np.percentile(column, (BAND[0], 50.0, BAND[1])).tolist() for column in np.array(rows).T
    ]


@given(st.lists(VALUES, max_size=12), st.booleans())
def test_the_best_place_is_the_first_of_the_best(values, higher):
    usable = [place for place, value in enumerate(values) if not np.isnan(value)]
    sign = -1.0 if higher else 1.0
    expected = min(usable, key=lambda place: (sign * values[place], place), default=None)
    assert best_place(values, higher_is_better=higher) == expected


def test_the_last_value_at_a_step_counts():
    picked = PickedRow(Series((1.0, 2.0), (1.0, 2.0), (0.0, 0.0)), 0)
    assert picked.value_in(Series((0.0, 1.0, 1.0), (0.0, 1.0, 2.0), (5.0, 6.0, 7.0))) == 7.0
    assert picked.value_in(Series((0.0,), (0.0,), (5.0,))) is None


@pytest.mark.alone
@pytest.mark.parametrize("rows", [100_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_series_of_any_length_are_analysed_in_a_moment(rows):
    """No Python loop over points: by CPU time, since other work may share the machine."""
    steps = tuple(map(float, range(rows)))
    study = make_study(repeats=1)
    logged = Series(steps, steps, tuple(np.random.default_rng(1).random(rows).tolist()))
    records = [make_record(cell, series={"val_loss": logged, "test_acc": logged}) for cell in cells_of(study)[:1]]
    before = time.process_time()
    result = analyse_study(study, records)
    assert time.process_time() - before < 5.0 * rows / 1_000_000 + 0.5
    assert result.groups[0].selections[0].runs[0].selected.step == float(np.argmin(logged.values))
