"""Records are a sequence of runs, and a table with a row a run."""

import builtins
import math
from dataclasses import replace

import pytest

from isorun.analysis.studies.record_table import COLUMNS, Records
from isorun.errors import MissingExtra
from isorun.study.cells import Level
from isorun.study.records import RunState, Series
from record_builder import make_cell, make_record


def series(*values):
    steps = tuple(float(step) for step in range(len(values)))
    return Series(steps, steps, values)


@pytest.fixture
def records():
    first = make_record()
    logged = {"test_acc": series(0.5, 0.7), "seed": series(3.0), "val_loss": series()}
    other = replace(first, results={"test_acc": 0.9}, series=logged)
    failed = replace(first, state=RunState.FAILED, results={}, series={})
    return Records([other, failed])


def test_records_are_a_sequence(records):
    assert len(records) == 2
    assert records[1].state is RunState.FAILED
    assert isinstance(records[:1], Records)
    assert records == list(records)
    assert repr(records) == "<Records: 1 finished, 1 failed>"
    assert repr(Records()) == "<Records: none>"


def test_a_row_has_factors_state_seconds_settings_and_metrics(records):
    columns = records.to_columns()
    assert tuple(columns)[: len(COLUMNS)] == COLUMNS
    assert columns["state"] == ["finished", "failed"]
    assert columns["seconds"] == [records[0].wall_seconds] * 2
    assert columns["test_acc"] == [0.9, None]  # the final value goes before the last one logged
    assert columns["metric.seed"] == [3.0, None]
    assert columns["seed"] == [records[0].cell.seed] * 2
    assert "val_loss" not in columns
    settings = [f"config.{name}" for name in records[0].cell.config_values]
    assert [name for name in columns if name.startswith("config.")] == settings


def test_the_same_table_for_pandas_and_polars(records):
    frame, other = records.to_pandas(), records.to_polars()
    assert list(frame.columns) == list(other.columns) == list(records.to_columns())
    assert frame["test_acc"].iloc[0] == other["test_acc"][0] == 0.9
    assert math.isnan(frame["test_acc"].iloc[1])
    assert other["test_acc"][1] is None


def test_seeds_stay_whole_numbers_beside_runs_that_have_none():
    cells = [make_cell(Level.DEFAULT), make_cell(Level.FIXED_SEED), make_cell(Level.FIXED_SEED, seed=2**53 + 1)]
    frame = Records(map(make_record, cells)).to_pandas()
    assert frame["seed"].dtype == frame["repeat"].dtype == "Int64"
    assert frame["seed"].isna().tolist() == [True, False, False]
    assert frame["seed"].tolist()[1:] == [1, 2**53 + 1]


def test_no_run_is_an_empty_table():
    assert list(Records().to_pandas().columns) == list(COLUMNS)
    assert Records().to_polars().height == 0


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_a_missing_package_is_named_with_its_extra(records, package, monkeypatch):
    imported = builtins.__import__

    def without(name, *rest):
        if name == package:
            raise ImportError(name)
        return imported(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtra, match=r"isorun\[tables\]"):
        getattr(records, f"to_{package}")()
