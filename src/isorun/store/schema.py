"""The schema of the database: numbered migrations, each applied once and in one transaction.

A database says which migrations it has had, with the checksum of each, so that a newer or an altered schema is
noticed before anything is read or written.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from isorun.errors import StoreError, StoreTooNew

__all__ = ["APPLICATION_ID", "Migration", "apply_migrations", "back_up", "pending_migrations", "shipped_migrations"]

APPLICATION_ID = int.from_bytes(b"isor", "big")

_HISTORY = """
CREATE TABLE IF NOT EXISTS migrations (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    checksum TEXT NOT NULL,
    applied_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%SZ', 'now'))
);
"""


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


def shipped_migrations() -> tuple[Migration, ...]:
    """The migrations this isorun knows, in order."""
    folder = resources.files("isorun.store") / "migrations"
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".sql")), key=lambda file: file.name)
    return tuple(_migration(file.name, file.read_text(encoding="utf-8")) for file in files)


def pending_migrations(
    connection: sqlite3.Connection, path: Path, migrations: Sequence[Migration]
) -> tuple[Migration, ...]:
    """The migrations the database has not had; an error when it is no store, too new, or not what this isorun knows."""
    if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        raise _not_a_store(path)
    applied = connection.execute("SELECT number, name, checksum FROM migrations ORDER BY number").fetchall()
    latest = max((number for number, _, _ in applied), default=0)
    known = {migration.number: migration for migration in migrations}
    if latest > max(known, default=0):
        raise _too_new(path, latest, max(known, default=0))
    for number, name, checksum in applied:
        if known[number].checksum != checksum:
            raise _altered(path, f"{number:04}_{name}")
    return tuple(migration for migration in migrations if migration.number > latest)


def apply_migrations(connection: sqlite3.Connection, migrations: Sequence[Migration]) -> None:
    """Apply each migration in a transaction of its own."""
    for migration in migrations:
        try:
            connection.executescript(f"BEGIN IMMEDIATE;{_HISTORY}{migration.sql}")
            connection.execute(
                "INSERT INTO migrations (number, name, checksum) VALUES (?, ?, ?)",
                (migration.number, migration.name, migration.checksum),
            )
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def back_up(connection: sqlite3.Connection, path: Path, first: Migration) -> Path:
    """Copy the database beside itself before it is migrated; where a copy lies already, that older one is kept."""
    backup = path.with_name(f"{path.name}.before-{first.number:04}")
    if not backup.exists():
        unfinished = backup.with_name(f"{backup.name}.unfinished")
        unfinished.unlink(missing_ok=True)
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
        hint="choose another folder with --store",
    )


def _too_new(path: Path, found: int, known: int) -> StoreTooNew:
    return StoreTooNew(
        f"{path} was written by a newer isorun",
        found=f"schema version {found}",
        allowed=f"schema versions up to {known}",
        hint="pip install --upgrade isorun",
    )


def _altered(path: Path, name: str) -> StoreError:
    return StoreError(
        f"{path} has another schema than this isorun expects",
        found=f"migration {name} with a different content",
        allowed=f"migration {name} as this isorun ships it",
        hint="open the store with the isorun that wrote it, or choose another folder with --store",
    )
