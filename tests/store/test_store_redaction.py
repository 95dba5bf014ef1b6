"""Values are taken out of everything that a store holds; nothing else is lost, and a kill leaves old or new, whole."""

from __future__ import annotations

import gzip
import json
import os
import random
import shutil
import signal
import sqlite3
import threading
import zlib
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from store_faults import FaultyFiles

from isorun.errors import InputError, StoreBusy, StoreDamaged, StoreError
from isorun.store import PLANS, STUDIES
from isorun.store.checking import verify
from isorun.store.files import Files
from isorun.store.folder import REDACTING, FolderStore
from isorun.store.inbox import Inbox
from isorun.store.redacting import is_too_common, redact
from isorun.study.records import Note, RunRecord, RunState, open_envelope, sealed_and_gzipped
from isorun.testing.made_records import content, make_cell, make_record
from isorun.worker.redaction import REDACTED
from isorun.worker.runfolder import read_files

SECRET = "hunter2-Xq93kd"
FLAG = "--xla_dump_to=Qq88ss7711"


def cell_with(value: str, seed: int = 1):
    command = ("python", "train.py", "--lookup", value, "--seed", "{seed}")
    environment = {"python": "", "env": {"XLA_FLAGS": FLAG, "OMP_NUM_THREADS": "1"}, "threads": None}
    return replace(make_cell(seed), command=command, environment_content=environment)


def record_with(value: str, seed: int = 1) -> RunRecord:
    effective = {"variables": {"XLA_FLAGS": FLAG, "OMP_NUM_THREADS": "1"}, "python": {"version": "3.12.1"}}
    return make_record(
        cell_with(value, seed),
        environment={"requested": {"variables_read": {"DB_HOST": "0a1b2c3d"}}, "effective": effective},
        notes=(Note("a-note", f"looked up {value} once"),),
        reason=f"because of {value}",
        log_tail=f"start\nlookup {value}, XLA_FLAGS={FLAG}\nOMP_NUM_THREADS=1 and 1 epoch\n",
    )


def frame(number: int, event: dict[str, object]) -> bytes:
    body = f"{number} {json.dumps(event, separators=(',', ':'))}".encode()
    return b"%d %08x %b\n" % (len(body), zlib.crc32(body), body)


def write_store(folder: Path, value: str = SECRET, runs: int = 2) -> Path:
    """A store with packed records, their folders, and a kept plan."""
    with FolderStore(folder) as store:
        for seed in range(1, runs + 1):
            record = record_with(value, seed)
            store.finish(record)
            place = folder / "runs" / record.run_id
            place.mkdir(parents=True)
            (place / "record.json.gz").write_bytes(b"".join(sealed_and_gzipped(record)))
            started = {"kind": "start", "t": 0, "pid": 7, "argv": ["python", value]}
            logged = {"kind": "row", "t": 0.25, "step": 1, "values": {"accuracy": 0.1 + seed}}
            (place / "events.jsonl").write_bytes(frame(0, started) + frame(1, logged))
            (place / "output.log").write_bytes(b"\xff\x00 no text " + value.encode() + b"\n")
            (place / "job.json").write_text(json.dumps({"cell": record.cell.to_json(), "command": ["python", value]}))
        store.documents(PLANS).write("first", {"question": f"is {value} better?", "alpha": 0.05})
    return folder


def bytes_of(folder: Path) -> Iterator[tuple[str, bytes]]:
    """All that a store holds, also what is compressed in it, and the names of its files."""
    for path in folder.rglob("*"):
        yield str(path), str(path.relative_to(folder)).encode()
        if path.is_file():
            data = path.read_bytes()
            yield str(path), data
            if data.startswith(b"\x1f\x8b"):
                yield str(path), gzip.decompress(data)
    with closing(sqlite3.connect(folder / "store.sqlite")) as connection:
        for (tail,) in connection.execute("SELECT log_tail FROM runs"):
            yield "a log tail", zlib.decompress(tail) if tail else b""


def holding(folder: Path, value: str) -> list[str]:
    forms = {value.encode(), json.dumps(value)[1:-1].encode()}
    return sorted({where for where, data in bytes_of(folder) if any(form in data for form in forms)})


