"""Databases that were altered behind our back: no traceback, no hang, no changed value; what is sound can be saved."""

from __future__ import annotations

import gzip
import json
import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from store_faults import alter, change_a_value, filled, time_limit

from isorun.cli.main import main
from isorun.errors import StoreDamaged, StoreError
from isorun.store import STUDIES
from isorun.store.checking import repair, verify
from isorun.store.content import stored_form
from isorun.store.copying import copy
from isorun.store.files import Files
from isorun.store.folder import FolderStore
from isorun.store.inbox import Inbox
from isorun.study.records import Series, sealed_and_gzipped
from isorun.testing.made_records import content, make_cell, make_record

PAGE = 16_384


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


def test_a_copy_saves_the_sound_attempts_of_a_cell_of_which_one_is_damaged(folder: Path):
    with sqlite3.connect(folder / "store.sqlite") as connection:
        asked = "UPDATE runs SET wall_seconds = wall_seconds + 1 WHERE cell = ? AND attempt = 1"
        assert connection.execute(asked, (make_cell(3).id,)).rowcount == 1
    connection.close()
    with FolderStore(folder) as store, FolderStore(folder.parent / "saved") as saved:
        done = copy(store, saved, ("a", "b"))
        assert [what for what, _ in done.damaged] == [f"cell {make_cell(3).id}"]
        assert f"{make_cell(3).id}-1 is damaged" in done.damaged[0][1]
        assert len(saved.run_ids()) == done.records == 11


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


@pytest.mark.parametrize(
    "copy",
    [b"", b"\x1f\x8b", gzip.compress(b"{}"), gzip.compress(b"[" * 100_000)],
    ids=["nothing", "a beginning", "an empty table", "lists without an end"],
)
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
        place = "shelf://host/records"
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


def test_a_store_that_lost_its_database_says_so_and_makes_no_run_again(folder: Path):
    kept = {record.run_id for record in opened_records(folder)}
    put_copies_into_run_folders(folder)
    (folder / "store.sqlite").unlink()
    (folder / "packed").unlink()
    for create in (True, False):
        with pytest.raises(StoreDamaged, match="is gone") as raised:
            FolderStore(folder, create=create)
        assert "isorun store repair" in raised.value.hint
    repaired = repair(folder)
    assert (repaired.saved, repaired.lost, repaired.aside) == (len(kept), (), ())
    assert {record.run_id for record in opened_records(folder)} == kept


def opened_records(folder: Path):
    with FolderStore(folder) as store:
        return store.records()


def put_copies_into_run_folders(folder: Path, ending: str = "") -> None:
    for record in opened_records(folder):
        run = folder / "runs" / f"{record.run_id}{ending}"
        run.mkdir(parents=True)
        (run / "record.json.gz").write_bytes(b"".join(sealed_and_gzipped(record)))


def test_folders_of_runs_that_were_set_aside_are_told_as_such_and_left_alone(folder: Path):
    put_copies_into_run_folders(folder)
    put_copies_into_run_folders(folder, ".before-1794808954813416134")
    before = sorted(folder.rglob("record.json.gz*"))
    found = verify(folder)
    assert (found.damage, found.lost, found.unrecorded) == ((), (), ())
    assert len(found.aside) == found.sound
    assert all(".before-" in path for path in found.aside)
    repair(folder)
    assert sorted(folder.rglob("record.json.gz*")) == before


def test_every_flipped_bit_of_a_kept_study_is_told_or_changes_nothing(tmp_path: Path):
    document = {"name": "base", "levels": ["default"], "repeats": 3, "lr": 0.5, "deep": {"a": [1, 2, {"b": None}]}}
    with FolderStore(tmp_path / "store") as store:
        store.documents(STUDIES).write("base", document)
        path = Path(store.documents(STUDIES).place("base"))
        assert store.documents(STUDIES).read("base") == document
    whole = path.read_bytes()
    for place in range(0, 8 * len(whole), 7):
        changed = bytearray(whole)
        changed[place // 8] ^= 1 << place % 8
        path.write_bytes(changed)
        found = verify(tmp_path / "store")
        assert found.damage or found.unchecked, bytes(changed)
    path.write_bytes(whole)
    assert not verify(tmp_path / "store").unchecked


def test_a_kept_study_without_a_digest_is_read_and_told_as_not_checkable(tmp_path: Path, capsys):
    with FolderStore(tmp_path / "store") as store:
        path = Path(store.documents(STUDIES).place("old"))
        path.parent.mkdir(exist_ok=True)
        path.write_text('{"name": "old"}')
        assert store.documents(STUDIES).read("old") == {"name": "old"}
    assert main(["store", "verify", "--store", str(tmp_path / "store")]) == 0
    assert f"not checkable: 1 document of an older isorun, such as {path}" in capsys.readouterr().out


def test_a_link_to_nowhere_as_a_kept_study_is_damage_and_ends_nothing(folder: Path):
    with FolderStore(folder) as store:
        store.documents(STUDIES).write("other", {"name": "other"})
        path = Path(store.documents(STUDIES).place("base"))
    path.symlink_to("nowhere")
    (damage,) = verify(folder).damage
    assert damage.where == str(path)
    assert repair(folder).lost == ()
    assert verify(folder).damage == ()


def test_the_copy_of_a_runs_folder_is_the_same_record_in_the_inbox(tmp_path: Path):
    seconds = (0.1, 0.30000001, 0.7, 1.9)
    record = make_record(make_cell(1), series={"acc": Series((0.0, 1.0, 2.0, 3.0), seconds, (0.1, 0.2, 0.3, 0.4))})
    assert stored_form(record) != record
    with FolderStore(tmp_path) as store:
        store.finish(record)
    envelope = gzip.decompress(b"".join(sealed_and_gzipped(record)))
    (tmp_path / "inbox" / f"{record.run_id}.json").write_bytes(envelope)
    assert verify(tmp_path).damage == ()
    with FolderStore(tmp_path) as store:
        assert store.notes() == ()
        assert [*map(content, store.records())] == [content(stored_form(record))]
    assert verify(tmp_path).aside == ()
