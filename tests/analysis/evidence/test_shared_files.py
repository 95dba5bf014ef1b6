"""Runs that meet in a file are found from what their records say of it; those that keep to themselves are not."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from isorun.analysis.evidence.shared_files import shared_file_conditions, shared_files
from isorun.study.records import RunState
from record_builder import make_cell, make_record

BEGAN = 1_800_000_000.0
TRAINED = {"weights.final": "5" * 64}


def run(number, begin, seconds=10.0, *, host="here", isolated=False, attempt=1, cell=None, **files):
    """A run that began so many seconds after the others' time zero. files: found, wrote, read by name, same clock."""
    told = {
        name.replace("_", "."): {
            "found": None if found is None else BEGAN + found,
            "wrote": [BEGAN + moment for moment in wrote],
            "read": [
                [BEGAN + when, BEGAN + of, None if own is None else BEGAN + own]
                for when, of, own in (read[0] if read else ())
            ],
        }
        for name, (found, wrote, *read) in files.items()
    }
    return make_record(
        cell or make_cell(repeat=number),
        attempt=attempt,
        started_at=datetime.fromtimestamp(BEGAN + begin, UTC).isoformat(),
        wall_seconds=seconds,
        where={"host": host},
        environment={
            "requested": {"isolated": {}} if isolated else {},
            "effective": {},
            **({"files": told} if told else {}),
        },
    )


def codes(*records):
    return [condition.code for condition in shared_file_conditions(records)]


def test_runs_one_after_the_other_that_overwrite_one_file():
    first = run(0, 0)  # it made the file, and says nothing of it
    second, third = run(1, 20, ckpt_pt=(9.0, [29.0])), run(2, 40, ckpt_pt=(29.0, [49.0]))
    found = shared_files([first, second, third])
    assert found.written == {"ckpt.pt": {first.run_id, second.run_id, third.run_id}}
    assert found.read == {}
    (condition,) = shared_file_conditions([first, second, third])
    assert condition.code == "shared-write"
    assert "3 runs of 3 wrote to the same file (ckpt.pt)" in condition.message
    assert "{run_dir}" in condition.next_step
    assert "--isolate" in condition.next_step
    assert not condition.voids


def test_what_a_run_says_that_it_wrote_is_of_its_time():
    first = run(0, 0, ckpt_pt=(-500.0, [12.0]))  # it took 10 seconds, and its record has an early start
    second = run(1, 20, ckpt_pt=(12.0, [29.0]))
    assert shared_files([first, second]).written == {"ckpt.pt": {first.run_id, second.run_id}}


def test_a_file_of_nobody_among_them_is_no_ones_concern():
    assert codes(run(0, 0, ckpt_pt=(-500.0, [5.0])), run(1, 20, other_pt=(-500.0, [25.0]))) == []


def test_a_run_that_goes_on_from_anothers_checkpoint_is_told_first():
    second = run(1, 20, ckpt_pt=(9.0, [29.0], [(20.5, 9.0, None)]))
    conditions = list(shared_file_conditions([run(0, 0), second]))
    assert [one.code for one in conditions] == ["read-of-another-run", "shared-write"]
    assert conditions[0].voids
    assert "1 run of 2 read back what another run wrote (ckpt.pt)" in conditions[0].message


def test_a_list_of_results_that_every_run_extends_voids_nothing():
    second = run(1, 20, results_json=(9.0, [29.0], [(28.0, 9.0, None)]))
    first, *_ = shared_file_conditions([run(0, 0), second])
    assert (first.code, first.voids) == ("read-of-another-run", False)


def test_side_by_side_a_run_reads_what_the_other_wrote_after_it():
    one = run(0, 0, ckpt_pt=(None, [5.0], [(9.0, 7.0, 5.0)]))
    other = run(1, 1, ckpt_pt=(5.0, [7.0], [(9.5, 7.0, 7.0)]))
    assert shared_files([one, other]).read == {"ckpt.pt": {one.run_id}}


def test_reading_back_ones_own_is_as_it_should_be():
    one = run(0, 0, ckpt_pt=(None, [5.0], [(6.0, 5.0, 5.0)]))
    assert codes(one, run(1, 20, other_pt=(None, [25.0], [(26.0, 25.0, 25.0)]))) == []


@pytest.mark.parametrize(
    "second",
    [
        run(1, 20, host="there", ckpt_pt=(9.0, [29.0])),
        run(1, 20, isolated=True, ckpt_pt=(9.0, [29.0])),
        run(0, 20, attempt=2, ckpt_pt=(9.0, [29.0], [(21.0, 9.0, None)])),
    ],
    ids=["another machine", "a folder of its own", "another attempt at the same cell"],
)
def test_runs_that_cannot_meet_do_not(second):
    assert codes(run(0, 0), second) == []


@pytest.mark.parametrize(
    "files", [None, 3, {"a": None}, {"a": {"found": "x"}}, {"a": {"found": 1, "wrote": 2, "read": 3}}]
)
def test_what_is_no_description_of_files_is_none(files):
    odd = make_record(make_cell(repeat=1), environment={"requested": {}, "effective": {}, "files": files})
    assert codes(run(0, 0), odd) == []


def test_a_copy_of_the_folder_does_not_hold_what_lies_outside_it():
    """Both runs worked in copies, and met in a file elsewhere: told as before, with a next step that helps."""
    first = run(0, 0, isolated=True)
    second = run(1, 20, isolated=True, **{"/scratch/ckpt_pt": (9.0, [29.0])})
    (condition,) = shared_file_conditions([first, second])
    assert condition.code == "shared-write"
    assert "/scratch/ckpt.pt" in condition.message
    assert "does not reach files outside it" in condition.next_step
    assert "below {run_dir}" in condition.next_step
    assert codes(first, run(1, 20, ckpt_pt=(9.0, [29.0]))) == []  # in the folder: the first wrote to its copy


def test_of_a_database_that_runs_share_more_is_left_than_the_last_ones():
    (condition,) = shared_file_conditions([run(0, 0), run(1, 20, study_db=(9.0, [29.0]))])
    assert condition.code == "shared-write"
    assert "(study.db): what a run finds there may be another's" in condition.message


def test_a_run_that_trained_nothing_and_loaded_what_another_trained_is_no_independent_training():
    first = replace(run(0, 0), digests=TRAINED)  # it made net.pt at its end
    loads = [run(number, 20 * number, net_pt=(None, [], [(20 * number + 1, 9.0, None)])) for number in (1, 2)]
    (condition,) = shared_file_conditions([first, *loads])
    assert condition.code == "read-of-another-run"
    assert "2 runs of 3 read back what another run wrote (net.pt)" in condition.message
    assert condition.voids


@pytest.mark.parametrize(
    ("name", "made", "changes"),
    [
        ("net_pt", 9.0, {"digests": TRAINED}),  # it trained itself, from a model that may have been fetched once
        ("net_pt", -500.0, {}),  # the model was there before all runs
        ("net_pt", 9.0, {"state": RunState.FAILED}),  # it may have failed before it trained
        ("rows_csv", 9.0, {}),  # data that were made once
    ],
)
def test_what_else_is_only_read_is_no_model_of_another_run(name, made, changes):
    second = replace(run(1, 20, **{name: (None, [], [(21.0, made, None)])}), **changes)
    assert codes(replace(run(0, 0), digests=TRAINED), second) == []
