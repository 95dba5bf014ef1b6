"""Databases that were altered behind our back: no traceback, no hang, no changed value; what is sound can be saved."""

from __future__ import annotations

import gzip
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from isorun.cli.main import main
from isorun.errors import StoreDamaged, StoreError
from isorun.store import STUDIES
from isorun.store.checking import Verified, repair, verify
from isorun.store.content import stored_form
from isorun.store.files import Files
from isorun.store.folder import FolderStore
from isorun.store.inbox import Inbox
from isorun.study.records import RunRecord, RunState, sealed_and_gzipped
from isorun.testing.made_records import content, make_cell, make_record

PAGE = 16_384


def filled(folder: Path, runs: int = 6) -> dict[str, str]:
    """A store with finished and failed runs; the content of each."""
    truth = {}
    with FolderStore(folder) as store:
        for number in range(runs):
            for attempt, state in ((1, RunState.FAILED), (2, RunState.FINISHED)):
                record = make_record(make_cell(number), attempt=attempt, state=state, accuracy=number / 8, points=40)
                store.finish(record)
                truth[record.run_id] = content(stored_form(record))
    return truth


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    filled(tmp_path / "store")
    return tmp_path / "store"


def alter(folder: Path, change: Callable[[bytearray], bytearray | None]) -> None:
    path = folder / "store.sqlite"
    data = bytearray(path.read_bytes())
    path.write_bytes(change(data) or data)


def change_a_value(data: bytearray) -> bytearray:
    assert data.count(b'"accuracy":0.375') == 2
    return data.replace(b'"accuracy":0.375', b'"accuracy":0.975')


def empty_index(folder: Path, index: str) -> None:
    """Make the page of an index one that has no entries, which is a valid page."""
    with sqlite3.connect(folder / "store.sqlite") as connection:
        (root,) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (index,)).fetchone()
    connection.close()

    def change(data: bytearray) -> None:
        start = (root - 1) * PAGE
        data[start : start + 8] = b"\x0a\0\0\0\0" + (PAGE % 65_536).to_bytes(2, "big") + b"\0"

    alter(folder, change)


def test_a_changed_byte_is_told_and_the_other_records_are_still_read(folder: Path):
    alter(folder, change_a_value)
    with FolderStore(folder) as store:
        with pytest.raises(StoreDamaged, match=make_cell(3).id) as raised:
            store.records()
        assert "isorun store repair" in raised.value.hint
        assert len(store.records([make_cell(1).id, make_cell(2).id])) == 4


@pytest.mark.parametrize("index", ["finished_runs", "other_runs"])
def test_an_emptied_index_lets_no_cell_be_run_again(folder: Path, index: str):
    empty_index(folder, index)
    with FolderStore(folder) as store:
        for action in (store.finished, store.run_ids, store.records, lambda: store.claim(make_cell(1).id)):
            with pytest.raises(StoreDamaged):
                action()
    assert repair(folder).lost == ()
    with FolderStore(folder) as store:
        assert len(store.finished()) == 6
        assert store.claim(make_cell(1).id) is None


@pytest.mark.parametrize("index", ["series_of_run", "predictions_of_run", "sqlite_autoindex_documents_1"])
def test_a_damaged_index_is_found_before_anything_is_written(folder: Path, index: str):
    empty_index(folder, index)
    before = (folder / "store.sqlite").read_bytes()
    assert verify(folder).damage
    if index == "series_of_run":
        with FolderStore(folder) as store, pytest.raises(StoreDamaged):
            store.records([make_cell(1).id])
    assert (folder / "store.sqlite").read_bytes() == before
    repaired = repair(folder)
    assert (repaired.kept, repaired.lost) == (12, ())


def test_an_unknown_state_is_told(folder: Path):
    alter(folder, lambda data: data.replace(b"finished", b"finishex"))
    with FolderStore(folder) as store, pytest.raises(StoreError):
        store.finished()


def test_rows_that_were_doubled_are_told_and_the_first_is_kept(folder: Path):
    truth = filled(folder)
    connection = sqlite3.connect(folder / "store.sqlite")
    connection.execute("DROP INDEX finished_runs")
    columns = [row[1] for row in connection.execute("PRAGMA table_info(runs)") if row[1] not in {"id", "attempt"}]
    names = ", ".join(columns)
    connection.execute(f"INSERT INTO runs (attempt, {names}) SELECT 9, {names} FROM runs WHERE state = 'finished'")
    connection.commit()
    connection.close()
    with FolderStore(folder) as store, pytest.raises(StoreDamaged):
        store.finished()
    repaired = repair(folder)
    assert repaired.kept == 12
    with FolderStore(folder) as store:
        assert {record.run_id: content(record) for record in store.records()} == truth


