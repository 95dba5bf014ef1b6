"""Seconds count from the end of start-up, which has a column of its own."""

from dataclasses import replace

import pytest

from isorun.analysis.studies.study_result import analyse_study
from isorun.report import json_report
from isorun.report.run_tables import run_tables
from isorun.report.study_tables import time_tables
from isorun.study.cells import Level
from record_builder import make_cell, make_record, make_series, make_study


def analysed(*startups):
    """Runs of 10 s each that needed so many seconds to start; None: not known."""
    records = [
        make_record(make_cell(repeat=place), results={"acc": 0.5}, wall_seconds=10.0, startup_seconds=startup)
        for place, startup in enumerate(startups)
    ]
    return analyse_study(make_study(levels=(Level.DEFAULT,), repeats=len(startups)), records)


def cost_row(result):
    table = next(run_tables(result))
    return dict(zip([column.title for column in table.columns], table.rows[0], strict=True)), table.notes


def test_start_up_is_a_column_and_training_is_the_rest():
    row, notes = cost_row(analysed(2.0, 4.0))
    assert row["start-up"] == "3.00"
    assert row["mean"] == "7.00"
    assert not any("not known" in note for note in notes)


def test_old_records_have_no_start_up_and_say_so():
    row, notes = cost_row(analysed(None, None))
    assert row["start-up"] == "—"
    assert row["mean"] == "10.0"
    assert "Start-up of 2 runs is not known: the seconds of training hold it." in notes


def test_json_has_all_three_and_the_seconds_of_a_run_leave_start_up_out():
    report = json_report.to_json(analysed(2.0, 2.0))
    (group,) = report["groups"]
    means = [group["cost"][name]["mean"] for name in ("wall_seconds", "startup_seconds", "training_seconds")]
    assert means == [10.0, 2.0, 8.0]
    assert [run["seconds"] for run in group["selections"][0]["runs"]] == [8.0, 8.0]


def test_a_start_up_longer_than_the_run_is_never_a_negative_time():
    result = analysed(12.0)
    assert result.groups[0].cost.training_seconds.mean == pytest.approx(0.0)


def test_epochs_are_counted_and_their_note_says_so_where_a_training_counts_from_zero():
    series = {"val_acc": make_series([0.1, 0.5, 0.9])}
    series["val_acc"] = replace(series["val_acc"], steps=(0.0, 1.0, 2.0))
    records = [make_record(make_cell(repeat=place), series=series) for place in range(2)]
    result = analyse_study(make_study(levels=(Level.DEFAULT,), repeats=2, metrics={}), records)
    epochs = next(table for table in time_tables(result) if table.name == "epochs")
    assert "3" in epochs.rows[0]
    assert "epoch 9 of a training that counts from 0 is its tenth" in " ".join(epochs.notes)
    assert "As the training numbers them" not in " ".join(epochs.notes)
