"""A store behind a URL, shelf://FOLDER: a file a record, a file a claim, and a lock around all that is changed."""

import fcntl
import json
import os
import secrets
import socket
import urllib.parse
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from isorun.errors import StoreDamaged, StoreMissing
from isorun.store import (
    AbstractDocuments,
    AbstractStore,
    Claim,
    Holder,
    KnownAttempt,
    is_known,
    open_envelope,
    refuse_name,
    sealed,
    stored_form,
)
from isorun.study.records import Note, RunState


def open_shelf(url, *, create=True):
    """The store that a URL names."""
    return Shelf(Path(url.removeprefix("shelf://")), create=create)


class Shelf(AbstractStore):
    """The records of one shelf. A claim is a file with its holder, and a lock that dies with the process."""

    def __init__(self, folder, *, create=True):
        if not create and not (folder / "key").is_file():
            raise StoreMissing(f"there is no store shelf://{folder}")
        for part in ("records", "claims", "attempts"):
            (folder / part).mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._held = {}
        with self._alone():
            if not (folder / "key").is_file():
                _write(folder / "key", secrets.token_bytes(32))
            self.key = (folder / "key").read_bytes()

    @contextmanager
    def _alone(self):
        with (self.folder / "lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def claim(self, cell_id):
        with self._alone():
            known = self._known(cell_id)
            if any(one.finished for one in known):
                return None
            file = (self.folder / "claims" / cell_id).open("a+")
            if not _locked(file):
                file.close()
                return None
            attempt = max([self._claimed(cell_id), *(one.attempt for one in known)]) + 1
            _write(self.folder / "attempts" / cell_id, str(attempt).encode())
            since = datetime.now(UTC).isoformat(timespec="seconds")
            file.truncate(0)
            file.write(json.dumps(asdict(Holder(cell_id, attempt, socket.gethostname(), os.getpid(), since))))
            file.flush()
            self._held[cell_id, attempt] = file
            return ShelfClaim(cell_id, attempt, self)

    def release(self, cell_id, attempt):
        """Take a claim back; nothing when that has happened."""
        if file := self._held.pop((cell_id, attempt), None):
            file.truncate(0)
            file.close()

    def holders(self):
        found = []
        with self._alone():
            for path in sorted((self.folder / "claims").iterdir()):
                with path.open("a+") as file:
                    if not _locked(file):  # somebody who lives has it
                        found.append(Holder(**json.loads(path.read_text())))
        return found

    def finish(self, record):
        pieces, digest = sealed(stored_form(record))
        with self._alone():
            if not is_known(record, digest, self._known(record.cell.id), self._claimed(record.cell.id)):
                _write(self.folder / "records" / f"{record.run_id}.json", b"".join(pieces))

    def _claimed(self, cell_id):
        path = self.folder / "attempts" / cell_id
        return int(path.read_text()) if path.is_file() else 0

    def _known(self, cell_id):
        found = [(one.record, one.digest) for one in self._envelopes([cell_id])]
        return [KnownAttempt(record.attempt, record.state is RunState.FINISHED, digest) for record, digest in found]

    def _envelopes(self, cell_ids=None):
        wanted = None if cell_ids is None else set(cell_ids)
        for path in (self.folder / "records").glob("*.json"):
            if wanted is None or path.stem.rpartition("-")[0] in wanted:
                try:
                    yield open_envelope(path.read_bytes())
                except ValueError as error:
                    raise StoreDamaged(f"{path} is not what was written", found=str(error)) from error

    def records(self, cell_ids=None):
        found = [one.record for one in self._envelopes(cell_ids)]
        return sorted(found, key=lambda record: (record.cell.id, record.attempt))

    def finished(self, cell_ids=None):
        return {record.cell.id for record in self.records(cell_ids) if record.state is RunState.FINISHED}

    def run_ids(self, cell_ids=None):
        return {record.run_id for record in self.records(cell_ids)}

    def documents(self, kind):
        return ShelfDocuments(self.folder / kind)

    def notes(self):
        return (Note("on-a-shelf", "these records lie on a shelf"),) if self.run_ids() else ()

    def close(self):
        for place in list(self._held):
            self.release(*place)


@dataclass(frozen=True)
class ShelfClaim(Claim):
    """The right to execute one cell."""

    cell_id: str
    attempt: int
    store: Shelf

    def release(self):
        self.store.release(self.cell_id, self.attempt)


class ShelfDocuments(AbstractDocuments):
    """A file a document, numbered in the order of writing."""

    def __init__(self, folder):
        self.folder = folder

    def _read(self):
        found = {urllib.parse.unquote(path.name): json.loads(path.read_text()) for path in self.folder.glob("[!.]*")}
        return dict(sorted(found.items(), key=lambda item: -item[1]["number"]))

    def names(self):
        return tuple(self._read())

    def read(self, name):
        return self._read().get(name, {}).get("document")

    def write(self, name, document):
        refuse_name(name)
        self.folder.mkdir(exist_ok=True)
        number = max([0, *(kept["number"] for kept in self._read().values())]) + 1
        _write(Path(self.place(name)), json.dumps({"number": number, "document": document}).encode())

    def place(self, name):
        return str(self.folder / urllib.parse.quote(name, safe=""))


def _locked(file):
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _write(path, data):
    """Whole or not at all, and on the disk when this returns."""
    new = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    with new.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)
