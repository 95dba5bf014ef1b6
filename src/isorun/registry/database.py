"""Where the index lies: a SQLite file, or a schema in PostgreSQL. Both take the same questions.

A question is asked with `?` for its values. A change is one transaction that is on the disk when it returns, and
whoever makes one is alone: the audit log is a chain, and a version is a number that nobody else takes. On a line that
broke while it was answered, a change is made again: each looks first whether what it is about to do is done already.
"""

from __future__ import annotations

import abc
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

from isorun.errors import MissingExtra
from isorun.store.database import connect, create_database, migrate, needs_migration, shipped_migrations
from isorun.store.files import Files, reported

__all__ = ["SQLITE", "AbstractDatabase", "Rows", "SqliteDatabase", "open_database"]

_T = TypeVar("_T")
_MIGRATIONS: Final = Path(__file__).with_name("migrations")


class Rows(abc.ABC):
    """What may be asked within a transaction."""

    @abc.abstractmethod
    def all(self, question: str, *values: object) -> list[tuple[Any, ...]]:
        """All rows of the answer; none for a change."""

    def one(self, question: str, *values: object) -> tuple[Any, ...] | None:
        """The first row; None where there is none."""
        found = self.all(question, *values)
        return found[0] if found else None


class AbstractDatabase(abc.ABC):
    """An index that is open. place: what it is called in messages, without passwords."""

    place: str

    @abc.abstractmethod
    def read(self, work: Callable[[Rows], _T]) -> _T:
        """What `work` finds, in one view of the index."""

    @abc.abstractmethod
    def write(self, work: Callable[[Rows], _T]) -> _T:
        """What `work` gives, which may change the index: all of it or nothing. It may be called more than once."""

    @abc.abstractmethod
    def close(self) -> None:
        """Let go of it; closing twice is nothing."""


SQLITE: Final = "index.sqlite"
"""The index in the folder of a registry."""


def open_database(folder: Path, url: str) -> AbstractDatabase:
    """The index of the registry in this folder, made where there is none. url: a PostgreSQL that has it instead."""
    if not url:
        return SqliteDatabase(folder / SQLITE)
    try:
        from isorun.registry.postgres import PostgresDatabase  # noqa: PLC0415 - an extra
    except ImportError:
        raise MissingExtra("psycopg", "postgres", "an index in PostgreSQL") from None
    return PostgresDatabase(url, shipped_migrations(_MIGRATIONS / "postgres"))


class _SqliteRows(Rows):
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def all(self, question: str, *values: object) -> list[tuple[Any, ...]]:
        return self._connection.execute(question, values).fetchall()


class SqliteDatabase(AbstractDatabase):
    """An index in a file: a rollback journal and `synchronous=EXTRA`, as decision 2 says; a thread at a time."""

    def __init__(self, path: Path) -> None:
        self.place = str(path)
        self._path = path
        self._guard = threading.RLock()
        migrations = shipped_migrations(_MIGRATIONS / "sqlite")
        create_database(path, Files(), migrations)
        self._connection = connect(path)
        try:
            if needs_migration(self._connection, path, migrations):
                migrate(self._connection, path, migrations)
        except BaseException:
            self._connection.close()
            raise

    def read(self, work: Callable[[Rows], _T]) -> _T:
        """One view of the file."""
        return self._in_transaction("BEGIN DEFERRED", "reading the index", work)

    def write(self, work: Callable[[Rows], _T]) -> _T:
        """All or nothing."""
        return self._in_transaction("BEGIN IMMEDIATE", "changing the index", work)

    def close(self) -> None:
        """Close the file."""
        with self._guard:
            self._connection.close()

    def _in_transaction(self, begin: str, doing: str, work: Callable[[Rows], _T]) -> _T:
        with self._guard, reported(doing, self._path):
            self._connection.execute(begin)
            try:
                done = work(_SqliteRows(self._connection))
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
            return done