def records_of(folder: Path) -> list[RunRecord]:
    with FolderStore(folder, create=False) as store:
        return list(store.records())


@pytest.fixture
def made(tmp_path: Path) -> Path:
    return write_store(tmp_path / "store")


def test_a_value_is_gone_from_everything_and_nothing_else_is(made: Path):
    before = records_of(made)
    assert len(holding(made, SECRET)) == 2 * 4 + 3  # four files a run, database, log tail, plan
    done = redact(made, literals=[SECRET])
    assert (done.records, len(done.files), done.unreached) == (2, 2 * 4 + 1, ())
    assert holding(made, SECRET) == []
    assert verify(made).damage == ()
    assert not (made / REDACTING).exists()
    after = records_of(made)
    assert [record.run_id for record in after] == [record.run_id for record in before]
    for old, new in zip(before, after, strict=True):
        assert json.loads(content(new)) == {
            **json.loads(content(old).replace(SECRET, REDACTED)),
            "cell": {**json.loads(content(old).replace(SECRET, REDACTED))["cell"], "known_as": old.cell.id},
        }


def test_run_folders_are_still_what_they_were(made: Path):
    redact(made, literals=[SECRET])
    for place in (made / "runs").iterdir():
        events = []
        (read,) = read_files(place, lambda _, taken, events=events: events.extend(taken))
        assert (read.problem, read.unread_bytes) == ("", 0)
        assert events[0]["argv"] == ["python", REDACTED]
        assert events[1]["values"]["accuracy"] in {1.1, 2.1}
        assert open_envelope((place / "record.json.gz").read_bytes()).record.run_id == place.name
        assert (place / "output.log").read_bytes() == f" no text {REDACTED}\n".encode().join([b"\xff\x00", b""])
        job = json.loads((place / "job.json").read_text())
        assert job["cell"]["id"] == job["cell"]["known_as"] == place.name.rpartition("-")[0]
    with FolderStore(made) as store:
        assert store.documents(PLANS).read("first") == {"question": f"is {REDACTED} better?", "alpha": 0.05}


def test_the_value_that_a_field_shows_is_found_wherever_else_it_stands(made: Path):
    done = redact(made, ["XLA_FLAGS", "NEVER_SET"])
    assert (done.records, done.not_found, done.fields_only) == (2, ("NEVER_SET",), ())
    assert holding(made, FLAG) == []
    (first, _) = records_of(made)
    assert first.cell.environment_content["env"] == {"XLA_FLAGS": REDACTED, "OMP_NUM_THREADS": "1"}
    assert f"XLA_FLAGS={REDACTED}" in first.log_tail
    assert SECRET in first.log_tail


def test_a_common_value_is_taken_out_of_its_own_fields_alone(made: Path):
    done = redact(made, ["OMP_NUM_THREADS"])
    assert done.fields_only == ("OMP_NUM_THREADS",)
    (first, _) = records_of(made)
    assert first.environment["effective"]["variables"]["OMP_NUM_THREADS"] == REDACTED
    assert f"OMP_NUM_THREADS={REDACTED} and 1 epoch" in first.log_tail
    assert first.notes[0].message == f"looked up {SECRET} once"


def test_the_start_of_a_hash_that_is_kept_of_a_variable_goes_too(made: Path):
    assert redact(made, values={"DB_HOST": "db-17.internal-x"}).records == 2
    assert all(r.environment["requested"]["variables_read"] == {"DB_HOST": REDACTED} for r in records_of(made))


@pytest.mark.parametrize(
    "value", ["", "1", "on", "true", "accuracy", "12345678", "0.123456", "/usr/bin", "redacted", "<reda"]
)
def test_values_that_texts_hold_for_other_reasons_are_refused(made: Path, value: str):
    before = dict(bytes_of(made))
    with pytest.raises(InputError, match="too common"):
        redact(made, literals=[value])
    assert dict(bytes_of(made)) == before


def test_what_is_no_name_is_refused_and_not_repeated(made: Path):
    with pytest.raises(InputError) as raised:
        redact(made, [f"{SECRET}!"])
    assert SECRET not in str(raised.value)


