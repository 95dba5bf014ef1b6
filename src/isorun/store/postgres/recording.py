"""Writing a record into PostgreSQL: in one statement where nothing speaks against it, else after a look at its cell.

The one statement takes the cell's row as whoever claims it does, adds the run and the shared parts that are new, and is
a transaction of its own: it has happened when its reply is there. It writes only where the cell is not finished and no
later attempt was claimed or recorded. In every other case it writes nothing, and `is_known` decides about the record
with all that is known of its cell.
"""

from __future__ import annotations

from typing import Any, Final

import psycopg

from isorun.store.content import KnownAttempt, is_known
from isorun.store.postgres.records import COLUMNS, KeptRow
from isorun.study.records import RunRecord, RunState

__all__ = ["DURABLE", "RowWriter"]

# A commit is on the disk when it returns, whatever the database or the role has been told; stronger settings stay.
DURABLE: Final = (
    "SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') = 'off'"
)
_INSERT_RUN: Final = f"INSERT INTO isorun.runs ({COLUMNS}) VALUES (%s, %s, %s, %s, %s, %s, %s)"  # noqa: S608 - ours
_INSERT_PARTS: Final = (
    "INSERT INTO isorun.parts (hash, content) SELECT * FROM unnest(%s::bytea[], %s::text[]) ON CONFLICT DO NOTHING"
)
# Nobody claims a finished cell, so that its claim ends with it, and need not be given back in another round trip.
_FINISH_CELL: Final = """
    UPDATE isorun.cells SET attempt = greatest(attempt, %s), finished = true, token = NULL, until = NULL WHERE cell = %s
"""
# A run that was left in a cluster's queue (a token of nobody's) is over with its record.
_TRIED_CELL: Final = """
    UPDATE isorun.cells
    SET attempt = greatest(attempt, %(attempt)s), token = CASE WHEN token <> '' OR attempt > %(attempt)s THEN token END
    WHERE cell = %(cell)s
"""
# Who waits here for another's transaction goes on with the row as that one left it, but does not see its runs: the same
# attempt a second time, which leaves the row as it was, is refused by the index of runs.
_KEEP: Final = f"""
    WITH mine AS (
        UPDATE isorun.cells
        SET attempt = %(attempt)s, finished = %(ends)s, token = CASE WHEN NOT %(ends)s AND token <> '' THEN token END,
            until = CASE WHEN NOT %(ends)s AND token <> '' THEN until END
        WHERE cell = %(cell)s AND NOT finished AND attempt <= %(attempt)s RETURNING cell
    ), shared AS (
        INSERT INTO isorun.parts (hash, content)
        SELECT new.* FROM mine, unnest(%(hashes)s::bytea[], %(contents)s::text[]) AS new ON CONFLICT DO NOTHING
    )
    INSERT INTO isorun.runs ({COLUMNS})
    SELECT cell, %(attempt)s, %(state)s, %(digest)s, %(checksum)s, %(body)s, %(series)s FROM mine
    RETURNING CASE WHEN current_setting('synchronous_commit') = 'off'
        THEN set_config('synchronous_commit', 'on', true) END
"""  # noqa: S608 - all of it ours
_MOST_PARTS: Final = 10_000


class RowWriter:
    """Writes records on the connection of the moment, and remembers which shared parts it has seen to be there."""

    def __init__(self) -> None:
        self._connection: Any = None
        self._there: set[bytes] = set()

    def write(self, connection: Any, record: RunRecord, row: KeptRow, parts: dict[bytes, str]) -> None:
        """Write a record unless the very same one is there; StoreConflict where it contradicts what is known."""
        if connection is not self._connection or len(self._there) > _MOST_PARTS:
            # Behind another connection may be another server, of an older time.
            self._connection, self._there = connection, set()
        new = sorted(set(parts) - self._there)  # one order: nobody waits in a ring
        if not _kept_at_once(connection, row, {hashed: parts[hashed] for hashed in new}):
            _write(connection, record, row, parts)
        self._there.update(new)


def _kept_at_once(connection: Any, row: KeptRow, parts: dict[bytes, str]) -> bool:
    asked = {
        **row._asdict(),
        "ends": row.state == RunState.FINISHED,
        "hashes": list(parts),
        "contents": list(parts.values()),
    }
    try:
        return connection.execute(_KEEP, asked).fetchone() is not None
    except psycopg.errors.UniqueViolation:
        return False


def _write(connection: Any, record: RunRecord, row: KeptRow, parts: dict[bytes, str]) -> None:
    """The same in two round trips: what is known, and what is new."""
    with connection.pipeline(), connection.transaction():
        connection.execute(DURABLE)
        there = connection.execute("SELECT hash FROM isorun.parts WHERE hash = ANY(%s)", (list(parts),))
        claimed, attempts = _locked(connection, row.cell)
        if is_known(record, row.digest, attempts, claimed):
            return
        new = sorted(set(parts) - {hashed for (hashed,) in there})
        if new:
            connection.execute(_INSERT_PARTS, (new, [parts[hashed] for hashed in new]))
        connection.execute(_INSERT_RUN, row)
        if record.state is RunState.FINISHED:
            connection.execute(_FINISH_CELL, (row.attempt, row.cell))
        else:
            connection.execute(_TRIED_CELL, {"attempt": row.attempt, "cell": row.cell})


def _locked(connection: Any, cell_id: str) -> tuple[int, list[KnownAttempt]]:
    """The latest attempt that was claimed, and those recorded. With the cell locked nobody adds to them."""
    latest = connection.execute("SELECT attempt FROM isorun.cells WHERE cell = %s FOR UPDATE", (cell_id,))
    known = connection.execute("SELECT attempt, state, digest FROM isorun.runs WHERE cell = %s", (cell_id,))
    found = latest.fetchone()
    if found is None:  # it was never claimed, as where records are copied
        connection.execute("INSERT INTO isorun.cells (cell) VALUES (%s) ON CONFLICT DO NOTHING", (cell_id,))
        return _locked(connection, cell_id)
    return found[0], [KnownAttempt(attempt, state == RunState.FINISHED, digest) for attempt, state, digest in known]
