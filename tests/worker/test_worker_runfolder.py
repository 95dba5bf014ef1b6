"""The run folder read from outside: live rows, files that were removed or are none, start-up."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from worker_trainings import run_environment

from isorun.execution.worker_events import HeldFolder, read_run_folder
from isorun.worker import runfolder
from isorun.worker.fingerprint import Cache
from isorun.worker.recorder import Recorder
from isorun.worker.runfolder import RowTail


@pytest.fixture
def run(tmp_path: Path) -> Recorder:
    started = Recorder(tmp_path)
    started.begin()
    return started


def steps(rows: list[dict]) -> list[int]:
    return [row["step"] for row in rows]


def test_each_call_gives_the_rows_since_the_last_one(run):
    tail = RowTail(run.folder)
    assert tail.rows() == []
    run.log(0, loss=1.0)
    run.note("code", "message")
    run.log(1, loss=0.5)
    assert steps(tail.rows()) == [0, 1]
    assert tail.rows() == []
    run.log(2, loss=0.25, per_class={"a": 1})
    assert tail.rows()[0]["values"] == {"loss": 0.25}
    tail.close()


def test_half_a_line_is_waited_for(run):
    tail = RowTail(run.folder)
    line = runfolder.encode(1, {"kind": "row", "t": 0, "step": 7, "values": {}})
    with (run.folder / "events.jsonl").open("ab", buffering=0) as file:
        file.write(line[:20])
        assert tail.rows() == []
        file.write(line[20:])
        assert steps(tail.rows()) == [7]


def test_a_helper_that_was_set_aside_and_other_ranks_do_not_disturb(run, monkeypatch):
    tail = RowTail(run.folder)
    run.finish({"kind": "end", "t": 0})
    assert tail.rows() == []
    training = Recorder(run.folder)
    training.begin()
    training.log(1, loss=1.0)
    monkeypatch.setenv("RANK", "1")
    other = Recorder(run.folder)
    other.begin()
    other.log(1, loss=9.0)
    assert [row["values"] for row in tail.rows()] == [{"loss": 1.0}]
    other.log(2, loss=9.0)
    training.log(2, loss=0.5)
    assert [row["values"] for row in tail.rows()] == [{"loss": 0.5}]


def test_somebody_who_was_away_for_long_gets_the_newest_rows_quickly(run):
    for number in range(60_000):
        run.log(number, loss=1.0)
    tail = RowTail(run.folder)
    began = time.process_time()
    found = steps(tail.rows())
    assert time.process_time() - began < 1
    assert found[-1] == 59_999
    assert found == list(range(found[0], 60_000))
    assert 1000 < len(found) < 10_000
    run.log(60_000, loss=1.0)
    assert steps(tail.rows()) == [60_000]


@pytest.mark.parametrize("kind", ["fifo", "folder", "zero", "link"])
def test_a_tail_does_not_wait_for_what_is_no_file(tmp_path, kind):
    make_odd_file(tmp_path / "events.jsonl", kind)
    assert RowTail(tmp_path).rows() == []
    assert RowTail(tmp_path / "nowhere").rows() == []


def make_odd_file(path: Path, kind: str) -> None:
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "zero":
        path.symlink_to("/dev/zero")
    elif kind == "link":
        path.symlink_to("/etc/hostname")
    else:
        with path.open("wb") as file:
            file.truncate(3 * 2**30)


@pytest.mark.alone
@pytest.mark.parametrize("kind", ["fifo", "folder", "zero", "link", "huge"])
def test_one_odd_file_fails_its_run_with_a_note_and_costs_nothing(run, kind):
    run.log(1, acc=0.5)
    make_odd_file(run.folder / "events-17.jsonl", kind)
    began = time.monotonic()
    log = read_run_folder(run.folder)
    assert time.monotonic() - began < 2
    assert log.series["acc"].values[0] == 0.5
    assert log.has_gaps
    assert [note.code for note in log.notes] == ["torn-events"]
    assert "events-17.jsonl" in log.notes[0].message


@pytest.mark.parametrize("how", ["unlinked", "replaced", "truncated", "both unlinked", "emptied", "made anew"])
def test_events_that_were_removed_while_they_were_written_fail_the_run(run, how):
    run.log(1, acc=0.5)
    held = HeldFolder(run.folder)
    path = run.folder / "events.jsonl"
    if how == "unlinked":
        path.unlink()
    elif how == "replaced":
        copy = run.folder / "copy"
        copy.write_bytes(path.read_bytes())
        copy.replace(path)
    elif how == "truncated":
        os.truncate(path, 0)
    elif how == "both unlinked":
        path.unlink()
        (run.folder / "writers.txt").unlink()
    elif how == "made anew":
        run.folder.rename(run.folder.with_name("old"))
        run.folder.mkdir()
        for file in run.folder.with_name("old").iterdir():
            (run.folder / file.name).write_bytes(file.read_bytes())
    else:
        for file in run.folder.iterdir():
            file.unlink()
    run.log(2, acc=0.6)
    with closing(held):
        log = read_run_folder(run.folder, held)
    assert log.has_gaps
    assert log.notes[-1].code == ("torn-events" if how == "truncated" else "events-lost")


CLOSED = """
import os, resource, sys, isorun
isorun.log(epoch=0, acc=0.5)
how = sys.argv[1]
files = []
if "closes" in how:
    os.closerange(3, 256)
