"""Is a store whole, and what can be saved of one that is not?

`verify` looks at everything and changes nothing. `repair` puts the sound records of a damaged database into a new one,
with those that the folders of runs still have. Nothing is deleted: what is damaged stays beside under another name.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from isorun.errors import StoreBusy, StoreConflict, StoreError
from isorun.store import PLANS, SEARCHES, STUDIES
from isorun.store.claims import ByteLocks, Claims, cell_of, claim_names, read_claim
from isorun.store.content import KnownAttempt, is_known
from isorun.store.database import connect, create_database, writing
from isorun.store.files import Files, FolderDocuments, reported
from isorun.store.folder import REDACTING, Catalogue, make_key, packed_count, read_key, remember_count
from isorun.store.inbox import DamagedFile, Inbox, write_batch
from isorun.store.rows import RecordWriter, Unwritable, is_another_key, remember_key
from isorun.store.salvage import (
    Damage,
    folders_aside,
    from_run_folder,
    in_run_folders,
    names_in,
    opened_copy,
    salvaged,
    with_copy,
)
from isorun.study.records import RunRecord, RunState, record_digest

__all__ = ["Damage", "Repaired", "Verified", "existing", "only_writer", "repair", "share", "verify"]

_WAIT_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class Verified:
    """What `verify` found. sound: how many records are whole; waiting: how many of them are still in the inbox.

    unrecorded: runs that ended and whose record is in their folder only: the process was killed just then, or another
    database was put in place of the one that had it. lost: runs whose record is nowhere whole. aside: files and
    folders of runs that were set aside earlier and are still there. unchecked: documents that an older isorun kept
    without a digest: nothing tells whether they are as they were. redacting: whether values were being taken out of it
    by a process that was killed, so that some are still there.
    """

    store: str
    sound: int
    waiting: int
    damage: tuple[Damage, ...]
    unrecorded: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    aside: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()
    redacting: bool = False

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        damage = [item.to_json() for item in self.damage]
        return {
            "store": self.store,
            "sound_records": self.sound,
            "waiting": self.waiting,
            "damage": damage,
            "unrecorded": list(self.unrecorded),
            "lost": list(self.lost),
            "set_aside": list(self.aside),
            "not_checkable": list(self.unchecked),
            "redaction_unfinished": self.redacting,
        }


@dataclass(frozen=True, slots=True)
class Repaired:
    """What `repair` did. kept: how many records the new database has, saved: those of them from the folders of runs.

    lost: runs whose record is nowhere whole; lost_unnamed: how many more were packed once, and nothing is left that
    tells which they were. aside: where what was damaged or contradicts now lies, what was set aside earlier included.
    new_key: whether another key was made, so that cells of which something is withheld have other ids from now on.
    """

    store: str
    kept: int = 0
    saved: int = 0
    lost: tuple[str, ...] = ()
    aside: tuple[str, ...] = ()
    new_key: bool = False
    lost_unnamed: int = 0

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "store": self.store,
            "kept_records": self.kept,
            "saved_from_run_folders": self.saved,
            "lost": list(self.lost),
            "lost_unnamed": self.lost_unnamed,
            "set_aside": list(self.aside),
            "new_key": self.new_key,
        }


def verify(folder: Path) -> Verified:
    """Look at every record, document and file of the store, and try whether what waits can be written."""
    folder = existing(folder)
    inbox = Inbox(folder / "inbox", Files())
    damage = [*_damaged_files(folder)]
    packed = _packed_count(folder, damage)  # before the database, to which others may add
    recorded = _Recorded()
    for item in inbox.read_all() if inbox.folder.is_dir() else ():
        recorded.take(item.record)
    waiting = len(recorded.run_ids)
    with opened_copy(folder) as copy:
        damage += copy.damage
        for found in salvaged(copy.connection):
            if isinstance(found, RunRecord):
                recorded.take(found)
            else:
                damage.append(with_copy(folder, found))
        damage += _lost_rows(folder, packed, copy.connection)
        damage += _lost_key(folder, copy.connection, needed=recorded.withheld)
        unreadable = {item.run_id for item in damage if item.run_id}
        damage += () if damage else _refused(inbox, copy.connection)
    arrived = _waiting_now(inbox) - unreadable
    unrecorded, whole = [], recorded.run_ids | arrived
    for run_id, found in in_run_folders(folder):
        if isinstance(found, Damage):
            damage.append(replace(found, saved=run_id in whole))
            unreadable.add(run_id)
            continue
        unrecorded += [run_id] if run_id not in whole and recorded.allows(found) else []
        unreadable.discard(run_id)
    aside = inbox.names_aside() if inbox.folder.is_dir() else []
    unreadable |= {name.partition(".json.damaged")[0] for name in aside if ".json.damaged" in name}
    return Verified(
        str(folder),
        sound=len(recorded.run_ids),
        waiting=waiting,
        damage=tuple(damage),
        unrecorded=tuple(unrecorded),
        lost=tuple(sorted(unreadable - whole - set(unrecorded))),
        aside=(*(str(inbox.folder / name) for name in aside), *folders_aside(folder)),
        unchecked=tuple(_without_digest(folder)),
        redacting=(folder / REDACTING).exists(),
    )


def _waiting_now(inbox: Inbox) -> set[str]:
    return set(inbox.run_ids()) if inbox.folder.is_dir() else set()


class _Recorded:
    """What is known of the runs that have a record, of which there may be very many."""

    def __init__(self) -> None:
        self.run_ids: set[str] = set()
        self.withheld = False
        self._known: dict[str, list[KnownAttempt]] = {}

    def take(self, record: RunRecord) -> None:
        """One that has."""
        self.run_ids.add(record.run_id)
        self.withheld = self.withheld or bool(record.cell.withheld)
        known = KnownAttempt(record.attempt, record.state is RunState.FINISHED, b"")
        self._known.setdefault(record.cell.id, []).append(known)

    def allows(self, record: RunRecord) -> bool:
        """Whether the record of another run contradicts none of them."""
        try:
            return not is_known(record, b"", self._known.get(record.cell.id, ()))
        except StoreConflict:
            return False


def _packed_count(folder: Path, damage: list[Damage]) -> int:
    try:
        return packed_count(folder, Files())
    except StoreError as error:
        damage.append(Damage(str(folder / "packed"), error.found))
        return 0


def _lost_rows(folder: Path, packed: int, connection: sqlite3.Connection) -> Iterator[Damage]:
    """Rows are numbered from 1 on; those that were taken out leave a gap, or are fewer than were packed."""
    try:
        rows, latest = connection.execute("SELECT COUNT(*), MAX(id) FROM runs NOT INDEXED").fetchone()
    except sqlite3.Error:  # that much is told already, but not how many there were
        rows, latest = 0, 0
    if rows != max(packed, latest or 0):
        found = f"it has {rows:,} runs, and {max(packed, latest or 0):,} were packed into it"
        yield Damage(str(folder / "store.sqlite"), found)


def _lost_key(folder: Path, connection: sqlite3.Connection, *, needed: bool) -> Iterator[Damage]:
    try:
        key = read_key(folder, Files())
    except StoreError as error:
        yield Damage(str(folder / "key"), error.found)
        return
    if key is None and needed:
        yield Damage(str(folder / "key"), "it is gone, and something is withheld from the commands of recorded runs")
    with suppress(sqlite3.Error, ValueError):  # a database that cannot be read is told already
        if key is not None and needed and is_another_key(connection, key):
            yield Damage(str(folder / "key"), "it is another one than that of the recorded runs")


def _refused(inbox: Inbox, connection: sqlite3.Connection) -> Iterator[Damage]:
    """What of the inbox the database would not take, tried on the copy."""
    if not inbox.folder.is_dir():
        return
    known = Catalogue()

    def attempts(cell_id: str) -> list[KnownAttempt]:
        known.catch_up(connection)
        return known.attempts(cell_id)

    with writing(connection, inbox.folder):
        batch = write_batch(inbox, connection, inbox.run_ids(), attempts)
    for run_id, conflict in batch.conflicts.items():
        yield Damage(str(inbox.folder / f"{run_id}.json"), f"{conflict.what}: {conflict.found}", run_id)
    for run_id, error in batch.unwritable.items():
        yield Damage(str(inbox.folder / f"{run_id}.json"), f"it cannot be written into the database: {error}", run_id)


def repair(folder: Path) -> Repaired:
    """Make a new database of what is sound; nothing happens to a store that is."""
    folder = existing(folder)
    files = Files()
    with only_writer(folder, "repaired"):
        findings = verify(folder)
        packed = _packed_count(folder, [])
        aside = [*findings.aside, *_set_damaged_files_aside(folder, findings.damage, files)]
        new_key = _renewed_key(folder, findings.damage, files)
        if all(_is_small_file(folder, item) for item in findings.damage):
            saved = _put_into_inbox(folder, findings.unrecorded, files)
            if new_key:
                _remember_the_new_key(folder, files)
            _remember_attempts(folder, files, {*findings.lost, *_runs_of_damaged_claims(folder, findings.damage)})
            return Repaired(str(folder), findings.sound + saved, saved, findings.lost, tuple(aside), new_key)
        rebuilt = _Rebuilding(folder, files)
        rebuilt.fill()
        lost = sorted(set(findings.lost) - rebuilt.run_ids)
        _remember_attempts(folder, files, {*lost, *names_in(folder / "runs")} - rebuilt.run_ids)
        aside += [*rebuilt.aside, *rebuilt.put_in_place()]
    kept = len(rebuilt.run_ids)
    unnamed = max(packed - kept - len(lost), 0)
    return Repaired(str(folder), kept, rebuilt.saved, tuple(lost), tuple(aside), new_key, unnamed)


def _is_small_file(folder: Path, damage: Damage) -> bool:
    """Whether it concerns a file that can be set aside, and not the database."""
    return damage.where.startswith(f"{folder}{os.sep}") and Path(damage.where) != folder / "store.sqlite"


def _renewed_key(folder: Path, damage: Iterable[Damage], files: Files) -> bool:
    """Make another key where the store had one that is damaged or gone: whoever repairs was told what it means."""
    if not any(Path(item.where) == folder / "key" for item in damage):
        return False
    with reported("making another key", folder):
        make_key(folder, files)
    return True


def _remember_the_new_key(folder: Path, files: Files) -> None:
    database = folder / "store.sqlite"
    key = read_key(folder, files)
    with closing(connect(database)) as connection, writing(connection, database):
        if key is not None:
            remember_key(connection, key)


def _put_into_inbox(folder: Path, run_ids: Iterable[str], files: Files) -> int:
    """Records that only the folders of runs have; the store packs them when it is opened next."""
    inbox = Inbox(folder / "inbox", files)
    found = [from_run_folder(folder, run_id) for run_id in run_ids]
    records = [record for record in found if isinstance(record, RunRecord)]
    for record in records:
        files.ensure_inner_folder(inbox.folder)
        inbox.put(record)
    return len(records)


def _runs_of_damaged_claims(folder: Path, damage: Iterable[Damage]) -> Iterator[str]:
    """The runs of those cells that have a folder: nothing else tells any more which attempt was the last."""
    claims = {path.name for item in damage if (path := Path(item.where)).parent == folder / "claims"}
    return (name for name in names_in(folder / "runs") if name.rpartition("-")[0] in claims)


def _remember_attempts(folder: Path, files: Files, run_ids: Iterable[str]) -> None:
    """A run that is made again is a later attempt than these: their folders are still there."""
    claims = Claims(folder, files)
    try:
        for cell_id, attempt in filter(None, map(cell_of, run_ids)):
            claims.remember(cell_id, attempt)
    finally:
        claims.close()


def share(folder: Path, group: int | None = None) -> int:
    """Let the group work with the store, too: all that is there, and what will be. How many files and folders changed.

    What was submitted to a cluster (`runs/slurm/TOKEN`) stays its user's alone: it holds secrets, and is carried out.
    group: its number; None for the group that the folder has.
    """
    folder = existing(folder).resolve()  # links within the store lead elsewhere; the one to it is the store
    submitted = folder / "runs" / "slurm"
    changed = 0
    with reported("sharing the store", folder):
        for path in (folder, *folder.rglob("*")):
            if path.is_symlink() or submitted in path.parents:
                continue
            if group is not None:
                os.chown(path, -1, group)
            path.chmod(0o3770 if path == submitted else 0o2770 if path.is_dir() else 0o660)
            changed += 1
    return changed


def existing(folder: Path) -> Path:
    """The folder of a store, absolute; StoreError where there is none."""
    folder = Path(folder).absolute()
    if not folder.is_dir():
        hint = "name the right folder with --store"
        raise StoreError(f"there is no store at {folder}", found="no such folder", hint=hint)
    return folder


def _damaged_files(folder: Path) -> Iterator[Damage]:
    inbox = Inbox(folder / "inbox", Files())
    for file in _damaged_in(inbox) if inbox.folder.is_dir() else ():
        yield with_copy(folder, Damage(str(file.path), file.found, file.path.name.removesuffix(".json")))
    for name in claim_names(names_in(folder / "claims")):
        found = read_claim(folder / "claims" / name, Files())
        if isinstance(found, str):
            yield Damage(str(folder / "claims" / name), found)
    for kind in (STUDIES, PLANS, SEARCHES):
        documents = FolderDocuments(folder, kind)
        for name in documents.names():
            try:
                documents.read(name)
            except StoreError as error:
                yield Damage(documents.place(name), error.found)


def _without_digest(folder: Path) -> Iterator[str]:
    for kind in (STUDIES, PLANS, SEARCHES):
        documents = FolderDocuments(folder, kind)
        yield from (documents.place(name) for name in documents.names() if not documents.has_digest(name))


def _damaged_in(inbox: Inbox) -> Iterator[DamagedFile]:
    return (file for run_id in inbox.run_ids() if isinstance(file := inbox.read(run_id), DamagedFile))


def _set_damaged_files_aside(folder: Path, damaged: Iterable[Damage], files: Files) -> Iterator[str]:
    for path in [Path(damage.where) for damage in damaged if _is_small_file(folder, damage)]:
        if not os.path.lexists(path):  # a key that is gone
            continue
        target = path.with_name(f"{path.name}.damaged-{_now()}")
        with reported("setting a damaged file aside", path):
            files.rename(path, target)
            files.fsync_folder(path.parent)
        yield str(target)


class _Rebuilding:
    """A new database beside the damaged one."""

    def __init__(self, folder: Path, files: Files) -> None:
        self.run_ids: set[str] = set()
        self.saved = 0
        self.aside: list[str] = []
        self._folder = folder
        self._files = files
        self._path = folder / "store.sqlite.repaired"
        self._known: dict[str, list[KnownAttempt]] = {}

    def fill(self) -> None:
        """Write what is sound, first of the database, then of the folders of runs."""
        self._files.unlink(self._path)
        create_database(self._path, self._files)
        connection = connect(self._path)
        try:
            with opened_copy(self._folder) as copy, writing(connection, self._path):
                writer = RecordWriter(connection)
                for found in salvaged(copy.connection):
                    if isinstance(found, RunRecord):
                        self._write(writer, found)
                waiting = _waiting_now(Inbox(self._folder / "inbox", self._files))
                for run_id, kept in in_run_folders(self._folder):
                    if isinstance(kept, RunRecord) and run_id not in self.run_ids and run_id not in waiting:
                        self.saved += self._write(writer, kept)
                key = read_key(self._folder, self._files)
                if key is not None:
                    remember_key(connection, key)
        finally:
            connection.close()

    def put_in_place(self) -> list[str]:
        """Give the new database its name; the damaged one, if there is one, keeps another, which is given."""
        database = self._folder / "store.sqlite"
        damaged = database.with_name(f"store.sqlite.damaged-{_now()}")
        with reported("putting the new database in place", self._folder):
            journal = database.with_name("store.sqlite-journal")
            if journal.exists():
                self._files.rename(journal, journal.with_name(f"{damaged.name}-journal"))
            kept = [str(damaged)] if database.exists() else []
            if kept:
                os.link(database, damaged)
            # The count may never be higher than what is there, so it goes before and comes after.
            self._files.unlink(self._folder / "packed")
            self._files.rename(self._path, database)
            self._files.fsync_folder(self._folder)
            with closing(connect(database)) as connection:
                remember_count(self._folder, connection, self._files)
        return kept

    def _write(self, writer: RecordWriter, record: RunRecord) -> bool:
        known = self._known.setdefault(record.cell.id, [])
        digest = record_digest(record)
        try:
            if is_known(record, digest, known):
                return False
        except StoreConflict:
            self._set_aside(record, "conflict")
            return False
        try:
            writer.write(record, digest)
        except Unwritable:
            self._set_aside(record, "unwritable")
            return False
        known.append(KnownAttempt(record.attempt, record.state is RunState.FINISHED, digest))
        self.run_ids.add(record.run_id)
        return True

    def _set_aside(self, record: RunRecord, why: str) -> None:
        inbox = Inbox(self._folder / "inbox", self._files)
        if record.run_id not in inbox.run_ids():
            inbox.put(record)
            self.aside.append(str(inbox.set_aside(record.run_id, why)))


@contextmanager
def only_writer(folder: Path, doing: str) -> Iterator[None]:
    """Be the only writer among all processes. doing: what is to be done to the store, for the message."""
    with reported("opening the writer's lock", folder):
        locks = ByteLocks(folder / "writer.lock")
    try:
        if not locks.acquire(0, timeout_seconds=_WAIT_SECONDS):
            hint = "wait for it to end, and run the same command again"
            raise StoreBusy(f"the store at {folder} cannot be {doing}", found="another process writes to it", hint=hint)
        yield
    finally:
        locks.close()


def _now() -> str:
    return datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
