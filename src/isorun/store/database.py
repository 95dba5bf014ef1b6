"""The database file: opened with settings that survive crashes, created whole, migrated when it is older, looked over.

A rollback journal with `synchronous=EXTRA`: a commit is on the disk when it returns, and the known defect of SQLite's
write-ahead log (a checkpoint racing a commit, in all versions before 3.51.3) cannot happen.

The schema is that of numbered migrations, each applied once and in one transaction. A database says which it has had,
with the checksum of each, so that a newer or an altered schema is noticed before anything is read or written.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from isorun.errors import StoreDamaged, StoreError, StoreTooNew
from isorun.store.files import Files, reported
from isorun.store.rows import add_checksums

__all__ = [
    "Migration",
    "connect",
    "create_database",
    "look_over",
    "migrate",
    "needs_migration",
    "pending_migrations",
    "reading",
    "shipped_migrations",
    "writing",
]

_BUSY_SECONDS = 60.0
_PAGE_BYTES = 16_384
_CACHE_KIBIBYTES = 65_536


_APPLICATION_ID = int.from_bytes(b"isor", "big")

_HISTORY = """
CREATE TABLE IF NOT EXISTS migrations (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    checksum TEXT NOT NULL,
    applied_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%SZ', 'now'))
);
"""

_STEPS: Final[Mapping[str, Callable[[sqlite3.Connection], None]]] = {"checksums": add_checksums}
"""What a migration does besides its SQL, in the same transaction, by its name: other databases have numbers, too."""


@dataclass(frozen=True, slots=True)
class Migration:
    """One step from a schema to the next."""

    number: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        """What tells this text from any other."""
        return hashlib.sha256(self.sql.encode()).hexdigest()


def create_database(path: Path, files: Files, migrations: Sequence[Migration] | None = None) -> None:
    """Create the database unless it exists; whoever calls this holds the writer's lock.

    It is made under another name and renamed when complete, so a database that is empty or cut is known to be damaged.
    """
    if path.exists():
        return
    unfinished = path.with_name(f"{path.name}.unfinished")
    with reported("creating the store", path):
        for leftover in (unfinished, unfinished.with_name(f"{unfinished.name}-journal")):
            files.unlink(leftover)
        files.close(files.create(unfinished))
        connection = _configured(unfinished, "rwc")
        try:
            connection.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
            _apply_migrations(connection, shipped_migrations() if migrations is None else migrations)
        finally:
            connection.close()
        files.rename(unfinished, path)
        files.fsync_folder(path.parent)


def connect(path: Path) -> sqlite3.Connection:
    """A connection to an existing database, to be used by one thread at a time."""
    with reported("opening the store", path):
        if path.stat().st_size == 0:
            raise StoreDamaged(f"{path} cannot be read", found="an empty file")
        connection = _configured(path, "rw")
        try:
            connection.execute("SELECT COUNT(*) FROM sqlite_schema").fetchone()
        except BaseException:
            connection.close()
            raise
    return connection


def needs_migration(connection: sqlite3.Connection, path: Path, migrations: Sequence[Migration] | None = None) -> bool:
    """Whether the schema is older than this isorun's; an error when it is newer or unknown."""
    with reported("reading the store's schema", path):
        return bool(_pending_migrations(connection, path, migrations or shipped_migrations()))


def migrate(connection: sqlite3.Connection, path: Path, migrations: Sequence[Migration] | None = None) -> None:
    """Bring an older database up to date, after a backup; whoever calls this holds the writer's lock."""
    with reported("migrating the store", path):
        pending = _pending_migrations(connection, path, migrations or shipped_migrations())
        if pending:
            _back_up(connection, path, pending[0])
            _apply_migrations(connection, pending)


def look_over(connection: sqlite3.Connection, path: Path, *, thoroughly: bool = False) -> None:
    """StoreDamaged when the database does not hold together; to be asked before anything is written to it.

    Pages and rows are looked at, and whether the indexes that keep a cell from being finished twice have all rows.
    thoroughly: all indexes and references between tables.
    """
    checks = ("integrity_check", "foreign_key_check") if thoroughly else ("quick_check", "integrity_check(runs)")
    with reported("looking the database over", path):
        found = [str(row[0]) for check in checks for row in connection.execute(f"PRAGMA {check}") if row[0] != "ok"]
    if found:
        more = f" (and {len(found) - 3} more)" if len(found) > 3 else ""
        raise StoreDamaged(f"{path} does not hold together", found=f"{'; '.join(found[:3])}{more}")


