"""The inbox: finished records that wait to be packed, and their way into the database.

Each record is a file, an envelope that shows when it was cut or altered. Its final name appears only after its content
has reached the disk. It leaves the inbox only after the commit that holds its record. What is damaged, contradicts a
record or cannot be written is kept under another name and reported when everything else has been packed.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from isorun.errors import StoreConflict, StoreError, StoreTooNew
from isorun.store.claims import cell_of
from isorun.store.content import KnownAttempt, is_known, stored_form
from isorun.store.database import writing
from isorun.store.files import Files, NotAFile, file_error, reported
from isorun.store.rows import RecordWriter, Unwritable
from isorun.study.records import Envelope, RunRecord, open_envelope, record_digest, sealed

__all__ = ["DamagedFile", "Inbox", "as_kept", "pack_inbox", "write_batch"]

_BATCH = 256
_SUFFIX = ".json"
_TEMPORARY = ".tmp"
_ASIDE = ("damaged", "conflict", "unwritable")
_TRIES = 100


@dataclass(frozen=True, slots=True)
class DamagedFile:
    """A file in the inbox that is not what its writer wrote, and what it is instead."""

    path: Path
    found: str


class Inbox:
    """The folder of waiting records."""

    def __init__(self, folder: Path, files: Files) -> None:
        self.folder = folder
        self._files = files

    def put(self, record: RunRecord, envelope: Sequence[bytes] = ()) -> None:
        """Make the record durable, in its envelope. When this returns it survives a crash of the machine.

        A record that is there already is written again rather than trusted: after a failed fsync the system may call
        a file clean that never reached the disk.
        """
        envelope = envelope or sealed(record)[0]
        try:
            self._write_whole(record.run_id, envelope)
        except OSError as error:
            doing = f"recording run {record.run_id} ({record.cell.label}, {sum(map(len, envelope)):,} bytes)"
            raise file_error(error, doing, self.folder) from error

    def run_ids(self, cell_ids: Collection[str] | None = None) -> list[str]:
        """The ids of the waiting runs of these cells, or of all, ordered by cell and attempt."""
        with reported("listing the inbox", self.folder):
            names = self._files.names(self.folder)
        ids = [name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX)]
        if cell_ids is not None:
            ids = [run_id for run_id in ids if run_id.rpartition("-")[0] in cell_ids]
        places = {run_id: place for run_id in ids if (place := cell_of(run_id))}
        return sorted(places, key=places.__getitem__)

    def read(self, run_id: str) -> Envelope | DamagedFile | None:
        """The waiting record, or what is wrong with its file; None when it was packed in the meantime."""
        path = self._path(run_id)
        with reported(f"reading the record of run {run_id}", path):
            try:
                return _checked(lambda: self._files.read(path), run_id, path)
            except FileNotFoundError:
                return None
            except (NotAFile, IsADirectoryError):
                return DamagedFile(path, "it is no regular file")

    def read_all(self, cell_ids: Collection[str] | None = None) -> Iterator[Envelope]:
        """The records that can be trusted, of these cells or of all; `problems` names the others."""
        for run_id in self.run_ids(cell_ids):
            waiting = self.read(run_id)
            if isinstance(waiting, Envelope):
                yield waiting

    def problems(self) -> list[str]:
        """One sentence for each file that was set aside or should be."""
        aside = [f"{self.folder / name} was set aside; rm it when it is of no use" for name in self.names_aside()]
        found = map(self.read, self.run_ids())
        return [*aside, *(f"{file.path} is damaged: {file.found}" for file in found if isinstance(file, DamagedFile))]

    def names_aside(self) -> list[str]:
        """The files that were set aside and that nobody removed since."""
        with reported("listing the inbox", self.folder):
            return sorted(filter(_is_aside, self._files.names(self.folder)))

    def remove(self, run_id: str) -> None:
        """Remove a file whose record is safe elsewhere."""
        with reported(f"removing the packed file of run {run_id}", self.folder):
            self._files.unlink(self._path(run_id))

    def set_aside(self, run_id: str, why: str) -> Path:
        """Keep the file under a name that says why (one of _ASIDE) and that no reader takes for a record."""
        plain = self._path(run_id)
        with reported(f"setting the file of run {run_id} aside", self.folder):
            taken = set(self._files.names(self.folder))
            endings = ("", *(f"-{number}" for number in range(2, len(taken) + 3)))
            names = (f"{plain.name}.{why}{ending}" for ending in endings)
            target = self.folder / next(name for name in names if name not in taken)
            self._files.rename(plain, target)
            self._files.fsync_folder(self.folder)
        return target

    def clean(self) -> None:
        """Remove half-written files whose writer has gone."""
        with reported("cleaning the inbox", self.folder):
            for name in self._files.names(self.folder):
                if name.endswith(_TEMPORARY) and self._files.is_abandoned(self.folder / name):
                    self._files.unlink(self.folder / name)

    def _write_whole(self, run_id: str, envelope: Sequence[bytes]) -> None:
        for _ in range(_TRIES):
            temporary = self.folder / f"{run_id}{_SUFFIX}.{os.getpid()}-{secrets.token_hex(4)}{_TEMPORARY}"
            if self._published(temporary, self._path(run_id), envelope):
                return
        raise FileNotFoundError(f"{temporary.name} was removed while it was being written")

    def _published(self, temporary: Path, target: Path, envelope: Sequence[bytes]) -> bool:
        """Write, synchronise, rename, synchronise; False when a cleaner took the file before it was locked."""
        descriptor = self._files.create(temporary)
        try:
            if not self._files.lock(descriptor):
                return False
            self._files.write(descriptor, *envelope)
            self._files.fsync(descriptor)
            try:
                self._files.rename(temporary, target)
            except FileNotFoundError:
                return False
        except OSError:
            self._discard(temporary)
            raise
        finally:
            self._files.close(descriptor)
        self._files.fsync_folder(self.folder)
        return True

    def _discard(self, temporary: Path) -> None:
        """Remove a file that could not be written; should that fail too, `clean` does it later."""
        try:
            self._files.unlink(temporary)
        except OSError:
            return

    def _path(self, run_id: str) -> Path:
        return self.folder / f"{run_id}{_SUFFIX}"


def _checked(read: Callable[[], bytes], run_id: str, path: Path) -> Envelope | DamagedFile:
    try:
        waiting = open_envelope(read())  # who opens it lets go of the bytes, of which nobody else must hold a copy
    except StoreTooNew as error:
        what = f"{path} was written by a newer isorun"
        raise StoreTooNew(what, found=error.found, allowed=error.allowed, hint=error.hint) from None
    except ValueError as error:
        return DamagedFile(path, str(error))
    if waiting.record.run_id != run_id:
        return DamagedFile(path, f"the record of run {waiting.record.run_id}")
    return waiting


def as_kept(found: Envelope) -> Envelope:
    """The record as stores keep it: one that was put here from a run's folder has its times to all their digits."""
    kept = stored_form(found.record)
    return found if kept == found.record else Envelope(kept, record_digest(kept))


