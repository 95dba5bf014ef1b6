"""Is a store whole, and what can be saved of one that is not?

`verify` looks at everything and changes nothing. `repair` puts the sound records of a damaged database into a new one,
with those that the folders of runs still have. Nothing is deleted: what is damaged stays beside under another name.
"""

from __future__ import annotations

import gzip
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from isorun.errors import StoreBusy, StoreConflict, StoreDamaged, StoreError
from isorun.store import PLANS, STUDIES
from isorun.store.claims import ByteLocks, Claims, cell_of
from isorun.store.content import KnownAttempt, is_known, stored_form
from isorun.store.database import connect, create_database, look_over, migrate, needs_migration, writing
from isorun.store.files import Files, FolderDocuments, reported
from isorun.store.folder import KEY_BYTES
from isorun.store.inbox import DamagedFile, Inbox
from isorun.store.rows import RecordReader, RecordWriter
from isorun.study.cells import Cell
from isorun.study.records import RunRecord, RunState, open_envelope, record_digest

__all__ = ["Damage", "Repaired", "Verified", "repair", "share", "verify"]

RECORD_FILE: Final = "record.json.gz"
_WAIT_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class Damage:
    """Something that is not as isorun wrote it. run_id: whose record it is, empty where it is no single one's.

    saved: whether the run's folder still has the record.
    """

    where: str
    what: str
    run_id: str = ""
    saved: bool = False

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {"where": self.where, "what": self.what, "run": self.run_id or None, "saved": self.saved}


@dataclass(frozen=True, slots=True)
class Verified:
    """What `verify` found. sound: how many records are whole; waiting: how many of them are still in the inbox."""

    store: str
    sound: int
    waiting: int
    damage: tuple[Damage, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        damage = [item.to_json() for item in self.damage]
        return {"store": self.store, "sound_records": self.sound, "waiting": self.waiting, "damage": damage}


@dataclass(frozen=True, slots=True)
class Repaired:
    """What `repair` did. kept: how many records the new database has, saved: those of them from the folders of runs.

    lost: runs whose record is nowhere whole; aside: where what was damaged or contradicts now lies.
    """

    store: str
    kept: int = 0
    saved: int = 0
    lost: tuple[str, ...] = ()
    aside: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "store": self.store,
            "kept_records": self.kept,
            "saved_from_run_folders": self.saved,
            "lost": list(self.lost),
            "set_aside": list(self.aside),
        }


def verify(folder: Path) -> Verified:
    """Look at every record, document and file of the store."""
    folder = _existing(folder)
    inbox = Inbox(folder / "inbox", Files())
    waiting = sum(1 for _ in inbox.read_all()) if inbox.folder.is_dir() else 0
    damage = [*_damaged_files(folder)]
    sound = 0
    with _opened_copy(folder) as copy:
        damage += copy.damage
        for found in _salvaged(copy.connection):
            if isinstance(found, RunRecord):
                sound += 1
            else:
                damage.append(_with_copy(folder, found))
    return Verified(str(folder), sound + waiting, waiting, tuple(damage))


def repair(folder: Path) -> Repaired:
    """Make a new database of what is sound; nothing happens to a store that is."""
    folder = _existing(folder)
    files = Files()
    with _only_writer(folder):
        findings = verify(folder)
        if not findings.damage:
            return Repaired(str(folder), kept=findings.sound)
        aside = [*_set_damaged_files_aside(folder, files)]
        if all(item.where.endswith(".json") or item.where.endswith("key") for item in findings.damage):
            return Repaired(str(folder), kept=findings.sound, aside=tuple(aside))
        rebuilt = _Rebuilding(folder, files)
        rebuilt.fill()
        lost = sorted({item.run_id for item in findings.damage if item.run_id} - rebuilt.run_ids)
        _remember_attempts(folder, files, lost)
        aside += [*rebuilt.aside, str(rebuilt.put_in_place())]
    return Repaired(str(folder), len(rebuilt.run_ids), rebuilt.saved, tuple(lost), tuple(aside))


def _remember_attempts(folder: Path, files: Files, lost: Iterable[str]) -> None:
    """A run whose record is lost is made again as a later attempt: its folder is still there."""
    claims = Claims(folder, files)
    try:
        for cell_id, attempt in filter(None, map(cell_of, lost)):
            claims.remember(cell_id, attempt)
    finally:
        claims.close()


def share(folder: Path, group: int | None = None) -> int:
    """Let the group work with the store, too: all that is there, and what will be. How many files and folders changed.

    group: its number; None for the group that the folder has.
    """
    folder = _existing(folder)
    changed = 0
    with reported("sharing the store", folder):
        for path in (folder, *folder.rglob("*")):
            if path.is_symlink():
                continue
            if group is not None:
                os.chown(path, -1, group)
            path.chmod(0o2770 if path.is_dir() else 0o660)
            changed += 1
    return changed


