"""The store of one machine: a folder with a database, an inbox and small documents."""

from __future__ import annotations

import os
import secrets
import shlex
import sqlite3
import stat
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final

from isorun.errors import StoreBusy, StoreDamaged, StoreError, StoreMissing
from isorun.store import AbstractDocuments, AbstractStore, Claim, Holder
from isorun.store.claims import ByteLocks, Claims
from isorun.store.content import KnownAttempt, is_known, stored_form
from isorun.store.database import connect, create_database, look_over, migrate, needs_migration, reading, writing
from isorun.store.files import Files, FolderDocuments, NotAFile, reported
from isorun.store.inbox import Inbox, as_kept, pack_inbox
from isorun.store.rows import RecordReader, RunRow, has_withheld, is_another_key, read_run_rows, remember_key
from isorun.study.records import Note, RunRecord, RunState, sealed
from isorun.worker.runfolder import is_shared

__all__ = ["REDACTING", "Catalogue", "FolderStore", "make_key", "packed_count", "read_key", "remember_count"]

REDACTING: Final = "redacting.json"
"""What is being taken out of the store; it is there only while that goes on, or was killed."""
_WRITER_SECONDS: Final = 60.0
_PACK_AFTER: Final = 64
_KEY_BYTES: Final = 32
_COUNT: Final = "packed"
_INNER_FOLDERS: Final = ("inbox", "claims", "runs", "studies", "plans")
_UNFINISHED: Final = "values are being taken out of this store, or that was killed: isorun store redact finishes it"
_STATES: Final = frozenset(map(str, RunState))
_OWN_FILES: Final = ("store.sqlite", "key", "writer.lock", "claims.lock", _COUNT)


class Catalogue:
    """Which runs are in the database, read from the table itself and kept in memory.

    A unique index keeps a cell from being finished twice only as long as the index is whole, so what is known does not
    rest on one; an index that lost rows is noticed here. So are rows that were taken out: they are numbered from 1 on,
    and at_least says how many there were once.
    """

    def __init__(self, at_least: int = 0) -> None:
        self._at_least = at_least
        self.finished: set[str] = set()
        self._attempts: dict[str, list[KnownAttempt]] = {}
        self._rows: dict[str, list[int]] = {}
        self._latest = 0

    def catch_up(self, connection: sqlite3.Connection) -> None:
        """Take in what was packed since the last time; to be called within a transaction."""
        new = read_run_rows(connection, self._latest)
        if not self._latest:
            expected = max(self._at_least, new[-1].id if new else 0)
            if len(new) != expected:
                found = f"{len(new):,} runs, and {expected:,} were packed into it"
                raise StoreDamaged("the database lost runs, or is not the one it was", found=found)
            self._compare_with_indexes(connection, new)
        for row in new:
            if row.state not in _STATES:
                raise StoreDamaged(
                    f"the record of run {row.cell}-{row.attempt} is damaged", found=f"state {row.state!r}"
                )
            finished = row.state == RunState.FINISHED
            if finished and row.cell in self.finished:
                raise StoreDamaged(f"cell {row.cell} was finished twice", found=f"a second time by run {row.attempt}")
            self._attempts.setdefault(row.cell, []).append(KnownAttempt(row.attempt, finished, row.digest))
            self._rows.setdefault(row.cell, []).append(row.id)
            if finished:
                self.finished.add(row.cell)
            self._latest = row.id

    def attempts(self, cell_id: str) -> list[KnownAttempt]:
        """The attempts at the cell that are in the database."""
        return self._attempts.get(cell_id, [])

    def rows(self, cell_ids: Iterable[str]) -> list[int]:
        """The rows of these cells' runs."""
        return [row for cell_id in cell_ids for row in self._rows.get(cell_id, ())]

    def run_ids(self, cell_ids: Iterable[str] | None) -> set[str]:
        """The ids of these cells' runs in the database, or of all."""
        cells = self._attempts if cell_ids is None else cell_ids
        return {f"{cell}-{item.attempt}" for cell in cells for item in self.attempts(cell)}

    @staticmethod
    def _compare_with_indexes(connection: sqlite3.Connection, rows: Sequence[RunRow]) -> None:
        expected = {
            "finished_runs": ("state = 'finished'", {(row.cell, row.id) for row in rows if row.state == "finished"}),
            "other_runs": ("state <> 'finished'", {(row.cell, row.id) for row in rows if row.state != "finished"}),
        }
        for index, (where, in_table) in expected.items():
            asked = f"SELECT cell, id FROM runs INDEXED BY {index} WHERE {where}"  # noqa: S608 - all of it ours
            missing = len(in_table.symmetric_difference(connection.execute(asked).fetchall()))
            if missing:
                found = f"{missing:,} of {len(in_table):,} runs are in only one of the two"
                raise StoreDamaged(f"the index {index} and its table do not agree", found=found)


