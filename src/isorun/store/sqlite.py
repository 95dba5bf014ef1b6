"""The database file: opened with settings that survive crashes, created whole, migrated when it is older.

A rollback journal with `synchronous=EXTRA`: a commit is on the disk when it returns, and the known defect of SQLite's
write-ahead log (a checkpoint racing a commit, in all versions before 3.51.3) cannot happen.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from isorun.errors import StoreError
from isorun.store.failures import reported
from isorun.store.files import Files
from isorun.store.schema import Migration, apply_migrations, back_up, pending_migrations, shipped_migrations

__all__ = ["connect", "create_database", "migrate", "needs_migration", "reading", "writing"]

_BUSY_SECONDS = 60.0
_PAGE_BYTES = 16_384
_CACHE_KIBIBYTES = 65_536


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
        connection = _configured(unfinished, "rwc")
        try:
            connection.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
            apply_migrations(connection, shipped_migrations() if migrations is None else migrations)
        finally:
            connection.close()
        files.rename(unfinished, path)
        files.fsync_folder(path.parent)


def connect(path: Path) -> sqlite3.Connection:
    """A connection to an existing database, to be used by one thread at a time."""
    with reported("opening the store", path):
        if path.stat().st_size == 0:
            raise StoreError(
                f"{path} is damaged",
                found="an empty file",
                allowed="a database that isorun wrote",
                hint="put a backup in its place, or remove the empty file to start anew with what waits in the inbox",
            )
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
        return bool(pending_migrations(connection, path, migrations or shipped_migrations()))


def migrate(connection: sqlite3.Connection, path: Path, migrations: Sequence[Migration] | None = None) -> None:
    """Bring an older database up to date, after a backup; whoever calls this holds the writer's lock."""
    with reported("migrating the store", path):
        pending = pending_migrations(connection, path, migrations or shipped_migrations())
        if pending:
            back_up(connection, path, pending[0])
            apply_migrations(connection, pending)


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