def test_what_is_damaged_is_saved_from_the_folders_of_the_runs(folder: Path):
    record = make_record(make_cell(3), attempt=2, accuracy=3 / 8, points=40)
    (folder / "runs" / record.run_id).mkdir(parents=True)
    (folder / "runs" / record.run_id / "record.json.gz").write_bytes(b"".join(sealed_and_gzipped(record)))
    alter(folder, change_a_value)
    findings = verify(folder)
    assert [(item.run_id, item.saved) for item in findings.damage] == [
        (f"{make_cell(3).id}-1", False),
        (f"{make_cell(3).id}-2", True),
    ]
    repaired = repair(folder)
    assert (repaired.kept, repaired.saved, repaired.lost) == (11, 1, (f"{make_cell(3).id}-1",))
    assert verify(folder).damage == ()
    with FolderStore(folder) as store:
        (found,) = store.records([make_cell(3).id])
        assert content(found) == content(stored_form(record))
    assert [path.name for path in folder.glob("store.sqlite.damaged-*")]


def test_a_lost_run_is_made_again_as_a_later_attempt(folder: Path):
    alter(folder, change_a_value)
    assert len(repair(folder).lost) == 2
    with FolderStore(folder) as store:
        claim = store.claim(make_cell(3).id)
        assert claim is not None
        assert claim.attempt == 3


@pytest.mark.parametrize("copy", [b"", b"\x1f\x8b", gzip.compress(b"{}", mtime=0), gzip.compress(b"[" * 100_000)])
def test_a_copy_that_is_no_record_saves_nothing(folder: Path, copy: bytes):
    run_id = f"{make_cell(3).id}-2"
    (folder / "runs" / run_id).mkdir(parents=True)
    (folder / "runs" / run_id / "record.json.gz").write_bytes(copy)
    alter(folder, change_a_value)
    assert run_id in repair(folder).lost


def test_a_store_whose_database_is_gone_is_rebuilt_from_the_folders_of_the_runs(folder: Path):
    for number in range(6):
        record = make_record(make_cell(number), attempt=2, accuracy=number / 8, points=40)
        (folder / "runs" / record.run_id).mkdir(parents=True)
        (folder / "runs" / record.run_id / "record.json.gz").write_bytes(b"".join(sealed_and_gzipped(record)))
    (folder / "store.sqlite").write_bytes(b"not a database any more")
    assert repair(folder).saved == 6
    with FolderStore(folder) as store:
        assert len(store.finished()) == 6


def test_damaged_documents_keys_and_waiting_files_are_set_aside(folder: Path):
    with FolderStore(folder) as store:
        store.documents(STUDIES).write("mine", {"a": 1})
    (folder / "studies" / "mine.json").write_text("[" * 100_000)
    (folder / "key").write_bytes(b"short")
    (folder / "inbox" / f"{make_cell(9).id}-1.json").write_text('{"format":1,"digest":"00","record":' + "[" * 100_000)
    assert len(verify(folder).damage) == 3
    with pytest.raises(StoreDamaged, match="key"):
        FolderStore(folder)
    assert len(repair(folder).aside) == 3
    assert verify(folder).damage == ()
    with FolderStore(folder) as store:
        assert len(store.records()) == 12


def test_a_process_that_has_the_store_open_goes_on_with_the_repaired_database(folder: Path):
    with FolderStore(folder) as store:
        assert len(store.finished()) == 6
        alter(folder, change_a_value)
        repair(folder)
        store.finish(make_record(make_cell(50)))
        store.pack()
    with FolderStore(folder) as store:
        assert len(store.records()) == 11


def test_a_waiting_record_nested_too_deeply_is_damaged_and_the_others_are_packed(tmp_path: Path):
    with FolderStore(tmp_path) as store:
        store.finish(make_record(make_cell(1)))
        (tmp_path / "inbox" / f"{make_cell(2).id}-1.json").write_text("[" * 200_000)
        assert store.finished() == {make_cell(1).id}
    with FolderStore(tmp_path) as store:
        assert [note.code for note in store.notes()] == ["store-record-set-aside"]


