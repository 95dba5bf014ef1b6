"""The inbox: finished records that wait to be packed, each a file written whole or not at all.

A file is `{"format": 1, "digest": …, "record": …}`; the digest is that of the record's canonical JSON, so a file that
was cut or altered by the disk shows. The file's final name appears only after its content has reached the disk.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isorun.errors import StoreTooNew
from isorun.store.claims import cell_of
from isorun.store.failures import file_error, reported
from isorun.store.files import Files
from isorun.store.stored_form import canonical_json, content_digest
from isorun.study.records import RunRecord

__all__ = ["DamagedFile", "Inbox", "WaitingRecord"]

_FORMAT = 1
_SUFFIX = ".json"
_TEMPORARY = ".tmp"
_ASIDE = ("damaged", "conflict")
_TRIES = 100


@dataclass(frozen=True, slots=True)
class WaitingRecord:
    """A record in the inbox, and the digest of its content."""

    record: RunRecord
    digest: bytes


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

    def put(self, record: RunRecord) -> None:
        """Make the record durable. When this returns it survives a crash of the machine.

        A record that is there already is written again rather than trusted: after a failed fsync the system may call
        a file clean that never reached the disk.
        """
        text = canonical_json(record.to_json())
        envelope = f'{{"format":{_FORMAT},"digest":"{content_digest(text).hex()}","record":{text}}}\n'
        try:
            self._write_whole(record.run_id, envelope.encode())
        except OSError as error:
            doing = f"recording run {record.run_id} ({record.cell.label}, {len(envelope):,} bytes)"
            raise file_error(error, doing, self.folder) from error

    def run_ids(self, cell_ids: Collection[str] | None = None) -> list[str]:
        """The ids of the waiting runs of these cells, or of all, ordered by cell and attempt."""
        with reported("listing the inbox", self.folder):
            names = self._files.names(self.folder)
        ids = [name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX)]
        places = {run_id: place for run_id in ids if (place := cell_of(run_id))}
        wanted = [run_id for run_id, (cell_id, _) in places.items() if cell_ids is None or cell_id in cell_ids]
        return sorted(wanted, key=places.__getitem__)

    def read(self, run_id: str) -> WaitingRecord | DamagedFile | None:
        """The waiting record, or what is wrong with its file; None when it was packed in the meantime."""
        path = self._path(run_id)
        with reported(f"reading the record of run {run_id}", path):
            try:
                data = self._files.read(path)
            except FileNotFoundError:
                return None
        return _checked(data, run_id, path)

    def read_all(self, cell_ids: Collection[str] | None = None) -> Iterator[WaitingRecord]:
        """The records that can be trusted, of these cells or of all; `problems` names the others."""
        for run_id in self.run_ids(cell_ids):
            waiting = self.read(run_id)
            if isinstance(waiting, WaitingRecord):
                yield waiting

    def problems(self) -> list[str]:
        """One sentence for each file that was set aside or should be."""
        with reported("listing the inbox", self.folder):
            names = sorted(self._files.names(self.folder))
        aside = [f"{self.folder / name} was set aside" for name in names if _is_aside(name)]
        found = map(self.read, self.run_ids())
        return [*aside, *(f"{file.path} is damaged: {file.found}" for file in found if isinstance(file, DamagedFile))]

    def remove(self, run_id: str) -> None:
        """Remove a file whose record is safe elsewhere."""
        with reported(f"removing the packed file of run {run_id}", self.folder):
            self._files.unlink(self._path(run_id))

    def set_aside(self, run_id: str, why: str) -> Path:
        """Keep the file under a name that says why ("damaged", "conflict") and that no reader takes for a record."""
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

    def _write_whole(self, run_id: str, data: bytes) -> None:
        for _ in range(_TRIES):
            temporary = self.folder / f"{run_id}{_SUFFIX}.{os.getpid()}-{secrets.token_hex(4)}{_TEMPORARY}"
            if self._published(temporary, self._path(run_id), data):
                return
        raise FileNotFoundError(f"{temporary.name} was removed while it was being written")

    def _published(self, temporary: Path, target: Path, data: bytes) -> bool:
        """Write, synchronise, rename, synchronise; False when a cleaner took the file before it was locked."""
        descriptor = self._files.create(temporary)
        try:
            if not self._files.lock(descriptor):
                return False
            self._files.write(descriptor, data)
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


def _checked(data: bytes, run_id: str, path: Path) -> WaitingRecord | DamagedFile:
    try:
        envelope = json.loads(data)
        _refuse_newer(envelope, path)
        written, content = bytes.fromhex(envelope["digest"]), envelope["record"]
        found = content_digest(canonical_json(content))
        record = RunRecord.from_json(content)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return DamagedFile(path, f"{type(error).__name__}: {error}")
    if found != written or record.run_id != run_id:
        return DamagedFile(path, f"a record of run {record.run_id} with the digest {found.hex()}")
    return WaitingRecord(record, found)


def _refuse_newer(envelope: Mapping[str, Any], path: Path) -> None:
    version = envelope["format"]
    if isinstance(version, int) and version > _FORMAT:
        raise StoreTooNew(
            f"{path} was written by a newer isorun",
            found=f"record format {version}",
            allowed=f"record format {_FORMAT}",
            hint="pip install --upgrade isorun",
        )


def _is_aside(name: str) -> bool:
    return any(f"{_SUFFIX}.{why}" in name for why in _ASIDE)
