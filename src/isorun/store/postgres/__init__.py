"""The store of many machines: a schema named isorun in a PostgreSQL database.

    postgresql://lab/isorun        the server lab, the database isorun; whatever libpq reads says the rest

It needs `isorun[postgres]`. `line.py` is the way to the server, `records.py` what a record is there, `recording.py` how
it gets there, `claims.py` who executes a cell; the schema is that of the numbered files in `migrations/`. See
docs/design/postgres-store.md.
"""

from __future__ import annotations

import json
import os
import secrets
import shlex
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from isorun.errors import StoreDamaged, StoreError, StoreMissing
from isorun.store import AbstractDocuments, AbstractStore, Claim, Holder, refuse_name
from isorun.store.content import stored_form
from isorun.store.database import Migration, pending_migrations, shipped_migrations
from isorun.store.postgres.claims import LeasedClaims
from isorun.store.postgres.line import ServerLine
from isorun.store.postgres.recording import DURABLE, RowWriter
from isorun.store.postgres.records import COLUMNS, KeptRow, RowReader, packed_row
from isorun.study.records import Note, RunRecord, RunState, content_digest

if TYPE_CHECKING:
    from isorun.store.checking import Verified

__all__ = ["PostgresDocuments", "PostgresStore"]

_T = TypeVar("_T")
_LEASE_SECONDS: Final = 30.0
_SHORTEST_LEASE, _LONGEST_LEASE = 1.0, 3600.0
_PATIENCE_SECONDS: Final = 120.0
_KEY_BYTES: Final = 32
_MIGRATING: Final = int.from_bytes(b"isorun", "big")
"""The number of the advisory lock that whoever migrates holds."""

_LOOK: Final = """
    SELECT n.oid IS NOT NULL, count(c.oid), count(c.oid) FILTER (WHERE c.relname = 'migrations'),
        current_setting('fsync')
    FROM (VALUES (1)) AS one LEFT JOIN pg_namespace n ON n.nspname = 'isorun'
    LEFT JOIN pg_class c ON c.relnamespace = n.oid AND c.relkind IN ('r', 'v', 'm', 'p', 'f')
    GROUP BY n.oid
"""
_HISTORY: Final = """
    CREATE TABLE IF NOT EXISTS isorun.migrations (
        number integer PRIMARY KEY,
        name text NOT NULL,
        checksum text NOT NULL,
        applied_at timestamptz NOT NULL DEFAULT now()
    )
"""


