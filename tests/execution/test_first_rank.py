"""What the first rank printed, where all ranks print to one output."""

import sys
import textwrap
from collections import Counter

import pytest

import isorun
from isorun.execution.first_rank import LaterRanks, of_first_rank
from isorun.sources import PrintedJobs
from isorun.study import Sources
from isorun.study.design import Study
from isorun.worker.printing import checksum


def first_of(folder, lines, *, later, whole=True, more=False):
    """What is found in lines; those that begin with `later` are of another rank (and do not begin so in the output)."""
    plain = [line.removeprefix(later) for line in lines]
    reading = PrintedJobs(Sources())
    for seconds, line in enumerate(plain):
        reading.feed(line, float(seconds))
    _, found = reading.finish(folder, 0.0, whole=True)
    (folder / "output.log").write_text("".join(f"{line}\n" for line in plain))
    counts = Counter(checksum(line.removeprefix(later)) for line in lines if line.startswith(later))
    told = LaterRanks(counts, more)
    return found, of_first_rank(found, told, folder / "output.log", Sources(), is_whole=whole)


IN_STEP = [
    "Epoch 1/2 - val_acc: 0.60",
    "1>Epoch 1/2 - val_acc: 0.75",
    "1>Epoch 2/2 - val_acc: 0.85",
    "Epoch 2/2 - val_acc: 0.70",
    "1>Epoch 2/2 - val_f1: 0.50",
]


def test_of_ranks_in_step_the_values_are_those_of_the_first_with_the_times_of_the_output(tmp_path):
    found, first = first_of(tmp_path, IN_STEP, later="1>")
    assert list(found.series["val_acc"].values) == [0.75, 0.70]
    series = first.series["val_acc"]
    assert (list(series.steps), list(series.values)) == ([1.0, 2.0], [0.60, 0.70])
    assert list(series.seconds) == list(found.series["val_acc"].seconds)
    assert ("ranks-printed", "several ranks printed val_acc; kept are the values of the first one") in [
        (note.code, note.message) for note in first.notes
    ]


def test_a_metric_that_a_later_rank_alone_printed_stays(tmp_path):
    _, first = first_of(tmp_path, IN_STEP, later="1>")
    assert list(first.series["val_f1"].values) == [0.50]
    assert "val_f1" in first.origins


def test_ranks_one_after_the_other_are_no_epochs_that_begin_again(tmp_path):
    lines = [f"{rank}Epoch {epoch}/2 - val_acc: 0.{epoch}{len(rank)}" for rank in ("", "1>") for epoch in (1, 2)]
    found, first = first_of(tmp_path, lines, later="1>")
    assert found.series["val_acc"].begins_again
    assert list(first.series["val_acc"].values) == [0.10, 0.20]
    assert "stdout.restart" not in {note.code for note in first.notes}


def test_a_line_that_every_rank_printed_is_the_first_one_s_too(tmp_path):
    lines = [f"{rank}Epoch {epoch}/2 - val_acc: 0.{epoch}" for epoch in (1, 2) for rank in ("", "1>", "1>")]
    _, first = first_of(tmp_path, lines, later="1>")
    assert list(first.series["val_acc"].values) == [0.1, 0.2]


@pytest.mark.parametrize("known", [{"whole": False}, {"more": True}])
def test_where_lines_are_missing_what_several_ranks_printed_is_left_out_and_said(tmp_path, known):
    _, first = first_of(tmp_path, IN_STEP, later="1>", **known)
    assert set(first.series) == {"val_f1"}
    [said] = [note.message for note in first.notes if note.code == "stdout.left-out"]
    assert said == "left out: val_acc: several ranks print it, and too much to tell them apart"


def test_a_run_of_two_ranks_has_the_values_of_the_first_one(tmp_path):
    (tmp_path / "train.py").write_text(
        textwrap.dedent("""
            import os

            rank = int(os.environ["RANK"])
            for epoch in (1, 2):
                print(f"Epoch {epoch}/2 - val_acc: {0.1 * epoch + 0.5 * rank:.2f}")
        """)
    )
    ranks = "; ".join(f"RANK={rank} {sys.executable} train.py" for rank in (1, 0, 2))
    study = Study("ranks", approaches={"two": ["sh", "-c", ranks]}, levels=["fixed-seed"], folder=tmp_path)
    [record] = isorun.run(study, store=tmp_path / "store").records
    assert list(record.series["val_acc"].values) == [0.1, 0.2]
    assert "ranks-printed" in {note.code for note in record.notes}
