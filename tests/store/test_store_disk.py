"""Disks that are full, read-only or not there."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from isorun.errors import StoreError
from isorun.store.checking import verify
from isorun.store.content import stored_form
from isorun.store.files import Files
from isorun.store.folder import FolderStore
from isorun.store.inbox import Inbox
from isorun.testing.made_records import make_cell, make_record


def mount(*arguments: object) -> None:
    """Mount, or skip the test where that is not allowed."""
    try:
        subprocess.run(["mount", *map(str, arguments)], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"this machine does not allow mounting: {error}")


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    folder.mkdir()
    mount("-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    mount("--bind", folder, folder)
    try:
        mount("-o", "remount,ro,bind", folder)
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_full_disk_loses_nothing_that_was_acknowledged(tmp_path: Path):
    with small_disk(tmp_path / "disk", "4m") as disk:
        ballast = disk / "ballast"
        ballast.write_bytes(bytes(3_000_000))
        acknowledged, failed = [], None
        with FolderStore(disk / "store") as store:
            for number in range(1_000):
                record = make_record(make_cell(number), points=200)
                try:
                    store.finish(record)
                except StoreError as error:
                    failed = (record, error)
                    break
                acknowledged.append(record.cell.id)
            assert failed is not None
            assert failed[0].run_id in failed[1].what
            assert "bytes are free there" in failed[1].found
            assert "free some space" in failed[1].hint
            assert store.finished() == set(acknowledged)
            with pytest.raises(StoreError, match="free some space"):
                store.pack()
            assert store.finished() == set(acknowledged)
        assert acknowledged
        ballast.unlink()
        with FolderStore(disk / "store") as store:
            assert store.finished() == set(acknowledged)
            store.finish(failed[0])
            assert store.pack() == 1
            assert len(store.records()) == len(acknowledged) + 1
            assert list((disk / "store" / "inbox").iterdir()) == []


def test_a_store_on_a_full_disk_cannot_be_created_and_can_be_later(tmp_path: Path):
    with small_disk(tmp_path / "disk", "64k") as disk:
        with pytest.raises(StoreError, match="bytes are free there"):
            FolderStore(disk / "store")
        mount("-o", "remount,size=2m", disk)
        with FolderStore(disk / "store") as store:
            store.finish(make_record())
            assert store.pack() == 1


def test_a_read_only_store_can_be_read_and_says_why_it_cannot_be_written(tmp_path: Path):
    folder = tmp_path / "store"
    with FolderStore(folder) as store:
        store.finish(make_record(make_cell(1)))
    Inbox(folder / "inbox", Files()).put(stored_form(make_record(make_cell(2))))
    with read_only(folder), FolderStore(folder) as store:
        assert len(store.records()) == len(store.run_ids()) == 2
        for action in (lambda: store.finish(make_record(make_cell(3))), store.pack, lambda: store.claim("a")):
            with pytest.raises(StoreError, match="Read-only file system") as raised:
                action()
            assert "--store" in raised.value.hint


def test_a_store_cannot_be_made_in_a_read_only_folder(tmp_path: Path):
    with read_only(tmp_path), pytest.raises(StoreError, match="making the store's folders"):
        FolderStore(tmp_path / "store")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_store_cannot_be_made_without_permission(tmp_path: Path):
    tmp_path.chmod(0o500)
    with pytest.raises(StoreError, match="Permission denied"):
        FolderStore(tmp_path / "store")


def test_a_store_cannot_be_made_where_a_file_is(tmp_path: Path):
    file = tmp_path / "store"
    file.write_text("mine")
    for create in (True, False):
        with pytest.raises(StoreError, match="store"):
            FolderStore(file, create=create)
    assert file.read_text() == "mine"


def test_a_missing_store_is_not_made_unless_asked(tmp_path: Path):
    with pytest.raises(StoreError, match="there is no store at") as raised:
        FolderStore(tmp_path / "store", create=False)
    assert raised.value.found == "no such folder"
    assert list(tmp_path.iterdir()) == []


def test_a_store_on_a_full_disk_is_verified_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with FolderStore(tmp_path / "store") as store:
        store.finish(make_record(make_cell(1)))
    other = tmp_path / "other"
    other.mkdir()
    room = {str(tmp_path / "store"): 10, str(other): 2**30}
    monkeypatch.setattr(tempfile, "tempdir", str(other))
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=room[str(path)]))
    assert (verify(tmp_path / "store").sound, list(other.iterdir())) == (1, [])
    room[str(other)] = 10
    with pytest.raises(StoreError, match="TMPDIR="):
        verify(tmp_path / "store")