def _is_aside(name: str) -> bool:
    return any(f"{_SUFFIX}.{why}" in name for why in _ASIDE)


@dataclass(slots=True)
class _Batch:
    """What one transaction did with the files it was given."""

    packed: int = 0
    safe: list[str] = field(default_factory=list)
    damaged: dict[str, DamagedFile] = field(default_factory=dict)
    conflicts: dict[str, StoreConflict] = field(default_factory=dict)
    unwritable: dict[str, Unwritable] = field(default_factory=dict)


def pack_inbox(
    inbox: Inbox,
    connection: sqlite3.Connection,
    database: Path,
    known_attempts: Callable[[str], Sequence[KnownAttempt]],
) -> int:
    """Pack all that waits; how many records were new. Whoever calls this holds the writer's lock.

    known_attempts: the attempts at a cell that are in the database.
    """
    packed = 0
    problems: list[StoreError] = []
    run_ids = inbox.run_ids()
    for start in range(0, len(run_ids), _BATCH):
        with writing(connection, database):
            batch = write_batch(inbox, connection, run_ids[start : start + _BATCH], known_attempts)
        packed += batch.packed
        for run_id in batch.safe:
            inbox.remove(run_id)
        problems += _set_aside(inbox, batch)
    inbox.clean()
    if problems:
        raise _together(problems)
    return packed


def write_batch(
    inbox: Inbox,
    connection: sqlite3.Connection,
    run_ids: Sequence[str],
    known_attempts: Callable[[str], Sequence[KnownAttempt]],
) -> _Batch:
    """Write these waiting records within the transaction of whoever calls; one that cannot be written stops no other.

    known_attempts: the attempts at a cell that are in the database, those of this transaction among them.
    """
    batch = _Batch()
    writer = RecordWriter(connection)
    for run_id in run_ids:
        waiting = inbox.read(run_id)
        if waiting is None:
            continue
        if isinstance(waiting, DamagedFile):
            batch.damaged[run_id] = waiting
            continue
        record, digest = (waiting := as_kept(waiting)).record, waiting.digest
        try:
            known = is_known(record, digest, known_attempts(record.cell.id))
        except StoreConflict as conflict:
            batch.conflicts[run_id] = conflict
            continue
        try:
            if not known:
                writer.write(record, digest)
                batch.packed += 1
        except Unwritable as error:
            batch.unwritable[run_id] = error
            continue
        batch.safe.append(run_id)
    return batch


def _set_aside(inbox: Inbox, batch: _Batch) -> list[StoreError]:
    problems: list[StoreError] = []
    for run_id, file in batch.damaged.items():
        kept = inbox.set_aside(run_id, "damaged")
        problems.append(
            StoreError(
                f"the record in {file.path} is damaged; it was kept as {kept.name}",
                found=file.found,
                allowed="the file as it was written",
                hint="run the same command again to repeat this run",
            )
        )
    for run_id, conflict in batch.conflicts.items():
        kept = inbox.set_aside(run_id, "conflict")
        what = f"{conflict.what}; it was kept as {kept}"
        problems.append(StoreConflict(what, found=conflict.found, allowed=conflict.allowed, hint=conflict.hint))
    for run_id, error in batch.unwritable.items():
        kept = inbox.set_aside(run_id, "unwritable")
        problems.append(
            StoreError(
                f"the record of run {run_id} cannot be written into the database; it was kept as {kept}",
                found=str(error),
                hint="run the same command again to repeat this run",
            )
        )
    return problems


def _together(problems: Sequence[StoreError]) -> StoreError:
    """One error for all: a conflict when there is one among them."""
    first = next((problem for problem in problems if isinstance(problem, StoreConflict)), problems[0])
    what = "\n".join([first.what, *(problem.what for problem in problems if problem is not first)])
    return type(first)(what, found=first.found, allowed=first.allowed, hint=first.hint)