def test_a_dry_run_lists_and_changes_nothing(made: Path):
    before = dict(bytes_of(made))
    done = redact(made, literals=[SECRET], dry_run=True)
    assert (done.records, len(done.files), done.dry_run) == (2, 9, True)
    assert dict(bytes_of(made)) == before


def test_nothing_is_done_twice(made: Path):
    redact(made, literals=[SECRET])
    written = (made / "store.sqlite").stat().st_ino
    again = redact(made, literals=[SECRET])
    assert (again.records, again.files) == (0, ())
    assert (made / "store.sqlite").stat().st_ino == written


def test_nothing_is_done_while_a_run_is_in_progress(made: Path):
    with FolderStore(made) as store:
        claim = store.claim(make_cell(99).id)
        assert claim is not None
        with pytest.raises(StoreBusy, match="in progress"):
            redact(made, literals=[SECRET])
        claim.release()
    assert redact(made, literals=[SECRET]).records == 2


def test_a_damaged_store_is_left_alone(made: Path):
    data = (made / "store.sqlite").read_bytes()
    (made / "store.sqlite").write_bytes(data.replace(b"because of", b"becau5e of"))
    with pytest.raises(StoreDamaged):
        redact(made, literals=[SECRET])
    assert b"becau5e of" in (made / "store.sqlite").read_bytes()


def test_records_that_wait_and_records_that_were_set_aside_are_reached(made: Path):
    inbox = Inbox(made / "inbox", Files())
    inbox.put(record_with(SECRET, 8))
    inbox.put(record_with(SECRET, 9))
    aside = inbox.set_aside(record_with(SECRET, 9).run_id, "conflict")
    assert redact(made, literals=[SECRET]).records == 3
    assert holding(made, SECRET) == []
    assert open_envelope(aside.read_bytes()).record.cell.id == cell_with(SECRET, 9).id


def test_what_cannot_be_reached_is_told(made: Path):
    shutil.copy(made / "store.sqlite", made / "store.sqlite.before-0002")
    run = next((made / "runs").iterdir())
    (run / "model.bin").write_bytes(b"\0\1" + SECRET.encode())
    (run / f"{SECRET}.txt").write_text("nothing")
    done = redact(made, literals=[SECRET])
    told = {Path(where).name: why for where, why in done.unreached}
    assert set(told) == {"store.sqlite.before-0002", "model.bin", f"{SECRET}.txt"}
    assert (run / "model.bin").read_bytes() == b"\0\1" + SECRET.encode()


def test_what_a_killed_process_left_half_written_is_removed(made: Path):
    run = next((made / "runs").iterdir())
    half = (run / "record.json.gz").read_bytes()[:200]
    (run / "record.json.gz.0123456789abcdef.tmp").write_bytes(half)
    (made / "inbox" / "x-1.json.77-01234567.tmp").write_text(SECRET)
    (run / "model.tmp").write_text("the training's own")
    redact(made, literals=[SECRET])
    assert [path.name for path in made.rglob("*.tmp")] == ["model.tmp"]


def test_cells_that_differ_in_the_value_alone_stay_different(tmp_path: Path):
    folder = tmp_path / "store"
    with FolderStore(folder) as store:
        for value in (SECRET, "Other99-Kk21"):
            store.finish(record_with(value))
    redact(folder, literals=[SECRET, "Other99-Kk21"])
    first, second = records_of(folder)
    assert {first.cell.id, second.cell.id} == {cell_with(SECRET).id, cell_with("Other99-Kk21").id}
    assert first.cell.command != second.cell.command
    assert all(REDACTED in record.cell.command[3] for record in (first, second))
    assert verify(folder).damage == ()


def test_finished_cells_stay_finished_and_attempts_go_on(made: Path):
    with FolderStore(made) as store:
        store.finish(make_record(cell_with(SECRET, 7), state=RunState.FAILED))
    redact(made, literals=[SECRET])
    with FolderStore(made) as store:
        assert store.claim(cell_with(SECRET, 1).id) is None
        claim = store.claim(cell_with(SECRET, 7).id)
        assert claim is not None
        assert claim.attempt == 2


