"""Reproducing a paper is running its studies and presenting their records: held with a paper made for the test."""

from types import MappingProxyType

import pytest

from isorun import plugins, reproducing, session
from isorun.errors import NothingRecorded, UsageError
from isorun.report import Column, Table
from isorun.study.design import Study
from isorun.study.records import RunState
from isorun.testing.instant_executor import Computed, InstantExecutor
from isorun.zoo.paper import SCALES, AbstractPaper, Exhibit, Omission, Presentation, Request, Scale

TRAIN = """
import isorun, sys
if sys.argv[1] == "1":
    raise ValueError("no such luck")
isorun.result(accuracy=0.5)
"""


class Tiny(AbstractPaper):
    name = "tiny"
    title = "A tiny paper"
    reference = "nobody, never"
    exhibits = (Exhibit("Table 1", "how many runs there were"),)
    not_attempted = (Omission("Figure 1", "a drawing."),)
    networks = ()
    data = ()
    parts = ("works", "fails")
    scales = MappingProxyType({name: Scale(name, "nothing") for name in SCALES})

    def studies(self, request):
        parts = request.only or ("works",)
        return tuple(
            Study(
                f"tiny-{part}",
                approaches={part: ["python", "-c", TRAIN, "0" if part == "works" else "1"]},
                levels=["fixed-seed"],
                repeats=request.runs or 2,
                folder=request.folder,
            )
            for part in parts
        )

    def present(self, request, records):
        rows = tuple((name, str(sum(r.state is RunState.FINISHED for r in found))) for name, found in records.items())
        table = Table("one", "Table 1", (Column("study", key=True), Column("runs")), rows)
        return Presentation(("It ran.",), (table,), scaled_down=("all of it",), numbers={"rows": len(rows)})


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    monkeypatch.setattr(reproducing, "paper", lambda _: Tiny())


def test_what_is_missing_is_run_and_presented_and_never_run_twice(tmp_path):
    first = reproducing.reproduce("tiny", folder=tmp_path)
    assert (first.finished, first.failed, first.stopped) == (2, 0, "")
    assert first.presentation.tables[0].rows == (("tiny-works", "2"),)
    more = reproducing.reproduce("tiny", folder=tmp_path, runs=3)
    assert more.presentation.tables[0].rows == (("tiny-works", "3"),)
    assert sorted(path.stem for path in (tmp_path / ".isorun" / "studies").glob("*.json")) == ["tiny-works"]


def test_all_studies_of_a_paper_share_one_store_and_one_executor(tmp_path, monkeypatch):
    opened = []
    for name in ("open_store", "open_executor"):
        original = getattr(session, name)
        monkeypatch.setattr(session, name, _counted(opened, name, original))
    done = reproducing.reproduce("tiny", folder=tmp_path, only=("works", "fails"), runs=1)
    assert (done.finished, done.failed) == (1, 1)
    assert opened == ["open_store", "open_executor"]


def _counted(opened, name, original):
    def counted(*arguments, **options):
        opened.append(name)
        return original(*arguments, **options)

    return counted


def test_what_there_is_to_know_about_the_runs_is_told_with_the_paper(tmp_path):
    reproducing.reproduce("tiny", folder=tmp_path)
    (tmp_path / ".isorun" / "inbox" / "bbbbbbbbbbbbbbbb-1.json").write_text("{")
    done = reproducing.reproduce("tiny", folder=tmp_path)
    assert [warning["code"] for warning in done.to_json()["warnings"]] == ["store-record-set-aside"]


def test_failed_runs_are_counted_and_warned_of(tmp_path):
    done = reproducing.reproduce("tiny", folder=tmp_path, only=("works", "fails"))
    assert (done.finished, done.failed) == (2, 2)
    assert [warning.code for warning in done.presentation.warnings] == ["failed-runs"]
    assert "2 runs did not finish" in done.presentation.warnings[0].message
    assert "ValueError: no such luck" in done.presentation.warnings[0].message
    assert done.stopped == "every run of tiny-fails failed"


