"""Whole studies on a disk that is full, with output that goes nowhere, and with a store that is too new."""

from __future__ import annotations

import hashlib
import sqlite3
from pathlib import Path

import pytest
from oracle import Oracle, Workplace
from test_store_disk import mount, small_disk

from isorun.study.records import RunState

pytestmark = pytest.mark.chaos

PAGE = 4096


def is_one_message(stderr: str) -> bool:
    """One error of isorun with what to do next, and no traceback."""
    return stderr.count("isorun: ") == 1 and stderr.count("  next:    ") == 1 and "Traceback" not in stderr


@pytest.mark.parametrize("ballast_pages", [0, 1, *(pytest.param(n, marks=pytest.mark.slow) for n in (2, 3, 4, 5))])
@pytest.mark.long
def test_a_full_disk_ends_the_study_with_one_message_and_room_completes_it(ballast_pages: int, tmp_path: Path):
    """The first runs fit; then, for each amount of ballast, the disk is full at another step of a run."""
    options = ("--launch", "fresh" if ballast_pages % 2 else "warm")
    with small_disk(tmp_path / "disk", "512k") as disk:
        (disk / "ballast").write_bytes(bytes(ballast_pages * PAGE))
        oracle = Oracle(Workplace(tmp_path / "work", repeats=5, store=disk / "store"))
        for _ in range(2):
            failed = oracle.workplace.run(*options)
            assert failed.process.returncode == 1
            assert is_one_message(failed.stderr), failed.stderr
            assert "No space left on device" in failed.stderr or "disk is full" in failed.stderr, failed.stderr
            oracle.hear(failed)
            assert 0 < len(oracle.check()) < 20
        mount("-o", "remount,size=16m", disk)
        oracle.check_completed(oracle.workplace.run(*options))


FULL_WHILE_IT_LOGS = """
import isorun, os, pathlib, subprocess, sys
ballast = pathlib.Path(os.environ["ISORUN_RUN_DIR"]).parents[1] / "ballast"
isorun.log(epoch=1, acc=0.5)
if not ballast.exists():
    with ballast.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass
    for epoch in range(2, 100):
        isorun.log(epoch=epoch, acc=0.5)
    # Room is made just after this process has gone, and before its record is written.
    subprocess.Popen(["bash", "-c", 'while [ -d /proc/$0 ]; do :; done; : > "$1"', str(os.getpid()), str(ballast)])
isorun.result(test_acc=0.75, token=1.0)
"""


@pytest.mark.parametrize("launch", ["fresh", "warm"])
def test_a_run_whose_metrics_were_lost_on_a_full_disk_does_not_count_as_finished(launch: str, tmp_path: Path):
    with small_disk(tmp_path / "disk", "4m") as disk:
        workplace = Workplace(tmp_path / "work", repeats=1, store=disk / "store")
        (workplace.folder / "train.py").write_text(FULL_WHILE_IT_LOGS)
        hurt = workplace.run("--launch", launch)
        assert hurt.process.returncode == 1, hurt.stdout
        first, *others = sorted(workplace.records(), key=lambda record: record.started_at)
        assert first.state is RunState.FAILED
        assert "some of what the run logged is missing" in first.reason
        assert [record.state for record in others] == [RunState.FINISHED] * 3
        again = workplace.run("--launch", launch)
        assert again.process.returncode == 0, again.stdout
        finished = [record for record in workplace.records() if record.state is RunState.FINISHED]
        assert [record.results for record in finished] == [{"test_acc": 0.75, "token": 1.0}] * 4


def test_progress_that_cannot_be_shown_does_not_end_the_study(tmp_path: Path):
    oracle = Oracle(Workplace(tmp_path, repeats=1))
    invocation = oracle.workplace.start(under=["bash", "-c", '"$@" 2> /dev/full', "bash"])
    invocation.wait()
    oracle.check_completed(invocation)
    assert "4 finished" in invocation.stdout


def test_a_result_that_cannot_be_printed_is_one_message_and_the_runs_are_kept(tmp_path: Path):
    oracle = Oracle(Workplace(tmp_path, repeats=1))
    invocation = oracle.workplace.start(under=["bash", "-c", '"$@" > /dev/full', "bash"])
    assert invocation.wait() == 1
    assert is_one_message(invocation.stderr), invocation.stderr
    assert "found:   No space left on device" in invocation.stderr
    oracle.hear(invocation)
    assert len(oracle.check()) == 4


def test_a_store_of_a_newer_isorun_is_refused_and_left_as_it_is(tmp_path: Path):
    workplace = Workplace(tmp_path, repeats=1)
    assert workplace.run().process.returncode == 0
    database = workplace.store_folder / "store.sqlite"
    connection = sqlite3.connect(database)
    connection.execute("INSERT INTO migrations (number, name, checksum) VALUES (999, 'from_the_future', 'x')")
    connection.commit()
    connection.close()
    before = hashlib.sha256(database.read_bytes()).hexdigest()
    workplace.extend(1)
    refused = workplace.run()
    assert refused.process.returncode == 1
    assert is_one_message(refused.stderr), refused.stderr
    assert "was written by a newer isorun" in refused.stderr
    assert "found:   schema version 999" in refused.stderr
    assert hashlib.sha256(database.read_bytes()).hexdigest() == before
    assert len(workplace.ledger("began")) == 4
