"""What is left of a store that may be damaged: its database, read in a copy, and the records in the folders of runs.

Everything that can be read and is whole is handed on; of the rest, what is wrong with it. Nothing here changes a store.
"""

from __future__ import annotations

import gzip
import os
import shutil
import sqlite3
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from isorun.errors import StoreConflict, StoreDamaged, StoreError
from isorun.store.claims import cell_of
from isorun.store.content import KnownAttempt, is_known, stored_form
from isorun.store.database import connect, look_over, migrate, needs_migration
from isorun.store.files import Files, NotAFile, reported
from isorun.store.rows import RecordReader
from isorun.study.cells import Cell
from isorun.study.records import RunRecord, RunState, open_envelope, record_digest

__all__ = [
    "Damage",
    "folders_aside",
    "from_run_folder",
    "in_run_folders",
    "names_in",
    "opened_copy",
    "salvaged",
    "with_copy",
]

RECORD_FILE: Final = "record.json.gz"


@dataclass(frozen=True, slots=True)
class Damage:
    """Something that is not as isorun wrote it. run_id: whose record it is, empty where it is no single one's.

    saved: whether its record is whole elsewhere, in the run's folder or in the store itself.
    """

    where: str
    what: str
    run_id: str = ""
    saved: bool = False

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {"where": self.where, "what": self.what, "run": self.run_id or None, "saved": self.saved}


@dataclass(slots=True)
class _Copy:
    """A copy of the database that may be changed while it is read, and what is wrong with the database as a whole."""

    connection: sqlite3.Connection
    damage: list[Damage] = field(default_factory=list)


@contextmanager
def opened_copy(folder: Path) -> Iterator[_Copy]:
    """Copy the database with its journal, look it over, make its indexes anew, and bring it up to date."""
    with _room_for_a_copy(folder) as place:
        copy = _copied(folder, place)
        try:
            yield copy
        finally:
            copy.connection.close()


@contextmanager
def _room_for_a_copy(folder: Path) -> Iterator[Path]:
    """A new folder in the store's own, or where there is no room in the one for temporary files."""
    needed = 2 * sum(path.stat().st_size for path in _database_files(folder))  # its indexes may be made anew
    near = os.access(folder, os.W_OK) and shutil.disk_usage(folder).free > needed
    at = str(folder) if near else tempfile.gettempdir()
    if shutil.disk_usage(at).free <= needed:
        raise StoreError(
            f"the database of {folder} cannot be copied, and it is looked at only in a copy",
            found=f"{shutil.disk_usage(at).free:,} bytes free in {at}, and {needed:,} are needed",
            hint="name a folder on a disk that has room, TMPDIR=/elsewhere, before the same command",
        )
    with tempfile.TemporaryDirectory(dir=at, prefix="reading-") as place:
        yield Path(place)


def _database_files(folder: Path) -> list[Path]:
    return [path for name in ("store.sqlite", "store.sqlite-journal") if (path := folder / name).is_file()]


def _copied(folder: Path, place: Path) -> _Copy:
    database = folder / "store.sqlite"
    with reported("copying the database", database):
        if not database.is_file():
            return _nothing(f"{database}", "there is no such file")
        for path in _database_files(folder):
            shutil.copyfile(path, place / path.name)
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


def salvaged(connection: sqlite3.Connection) -> Iterator[RunRecord | Damage]:
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


def with_copy(folder: Path, damage: Damage) -> Damage:
    """The damage, and whether the record it concerns is whole in the run's folder."""
    saved = bool(damage.run_id) and isinstance(from_run_folder(folder, damage.run_id), RunRecord)
    return replace(damage, saved=saved)


def from_run_folder(folder: Path, run_id: str) -> RunRecord | Damage | None:
    """The record that the run's folder keeps; what is wrong with it, or None where it keeps none that we may read."""
    path = folder / "runs" / run_id / RECORD_FILE
    try:
        record = stored_form(open_envelope(Files().read(path)).record)
    except (NotAFile, IsADirectoryError):
        return Damage(str(path), "it is no regular file", run_id)
    except (TypeError, ValueError, gzip.BadGzipFile, zlib.error, EOFError) as error:
        return Damage(str(path), f"the copy of the record is damaged: {error}", run_id)
    except (OSError, StoreError):
        return None
    if record.run_id != run_id:
        return Damage(str(path), f"the record of run {record.run_id}", run_id)
    return record


def in_run_folders(folder: Path) -> Iterator[tuple[str, RunRecord | Damage]]:
    """What the folders of runs keep of their records, in the order of cells and attempts."""
    places = {name: place for name in names_in(folder / "runs") if (place := cell_of(name))}
    for name in sorted(places, key=places.__getitem__):
        found = from_run_folder(folder, name)
        if found is not None:
            yield name, found


def folders_aside(folder: Path) -> list[str]:
    """Folders of runs that had their id before, from a time when the store had another database; with their record."""
    aside = [folder / "runs" / name for name in names_in(folder / "runs") if ".before-" in name]
    return sorted(str(path) for path in aside if (path / RECORD_FILE).is_file())


def names_in(folder: Path) -> list[str]:
    """What lies in a folder of the store; nothing where there is no such folder."""
    return Files().names(folder) if folder.is_dir() else []
