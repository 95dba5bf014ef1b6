"""Whole studies on a real disk that is full, and with a store that is too new."""

from __future__ import annotations

import hashlib
import sqlite3
from pathlib import Path

import pytest
from oracle import Oracle, Workplace
from test_store_disk import mount, small_disk

pytestmark = pytest.mark.chaos

PAGE = 4096


def is_one_message(stderr: str) -> bool:
    """One error of isorun with what to do next, and no traceback."""
    return stderr.count("isorun: ") == 1 and stderr.count("  next:    ") == 1 and "Traceback" not in stderr


@pytest.mark.parametrize("ballast_pages", range(6))
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