class TestCommands:
    def test_a_sound_store_is_verified(self, folder: Path, capsys):
        assert main(["store", "verify", "--store", str(folder)]) == 0
        assert "12 records are whole" in capsys.readouterr().out
        assert main(["store", "repair", "--store", str(folder)]) == 0
        assert "nothing was done" in capsys.readouterr().out

    def test_damage_is_told_repaired_and_gone(self, folder: Path, capsys):
        alter(folder, change_a_value)
        assert main(["store", "verify", "--store", str(folder), "--json"]) == 3
        told = json.loads(capsys.readouterr().out)
        assert (told["sound_records"], len(told["damage"])) == (10, 2)
        assert main(["store", "verify", "--store", str(folder)]) == 3
        assert "next: isorun store repair --store" in capsys.readouterr().out
        assert main(["store", "repair", "--store", str(folder), "--json"]) == 0
        assert len(json.loads(capsys.readouterr().out)["lost"]) == 2
        assert main(["store", "verify", "--store", str(folder)]) == 0

    def test_a_store_that_is_not_there_is_said(self, tmp_path: Path, capsys):
        assert main(["store", "verify", "--store", str(tmp_path / "none")]) == 1
        assert "there is no store" in capsys.readouterr().err
        assert main(["store", "repair", "--group", "x", "--store", str(tmp_path)]) == 2
        assert main(["store", "share", "--group", "no such group", "--store", str(tmp_path)]) == 1

    @pytest.mark.parametrize("action", ["verify", "repair", "share"])
    @pytest.mark.parametrize("named", ["option", "variable"])
    def test_a_store_behind_a_url_is_not_taken_for_a_folder(
        self, tmp_path: Path, capsys, monkeypatch, action: str, named: str
    ):
        monkeypatch.chdir(tmp_path)
        place = "postgresql://host/records"
        monkeypatch.setenv("ISORUN_STORE", place if named == "variable" else "elsewhere")
        assert main(["store", action, *(["--store", place] if named == "option" else [])]) == 2
        told = capsys.readouterr().err
        assert "there is no store" not in told
        assert place in told
        assert "a store in a folder" in told
        assert list(tmp_path.iterdir()) == []

    def test_a_folder_may_be_named_by_a_url(self, folder: Path, capsys):
        assert main(["store", "verify", "--store", f"folder://{folder}"]) == 0
        assert "12 records are whole" in capsys.readouterr().out


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


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """A hang is a failure, not a wait."""

    def ring(*_: object) -> None:
        raise AssertionError(f"no answer in {seconds} seconds")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def corrupted(data: bytes, chance: random.Random) -> bytes:
    """One of the ways in which a file comes back wrong; bits are flipped mostly where something is written."""
    changed = bytearray(data)
    kind = chance.choice(["bit", "bit", "bit", "bits", "cut", "zero page", "swap pages", "noise", "old page"])
    written = [place for place in range(len(data)) if data[place]]
    if kind in {"bit", "bits"}:
        for _ in range(1 if kind == "bit" else 20):
            changed[chance.choice(written)] ^= 1 << chance.randrange(8)
    elif kind == "cut":
        del changed[chance.randrange(len(data)) :]
    else:
        pages = len(data) // PAGE
        one, other = chance.randrange(pages) * PAGE, chance.randrange(pages) * PAGE
        if kind == "zero page":
            changed[one : one + PAGE] = bytes(PAGE)
        elif kind == "noise":
            changed[one : one + 512] = chance.randbytes(512)
        else:
            changed[one : one + PAGE] = data[other : other + PAGE]
            if kind == "swap pages":
                changed[other : other + PAGE] = data[one : one + PAGE]
    return bytes(changed)


def read_or_refused(folder: Path, truth: dict[str, str]) -> bool:
    """Whether the store was read; what it then says must be true and whole, and claims must be those of the truth."""
    try:
        with FolderStore(folder, create=False) as store:
            records = {record.run_id: content(record) for record in store.records()}
            finished, run_ids = store.finished(), store.run_ids()
            claim = store.claim(make_cell(0).id)
    except StoreError:
        return False
    assert records == truth
    assert run_ids == set(truth)
    assert len(finished) == 6
    assert claim is None
    return True