class PostgresStore(AbstractStore):
    """Keeps records in a database, whose schema is made when it is missing and `create` says so.

    Any number of processes on any number of machines may use it at once. lease_seconds: how long a claim holds that
    is not renewed; as ISORUN_LEASE says where it is not given. patience_seconds: how long a server that answered before
    may be away before that is an error.
    """

    def __init__(
        self,
        url: str,
        *,
        create: bool = True,
        lease_seconds: float | None = None,
        patience_seconds: float = _PATIENCE_SECONDS,
    ) -> None:
        lease = _lease_seconds() if lease_seconds is None else lease_seconds
        self._line = ServerLine(url, patience_seconds=patience_seconds)
        outages = self._line.outages
        self.place = self._line.place
        self.looked_over_by = f"isorun store verify --store {shlex.quote(self.place)}"
        self._guard = threading.RLock()
        self._process = os.getpid()
        self._closed = False
        self._durable = True
        self._writer = RowWriter()
        self._claims = LeasedClaims(self._do, lambda: ServerLine(url, patience_seconds=lease, outages=outages), lease)
        try:
            self._open(create=create)
            self.key = self._own_key()
        except BaseException:
            self._line.hang_up()
            raise

    def claim(self, cell_id: str) -> Claim | None:
        """The right to execute the cell, as a new attempt."""
        return next(iter(self.claim_any([cell_id])), None)

    def claim_any(self, cell_ids: Sequence[str], limit: int = 1) -> list[Claim]:
        """The rights to execute the first of these cells that are free, in one go."""
        with self._guard:
            return self._claims.take(cell_ids, limit)

    def claim_again(self, cell_id: str, attempt: int) -> Claim | None:
        """The right to an attempt that was claimed before and is nobody's now."""
        with self._guard:
            return self._claims.take_again(cell_id, attempt)

    def holders(self) -> Sequence[Holder]:
        """Who holds a claim now; one that died is among them until its lease is over."""
        return self._claims.holders()

    def finish(self, record: RunRecord) -> None:
        """Commit the record; when this returns it is on the disk of the server."""
        kept = stored_form(record)
        row, parts = packed_row(kept)
        self._do(f"recording run {kept.run_id}", lambda connection: self._writer.write(connection, kept, row, parts))
        if kept.state is RunState.FINISHED:
            self._claims.given_back(kept.cell.id, kept.attempt)

    def finished(self, cell_ids: Iterable[str] | None = None) -> set[str]:
        """The cells with a finished record, of the given ones or of all."""
        return {cell for (cell,) in self._asked("cell", "state = 'finished'", cell_ids)}

    def records(self, cell_ids: Iterable[str] | None = None) -> Sequence[RunRecord]:
        """All records, or those of the given cells; each is checked."""
        with self._told_where():
            return self._reader().records(self._rows(cell_ids))

    def each_record(self, cell_id: str) -> Iterator[RunRecord | StoreDamaged]:
        """The records of a cell, each by itself."""
        return (found for _, found in self._reader().each(self._rows([cell_id])))

    def run_ids(self, cell_ids: Iterable[str] | None = None) -> set[str]:
        """The runs of all records, or of those of the given cells."""
        return {f"{cell}-{attempt}" for cell, attempt in self._asked("cell, attempt", "true", cell_ids)}

    def documents(self, kind: str) -> AbstractDocuments:
        """The documents of one kind."""
        return PostgresDocuments(kind, self.place, self._do)

    def notes(self) -> tuple[Note, ...]:
        """When the server may lose what it acknowledged, how long it was away, and claims that others took over."""
        unsafe = f"{self.place} runs with fsync = off: records are lost when its machine crashes"
        taken = "was taken over by another process: this one was stopped, or cut off from the store, for too long"
        seconds = self._line.outages.seconds
        waited = f"{self.place} was away for about {seconds:.0f} seconds in all, and was waited for"
        if seconds < 1:  # of one that nobody asked anything meanwhile, no more is known
            waited = f"the line to {self.place} broke, and was made again"
        failed = "claims could not be renewed for a while, which is tried again"
        return (
            *([] if self._durable else [Note("store-not-durable", unsafe)]),
            *([Note("store-waited", waited)] if len(self._line.outages) else []),
            *(Note("store-claim-lost", f"the claim of run {run_id} {taken}") for run_id in self._claims.lost),
            *(Note("store-renewing", f"{failed}: {trouble}") for trouble in tuple(self._claims.troubles)),
        )

    def verify(self) -> Verified:
        """Look at every record and document, and whether cells and runs agree; nothing is changed."""
        from isorun.store.checking import Damage, Verified  # noqa: PLC0415 - only for who looks the store over

        damage, sound = [], set()
        for run_id, found in self._reader().each(self._rows(None)):
            if isinstance(found, StoreDamaged):
                damage.append(Damage(f"{self.place} runs", found.found, run_id))
            else:
                sound.add(run_id)
        lost = {item.run_id for item in damage}
        for cell, attempt, state in self._do("comparing cells with runs", _disagreements):
            damage.append(Damage(f"{self.place} cells", f"cell {cell} is {state}"))
            lost |= {f"{cell}-{attempt}"} if attempt else set()
        for kind, name in self._do("looking at the documents", _document_names):
            try:
                self.documents(kind).read(name)
            except StoreError as error:
                damage.append(Damage(self.documents(kind).place(name), error.found))
        return Verified(self.place, len(sound), 0, tuple(damage), lost=tuple(sorted(filter(None, lost))))

    def close(self) -> None:
        """Give back all claims and hang up; closing twice is nothing."""
        if self._closed or os.getpid() != self._process:
            return
        self._claims.close()
        with self._guard:
            self._closed = True
            self._line.hang_up()

    def _do(self, doing: str, work: Callable[[Any], _T]) -> _T:
        if os.getpid() != self._process:
            what = "the store was opened by the process that this one was forked from"
            raise StoreError(what, hint="open the store anew in the child process")
        with self._guard:
            if self._closed:
                raise StoreError(f"{doing} failed: {self.place} was closed")
            before = self._line.connections
            done = self._line.do(doing, work)
            if self._line.connections != before:
                self._claims.forget_rows()
            return done

    def _asked(self, columns: str, where: str, cell_ids: Iterable[str] | None) -> list[tuple[Any, ...]]:
        text = f"SELECT {columns} FROM isorun.runs WHERE {where}"  # noqa: S608 - all of it ours
        return self._do("reading the store", lambda connection: _chosen(connection, text, cell_ids).fetchall())

    def _rows(self, cell_ids: Iterable[str] | None) -> Iterator[KeptRow]:
        text = f"SELECT {COLUMNS} FROM isorun.runs WHERE true"  # noqa: S608
        wanted = None if cell_ids is None else list(cell_ids)
        found = self._do(
            "reading the store",
            lambda connection: _chosen(connection, text, wanted, " ORDER BY cell, attempt", binary=True).fetchall(),
        )
        return map(KeptRow._make, found)

    def _reader(self) -> RowReader:
        text = "SELECT hash, content FROM isorun.parts WHERE hash = ANY(%s)"

        def contents_of(hashes: Sequence[bytes]) -> dict[bytes, str]:
            return dict(self._do("reading the store", lambda link: link.execute(text, (list(hashes),)).fetchall()))

        return RowReader(contents_of)

    @contextmanager
    def _told_where(self) -> Iterator[None]:
        """Damage is told with what can be done about it here."""
        try:
            yield
        except StoreDamaged as error:
            hint = f"{self.looked_over_by} tells what is damaged; isorun store copy saves the rest to another store"
            raise StoreDamaged(error.what, found=error.found, allowed=error.allowed, hint=hint) from error

    def _open(self, *, create: bool) -> None:
        there, relations, own, fsync = self._do("opening the store", lambda link: link.execute(_LOOK).fetchone())
        self._durable = fsync != "off"
        if there and relations and not own:
            raise StoreError(
                f"the schema isorun of {self.place} is not a store of isorun",
                found=f"{relations:,} tables of others",
                allowed="a schema that isorun made, or an empty one",
                hint="name another database with --store, or rename that schema",
            )
        if not own and not create:
            hint = "run a study first, or name the right database with --store"
            raise StoreMissing(f"there is no store at {self.place}", found="no schema isorun", hint=hint)
        migrations = shipped_migrations(Path(__file__).with_name("migrations"))
        if not own or pending_migrations(self._do("reading the store's schema", _applied), migrations, self.place):
            while self._do("migrating the store", lambda link: _migrate(link, migrations, self.place)):
                pass

    def _own_key(self) -> bytes:
        rows = self._do("reading the store's key", lambda link: link.execute("SELECT key FROM isorun.store").fetchall())
        if len(rows) != 1 or len(rows[0][0]) != _KEY_BYTES:
            found = f"{len(rows[0][0])} bytes" if rows else "none"
            allowed = f"the {_KEY_BYTES} bytes that were made with the store"
            hint = "restore the table isorun.store from a backup"
            raise StoreDamaged(f"{self.place} has no key", found=found, allowed=allowed, hint=hint)
        return bytes(rows[0][0])