class FolderStore(AbstractStore):
    """Keeps records in a folder, which is made when it is missing and `create` says so.

    Any number of processes and threads may use it at once. `finish` puts the record into the inbox; `pack` moves the
    inbox into the database, one process at a time, when the store is opened and closed and now and then in between.
    Whatever is read comes from both, so a record is seen as soon as it is acknowledged. A process that forks opens the
    store anew in its child.

    files: the file operations to use, which tests replace.
    """

    def __init__(self, folder: Path, *, create: bool = True, files: Files | None = None) -> None:
        self.folder = Path(folder).absolute()
        self.looked_over_by = f"isorun store verify --store {shlex.quote(str(self.folder))}"
        self._files = files or Files()
        self._database = self.folder / "store.sqlite"
        self._guard = threading.RLock()
        self._claims: Claims | None = None
        self._writer: ByteLocks | None = None
        self._unpacked = 0
        self._not_packed = ""
        self._looked_over = False
        self._closed = False
        self._inbox = Inbox(self.folder / "inbox", self._files)
        with self._told_where():
            if create:
                self._make_folders()
            self._open_database(create=create)
            try:
                self.key = self._own_key()
                self._pack_what_waits()
            except BaseException:
                self._let_go()
                raise

    def claim(self, cell_id: str) -> Claim | None:
        """The right to execute the cell, as a new attempt; a database that is damaged is found before any work."""
        with self._guard, self._told_where():
            self._look_over_once(self._connection)
            return self._open_claims().take(cell_id, self._recorded_attempts)

    def claim_again(self, cell_id: str, attempt: int) -> Claim | None:
        """The right to an attempt that was claimed before, by a process that has gone."""
        with self._guard, self._told_where():
            self._look_over_once(self._connection)
            return self._open_claims().take(cell_id, self._recorded_attempts, attempt)

    def holders(self) -> Sequence[Holder]:
        """Who holds a claim now."""
        with self._guard:
            if not (self.folder / "claims").is_dir() or not (self.folder / "claims.lock").exists():
                return []
            if self._claims is None and not os.access(self.folder, os.W_OK):
                with closing(Claims(self.folder, self._files, only_looks=True)) as seen:
                    return seen.holders()
            return self._open_claims().holders()

    def finish(self, record: RunRecord) -> None:
        """Put the record into the inbox; when this returns it is on the disk."""
        kept = stored_form(record)
        envelope, digest = sealed(kept)
        with self._guard:
            claimed = self._claimed_attempt(kept.cell.id)
            waiting = self._waiting_attempts(kept.cell.id)
            packed = is_known(kept, digest, self._packed_attempts(kept.cell.id), claimed)
        if not packed:
            is_known(kept, digest, waiting)
            self._inbox.put(kept, envelope)
        with self._guard:
            if self._claims is not None:
                self._claims.record_kept(record.cell.id, record.attempt)
            self._unpacked += not packed
            due = self._unpacked >= _PACK_AFTER
        if due:
            self._pack_what_waits()

    def finished(self, cell_ids: Iterable[str] | None = None) -> set[str]:
        """The cells with a finished record in the inbox or in the database, of the given ones or of all."""
        wanted = None if cell_ids is None else set(cell_ids)
        waiting = self._inbox.read_all(wanted)
        found = {item.record.cell.id for item in waiting if item.record.state is RunState.FINISHED}
        with self._reading():
            packed = self._catalogue.finished
            return found | (packed if wanted is None else packed & wanted)

    def records(self, cell_ids: Iterable[str] | None = None) -> Sequence[RunRecord]:
        """All records of the inbox and the database, or those of the given cells; each is checked."""
        wanted = None if cell_ids is None else set(cell_ids)
        found = {item.record.run_id: item.record for item in self._inbox.read_all(wanted)}
        with self._reading() as connection:
            rows = None if wanted is None else self._catalogue.rows(wanted)
            found |= {record.run_id: record for record in RecordReader(connection, rows).records()}
        return sorted(found.values(), key=lambda record: (record.cell.id, record.attempt))

    def each_record(self, cell_id: str) -> Iterator[RunRecord | StoreDamaged]:
        """The records of a cell in the inbox and the database, each by itself."""
        waiting = {item.record.run_id: item.record for item in self._inbox.read_all({cell_id})}
        with self._reading() as connection:
            packed = [found for _, found in RecordReader(connection, self._catalogue.rows({cell_id})).each()]
        yield from (found for found in packed if isinstance(found, StoreDamaged) or found.run_id not in waiting)
        yield from waiting.values()

    def run_ids(self, cell_ids: Iterable[str] | None = None) -> set[str]:
        """The runs of the inbox and the database, of the given cells or of all."""
        wanted = None if cell_ids is None else set(cell_ids)
        waiting = {item.record.run_id for item in self._inbox.read_all(wanted)}
        with self._reading():
            return waiting | self._catalogue.run_ids(wanted)

    def documents(self, kind: str) -> AbstractDocuments:
        """The documents of one kind, in a folder of their own."""
        return FolderDocuments(self.folder, kind, self._files)

    def notes(self) -> tuple[Note, ...]:
        """What is, or should be, set aside, of the inbox and of the claims; when packing failed; an open folder."""
        aside = [Note("store-record-set-aside", problem) for problem in self._inbox.problems()]
        claims = self._claims.unreadable.values() if self._claims else ()
        return (
            *aside,
            *(Note("store-claim-unreadable", f"{found}; attempts follow the records and folders") for found in claims),
            *([Note("store-not-packed", self._not_packed)] if self._not_packed else ()),
            *self._open_doors(),
            *([Note("store-redaction-unfinished", _UNFINISHED)] if (self.folder / REDACTING).exists() else ()),
        )

    def _open_doors(self) -> Iterator[Note]:
        """What is made inside is closed to others, but whoever may write to the folder itself may replace all of it."""
        with reported("looking at the store's folder", self.folder):
            if self.folder.stat().st_mode & stat.S_IWOTH:
                message = f"everybody on this machine may replace what is in {self.folder}: chmod o-w closes it"
                yield Note("store-open-to-all", message)

    def pack(self) -> int:
        """Move the inbox into the database; how many records were moved. Waits for another process that is doing so.

        A record that is damaged or contradicts a finished one is set aside, never deleted; everything else is moved,
        and then StoreError or StoreConflict names what was set aside.
        """
        with self._writing() as connection:
            self._unpacked = 0
            self._look_over_once(connection)
            try:
                with writing(connection, self._database):
                    remember_key(connection, self.key)
                return pack_inbox(self._inbox, connection, self._database, self._attempts_known_now)
            except BaseException:
                self._catalogue = self._new_catalogue()  # it may have seen rows that were rolled back
                raise
            finally:
                with suppress(OSError, sqlite3.Error):  # one that is too low only notices less
                    remember_count(self.folder, connection, self._files)

    def close(self) -> None:
        """Pack, give back all claims and let go of the files; closing twice is nothing."""
        with self._guard:
            if self._closed:
                return
            self._closed = True
        with suppress(StoreError):  # all that was acknowledged is in the inbox, and said again when it is opened
            self._pack_what_waits()
        self._let_go()

    def _let_go(self) -> None:
        with self._guard:
            for part in (self._claims, self._writer, self._connection):
                if part is not None:
                    part.close()

    def _pack_what_waits(self) -> None:
        """Pack when something waits; what cannot be packed stays in the inbox, and `notes` tells why."""
        if not self._inbox.run_ids():
            with suppress(StoreError):  # half a file that a killed process left harms nobody
                self._inbox.clean()
            return
        try:
            self.pack()
            self._forget_old_claims()
        except StoreDamaged:
            raise
        except StoreError as error:
            self._not_packed = "" if self._inbox.names_aside() else error.what

    def _forget_old_claims(self) -> None:
        with self._guard:
            if (self.folder / "claims").is_dir():
                self._open_claims().forget(self._catalogue.finished)

    def _claimed_attempt(self, cell_id: str) -> int:
        return self._open_claims().latest(cell_id) if (self.folder / "claims").is_dir() else 0

    def _open_claims(self) -> Claims:
        if self._claims is None:
            self._claims = Claims(self.folder, self._files)
        return self._claims

    def _own_key(self) -> bytes:
        """The store's key, made when it has none and never needed one; another would give known cells new ids.

        One that cannot be kept serves until the store is closed.
        """
        key = read_key(self.folder, self._files)
        with reading(self._connection, self._database):
            if key is not None and not is_another_key(self._connection, key):
                return key
            needed = has_withheld(self._connection) or any(item.record.cell.withheld for item in self._inbox.read_all())
        if needed:
            raise _no_key(self.folder / "key", "no such file" if key is None else "another key")
        if key is not None:
            return key
        made = secrets.token_bytes(_KEY_BYTES)
        try:
            with self._writing():
                return read_key(self.folder, self._files) or make_key(self.folder, self._files, made)
        except StoreDamaged:
            raise
        except (OSError, StoreError):
            return made

    def _recorded_attempts(self, cell_id: str) -> list[int] | None:
        """The attempts at the cell that left a record; None when one of them finished it.

        The inbox is read first: a record that leaves it in between is then found in the database.
        """
        known = [*self._waiting_attempts(cell_id), *self._packed_attempts(cell_id)]
        return None if any(item.finished for item in known) else [item.attempt for item in known]

    def _waiting_attempts(self, cell_id: str) -> list[KnownAttempt]:
        return [
            KnownAttempt(item.record.attempt, item.record.state is RunState.FINISHED, item.digest)
            for item in map(as_kept, self._inbox.read_all({cell_id}))
        ]

    def _packed_attempts(self, cell_id: str) -> list[KnownAttempt]:
        with self._reading():
            return self._catalogue.attempts(cell_id)

    def _attempts_known_now(self, cell_id: str) -> list[KnownAttempt]:
        """Within the transaction of the writer, with what it wrote."""
        self._catalogue.catch_up(self._connection)
        return self._catalogue.attempts(cell_id)

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """One consistent view of the database, with the catalogue of it."""
        with self._guard, self._told_where():
            self._reopen_if_replaced()
            with reading(self._connection, self._database):
                self._catalogue.catch_up(self._connection)
                yield self._connection

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
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
            with self._guard, self._told_where():
                self._reopen_if_replaced()
                yield self._connection
        finally:
            writer.release(0)

    @contextmanager
    def _told_where(self) -> Iterator[None]:
        """Damage is told with the commands for this store."""
        try:
            yield
        except StoreDamaged as error:
            raise error.at(str(self.folder)) from error

    def _look_over_once(self, connection: sqlite3.Connection) -> None:
        if not self._looked_over:
            look_over(connection, self._database)
            self._looked_over = True

    def _make_folders(self) -> None:
        with reported("making the store's folders", self.folder):
            self._files.ensure_folder(self.folder)
            self._files.ensure_inner_folder(self._inbox.folder)
        if not is_shared(self.folder):
            self._files.close_to_others([self.folder / name for name in (*_INNER_FOLDERS, *_OWN_FILES)])

    def _open_database(self, *, create: bool) -> None:
        if not self._database.exists() and (packed := packed_count(self.folder, self._files)):
            raise StoreDamaged(f"{self._database} is gone", found=f"nothing, and {packed:,} runs were packed into it")
        if not self._database.exists() and (whole := self._folders_with_records()):
            found = f"nothing, and the folders of {whole:,} runs hold records that were in it"
            raise StoreDamaged(f"{self._database} is gone", found=found)
        if create and not self._database.exists():
            with reported("opening the writer's lock", self.folder):
                self._writer = ByteLocks(self.folder / "writer.lock")
            if self._writer.acquire(0, timeout_seconds=_WRITER_SECONDS):
                try:
                    create_database(self._database, self._files)
                finally:
                    self._writer.release(0)
        if not self._database.exists():
            raise StoreMissing(
                f"there is no store at {self.folder}",
                found="no store.sqlite" if self.folder.is_dir() else "no such folder",
                hint="run a study first, or name the right folder with --store",
            )
        self._connect()
        try:
            if needs_migration(self._connection, self._database):
                with self._writing() as connection:
                    self._look_over_once(connection)
                    migrate(connection, self._database)
        except BaseException:
            self._let_go()
            raise

    def _folders_with_records(self) -> int:
        return sum(1 for _ in (self.folder / "runs").glob("*/record.json.gz"))

    def _connect(self) -> None:
        self._connection = connect(self._database)
        self._inode = self._database.stat().st_ino
        self._catalogue = self._new_catalogue()
        self._looked_over = False

    def _new_catalogue(self) -> Catalogue:
        return Catalogue(packed_count(self.folder, self._files))

    def _reopen_if_replaced(self) -> None:
        """After a repair another file has the database's name; what is written to the old one would be lost."""
        with reported("opening the store", self._database):
            replaced = self._database.stat().st_ino != self._inode
        if replaced:
            self._connection.close()
            self._connect()