@pytest.mark.parametrize("times", [15, pytest.param(300, marks=pytest.mark.slow)])
def test_any_corruption_is_refused_or_harmless_and_what_is_sound_is_saved(tmp_path: Path, times: int):
    base = tmp_path / "base"
    truth = filled(base)
    data = (base / "store.sqlite").read_bytes()
    chance = random.Random(20_261)
    refused = kept = 0
    for number in range(times):
        folder = tmp_path / "copy"
        shutil.copytree(base, folder)
        (folder / "store.sqlite").write_bytes(corrupted(data, chance))
        with time_limit(60):
            was_read = read_or_refused(folder, truth)
            findings = verify(folder)
            assert was_read or findings.damage, number
            repaired = repair(folder)
            assert verify(folder).damage == (), number
            with FolderStore(folder) as store:
                saved = {record.run_id: content(record) for record in store.records()}
        assert saved.items() <= truth.items(), number
        assert len(saved) == repaired.kept
        refused += not was_read
        kept += len(saved)
        shutil.rmtree(folder)
    assert refused > times / 10
    assert kept > times * len(truth) / 4


def test_an_inbox_that_was_altered_changes_no_value(tmp_path: Path):
    chance = random.Random(7)
    record = stored_form(make_record())
    inbox = Inbox(tmp_path, Files())
    inbox.put(record)
    file = tmp_path / f"{record.run_id}.json"
    whole = file.read_bytes()
    for _ in range(400):
        changed = bytearray(whole)
        changed[chance.randrange(len(whole))] ^= 1 << chance.randrange(8)
        file.write_bytes(changed)
        found = [content(item.record) for item in inbox.read_all()]
        assert found in ([], [content(record)])


def test_text_in_the_schema_that_is_no_text_is_damage_that_can_be_repaired(folder: Path):
    def change(data: bytearray) -> None:
        data[data.find(b"CREATE TABLE runs") + 3] = 0x9F

    alter(folder, change)
    with pytest.raises(StoreDamaged):
        FolderStore(folder).records()
    assert verify(folder).damage
    assert repair(folder).aside
    with FolderStore(folder) as store:
        assert store.finished() == set(), "no run of this store left a folder to be saved from"


@pytest.mark.parametrize("put", [os.mkfifo, lambda path: path.symlink_to("/dev/zero"), Path.mkdir, Path.touch])
def test_what_is_no_record_in_the_inbox_is_neither_opened_nor_waited_for(folder: Path, put: Callable[[Path], object]):
    put(folder / "inbox" / "bbbbbbbbbbbbbbbb-1.json")
    with FolderStore(folder) as store:
        assert len(store.finished()) == 6
        assert any("bbbbbbbbbbbbbbbb-1" in note.message for note in store.notes())


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


def keep_run_folders(folder: Path) -> None:
    with FolderStore(folder) as store:
        for record in store.records():
            (folder / "runs" / record.run_id).mkdir(parents=True)
            (folder / "runs" / record.run_id / "record.json.gz").write_bytes(b"".join(sealed_and_gzipped(record)))


def delete_runs(which: str) -> Callable[[Path], None]:
    def delete(folder: Path) -> None:
        with closing(sqlite3.connect(folder / "store.sqlite")) as connection:
            for table, column in (("series", "run"), ("predictions", "run"), ("runs", "id")):
                connection.execute(f"DELETE FROM {table} WHERE {column} {which}")
            connection.commit()

    return delete


def claim_in(folder: Path, *, create: bool) -> None:
    with FolderStore(folder, create=create) as store:
        store.claim(make_cell(1).id)


def swap_for_an_empty_one(folder: Path) -> None:
    FolderStore(folder.parent / "other").close()
    shutil.copyfile(folder.parent / "other" / "store.sqlite", folder / "store.sqlite")


