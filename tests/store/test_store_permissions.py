"""Who may read a store: its owner, whatever the umask, and others only where they are let in."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from isorun.cli.main import main
from isorun.store.folder import FolderStore
from isorun.testing.made_records import make_cell, make_record


class TestWhoMayRead:
    MAKING = """
import os, sys
os.umask(int(sys.argv[2], 8))
from pathlib import Path
from isorun.store.folder import FolderStore
from isorun.testing.made_records import make_record
with FolderStore(Path(sys.argv[1])) as store:
    claim = store.claim("a")
    store.documents("studies").write("mine", {})
    store.finish(make_record())
    if len(sys.argv) > 3:
        os.kill(os.getpid(), 9)
"""

    def made(self, folder: Path, umask: str, *more: str) -> dict[str, int]:
        subprocess.run([sys.executable, "-c", self.MAKING, folder, umask, *more], check=not more)
        paths = [folder, *folder.rglob("*")]
        return {str(path.relative_to(folder)): path.stat().st_mode & 0o7777 for path in paths}

    @pytest.mark.parametrize("umask", ["0", "022", "077"])
    @pytest.mark.parametrize("more", [(), ("killed",)])
    def test_only_the_owner_whatever_the_umask(self, tmp_path: Path, umask: str, more: tuple[str, ...]):
        modes = self.made(tmp_path / "store", umask, *more)
        assert len(modes) > 8
        for name, mode in modes.items():
            assert mode == (0o700 if (tmp_path / "store" / name).is_dir() else 0o600), name

    def test_an_older_store_that_others_could_read_is_closed_to_them(self, folder: Path):
        for path in folder.rglob("*"):
            path.chmod(0o777 if path.is_dir() else 0o666)
        FolderStore(folder).close()
        for name in ("inbox", "store.sqlite", "key"):
            assert (folder / name).stat().st_mode & 0o077 == 0

    @pytest.mark.parametrize("umask", ["0", "077"])
    def test_the_group_too_where_the_store_is_shared(self, folder: Path, umask: str):
        assert main(["store", "share", "--store", str(folder)]) == 0
        for name, mode in self.made(folder, umask, "killed").items():
            assert mode == (0o2770 if (folder / name).is_dir() else 0o660), name


def test_a_folder_that_everybody_may_write_to_is_told_and_what_is_made_inside_is_closed(tmp_path: Path):
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    with FolderStore(tmp_path / "open") as store:
        store.finish(make_record())
        (note,) = store.notes()
        assert note.code == "store-open-to-all"
        assert str(tmp_path / "open") in note.message
    for path in (tmp_path / "open").rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path
    assert (tmp_path / "open").stat().st_mode & 0o777 == 0o777, "a folder of the user's own stays as it is"


def test_a_store_is_shared_through_a_link_to_it(folder: Path):
    link = folder.with_name("link")
    link.symlink_to(folder)
    assert main(["store", "share", "--store", str(link)]) == 0
    assert folder.stat().st_mode & 0o7777 == 0o2770
    assert (folder / "store.sqlite").stat().st_mode & 0o777 == 0o660


def test_who_may_not_write_to_a_store_still_sees_who_works_there(tmp_path, monkeypatch):
    with FolderStore(tmp_path) as store:
        store.claim(make_cell(1).id)
    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setattr("isorun.store.claims._open_lock_file", lambda path: os.open(path / "not", os.O_RDWR))
    with FolderStore(tmp_path, create=False) as store:
        assert store.holders() == []
    (tmp_path / "claims.lock").unlink()
    with FolderStore(tmp_path, create=False) as store:
        assert store.holders() == []