def read_key(folder: Path, files: Files) -> bytes | None:
    """The store's key; None where there is none, StoreDamaged where something else lies in its place."""
    path = folder / "key"
    with reported("reading the store's key", path):
        try:
            key = files.read(path)
        except FileNotFoundError:
            return None
        except (NotAFile, IsADirectoryError):
            raise _no_key(path, "no regular file") from None
    if len(key) != _KEY_BYTES:
        raise _no_key(path, f"{len(key)} bytes instead of {_KEY_BYTES}")
    return key


def make_key(folder: Path, files: Files, key: bytes = b"") -> bytes:
    """Keep a new key; whoever calls this holds the writer's lock."""
    key = key or secrets.token_bytes(_KEY_BYTES)
    files.write_whole(folder / "key", key)
    return key


def _no_key(path: Path, found: str) -> StoreDamaged:
    repair = f"isorun store repair --store {shlex.quote(str(path.parent))}"
    return StoreDamaged(
        f"{path} is no key",
        found=found,
        allowed=f"the {_KEY_BYTES} bytes that were made with the store: they tell apart what is withheld from records",
        hint=f"put it back from a copy; or {repair} makes another, and runs whose commands hold secrets are made again",
    )


def packed_count(folder: Path, files: Files) -> int:
    """How many runs the database had when it was last written; 0 where that is not known.

    It lies beside the database, which may be emptied, or replaced by another one. It is written after the commit, so
    it never says too many; whoever compares reads it first.
    """
    path = folder / _COUNT
    with reported("reading how many runs were packed", path):
        try:
            text = files.read(path)
        except FileNotFoundError:
            return 0
        except (NotAFile, IsADirectoryError):
            text = b""
    if not text.isdigit() or len(text) > 18:
        raise StoreDamaged(f"{path} does not say how many runs were packed", found=repr(text[:40]))
    return int(text)


def remember_count(folder: Path, connection: sqlite3.Connection, files: Files) -> None:
    """Keep how many runs there are now; whoever calls this holds the writer's lock."""
    count = connection.execute("SELECT MAX(id) FROM runs").fetchone()[0] or 0
    files.write_whole(folder / _COUNT, str(count).encode())