@pytest.mark.parametrize(
    "take_away",
    [
        delete_runs("> 0"),
        delete_runs("> 9"),
        delete_runs("= 5"),
        swap_for_an_empty_one,
        lambda folder: (folder / "store.sqlite").unlink(),
    ],
    ids=["all", "the last", "one", "swapped", "gone"],
)
def test_runs_that_were_taken_out_of_the_database_are_told_and_come_back_from_their_folders(
    folder: Path, take_away: Callable[[Path], None]
):
    with FolderStore(folder) as store:
        truth = {record.run_id: content(record) for record in store.records()}
    keep_run_folders(folder)
    take_away(folder)
    for create in (True, False):
        with pytest.raises(StoreDamaged) as raised:
            claim_in(folder, create=create)
        assert f"--store {folder}" in raised.value.hint
    assert verify(folder).damage
    assert repair(folder).kept == len(truth)
    assert verify(folder) == Verified(str(folder), len(truth), 0, ())
    with FolderStore(folder) as store:
        assert {record.run_id: content(record) for record in store.records()} == truth


def test_a_run_that_ended_and_was_never_acknowledged_is_told_and_can_be_taken_in(
    folder: Path, capsys: pytest.CaptureFixture[str]
):
    """Its process was killed between the record in the folder and that of the store: no damage, and no loss."""
    keep_run_folders(folder)
    for number in (77, 1):  # one of a new cell, and one of a cell that was made meanwhile
        record = make_record(make_cell(number), attempt=7)
        (folder / "runs" / record.run_id).mkdir()
        (folder / "runs" / record.run_id / "record.json.gz").write_bytes(b"".join(sealed_and_gzipped(record)))
    findings = verify(folder)
    assert (findings.damage, findings.unrecorded) == ((), (f"{make_cell(77).id}-7",))
    assert main(["store", "verify", "--store", str(folder)]) == 3
    assert "1 run has ended and left a record" in capsys.readouterr().out
    assert repair(folder).saved == 1
    with FolderStore(folder) as store:
        assert make_cell(77).id in store.finished()
    assert verify(folder).unrecorded == ()


@pytest.mark.parametrize("text", [b"", b"many", b"-1", b"9" * 40])
def test_a_count_that_is_none_is_told_and_made_anew(folder: Path, text: bytes):
    (folder / "packed").write_bytes(text)
    with pytest.raises(StoreDamaged, match="packed"):
        FolderStore(folder)
    assert [item.where for item in verify(folder).damage] == [str(folder / "packed")]
    repair(folder)
    with FolderStore(folder) as store:
        assert len(store.finished()) == 6


def unwritable(number: int) -> RunRecord:
    """A record that is whole and that no database of ours can hold: a part of another distribution made it."""
    return replace(make_record(make_cell(number)), signal=9)


def test_a_record_that_cannot_be_written_stops_no_other_and_is_kept_as_a_file(folder: Path):
    with FolderStore(folder) as store:
        store._inbox.put(unwritable(60))
        for number in (50, 51, 70, 71):
            store.finish(make_record(make_cell(number)))
        with pytest.raises(StoreError, match="cannot be written into the database; it was kept as"):
            store.pack()
        assert {make_cell(number).id for number in (50, 51, 70, 71)} <= store.finished()
        assert [note.code for note in store.notes()] == ["store-record-set-aside"]
        assert make_cell(60).id in store.notes()[0].message
        store.finish(make_record(make_cell(60)))
        assert store.pack() == 1
        assert verify(folder).damage == ()
    assert [path.name for path in (folder / "inbox").iterdir()] == [f"{make_cell(60).id}-1.json.unwritable"]


def test_what_waits_and_could_not_be_written_is_told_before_it_is_tried(folder: Path):
    inbox = Inbox(folder / "inbox", Files())
    inbox.put(unwritable(60))
    inbox.put(make_record(make_cell(61)))
    inbox.put(make_record(make_cell(1), attempt=9, accuracy=0.1))
    before = (folder / "store.sqlite").read_bytes()
    found = {item.run_id: item.what for item in verify(folder).damage}
    assert set(found) == {f"{make_cell(60).id}-1", f"{make_cell(1).id}-9"}
    assert "cannot be written into the database" in found[f"{make_cell(60).id}-1"]
    assert (folder / "store.sqlite").read_bytes() == before
    assert len(repair(folder).aside) == 2
    assert verify(folder).damage == ()
    with FolderStore(folder) as store:
        assert make_cell(61).id in store.finished()


def test_a_record_that_cannot_be_written_does_not_stop_a_repair_either(folder: Path):
    keep_run_folders(folder)
    record = unwritable(60)
    (folder / "runs" / record.run_id).mkdir()
    (folder / "runs" / record.run_id / "record.json.gz").write_bytes(b"".join(sealed_and_gzipped(record)))
    alter(folder, change_a_value)
    assert repair(folder).kept == 12
    assert verify(folder).damage == ()


