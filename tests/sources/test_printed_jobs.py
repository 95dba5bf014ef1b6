"""The lines of a hydra sweep: each job is read by itself, and what cannot be told apart is not read."""

from pathlib import Path

import pytest

from isorun.sources import PrintedJobs
from isorun.study import Sources

IN_TURN = """[2026-11-16 15:23:21,192][HYDRA] Launching 2 jobs locally
[2026-11-16 15:23:21,201][HYDRA] \t#0 : lr=0.1
epoch 1 acc 0.800
epoch 2 acc 0.850
[2026-11-16 15:23:21,584][HYDRA] \t#1 : lr=0.2
epoch 1 acc 0.700
epoch 2 acc 0.750
"""
SIDE_BY_SIDE = """[2026-11-16 15:23:36,021][HYDRA] Joblib.Parallel(n_jobs=-1,backend=loky) is launching 2 jobs
[2026-11-16 15:23:36,021][HYDRA] Launching jobs, sweep output dir : multirun/2026-11-16/15-23-34
[2026-11-16 15:23:36,021][HYDRA] \t#0 : lr=0.1
[2026-11-16 15:23:36,021][HYDRA] \t#1 : lr=0.2
epoch 1 acc 0.700
epoch 1 acc 0.800
"""


def printed(text):
    reading = PrintedJobs(Sources())
    for number, line in enumerate(text.splitlines()):
        reading.feed(line, float(number))
    assert reading.error is None
    return reading.finish(Path(), 0.0, whole=True)[1]


def values(found):
    return {name: list(series.values) for name, series in found.series.items()}


@pytest.mark.parametrize(
    "text", [IN_TURN, IN_TURN.replace("[HYDRA]", "[\x1b[35mHYDRA\x1b[0m]")], ids=["plain", "coloured"]
)
def test_each_job_of_a_sweep_has_series_of_its_own(text):
    found = printed(text)
    assert values(found) == {"acc@lr=0.1": [0.8, 0.85], "acc@lr=0.2": [0.7, 0.75]}
    assert set(found.origins) == set(found.series)
    assert [(note.code, note.message) for note in found.notes] == [
        ("several-trainings", "2 trainings (lr=0.1, lr=0.2), each with metrics of its own")
    ]


def test_a_sweep_of_one_job_is_one_training():
    found = printed(IN_TURN.partition("[2026-11-16 15:23:21,584]")[0])
    assert (values(found), found.notes) == ({"acc": [0.8, 0.85]}, ())


def test_jobs_side_by_side_are_not_read():
    found = printed(SIDE_BY_SIDE)
    assert values(found) == {}
    assert "their lines cannot be told apart" in found.notes[0].message


def test_a_training_that_only_speaks_of_hydra_is_read_as_any_other():
    assert values(printed("HYDRA #1 : x\nepoch 1 acc 0.5\nHYDRA #2 : y\nepoch 2 acc 0.6\n")) == {"acc": [0.5, 0.6]}


@pytest.mark.parametrize(
    ("one", "other", "names"),
    [
        ("lr=0.1", "lr=0.1", ["lr=0.1", "lr=0.1#1"]),
        (f"data={'x' * 130} lr=0.1", f"data={'x' * 130} lr=0.2", [f"data={'x' * 115}#0", f"data={'x' * 115}#1"]),
    ],
    ids=["the same again", "longer than a name"],
)
def test_jobs_of_one_name_are_told_apart_by_their_numbers(one, other, names):
    found = printed(IN_TURN.replace("lr=0.1", one).replace("lr=0.2", other))
    assert values(found) == {f"acc@{names[0]}": [0.8, 0.85], f"acc@{names[1]}": [0.7, 0.75]}
