"""How things stand: counted from claims and records, while others are at work."""

import json

import pytest

from isorun import workflow
from isorun.errors import NothingRecorded
from isorun.in_progress import status
from isorun.store import STUDIES
from isorun.store.folder import FolderStore
from isorun.study.cells import cells_of
from isorun.study.design import Study, changed
from isorun.study.records import RunState
from isorun.testing.memory_store import MemoryStore
from record_builder import make_record


@pytest.fixture
def store():
    with MemoryStore() as opened:
        yield opened


def test_a_whole_store_that_is_not_there_is_told_without_a_study(tmp_path):
    with pytest.raises(NothingRecorded, match="nothing has been recorded for any study"):
        status(store=tmp_path / "none")


def test_status_counts_what_is_finished_failed_running_and_missing(store):
    study = Study("s", approaches={"a": "python a.py"}, repeats=6)
    cells = cells_of(study)
    for cell in cells[:2]:
        store.finish(make_record(cell))
    store.finish(make_record(cells[2], state=RunState.FAILED))
    claim = store.claim(cells[3].id)
    told = status(study, store=store)
    assert (told.total, told.finished, told.failed, told.missing) == (6, 2, 1, 3)
    assert str(told).startswith("s: 2 of 6 finished, 1 running, 3 missing, 1 of them did not finish\n")
    (running,) = told.running
    assert (running.label, running.holder.attempt) == (cells[3].label, claim.attempt)
    whole = status(store=store)
    assert (whole.total, whole.finished, whole.failed, whole.missing) == (None, 2, 1, 0)
    assert json.loads(json.dumps(told.to_json()))["running"][0]["run"] == f"{cells[3].id}-1"


def test_a_whole_store_tells_of_the_cells_that_were_left_for_workers(store, tmp_path):
    first = Study("first", approaches={"a": "python a.py"}, repeats=5, folder=tmp_path)
    second = Study("second", approaches={"a": "python a.py", "b": "python b.py"}, repeats=5, folder=tmp_path)
    for study in (first, second):
        workflow.queue(study, store=store)
    cells = sorted(cells_of(second), key=lambda cell: cell.approach)
    store.finish(make_record(cells[0]))
    claim = store.claim(cells[1].id)
    store.documents(STUDIES).write("broken", {"folder": str(tmp_path), "approaches": 3})
    told = status(store=store)
    assert (told.finished, len(told.running), told.missing) == (1, 1, 8)  # cells of both studies are counted once
    lines = str(told).splitlines()
    assert lines[0] == "this store: 1 finished, 1 running, 8 missing"
    assert "  first: 3 of 5 missing" in lines
    assert "  second: 8 of 10 missing" in lines
    assert any(line.startswith("  broken: cannot be read: ") for line in lines)
    claim.release()
    studies = {one["study"]: (one["runs"], one["missing"]) for one in status(store=store).to_json()["unfinished"]}
    assert studies == {"first": (5, 4), "second": (10, 9), "broken": (0, 0)}
    for cell in cells[1:]:
        store.finish(make_record(cell))
    assert "first" not in str(status(store=store))


def test_status_shows_runs_that_a_decision_makes_beyond_those_declared(tmp_path):
    study = Study("s", approaches={"t": "python t.py"}, folder=tmp_path)
    other = Study("o", approaches={"u": "python u.py"}, folder=tmp_path)
    with FolderStore(tmp_path / ".isorun") as store:
        for cell in (cells_of(changed(study, repeats=3))[2], *cells_of(other)):
            claim = store.claim(cell.id)
            folder = tmp_path / ".isorun" / "runs" / f"{cell.id}-{claim.attempt}"
            folder.mkdir(parents=True)
            (folder / "job.json").write_text(json.dumps({"cell": cell.to_json()}))
        told = status(study, store=tmp_path / ".isorun")
    assert [run.label for run in told.running] == ["t default #2"]
    assert (told.finished, told.missing) == (0, 1)
