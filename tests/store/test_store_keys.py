"""The key of a store: lost, it is told, and no other takes its place where it told cells apart."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from store_faults import time_limit

from isorun.cli.main import main
from isorun.errors import StoreDamaged, StoreError
from isorun.store.checking import verify
from isorun.store.content import stored_form
from isorun.store.files import Files
from isorun.store.folder import FolderStore
from isorun.store.inbox import Inbox
from isorun.study.records import RunState
from isorun.testing.made_records import make_cell, make_record

WITHHELD = replace(make_cell(1), withheld="0123456789abcdef")


@pytest.fixture(params=["packed", "waiting"])
def withholding(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A store with a run from whose command something is withheld, in the database or in the inbox."""
    record = make_record(WITHHELD)
    with FolderStore(tmp_path / "store") as store:
        store.finish(record)
    if request.param == "waiting":
        shutil.rmtree(tmp_path / "store")
        FolderStore(tmp_path / "store").close()
        Inbox(tmp_path / "store" / "inbox", Files()).put(stored_form(record))
    return tmp_path / "store"


@pytest.mark.parametrize(
    "put",
    [
        None,
        os.mkfifo,
        lambda path: path.symlink_to("/dev/zero"),
        lambda path: path.symlink_to("nowhere"),
        Path.mkdir,
        lambda path: path.write_bytes(b"short"),
    ],
    ids=["gone", "pipe", "link", "dangling link", "folder", "short"],
)
def test_a_key_that_is_lost_is_told_and_no_other_is_made_in_its_place(
    withholding: Path, put: Callable[[Path], object] | None, capsys: pytest.CaptureFixture[str]
):
    (withholding / "key").unlink()
    if put is not None:
        put(withholding / "key")
    with time_limit(20):
        for _ in range(2):
            with pytest.raises(StoreDamaged, match="no key") as raised:
                FolderStore(withholding)
        assert "made again" in raised.value.hint
        (damage,) = verify(withholding).damage
        assert damage.where == str(withholding / "key")
        assert main(["store", "repair", "--store", str(withholding)]) == 0
    assert "another key" in capsys.readouterr().out
    with FolderStore(withholding) as store:
        assert len(store.key) == 32
        assert store.finished() == {WITHHELD.id}
    assert verify(withholding).damage == ()


def test_a_key_that_never_told_anything_apart_is_made_again(folder: Path):
    (folder / "key").unlink()
    assert verify(folder).damage == ()
    with FolderStore(folder) as store:
        assert (folder / "key").read_bytes() == store.key


def test_a_key_that_is_no_file_is_named_and_not_waited_for(folder: Path):
    (folder / "key").unlink()
    os.mkfifo(folder / "key")
    with pytest.raises(StoreError, match="no key"):
        FolderStore(folder)


def test_a_key_of_another_store_is_told_and_a_repair_says_what_it_means(
    folder: Path, capsys: pytest.CaptureFixture[str]
):
    with FolderStore(folder) as store:
        store.finish(make_record(replace(make_cell(9), withheld="0123456789abcdef")))
    right = (folder / "key").read_bytes()
    (folder / "key").write_bytes(bytes(range(32)))
    with pytest.raises(StoreDamaged, match="key"):
        FolderStore(folder)
    assert [item.where for item in verify(folder).damage] == [str(folder / "key")]
    (folder / "key").write_bytes(right)
    FolderStore(folder).close()
    (folder / "key").write_bytes(bytes(range(32)))
    assert main(["store", "repair", "--store", str(folder)]) == 0
    assert "runs whose commands hold secrets are made again" in capsys.readouterr().out
    with FolderStore(folder) as store:
        assert store.key not in (right, bytes(range(32)))


def test_a_store_that_knows_no_key_yet_gets_to_know_it_when_it_packs(folder: Path):
    cell = replace(make_cell(9), withheld="0123456789abcdef")
    with FolderStore(folder) as store:
        store.finish(make_record(cell, attempt=1, state=RunState.FAILED))
    with closing(sqlite3.connect(folder / "store.sqlite")) as connection, connection:
        assert connection.execute("DELETE FROM documents WHERE content GLOB '*isorun.store.key*'").rowcount == 1
    with FolderStore(folder) as store:  # as an older isorun left it
        store.finish(make_record(cell, attempt=2))
    (folder / "key").write_bytes(bytes(range(32)))
    with pytest.raises(StoreDamaged, match="key"):
        FolderStore(folder)