def _existing(folder: Path) -> Path:
    folder = Path(folder).absolute()
    if not folder.is_dir():
        hint = "name the right folder with --store"
        raise StoreError(f"there is no store at {folder}", found="no such folder", hint=hint)
    return folder


@dataclass(slots=True)
class _Copy:
    """A copy of the database that may be changed while it is read, and what is wrong with the database as a whole."""

    connection: sqlite3.Connection
    damage: list[Damage] = field(default_factory=list)


@contextmanager
def _opened_copy(folder: Path) -> Iterator[_Copy]:
    """Copy the database with its journal, look it over, make its indexes anew, and bring it up to date."""
    at = folder if os.access(folder, os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=at, prefix="reading-") as place:
        copy = _copied(folder, Path(place))
        try:
            yield copy
        finally:
            copy.connection.close()


def _copied(folder: Path, place: Path) -> _Copy:
    database = folder / "store.sqlite"
    with reported("copying the database", database):
        if not database.is_file():
            return _nothing(f"{database}", "there is no such file")
        for name in ("store.sqlite", "store.sqlite-journal"):
            if (folder / name).is_file():
                shutil.copyfile(folder / name, place / name)
    try:
        connection = connect(place / "store.sqlite")
    except StoreError as error:
        return _nothing(str(database), error.found)
    copy = _Copy(connection)
    try:
        look_over(connection, database, thoroughly=True)
    except StoreError as error:
        copy.damage.append(Damage(str(database), error.found))
        _make_indexes_anew(connection)
    try:
        if needs_migration(connection, place / "store.sqlite"):
            migrate(connection, place / "store.sqlite")
    except StoreError as error:
        copy.damage.append(Damage(str(database), error.found or error.what))
    return copy


def _nothing(where: str, what: str) -> _Copy:
    return _Copy(sqlite3.connect(":memory:"), [Damage(where, what)])


def _make_indexes_anew(connection: sqlite3.Connection) -> None:
    """So that what was found through a damaged index can be read; where that fails, rows are read one by one."""
    try:
        connection.execute("REINDEX")
    except sqlite3.Error:
        return


def _salvaged(connection: sqlite3.Connection) -> Iterator[RunRecord | Damage]:
    """Every record that can be read and is whole, and for every other row of the runs what is wrong with it."""
    seen: dict[str, list[KnownAttempt]] = {}
    for row, found in _each_row(connection):
        if isinstance(found, StoreError):
            yield Damage(f"row {row} of the runs", found.found or found.what, _run_id_of(connection, row))
            continue
        if Cell.from_json(found.cell.to_json()).id != found.cell.id:
            yield Damage(f"row {row} of the runs", "its cell has another id than its content says", found.run_id)
            continue
        known = seen.setdefault(found.cell.id, [])
        digest = record_digest(found)
        try:
            is_known(found, digest, known)
        except StoreConflict as error:
            yield Damage(f"row {row} of the runs", f"{error.what}: {error.found}", found.run_id)
            continue
        known.append(KnownAttempt(found.attempt, found.state is RunState.FINISHED, digest))
        yield found


def _each_row(connection: sqlite3.Connection) -> Iterator[tuple[int, RunRecord | StoreError]]:
    """All rows at once, or one by one where a part of the database cannot be read."""
    try:
        rows: list[tuple[int, RunRecord | StoreError]] = list(RecordReader(connection).each())
    except (sqlite3.Error, ValueError):
        rows = [(row, _one_row(connection, row)) for row in _row_numbers(connection)]
    yield from rows


def _one_row(connection: sqlite3.Connection, row: int) -> RunRecord | StoreError:
    try:
        found = list(RecordReader(connection, [row]).each())
    except (sqlite3.Error, ValueError) as error:
        return StoreDamaged("it cannot be read", found=str(error))
    return found[0][1] if found else StoreDamaged("it cannot be read", found="no such row")


def _row_numbers(connection: sqlite3.Connection) -> list[int]:
    """The rows of the runs from both ends as far as they can be read, and every number in between."""
    found: set[int] = set()
    for order in ("ASC", "DESC"):
        try:
            for (number,) in connection.execute(f"SELECT id FROM runs NOT INDEXED ORDER BY id {order}"):  # noqa: S608
                found |= {number} if isinstance(number, int) else set()
        except (sqlite3.Error, UnicodeDecodeError):
            continue
    return list(range(min(found), min(max(found), min(found) + 10_000_000) + 1)) if found else []


def _run_id_of(connection: sqlite3.Connection, row: int) -> str:
    try:
        found = connection.execute("SELECT cell, attempt FROM runs WHERE id = ?", (row,)).fetchone()
    except sqlite3.Error:
        return ""
    return f"{found[0]}-{found[1]}" if found else ""