@contextmanager
def reading(connection: sqlite3.Connection, path: Path) -> Iterator[sqlite3.Connection]:
    """One consistent view of the database."""
    with reported("reading the store", path), _transaction(connection, "BEGIN DEFERRED"):
        yield connection


@contextmanager
def writing(connection: sqlite3.Connection, path: Path) -> Iterator[sqlite3.Connection]:
    """All or nothing, on the disk when it is over; whoever calls this holds the writer's lock."""
    with reported("packing records into the store", path), _transaction(connection, "BEGIN IMMEDIATE"):
        yield connection


@contextmanager
def _transaction(connection: sqlite3.Connection, begin: str) -> Iterator[None]:
    connection.execute(begin)
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _configured(path: Path, mode: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        timeout=_BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )
    connection.execute("PRAGMA synchronous = EXTRA")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA mmap_size = 0")
    connection.execute(f"PRAGMA cache_size = -{_CACHE_KIBIBYTES}")
    return connection


_MIGRATIONS: Final = Path(__file__).with_name("migrations")


def shipped_migrations(folder: Path = _MIGRATIONS) -> tuple[Migration, ...]:
    """The migrations this isorun knows for stores of one kind, in order."""
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".sql")), key=lambda file: file.name)
    return tuple(_migration(file.name, file.read_text(encoding="utf-8")) for file in files)


def _pending_migrations(
    connection: sqlite3.Connection, path: Path, migrations: Sequence[Migration]
) -> tuple[Migration, ...]:
    """The migrations the database has not had; an error when it is no store, too new, or not what this isorun knows."""
    if connection.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION_ID:
        raise _not_a_store(path)
    applied = connection.execute("SELECT number, name, checksum FROM migrations ORDER BY number").fetchall()
    return pending_migrations(applied, migrations, str(path))


def pending_migrations(
    applied: Sequence[tuple[int, str, str]], migrations: Sequence[Migration], place: str
) -> tuple[Migration, ...]:
    """Those that are not among the applied ones; an error when those are newer, or not what this isorun knows."""
    latest = max((number for number, _, _ in applied), default=0)
    known = {migration.number: migration for migration in migrations}
    if latest > max(known, default=0):
        raise _too_new(place, latest, max(known, default=0))
    for number, name, checksum in applied:
        if number not in known or known[number].checksum != checksum:
            raise _altered(place, f"{number:04}_{name}")
    return tuple(migration for migration in migrations if migration.number > latest)


def _apply_migrations(connection: sqlite3.Connection, migrations: Sequence[Migration]) -> None:
    """Apply each migration in a transaction of its own."""
    for migration in migrations:
        try:
            connection.executescript(f"BEGIN IMMEDIATE;{_HISTORY}{migration.sql}")
            if migration.name in _STEPS:
                _STEPS[migration.name](connection)
            connection.execute(
                "INSERT INTO migrations (number, name, checksum) VALUES (?, ?, ?)",
                (migration.number, migration.name, migration.checksum),
            )
            connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def _back_up(connection: sqlite3.Connection, path: Path, first: Migration) -> Path:
    """Copy the database beside itself before it is migrated; where a copy lies already, that older one is kept."""
    backup = path.with_name(f"{path.name}.before-{first.number:04}")
    if not backup.exists():
        unfinished = backup.with_name(f"{backup.name}.unfinished")
        unfinished.unlink(missing_ok=True)
        files = Files()
        files.close(files.create(unfinished))
        connection.execute("VACUUM INTO ?", (str(unfinished),))
        unfinished.replace(backup)
    return backup


def _migration(file_name: str, sql: str) -> Migration:
    number, _, name = file_name.removesuffix(".sql").partition("_")
    return Migration(int(number), name, sql)


def _not_a_store(path: Path) -> StoreError:
    return StoreError(
        f"{path} is not a store of isorun",
        found="another kind of SQLite database",
        allowed="a database that isorun wrote",
        hint="choose another folder with --store; if it is one, its header is damaged: isorun store repair",
    )


def _too_new(place: str, found: int, known: int) -> StoreTooNew:
    return StoreTooNew(
        f"{place} was written by a newer isorun",
        found=f"schema version {found}",
        allowed=f"schema versions up to {known}",
        hint="pip install --upgrade isorun",
    )


def _altered(place: str, name: str) -> StoreError:
    return StoreError(
        f"{place} has another schema than this isorun expects",
        found=f"migration {name} with a different content",
        allowed=f"migration {name} as this isorun ships it",
        hint="open the store with the isorun that wrote it, or choose another one with --store",
    )
