"""Runs that are not where they were: taken out of the database, never taken in, or not to be written into it."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from store_faults import alter, change_a_value, keep_run_folders

from isorun.cli.main import main
from isorun.errors import StoreDamaged, StoreError
from isorun.store.checking import Verified, repair, verify
from isorun.store.content import stored_form
from isorun.store.files import Files
from isorun.store.folder import FolderStore
from isorun.store.inbox import Inbox
from isorun.study.records import RunRecord, sealed_and_gzipped
from isorun.testing.made_records import content, make_cell, make_record


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