def test_documents_keep_their_order_and_a_name_that_holds_the_value_changes(made: Path):
    with FolderStore(made) as store:
        for name in ("one", f"two-{SECRET}", "three"):
            store.documents(STUDIES).write(name, {"name": name, "note": SECRET if name == "one" else ""})
        redact(made, literals=[SECRET])
        assert store.documents(STUDIES).names() == ("three", "two-_redacted_", "one")
        assert store.documents(STUDIES).read("two-_redacted_") == {"name": "two-_redacted_", "note": ""}
    assert holding(made, SECRET) == []


def is_gone_whatever_it_is(folder: Path, value: str) -> None:
    write_store(folder, value, runs=1)
    before = [(record.run_id, record.results, record.wall_seconds) for record in records_of(folder)]
    redact(folder, literals=[value])
    assert holding(folder, value) == []
    assert verify(folder).damage == ()
    assert [(record.run_id, record.results, record.wall_seconds) for record in records_of(folder)] == before


@pytest.mark.parametrize("value", ['q"uo\\te\n-2nd line', "y<redac", "ünï-\u2028-cödé-7"])
def test_values_that_are_written_in_other_ways(tmp_path: Path, value: str):
    is_gone_whatever_it_is(tmp_path / "store", value)


TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=6, max_size=20)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(TEXTS.filter(lambda text: not is_too_common(text)))
def test_no_byte_of_any_value_is_left(tmp_path_factory: pytest.TempPathFactory, value: str):
    is_gone_whatever_it_is(tmp_path_factory.mktemp("any") / "store", value)


def operations(folder: Path) -> int:
    counting = FaultyFiles(0)
    redact(folder, literals=[SECRET], files=counting)
    return counting.count


def is_whole(folder: Path, before: dict[str, str]) -> None:
    """Every record is there, old or new, and can be trusted."""
    assert verify(folder).damage == ()
    found = {record.run_id: content(record) for record in records_of(folder)}
    assert found.keys() == before.keys()
    for run_id, text in found.items():
        assert json.loads(text)["results"] == json.loads(before[run_id])["results"]


def finishes(folder: Path) -> None:
    """The next call finishes what was begun, also without being told the value; before that, it is said."""
    if (folder / REDACTING).exists():
        assert verify(folder).redacting
        with FolderStore(folder) as store:
            assert "store-redaction-unfinished" in {note.code for note in store.notes()}
        assert redact(folder).resumed
    else:
        redact(folder, literals=[SECRET])
    assert holding(folder, SECRET) == []
    assert verify(folder).damage == ()
    assert not verify(folder).redacting


@pytest.mark.parametrize("fault", ["EIO", pytest.param("SIGKILL", marks=pytest.mark.slow)])
def test_a_fault_in_any_file_operation_leaves_old_or_new(tmp_path: Path, fault: str):
    whole = write_store(tmp_path / "whole", runs=1)
    before = {record.run_id: content(record) for record in records_of(whole)}
    many = operations(shutil.copytree(whole, tmp_path / "counted"))
    assert many > 20
    for number in range(1, many + 1, 15 if fault == "EIO" else 1):
        folder = shutil.copytree(whole, tmp_path / f"{number}")
        files = FaultyFiles(number, fault, after=bool(number % 2))
        if fault == "EIO":
            with pytest.raises((StoreError, OSError)):
                redact(folder, literals=[SECRET], files=files)
        elif (pid := os.fork()) == 0:
            redact(folder, literals=[SECRET], files=files)
            os._exit(0)
        else:
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
        is_whole(folder, before)
        finishes(folder)


@pytest.mark.slow
def test_killed_at_random_moments(tmp_path: Path):
    whole = write_store(tmp_path / "whole", runs=6)
    before = {record.run_id: content(record) for record in records_of(whole)}
    generator = random.Random(7)
    killed = 0
    for number in range(40):
        folder = shutil.copytree(whole, tmp_path / f"{number}")
        if (pid := os.fork()) == 0:
            redact(folder, literals=[SECRET])
            os._exit(0)
        timer = threading.Timer(generator.uniform(0.0, 0.3), os.kill, [pid, signal.SIGKILL])
        timer.start()
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)  # nobody else gets its number before it is waited for
        timer.cancel()
        timer.join()
        killed += os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 0
        is_whole(folder, before)
        finishes(folder)
        shutil.rmtree(folder)
    assert killed > 10