if "opens" in how:
    files = [open(f"mine-{number}.bin", "wb", buffering=0) for number in range(12)]
if "small" in how:
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))
if "few" in how:
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
isorun.log(epoch=1, acc=0.9)
if "later" in how:
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
isorun.log(epoch=2, acc=0.95)
for file in files:
    file.write(b"mine")
if "at once" in how:
    os._exit(0)
"""


@pytest.mark.parametrize(
    "how", ["", "closes", "closes opens", "small", "closes few", "closes few at once", "small at once"]
)
def test_lines_are_written_where_they_belong_or_are_told_as_lost(tmp_path, how):
    folder = tmp_path / "run"
    folder.mkdir()
    (tmp_path / "train.py").write_text(CLOSED)
    held = HeldFolder(folder)
    subprocess.run(
        [sys.executable, "train.py", how], cwd=tmp_path, env=run_environment(folder, "default", None), check=True
    )
    with closing(held):
        log = read_run_folder(folder, held)
    if "small" in how or "few" in how:
        assert log.has_gaps
        assert {note.code for note in log.notes} >= {"events-lost"}
        assert ("File too large" if "small" in how else "cannot be opened again") in log.gap
    else:
        assert not log.has_gaps
        assert log.series["acc"].values == (0.5, 0.9, 0.95)
    assert {path.read_bytes() for path in tmp_path.glob("mine-*.bin")} <= {b"mine"}


def test_events_that_could_be_written_after_all_are_not_told_as_lost(tmp_path):
    made = runfolder.claim_main(tmp_path)
    made.append({"kind": "row", "t": 0, "step": 1, "values": {"a": 1.0}})
    os.close(made._descriptor)
    hidden = (tmp_path / "events.jsonl").rename(tmp_path / "elsewhere")
    made.append({"kind": "row", "t": 0, "step": 2, "values": {"a": 2.0}})
    assert [path.name for path in tmp_path.glob("events-lost-*")] == [f"events-lost-{os.getpid()}.jsonl"]
    assert read_run_folder(tmp_path).has_gaps
    hidden.rename(tmp_path / "events.jsonl")
    made.append({"kind": "row", "t": 0, "step": 3, "values": {"a": 3.0}})
    assert list(tmp_path.glob("events-lost-*")) == []
    assert read_run_folder(tmp_path).series["a"].values == (1.0, 2.0, 3.0)
    made.close()


def test_a_process_that_can_make_no_file_says_so(tmp_path, monkeypatch):
    other = Recorder(tmp_path)
    monkeypatch.setattr(runfolder, "open_other", lambda *_: (_ for _ in ()).throw(OSError(24, "Too many open files")))
    other.log(1, acc=0.5)
    assert read_run_folder(tmp_path).gap == "a process could not write what it logged: Too many open files"


@pytest.mark.parametrize("step", [float("nan"), float("inf"), float("-inf")])
def test_a_step_that_is_not_finite_is_none_and_a_note(run, step):
    run.log(epoch=step, acc=0.5)
    run.log(step, epoch=1, acc=0.6)
    log = read_run_folder(run.folder)
    assert log.series["acc"].steps == (0.0, 1.0)
    assert [note.code for note in log.notes] == ["bad-step", "bad-step"]
    assert not log.has_gaps


def test_a_step_that_is_not_finite_is_none_whoever_wrote_it(run):
    run.write({"kind": "row", "t": 0, "step": "NaN", "values": {"acc": 0.5}})
    log = read_run_folder(run.folder)
    assert log.series["acc"].steps == (0.0,)
    assert [note.code for note in log.notes] == ["bad-step"]


def test_a_list_of_writers_that_is_none_is_not_waited_for(run):
    (run.folder / "writers.txt").unlink()
    (run.folder / "writers.txt").symlink_to("/dev/zero")
    assert not read_run_folder(run.folder).has_gaps


def test_swapped_lines_fail_the_run(run):
    for number in range(5):
        run.log(number, acc=0.1 * number)
    path = run.folder / "events.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], lines[3], lines[2], *lines[4:]]))
    log = read_run_folder(run.folder)
    assert log.has_gaps
    assert "number 2 is missing: there is 3" in log.notes[-1].message
    assert len(log.series["acc"].values) == 1


def test_a_number_that_no_float_holds_is_left_out_of_the_record(tmp_path):
    rows = [{"kind": "start", "t": 0}, {"kind": "row", "t": 0, "step": 1, "values": {"a": 10**400}}]
    rows += [{"kind": "row", "t": 10**400, "step": 10**400, "values": {"a": 2}}, {"kind": "end", "t": 1}]
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"".join(runfolder.encode(number, event) for number, event in enumerate(rows)))
    log = read_run_folder(tmp_path)
    assert log.ended
    assert log.series == {}
    assert {note.code for note in log.notes} == {"unknown-event"}


def test_an_enormous_whole_number_becomes_a_note_in_the_training(run):
    run.log(epoch=10**400, y=10**400, z=-(10**5000), fine=10**300)
    run.result(y=10**400)
    log = read_run_folder(run.folder)
    assert log.series["fine"].values[0] == 1e300
    assert list(log.series) == ["fine"]
    assert log.results == {}
    assert {note.code for note in log.notes} == {"bad-metric", "bad-step"}
    assert not log.has_gaps


def test_start_up_is_the_processs_beginning_and_its_imports_and_rows_do_not_count_it(tmp_path):
    (tmp_path / "sklearn").mkdir()
    (tmp_path / "sklearn" / "__init__.py").write_text("import time; time.sleep(0.6)\nimport sklearn.inner\n")
    (tmp_path / "sklearn" / "inner.py").write_text("import time; time.sleep(0.2)\n")
    (tmp_path / "sklearn" / "late.py").write_text("import time; time.sleep(0.3)\n")
    (tmp_path / "train.py").write_text(
        "import time, isorun\nisorun.log(0, x=1.0)\nimport sklearn\nisorun.log(1, x=1.0)\n"
        "import sklearn.late\ntime.sleep(0.1)\nisorun.log(2, x=1.0)\n"
    )
    folder = tmp_path / "run"
    folder.mkdir()
    subprocess.run([sys.executable, "train.py"], cwd=tmp_path, env=run_environment(folder, "default", None), check=True)
    log = read_run_folder(folder)
    seconds = list(log.series["x"].seconds)
    assert log.startup_seconds >= 1.1
    assert seconds[1] - seconds[0] < 0.5
    assert 0.1 <= seconds[2] - seconds[1] < 0.4


def test_a_process_that_imports_no_framework_has_a_start_up_too(run):
    log = read_run_folder(run.folder)
    assert log.startup_seconds is not None
    assert log.startup_seconds >= 0


def test_a_main_file_is_chosen_by_evidence_and_not_by_its_name(tmp_path):
    quiet = [{"kind": "start", "t": 0, "rank": 0, "pid": 1}, {"kind": "end", "t": 1}]
    training = [{"kind": "start", "t": 0, "rank": 0}, {"kind": "row", "t": 0, "step": 1, "values": {"a": 1}}]
    for name, written in (("events.jsonl", quiet), ("events-5.jsonl", training)):
        (tmp_path / name).write_bytes(b"".join(runfolder.encode(number, event) for number, event in enumerate(written)))
    seen: list[str] = []
    files = runfolder.read_files(tmp_path, lambda name, _: seen.append(name))
    assert runfolder.main_file(files) == "events-5.jsonl"
    assert seen == ["events.jsonl", "events-5.jsonl"]


def test_what_is_kept_between_runs_is_for_the_owner_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("ISORUN_CACHE", raising=False)
    before = os.umask(0)
    try:
        kept = Cache("hashes")
        kept.put(str(tmp_path), "as it is", 1)
        kept.save()
    finally:
        os.umask(before)
    assert Cache("hashes").get(str(tmp_path), "as it is") == 1
    for path in (tmp_path / "cache", *(tmp_path / "cache").rglob("*")):
        assert path.stat().st_mode & 0o077 == 0, path