def test_an_environment_that_cannot_be_had_is_told_with_the_resolvers_words():
    reason = "the packages of the environment 'torch' cannot be installed: no matching distribution found"
    lost = _record("a", 1, RunState.FAILED)
    lost.launch, lost.reason, lost.log_tail = "none", reason, "cannot be installed\n  found: no matching distribution"
    [warning] = reproducing._with_failures(Presentation(()), [lost, lost], "tiny").warnings
    assert reason in warning.message
    assert "registry" in warning.next_step


def test_a_run_that_failed_first_and_then_finished_is_no_failure():
    last = reproducing._last_records({"s": [_record("a", 1, RunState.FAILED), _record("a", 2, RunState.FINISHED)]})
    assert [record.state for record in last] == [RunState.FINISHED]


def test_studies_after_one_that_fails_whole_are_not_begun(tmp_path):
    done = reproducing.reproduce("tiny", folder=tmp_path, only=("fails", "works"))
    assert (done.finished, done.failed) == (0, 2)


def test_recorded_runs_are_presented_without_running(tmp_path):
    with pytest.raises(NothingRecorded, match="isorun reproduce tiny"):
        reproducing.reproduce("tiny", folder=tmp_path, run=False)
    reproducing.reproduce("tiny", folder=tmp_path)
    assert reproducing.reproduce("tiny", folder=tmp_path, run=False, runs=5).finished == 2


def test_json_has_the_tables_as_shown_and_where_the_runs_were_made(tmp_path):
    told = reproducing.reproduce("tiny", folder=tmp_path).to_json()
    assert told["tables"][0]["rows"] == [["tiny-works", "2"]]
    assert told["runs"] == {"finished": 2, "failed": 0, "stopped": ""}
    assert told["machines"][0]["runs"] == 2
    assert told["machines"][0]["python"]
    assert told["numbers"] == {"rows": 1}


def test_what_the_paper_does_not_have_is_refused_before_anything_runs(tmp_path):
    with pytest.raises(UsageError, match="works"):
        reproducing.studies_of("tiny", Request("smoke", tmp_path, only=("work",)))
    assert not list(tmp_path.iterdir())


def test_a_study_of_threads_gets_as_many_jobs_as_have_their_cpus(monkeypatch):
    monkeypatch.setattr(reproducing.os, "sched_getaffinity", lambda _: set(range(8)))

    def fitting(jobs, threads):
        study = Study("s", approaches={"a": "true"}, environments={"one": {"threads": 1}, "many": {"threads": threads}})
        return reproducing._fitting(jobs, study)

    assert (fitting(8, 1), fitting(8, 3), fitting(1, 3), fitting(8, 16)) == (8, 2, 1, 1)


def test_another_executor_is_not_measured_by_this_machine(tmp_path, monkeypatch):
    asked = []

    def open_executor(name, options):
        asked.append((name, options.jobs))
        return InstantExecutor(lambda _: Computed({"accuracy": 0.5}), options.jobs)

    monkeypatch.setattr(plugins, "load", lambda *_, **__: None)
    monkeypatch.setattr(session, "open_executor", open_executor)
    monkeypatch.setattr(reproducing, "gpu_is_visible", lambda: False)
    monkeypatch.setattr(reproducing.os, "sched_getaffinity", lambda _: {0})
    done = reproducing.reproduce("tiny", folder=tmp_path, device="cuda", executor="cluster", jobs=64)
    assert (done.finished, asked) == (2, [("cluster", 64)])


def test_a_gpu_that_is_not_there_is_said_once_before_anything_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(reproducing, "gpu_is_visible", lambda: False)
    with pytest.raises(UsageError, match="needs a GPU"):
        reproducing.reproduce("tiny", folder=tmp_path, device="cuda")
    assert not list(tmp_path.iterdir())


def _record(cell, attempt, state):
    class Cell:
        id = cell

    class Record:
        pass

    record = Record()
    record.cell, record.attempt, record.state = Cell(), attempt, state
    return record