def test_a_key_that_is_no_file_is_named_and_not_waited_for(folder: Path):
    (folder / "key").unlink()
    os.mkfifo(folder / "key")
    with pytest.raises(StoreError, match="no key"):
        FolderStore(folder)


def with_copies(folder: Path) -> list[Path]:
    """The copies of the records, in the folders of the runs, as execution leaves them."""
    with FolderStore(folder) as store:
        records = store.records()
    paths = [folder / "runs" / record.run_id / "record.json.gz" for record in records]
    for path, record in zip(paths, records, strict=True):
        path.parent.mkdir(parents=True)
        path.write_bytes(b"".join(sealed_and_gzipped(record)))
    return paths


def test_a_repair_names_the_runs_whose_record_is_nowhere_whole(folder: Path, capsys: pytest.CaptureFixture[str]):
    copies = with_copies(folder)
    for path in copies[:4]:
        path.write_bytes(b"x")
    (folder / "store.sqlite").write_bytes(b"")
    lost = tuple(sorted(path.parent.name for path in copies[:4]))
    assert verify(folder).lost == lost
    assert main(["store", "repair", "--store", str(folder)]) == 0
    told = capsys.readouterr().out
    assert "8 records kept" in told
    assert all(run_id in told for run_id in lost)
    assert verify(folder).lost == () == verify(folder).damage
    with FolderStore(folder) as store:
        attempts = {run_id.rpartition("-")[0]: int(run_id.rpartition("-")[2]) for run_id in lost}
        free = {cell: claim for cell in attempts if (claim := store.claim(cell)) is not None}
        assert free
        assert all(claim.attempt > attempts[cell] for cell, claim in free.items())


def test_a_repair_says_how_many_were_lost_where_nothing_names_them(folder: Path, capsys: pytest.CaptureFixture[str]):
    (folder / "store.sqlite").write_bytes(b"")
    assert "12 were packed" in verify(folder).damage[-1].what
    repaired = repair(folder)
    assert (repaired.kept, repaired.lost, repaired.lost_unnamed) == (0, (), 12)
    assert main(["store", "verify", "--store", str(folder)]) == 0
    assert "0 records are whole" in capsys.readouterr().out


def test_a_damaged_copy_is_named_and_the_record_is_not_lost(folder: Path):
    path = with_copies(folder)[0]
    path.write_bytes(path.read_bytes()[:-40])
    (found,) = verify(folder).damage
    assert (found.where, found.run_id, found.saved) == (str(path), path.parent.name, True)
    repaired = repair(folder)
    assert (repaired.kept, repaired.lost, len(repaired.aside)) == (12, (), 1)
    assert verify(folder).damage == ()


@pytest.mark.parametrize("has_copy", [True, False])
def test_what_was_set_aside_is_told_until_it_is_removed(
    folder: Path, has_copy: bool, capsys: pytest.CaptureFixture[str]
):
    record = stored_form(make_record(make_cell(20), attempt=1))
    if has_copy:
        copy = folder / "runs" / record.run_id / "record.json.gz"
        copy.parent.mkdir(parents=True)
        copy.write_bytes(b"".join(sealed_and_gzipped(record)))
    (folder / "inbox" / f"{record.run_id}.json").write_text("{}")
    FolderStore(folder).close()  # any command that reads
    aside = folder / "inbox" / f"{record.run_id}.json.damaged"
    found = verify(folder)
    assert (found.aside, found.unrecorded) == ((str(aside),), (record.run_id,) if has_copy else ())
    assert found.lost == (() if has_copy else (record.run_id,))
    for command in ("verify", "repair", "verify"):
        assert main(["store", command, "--store", str(folder)]) == (3 if command == "verify" else 0)
        told = capsys.readouterr().out
        assert f"rm {aside}" in told
        assert "nothing is damaged" not in told
    aside.unlink()
    assert main(["store", "verify", "--store", str(folder)]) == 0


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


def test_a_store_is_shared_through_a_link_to_it(folder: Path):
    link = folder.with_name("link")
    link.symlink_to(folder)
    assert main(["store", "share", "--store", str(link)]) == 0
    assert folder.stat().st_mode & 0o7777 == 0o2770
    assert (folder / "store.sqlite").stat().st_mode & 0o777 == 0o660
