"""The inbox: whole files or none, damage set aside, nothing deleted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from store_children import Nursery, kill, python

from isorun.errors import StoreConflict, StoreError, StoreTooNew
from isorun.store.folder import FolderStore
from isorun.study.records import RunState
from isorun.testing.made_records import make_cell, make_record


@pytest.fixture
def store(tmp_path: Path):
    with FolderStore(tmp_path) as opened:
        yield opened


def inbox_file(store: FolderStore, number: int, attempt: int = 1) -> Path:
    return store.folder / "inbox" / f"{make_cell(number).id}-{attempt}.json"


def test_a_file_cut_at_any_byte_is_no_record(store: FolderStore):
    store.finish(make_record(make_cell(1), points=2, environment={}))
    file = inbox_file(store, 1)
    whole = file.read_bytes()
    for length in range(len(whole) - 1):
        file.write_bytes(whole[:length])
        assert store.finished() == set()
    file.write_bytes(whole)
    assert store.finished() == {make_cell(1).id}


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text.replace(":0.9", ":0.8"),
        lambda text: text.replace('"format":1', '"format":"one"').replace("record", "rekord"),
        lambda _: "[]",
        lambda text: "\x00" * len(text),
        lambda _: '{"format":1,"digest":"00","record":{}}',
        lambda _: '{"format":1,"digest":null,"record":null}',
    ],
    ids=["changed", "keys", "list", "zeros", "empty", "null"],
)
def test_a_damaged_file_is_set_aside_loudly_and_the_others_are_packed(store: FolderStore, damage):
    for number in range(3):
        store.finish(make_record(make_cell(number)))
    damaged = damage(inbox_file(store, 1).read_text())
    inbox_file(store, 1).write_text(damaged)
    assert any("is damaged" in note.message for note in store.notes())
    with pytest.raises(StoreError, match="is damaged; it was kept as"):
        store.pack()
    assert store.finished() == {make_cell(0).id, make_cell(2).id}
    (aside,) = (store.folder / "inbox").iterdir()
    assert aside.name.endswith(".json.damaged")
    assert aside.read_text() == damaged
    assert [note.code for note in store.notes()] == ["store-record-set-aside"]
    store.finish(make_record(make_cell(1)))
    assert store.pack() == 1


def test_a_file_under_the_name_of_another_run_is_damaged(store: FolderStore):
    store.finish(make_record(make_cell(1)))
    inbox_file(store, 1).rename(inbox_file(store, 2))
    assert store.finished() == set()
    with pytest.raises(StoreError, match="is damaged"):
        store.pack()


def test_a_conflicting_file_is_kept_and_the_others_are_packed(store: FolderStore):
    store.finish(make_record(make_cell(1), accuracy=0.9))
    kept = inbox_file(store, 1).read_bytes()
    store.pack()
    for expected in (".json.conflict", ".json.conflict-2"):
        other = make_record(make_cell(1), accuracy=0.8)
        store._inbox.put(other)
        store.finish(make_record(make_cell(2)))
        with pytest.raises(StoreConflict, match="contradicts what is known of its cell"):
            store.pack()
        assert any(file.name.endswith(expected) for file in (store.folder / "inbox").iterdir())
    assert store.finished() == {make_cell(1).id, make_cell(2).id}
    assert store.records([make_cell(1).id])[0].results == {"accuracy": 0.9}
    assert kept not in [file.read_bytes() for file in (store.folder / "inbox").iterdir()]


def test_two_finished_attempts_in_the_inbox_are_a_conflict_and_the_first_wins(store: FolderStore):
    store._inbox.put(make_record(make_cell(1), attempt=2, accuracy=0.2))
    store._inbox.put(make_record(make_cell(1), attempt=1, accuracy=0.1))
    with pytest.raises(StoreConflict, match="finished by attempt 1"):
        store.pack()
    assert [record.results["accuracy"] for record in store.records()] == [0.1]


def test_a_file_of_a_newer_format_is_left_for_a_newer_isorun(store: FolderStore):
    store.finish(make_record(make_cell(1)))
    envelope = json.loads(inbox_file(store, 1).read_text())
    inbox_file(store, 1).write_text(json.dumps({**envelope, "format": 2}))
    for action in (store.pack, store.records, store.finished):
        with pytest.raises(StoreTooNew, match="upgrade"):
            action()
    assert inbox_file(store, 1).exists()


def test_packing_again_after_the_files_were_not_removed_is_nothing(store: FolderStore):
    store.finish(make_record(make_cell(1)))
    store.finish(make_record(make_cell(2), state=RunState.FAILED))
    files = {number: inbox_file(store, number).read_bytes() for number in (1, 2)}
    assert store.pack() == 2
    for number, data in files.items():
        inbox_file(store, number).write_bytes(data)
    assert len(store.records()) == len(store.run_ids()) == 2
    assert store.pack() == 0
    assert list((store.folder / "inbox").iterdir()) == []


def test_a_half_written_file_is_cleaned_only_when_its_writer_has_gone(tmp_path: Path):
    nursery = Nursery("""
    from isorun.store.files import Files
    files = Files()
    descriptor = files.create(Path(task))
    assert files.lock(descriptor)
    files.write(descriptor, b"half")
    os.write(1, b"written\\n")
    import time; time.sleep(60)
    """)
    with FolderStore(tmp_path) as store:
        half = tmp_path / "inbox" / "cell-1.json.1-abc.tmp"
        pid = nursery.start(half)
        assert nursery.line() == "written"
        assert store.pack() == 0
        assert half.exists()
        assert store.records() == []
        kill(pid)
        assert nursery.line() == "gone -9"
        assert store.pack() == 0
        assert not half.exists()
    nursery.close()


def test_a_half_written_file_is_cleaned_also_where_nothing_else_waits(tmp_path: Path):
    FolderStore(tmp_path).close()
    (tmp_path / "inbox" / "cell-1.json.1-abc.tmp").write_bytes(b"half")
    FolderStore(tmp_path).close()
    assert list((tmp_path / "inbox").iterdir()) == []


def test_a_file_taken_by_a_cleaner_before_it_was_locked_is_written_again(tmp_path: Path, monkeypatch):
    with FolderStore(tmp_path) as store:
        files = store._files
        taken = []

        def lock_late(descriptor: int) -> bool:
            if not taken:
                taken.extend((tmp_path / "inbox").iterdir())
                taken[0].unlink()
            return True

        monkeypatch.setattr(files, "lock", lock_late)
        store.finish(make_record())
        assert len(taken) == 1
        assert store.finished() == {make_cell().id}


SHARING = """
store = FolderStore(Path(sys.argv[1]))
for number in range(60):
    claim = store.claim(make_cell(number).id)
    if claim is not None:
        store.finish(make_record(make_cell(number), attempt=claim.attempt, accuracy=float(os.getpid())))
        claim.release()
        print(number, flush=True)
    if number % 10 == 0:
        store.pack()
store.pack()
"""


def test_processes_that_record_at_once_lose_and_double_nothing(tmp_path: Path):
    processes = [python(SHARING, tmp_path) for _ in range(3)]
    outputs = [process.communicate(timeout=120) for process in processes]
    assert [errors for _, errors in outputs] == ["", "", ""]
    done = [int(line) for output, _ in outputs for line in output.split()]
    assert sorted(done) == list(range(60))
    with FolderStore(tmp_path) as store:
        assert sorted(record.cell.seed for record in store.records()) == list(range(60))
        assert store.pack() == 0