class PostgresDocuments(AbstractDocuments):
    """The documents of one kind, a row each."""

    def __init__(self, kind: str, place: str, do: Callable[[str, Callable[[Any], Any]], Any]) -> None:
        self._kind = kind
        self._place = place
        self._do = do

    def names(self) -> tuple[str, ...]:
        """The names of all documents, the one written last first."""
        asked = "SELECT name FROM isorun.documents WHERE kind = %s ORDER BY written DESC"
        rows = self._do("reading names", lambda connection: connection.execute(asked, (self._kind,)).fetchall())
        return tuple(name for (name,) in rows)

    def read(self, name: str) -> dict[str, Any] | None:
        """The document; None where there is none."""
        asked = "SELECT content, digest FROM isorun.documents WHERE kind = %s AND name = %s"
        row = self._do(f"reading {name}", lambda link: link.execute(asked, (self._kind, name)).fetchone())
        if row is None:
            return None
        if content_digest(row[0].encode()) != row[1]:
            raise self._unreadable(name, "it is not as it was written: its digest is another")
        document = json.loads(row[0])
        if not isinstance(document, dict):
            raise self._unreadable(name, "it holds no table")
        return document

    def write(self, name: str, document: dict[str, Any]) -> None:
        """Keep the document, in place of an earlier one of that name."""
        refuse_name(name)
        text = json.dumps(document)
        kept = (self._kind, name, text, content_digest(text.encode()))
        self._do(f"keeping {name}", lambda connection: _keep_document(connection, kept))

    def place(self, name: str) -> str:
        """The row."""
        return f"{self._place} {self._kind}/{name}"

    def _unreadable(self, name: str, found: str) -> StoreError:
        hint = f"take the row of the kind {self._kind!r} out of isorun.documents, and make it anew"
        return StoreError(f"{self.place(name)} cannot be read", found=found, hint=hint)


