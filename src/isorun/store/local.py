"""The store of one machine: a folder with a database, an inbox and the folders of runs."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from isorun.errors import StoreBusy, StoreError
from isorun.store.base import AbstractStore, Claim
from isorun.store.byte_locks import ByteLocks
from isorun.store.claims import Claims, LocalClaim
from isorun.store.failures import reported
from isorun.store.files import Files
from isorun.store.frame import FrameParts
from isorun.store.frame_reading import read_parts
from isorun.store.group_statistics import RunValue, run_value
from isorun.store.inbox import Inbox
from isorun.store.packing import pack_inbox
from isorun.store.reading import finished_cells, read_records
from isorun.store.sqlite import connect, create_database, migrate, needs_migration, reading
from isorun.store.stored_form import canonical_json, content_digest, stored_form
from isorun.store.uniqueness import KnownAttempt, is_known
from isorun.store.value_reading import read_metric_names, read_values
from isorun.store.writing import known_attempts
from isorun.study.records import Note, RunRecord, RunState

__all__ = ["LocalStore", "open_store"]

_WRITER_SECONDS = 60.0


def open_store(folder: Path, *, create: bool = True) -> LocalStore:
    """The store in the folder, made there when it is missing and `create` says so."""
    return LocalStore(folder, create=create)


class LocalStore(AbstractStore):
    """Keeps records in a folder.

    Any number of processes and threads may use it at once. `finish` puts the record into the inbox; `pack` moves the
    inbox into the database, one process at a time. Whatever is read comes from both, so a record is seen as soon as it
    is acknowledged. A process that forks opens the store anew in its child.

    files: the file operations to use, which tests replace.
    """

    def __init__(self, folder: Path, *, create: bool = True, files: Files | None = None) -> None:
        self.folder = Path(folder).absolute()
        self._files = files or Files()
        self._database = self.folder / "store.sqlite"
        self._guard = threading.RLock()
        self._claims: Claims | None = None
        self._writer: ByteLocks | None = None
        self._inbox = Inbox(self.folder / "inbox", self._files)
        if create:
            self._make_folders()
        self._connection = self._open_database(create=create)

    def claim(self, cell_id: str) -> Claim | None:
        """The right to execute the cell, as a new attempt with a folder of its own."""
        with self._guard:
            if self._claims is None:
                with reported("opening the claims", self.folder):
                    self._claims = Claims(self.folder / "claims.lock", self.folder / "runs", self._files)
            return self._claims.take(cell_id, self._recorded_attempts)

    def run_folder(self, claim: Claim) -> Path:
        """The folder that was made for this claim."""
        assert isinstance(claim, LocalClaim)
        return claim.folder

    def finish(self, record: RunRecord) -> None:
        """Put the record into the inbox; when this returns it is on the disk."""
        kept = stored_form(record)
        digest = content_digest(canonical_json(kept.to_json()))
        with self._guard:
            waiting = self._waiting_attempts(kept.cell.id)
            if is_known(kept, digest, self._packed_attempts(kept.cell.id)):
                return
        is_known(kept, digest, waiting)
        self._inbox.put(kept)

    def finished_cells(self) -> set[str]:
        """The cells with a finished record in the inbox or in the database."""
        waiting = {item.record.cell.id for item in self._inbox.read_all() if item.record.state is RunState.FINISHED}
        with self._reading() as connection:
            return waiting | finished_cells(connection)

    def records(self, cell_ids: Iterable[str] | None = None) -> Sequence[RunRecord]:
        """All records of the inbox and the database, or those of the given cells."""
        wanted = None if cell_ids is None else set(cell_ids)
        found = {item.record.run_id: item.record for item in self._inbox.read_all(wanted)}
        with self._reading() as connection:
            found |= {record.run_id: record for record in read_records(connection, wanted)}
        return sorted(found.values(), key=lambda record: (record.cell.id, record.attempt))

    def frame_parts(self, metrics: frozenset[str] | None) -> FrameParts:
        """Runs and packed series of the database and the inbox."""
        waiting = list(self._inbox.read_all())
        with self._reading() as connection:
            parts = read_parts(connection, metrics)
        packed = {row.run_id for row in parts.runs}
        for item in waiting:
            if item.record.run_id not in packed:
                parts.add(item.record, metrics)
        return parts

    def run_values(self, metric: str, point: str) -> list[RunValue]:
        """A metric of the finished runs of the database and the inbox."""
        waiting = [item.record for item in self._inbox.read_all() if item.record.state is RunState.FINISHED]
        with self._reading() as connection:
            new = [record for record in waiting if not _is_finished(connection, record.cell.id)]
            return [*read_values(connection, metric, point), *(run_value(record, metric, point) for record in new)]

    def metric_names(self) -> set[str]:
        """The metrics of the database and the inbox."""
        waiting = [{*item.record.series, *item.record.results} for item in self._inbox.read_all()]
        with self._reading() as connection:
            return read_metric_names(connection).union(*waiting)

    def notes(self) -> tuple[Note, ...]:
        """One note for each file of the inbox that is, or should be, set aside."""
        return tuple(Note("store-record-set-aside", problem) for problem in self._inbox.problems())

    def pack(self) -> int:
        """Move the inbox into the database; waits for another process that is doing so."""
        with self._writing():
            return pack_inbox(self._inbox, self._connection, self._database)

    def close(self) -> None:
        """Give back all claims and let go of the files; closing twice is nothing."""
        with self._guard:
            for part in (self._claims, self._writer, self._connection):
                if part is not None:
                    part.close()
            self._claims = self._writer = None

    def _recorded_attempts(self, cell_id: str) -> list[int] | None:
        """The attempts at the cell that left a record; None when one of them finished it.

        The inbox is read first: a record that leaves it in between is then found in the database.
        """
        known = [*self._waiting_attempts(cell_id), *self._packed_attempts(cell_id)]
        return None if any(item.finished for item in known) else [item.attempt for item in known]

    def _waiting_attempts(self, cell_id: str) -> list[KnownAttempt]:
        return [
            KnownAttempt(item.record.attempt, item.record.state is RunState.FINISHED, item.digest)
            for item in self._inbox.read_all({cell_id})
        ]

    def _packed_attempts(self, cell_id: str) -> list[KnownAttempt]:
        with self._reading() as connection:
            return known_attempts(connection, cell_id)

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self._guard, reading(self._connection, self._database):
            yield self._connection

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Be the only writer among all processes and threads; waiting for the turn blocks no reader here."""
        with self._guard:
            if self._writer is None:
                with reported("opening the writer's lock", self.folder):
                    self._writer = ByteLocks(self.folder / "writer.lock")
            writer = self._writer
        if not writer.acquire(0, timeout_seconds=_WRITER_SECONDS):
            raise StoreBusy(
                f"the store at {self.folder} cannot be written",
                found=f"another process has been writing for more than {_WRITER_SECONDS:.0f} seconds",
                hint="wait for it to end, and run the same command again",
            )
        try:
            with self._guard:
                yield
        finally:
            writer.release(0)

    def _make_folders(self) -> None:
        with reported("making the store's folders", self.folder):
            for folder in (self.folder, self._inbox.folder, self.folder / "runs"):
                folder.mkdir(parents=True, exist_ok=True)

    def _open_database(self, *, create: bool) -> sqlite3.Connection:
        if create and not self._database.exists():
            with self._writing():
                create_database(self._database, self._files)
        if not self._database.exists():
            raise StoreError(
                f"there is no store at {self.folder}",
                found="no store.sqlite" if self.folder.is_dir() else "no such folder",
                hint="run a study first, or name the right folder with --store",
            )
        connection = connect(self._database)
        try:
            if needs_migration(connection, self._database):
                with self._writing():
                    migrate(connection, self._database)
        except BaseException:
            connection.close()
            raise
        return connection


def _is_finished(connection: sqlite3.Connection, cell_id: str) -> bool:
    return any(item.finished for item in known_attempts(connection, cell_id))
