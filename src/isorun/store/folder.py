"""The store of one machine: a folder with a database, an inbox and small documents."""

from __future__ import annotations

import secrets
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from isorun.errors import StoreBusy, StoreError
from isorun.store.base import AbstractDocuments, AbstractStore, Claim, Holder
from isorun.store.claims import ByteLocks, Claims
from isorun.store.documents import FolderDocuments
from isorun.store.failures import reported
from isorun.store.files import Files
from isorun.store.inbox import Inbox
from isorun.store.packing import pack_inbox
from isorun.store.reading import finished_cells, read_records, read_run_ids
from isorun.store.sqlite import connect, create_database, migrate, needs_migration, reading
from isorun.store.stored_form import canonical_json, content_digest, stored_form
from isorun.store.uniqueness import KnownAttempt, is_known
from isorun.store.writing import known_attempts
from isorun.study.records import Note, RunRecord, RunState

__all__ = ["FolderStore", "open_store"]

_WRITER_SECONDS: Final = 60.0
_PACK_AFTER: Final = 64
_KEY_BYTES: Final = 32


def open_store(folder: Path, *, create: bool = True) -> FolderStore:
    """The store in the folder, made there when it is missing and `create` says so."""
    return FolderStore(folder, create=create)


class FolderStore(AbstractStore):
    """Keeps records in a folder.

    Any number of processes and threads may use it at once. `finish` puts the record into the inbox; `pack` moves the
    inbox into the database, one process at a time, when the store is opened and closed and now and then in between.
    Whatever is read comes from both, so a record is seen as soon as it is acknowledged. A process that forks opens the
    store anew in its child.

    files: the file operations to use, which tests replace.
    """

    def __init__(self, folder: Path, *, create: bool = True, files: Files | None = None) -> None:
        self.folder = Path(folder).absolute()
        self._files = files or Files()
        self._database = self.folder / "store.sqlite"
        self._guard = threading.RLock()
        self._claims: Claims | None = None
        self._writer: ByteLocks | None = None
        self._unpacked = 0
        self._closed = False
        self._inbox = Inbox(self.folder / "inbox", self._files)
        if create:
            self._make_folders()
        self._connection = self._open_database(create=create)
        self.key = self._own_key()
        self._pack_what_waits()

    def claim(self, cell_id: str) -> Claim | None:
        """The right to execute the cell, as a new attempt."""
        with self._guard:
            return self._open_claims().take(cell_id, self._recorded_attempts)

    def holders(self) -> Sequence[Holder]:
        """Who holds a claim now."""
        with self._guard:
            return self._open_claims().holders() if (self.folder / "claims").is_dir() else []

    def finish(self, record: RunRecord) -> None:
        """Put the record into the inbox; when this returns it is on the disk."""
        kept = stored_form(record)
        digest = content_digest(canonical_json(kept.to_json()))
        with self._guard:
            waiting = self._waiting_attempts(kept.cell.id)
            if is_known(kept, digest, self._packed_attempts(kept.cell.id)):
                self._forget_claim(record)
                return
        is_known(kept, digest, waiting)
        self._inbox.put(kept)
        self._forget_claim(record)
        with self._guard:
            self._unpacked += 1
            due = self._unpacked >= _PACK_AFTER
        if due:
            self._pack_what_waits()

    def finished(self) -> set[str]:
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

    def run_ids(self) -> set[str]:
        """The runs of the inbox and the database."""
        waiting = {item.record.run_id for item in self._inbox.read_all()}
        with self._reading() as connection:
            return waiting | read_run_ids(connection)

    def documents(self, kind: str) -> AbstractDocuments:
        """The documents of one kind, in a folder of their own."""
        return FolderDocuments(self.folder, kind, self._files)

    def notes(self) -> tuple[Note, ...]:
        """One note for each file of the inbox that is, or should be, set aside."""
        return tuple(Note("store-record-set-aside", problem) for problem in self._inbox.problems())

    def pack(self) -> int:
        """Move the inbox into the database; how many records were moved. Waits for another process that is doing so.

        A record that is damaged or contradicts a finished one is set aside, never deleted; everything else is moved,
        and then StoreError or StoreConflict names what was set aside.
        """
        with self._writing():
            self._unpacked = 0
            return pack_inbox(self._inbox, self._connection, self._database)

    def close(self) -> None:
        """Pack, give back all claims and let go of the files; closing twice is nothing."""
        with self._guard:
            if self._closed:
                return
            self._closed = True
        self._pack_what_waits()
        with self._guard:
            for part in (self._claims, self._writer, self._connection):
                if part is not None:
                    part.close()

    def _pack_what_waits(self) -> None:
        """Pack when something waits; what cannot be packed stays in the inbox, and `notes` tells what was set aside."""
        if self._inbox.run_ids():
            with suppress(StoreError):
                self.pack()

    def _open_claims(self) -> Claims:
        if self._claims is None:
            self._claims = Claims(self.folder, self._files)
        return self._claims

    def _forget_claim(self, record: RunRecord) -> None:
        with self._guard:
            if self._claims is not None:
                self._claims.record_kept(record.cell.id, record.attempt)

    def _own_key(self) -> bytes:
        """The store's key, made when it has none; one that cannot be kept serves until the store is closed."""
        path = self.folder / "key"
        with suppress(OSError):
            return path.read_bytes()
        key = secrets.token_bytes(_KEY_BYTES)
        with suppress(OSError, StoreError), self._writing():
            if path.exists():
                return path.read_bytes()
            self._files.write_whole(path, key)
        return key

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
            for folder in (self.folder, self._inbox.folder):
                self._files.ensure_folder(folder)

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