def _lease_seconds() -> float:
    """How long claims hold that are not renewed, as the user says it."""
    text = os.environ.get("ISORUN_LEASE", "")
    if not text:
        return _LEASE_SECONDS
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not _SHORTEST_LEASE <= seconds <= _LONGEST_LEASE:
        allowed = f"seconds, {_SHORTEST_LEASE:g} to {_LONGEST_LEASE:g}; {_LEASE_SECONDS:g} where it is not set"
        raise StoreError("ISORUN_LEASE is no length of a claim", found=repr(text), allowed=allowed)
    return seconds


def _keep_document(connection: Any, kept: tuple[str, str, str, bytes]) -> None:
    with connection.pipeline(), connection.transaction():
        connection.execute(DURABLE)
        connection.execute(
            "INSERT INTO isorun.documents (kind, name, content, digest) VALUES (%s, %s, %s, %s) "
            "ON CONFLICT (kind, name) DO UPDATE "
            "SET content = excluded.content, digest = excluded.digest, written = excluded.written",
            kept,
        )


def _chosen(
    connection: Any, text: str, cell_ids: Iterable[str] | None, order: str = "", *, binary: bool = False
) -> Any:
    if cell_ids is None:
        return connection.execute(f"{text}{order}", binary=binary)
    return connection.execute(f"{text} AND cell = ANY(%s){order}", (sorted(set(cell_ids)),), binary=binary)


def _applied(connection: Any) -> list[tuple[int, str, str]]:
    rows: list[tuple[int, str, str]] = connection.execute(
        "SELECT number, name, checksum FROM isorun.migrations ORDER BY number"
    ).fetchall()
    return rows


def _migrate(connection: Any, migrations: Sequence[Migration], place: str) -> bool:
    """Apply the next migration in a transaction of its own; whether there was one. One process at a time."""
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_MIGRATING,))
        there, _, own, _ = connection.execute(_LOOK).fetchone()
        if not there:
            connection.execute("CREATE SCHEMA isorun")
        if not own:
            connection.execute(_HISTORY)
        pending = pending_migrations(_applied(connection), migrations, place)
        if not pending:
            return False
        migration = pending[0]
        connection.execute(migration.sql)
        connection.execute(
            "INSERT INTO isorun.migrations (number, name, checksum) VALUES (%s, %s, %s)",
            (migration.number, migration.name, migration.checksum),
        )
        connection.execute(
            "INSERT INTO isorun.store (key) VALUES (%s) ON CONFLICT DO NOTHING", (secrets.token_bytes(_KEY_BYTES),)
        )
    return True


def _disagreements(connection: Any) -> list[tuple[str, int, str]]:
    """Cells that say something else than their runs do: the attempt that is missing, or 0, and what they say."""
    rows: list[tuple[str, int, str]] = connection.execute("""
        SELECT cell, CASE WHEN cells.finished AND found.finished IS NOT TRUE THEN cells.attempt ELSE 0 END,
            CASE WHEN cells.finished AND found.finished IS NOT TRUE THEN 'finished, and none of its runs is'
                WHEN cells.attempt < found.latest THEN 'at an earlier attempt than one of its runs'
                ELSE 'not finished, and one of its runs is' END
        FROM isorun.cells LEFT JOIN (
            SELECT cell, max(attempt) AS latest, bool_or(state = 'finished') AS finished FROM isorun.runs GROUP BY cell
        ) AS found USING (cell)
        WHERE cells.finished <> coalesce(found.finished, false) OR cells.attempt < coalesce(found.latest, 0)
    """).fetchall()
    return rows


def _document_names(connection: Any) -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = connection.execute("SELECT kind, name FROM isorun.documents").fetchall()
    return rows
