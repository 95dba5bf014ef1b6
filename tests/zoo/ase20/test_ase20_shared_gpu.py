"""Times of runs that shared a GPU, and the images that runs say they had."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from ase20_records import record_of, records_of

from isorun.study.cells import Level, cells_of
from isorun.study.records import RunState
from isorun.zoo.paper import Request
from isorun.zoo.studies.ase20.measured import gpu_runs_at_once
from isorun.zoo.studies.ase20.paper import Ase20

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
GPU = {"requested": {}, "effective": {"gpu": {"driver": "580", "devices": ["NVIDIA H200"]}}}
CPU_BESIDE_A_GPU = {"requested": {}, "effective": {"gpu": {"driver": "580"}}}
NAME = ("ase20-cpu-lenet4", "LeNet4", Level.FIXED_SEED)


@pytest.fixture(autouse=True)
def no_data(made_data_folder):
    """Presenting needs no data."""


def request_in(folder, runs):
    return Request("cpu", folder, only=("lenet4",), runs=runs, recorded=True)


def runs_at(request, begins, *, seconds=10.0, environment=GPU, level=Level.FIXED_SEED):
    """Runs that begin so many seconds after the first, by the name of their study; their times grow run by run."""
    (study,) = Ase20().studies(request)
    cells = [cell for cell in cells_of(study) if cell.level is level]
    records = [
        replace(
            record_of(cell, 0.9, seconds=1.0 + place),
            started_at=(BEGIN + timedelta(seconds=begin)).isoformat(timespec="milliseconds"),
            wall_seconds=seconds,
            environment=environment,
        )
        for place, (cell, begin) in enumerate(zip(cells, begins, strict=False))
    ]
    return {study.name: records}


@pytest.mark.parametrize(
    ("begins", "most"),
    [
        ((0, 10, 20), 1),
        ((0, 9.95, 19.9), 1),
        ((0, 5, 10), 2),
        ((0, 1, 2), 3),
        ((0, 0.5, 100), 2),
    ],
)
def test_runs_that_went_on_at_the_same_moment_are_counted(begins, most, tmp_path):
    assert gpu_runs_at_once(runs_at(request_in(tmp_path, 3), begins)) == {NAME: most}


def test_a_long_run_beside_short_ones_after_each_other_makes_two(tmp_path):
    records = runs_at(request_in(tmp_path, 3), (0, 1, 5), seconds=3.0)
    records[NAME[0]][0] = replace(records[NAME[0]][0], wall_seconds=20.0)
    assert gpu_runs_at_once(records) == {NAME: 2}


def test_runs_of_different_studies_share_too(tmp_path):
    first = runs_at(request_in(tmp_path, 1), (0,))
    second = {"another": first[NAME[0]]}
    assert gpu_runs_at_once(first | second)[NAME] == 2


@pytest.mark.parametrize("environment", [CPU_BESIDE_A_GPU, {"requested": {}, "effective": {}}, {}])
def test_runs_on_cpus_share_no_gpu(environment, tmp_path):
    request = request_in(tmp_path, 5)
    records = runs_at(request, (0,) * 5, environment=environment)
    assert gpu_runs_at_once(records) == {}
    shown = Ase20().present(request, records)
    assert finding(shown, "4b")["seen"] is True
    assert not [item for item in shown.warnings if item.code == "times-shared"]


def test_a_failed_run_takes_the_gpu_from_others_but_has_no_times(tmp_path):
    records = runs_at(request_in(tmp_path, 2), (0, 0))
    records[NAME[0]][1] = replace(records[NAME[0]][1], state=RunState.FAILED)
    assert gpu_runs_at_once(records) == {NAME: 2}


def finding(shown, name):
    return next(item for item in shown.numbers["findings"] if item["name"] == name)


def test_times_of_runs_that_shared_a_gpu_are_shown_warned_of_and_not_judged(tmp_path):
    request = request_in(tmp_path, 5)
    shown = Ase20().present(request, runs_at(request, (0, 1, 2, 3, 4)))
    assert finding(shown, "4b") == finding(shown, "4b") | {
        "ours": "up to 400.0 % (LeNet4, best-loss; 5 runs shared a GPU)",
        "seen": None,
    }
    (warning,) = [item for item in shown.warnings if item.code == "times-shared"]
    assert "up to 5 runs shared a GPU" in warning.message
    assert "isorun reproduce ase20 --scale cpu -j 1" in warning.next_step
    tables = {item.name: item for item in shown.tables}
    assert all(any("shared a GPU" in note for note in tables[name].notes) for name in ("findings", "table-3"))
    assert "Time to convergence" not in " ".join(shown.verdict)


def test_times_are_judged_by_the_runs_that_were_alone(tmp_path):
    request = Request("cpu", tmp_path, only=("lenet4", "lenet5"), runs=5, recorded=True)
    lenet4, lenet5 = Ase20().studies(request)
    shared = runs_at(request_in(tmp_path, 5), (0, 1, 2, 3, 4))
    alone = records_of(lenet5, {("LeNet5", Level.FIXED_SEED): (0.9, 0.8, 0.7, 0.6, 0.5)}, seconds=2.0)
    shown = Ase20().present(request, {**shared, lenet5.name: alone})
    assert lenet4.name in shared
    assert finding(shown, "4b")["ours"] == "up to 0.0 % (LeNet5, best-loss)"
    assert finding(shown, "4b")["seen"] is False
    (warning,) = [item for item in shown.warnings if item.code == "times-shared"]
    assert warning.groups == ("LeNet4 at level fixed-seed",)


def images_in_table_1(shown):
    table = next(item for item in shown.tables if item.name == "table-1")
    return table.rows[0][3:5]


@pytest.mark.parametrize(
    ("counts", "cells"),
    [
        ([(512, 150, 50)] * 2, ("512", "150 + 50")),
        ([(60_000, 7_500, 2_500), (512, 7_500, 2_500)], ("512 or 60,000", "7,500 + 2,500")),
        # recorded before the training counted its images: as many as the command asked for
        ([None, None], ("6,000", "4,000")),
        ([None, (512, 150, 50)], ("512", "150 + 50")),
    ],
)
def test_table_1_has_the_images_that_the_runs_recorded(counts, cells, tmp_path):
    request = request_in(tmp_path, 2)
    ((name, records),) = runs_at(request, (0, 0)).items()
    kinds = ("train_images", "validation_images", "test_images")
    counted = [
        replace(record, results=dict(zip(kinds, map(float, images or ()), strict=False)))
        for record, images in zip(records, counts, strict=True)
    ]
    assert images_in_table_1(Ase20().present(request, {name: counted})) == cells
