"""The index in PostgreSQL: a schema named isorun_registry. It needs `isorun[postgres]`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from isorun.registry.database import AbstractDatabase, Rows
from isorun.store.database import Migration, pending_migrations
from isorun.store.postgres.line import ServerLine

__all__ = ["PostgresDatabase"]

_T = TypeVar("_T")
_PATIENCE_SECONDS: Final = 20.0
_LOCK: Final = int.from_bytes(b"registry", "big") // 2
"""The number of the advisory lock that whoever changes the index holds."""
# A commit is on the disk when it returns, whatever the database or the role has been told; stronger settings stay.
_DURABLE: Final = (
    "SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') = 'off'"
)
_HISTORY: Final = """
    CREATE TABLE IF NOT EXISTS migrations (
        number integer PRIMARY KEY,
        name text NOT NULL,
        checksum text NOT NULL,
        applied_at timestamptz NOT NULL DEFAULT now()
    )
"""


class _PostgresRows(Rows):
    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def all(self, question: str, *values: object) -> list[tuple[Any, ...]]:
        found = self._connection.execute(question.replace("?", "%s"), values)
        rows: list[tuple[Any, ...]] = found.fetchall() if found.description else []
        return rows


class PostgresDatabase(AbstractDatabase):
    """An index that lies on a server, used by a thread at a time; a server that restarts is waited for."""

    def __init__(self, url: str, migrations: Sequence[Migration]) -> None:
        self._line = ServerLine(url, patience_seconds=_PATIENCE_SECONDS)
        self.place = self._line.place
        self._guard = threading.RLock()
        try:
            while self._line.do("migrating the index", lambda link: _migrate(link, migrations, self.place)):
                pass
        except BaseException:
            self._line.hang_up()
            raise

    def read(self, work: Callable[[Rows], _T]) -> _T:
        """One view of the tables."""
        begin = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"
        with self._guard:
            return self._line.do("reading the index", lambda link: _in_transaction(link, (begin,), work))

    def write(self, work: Callable[[Rows], _T]) -> _T:
        """All or nothing, one at a time over all servers of the registry."""
        begin = (_DURABLE, f"SELECT pg_advisory_xact_lock({_LOCK})")
        with self._guard:
            return self._line.do("changing the index", lambda link: _in_transaction(link, begin, work))

    def close(self) -> None:
        """Hang up."""
        with self._guard:
            self._line.hang_up()


def _in_transaction(connection: Any, begin: Sequence[str], work: Callable[[Rows], _T]) -> _T:
    with connection.transaction():
        for question in (*begin, "SET LOCAL search_path TO isorun_registry"):
            connection.execute(question)
        return work(_PostgresRows(connection))


def _migrate(connection: Any, migrations: Sequence[Migration], place: str) -> bool:
    """Apply the next migration in a transaction of its own; whether there was one. One process at a time."""
    with connection.transaction():
        connection.execute(f"SELECT pg_advisory_xact_lock({_LOCK})")
        there = "SELECT 1 FROM pg_namespace WHERE nspname = 'isorun_registry'"  # a role may use it and make none
        if connection.execute(there).fetchone() is None:
            connection.execute("CREATE SCHEMA isorun_registry")
        connection.execute("SET LOCAL search_path TO isorun_registry")
        connection.execute("SET LOCAL client_min_messages TO warning")
        connection.execute(_HISTORY)
        applied = connection.execute("SELECT number, name, checksum FROM migrations ORDER BY number").fetchall()
        pending = pending_migrations(applied, migrations, place)
        if not pending:
            return False
        connection.execute(pending[0].sql)
        connection.execute(
            "INSERT INTO migrations (number, name, checksum) VALUES (%s, %s, %s)",
            (pending[0].number, pending[0].name, pending[0].checksum),
        )
    return True