def _damaged_files(folder: Path) -> Iterator[Damage]:
    inbox = Inbox(folder / "inbox", Files())
    for file in _damaged_in(inbox) if inbox.folder.is_dir() else ():
        yield _with_copy(folder, Damage(str(file.path), file.found, file.path.name.removesuffix(".json")))
    for kind in (STUDIES, PLANS):
        documents = FolderDocuments(folder, kind)
        for name in documents.names():
            try:
                documents.read(name)
            except StoreError as error:
                yield Damage(documents.place(name), error.found)
    key = folder / "key"
    if key.is_file() and key.stat().st_size != KEY_BYTES:
        yield Damage(str(key), f"{key.stat().st_size} bytes instead of {KEY_BYTES}")


def _damaged_in(inbox: Inbox) -> Iterator[DamagedFile]:
    return (file for run_id in inbox.run_ids() if isinstance(file := inbox.read(run_id), DamagedFile))


def _set_damaged_files_aside(folder: Path, files: Files) -> Iterator[str]:
    for damage in list(_damaged_files(folder)):
        path = Path(damage.where)
        target = path.with_name(f"{path.name}.damaged-{_now()}")
        with reported("setting a damaged file aside", path):
            files.rename(path, target)
            files.fsync_folder(path.parent)
        yield str(target)


def _with_copy(folder: Path, damage: Damage) -> Damage:
    saved = bool(damage.run_id) and _from_run_folder(folder, damage.run_id) is not None
    return Damage(damage.where, damage.what, damage.run_id, saved)


def _from_run_folder(folder: Path, run_id: str) -> RunRecord | None:
    """The record that the run's folder keeps, if it is whole and this run's."""
    path = folder / "runs" / run_id / RECORD_FILE
    try:
        if path.is_symlink() or not path.is_file():
            return None
        record = open_envelope(path.read_bytes()).record
    except (OSError, ValueError, StoreError, gzip.BadGzipFile):
        return None
    return stored_form(record) if record.run_id == run_id else None


class _Rebuilding:
    """A new database beside the damaged one."""

    def __init__(self, folder: Path, files: Files) -> None:
        self.run_ids: set[str] = set()
        self.saved = 0
        self.aside: list[str] = []
        self._folder = folder
        self._files = files
        self._path = folder / "store.sqlite.repaired"
        self._known: dict[str, list[KnownAttempt]] = {}

    def fill(self) -> None:
        """Write what is sound, first of the database, then of the folders of runs."""
        self._files.unlink(self._path)
        create_database(self._path, self._files)
        connection = connect(self._path)
        try:
            with _opened_copy(self._folder) as copy, writing(connection, self._path):
                writer = RecordWriter(connection)
                for found in _salvaged(copy.connection):
                    if isinstance(found, RunRecord):
                        self._write(writer, found)
                for record in self._from_run_folders():
                    self.saved += self._write(writer, record)
        finally:
            connection.close()

    def put_in_place(self) -> Path:
        """Give the new database its name; the damaged one keeps another."""
        database = self._folder / "store.sqlite"
        damaged = database.with_name(f"store.sqlite.damaged-{_now()}")
        with reported("putting the new database in place", self._folder):
            journal = database.with_name("store.sqlite-journal")
            if journal.exists():
                self._files.rename(journal, journal.with_name(f"{damaged.name}-journal"))
            if database.exists():
                os.link(database, damaged)
            self._files.rename(self._path, database)
            self._files.fsync_folder(self._folder)
        return damaged

    def _from_run_folders(self) -> Iterator[RunRecord]:
        runs = self._folder / "runs"
        names = [path.name for path in runs.iterdir()] if runs.is_dir() else []
        waiting = set(Inbox(self._folder / "inbox", self._files).run_ids())
        places = {name: place for name in names if (place := cell_of(name))}
        for name in sorted(places, key=places.__getitem__):
            if name not in self.run_ids and name not in waiting:
                record = _from_run_folder(self._folder, name)
                if record is not None:
                    yield record

    def _write(self, writer: RecordWriter, record: RunRecord) -> bool:
        known = self._known.setdefault(record.cell.id, [])
        digest = record_digest(record)
        try:
            if is_known(record, digest, known):
                return False
        except StoreConflict:
            self._set_aside(record)
            return False
        writer.write(record, digest)
        known.append(KnownAttempt(record.attempt, record.state is RunState.FINISHED, digest))
        self.run_ids.add(record.run_id)
        return True

    def _set_aside(self, record: RunRecord) -> None:
        inbox = Inbox(self._folder / "inbox", self._files)
        if record.run_id not in inbox.run_ids():
            inbox.put(record)
            self.aside.append(str(inbox.set_aside(record.run_id, "conflict")))


@contextmanager
def _only_writer(folder: Path) -> Iterator[None]:
    with reported("opening the writer's lock", folder):
        locks = ByteLocks(folder / "writer.lock")
    try:
        if not locks.acquire(0, timeout_seconds=_WAIT_SECONDS):
            hint = "wait for it to end, and run the same command again"
            raise StoreBusy(
                f"the store at {folder} cannot be repaired", found="another process writes to it", hint=hint
            )
        yield
    finally:
        locks.close()


def _now() -> str:
    return datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
