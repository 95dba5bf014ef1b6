"""Claims: who executes a cell, and as which attempt.

A cell's claim is a lock on the byte of `claims.lock` that belongs to it, so a killed holder's claims are free again.
`claims/<cell id>` says which attempt it is and who makes it; it stays when an attempt leaves no record, so that
attempts always grow, and goes with the record of the attempt. Of a run that goes on without the process that claimed it
it says that, too: nobody but who takes that attempt again is given the cell. It is not synchronised: after a crash of
the machine nobody is left who could wake up as an older attempt.

POSIX record locks die with their process, also with `kill -9`, and are not inherited by its children. They have two
traps: a process never conflicts with itself, and closing *any* descriptor of the file drops all its locks. Hence the
table of this process: one descriptor for each lock file however many stores are open, and a note of each byte held.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import secrets
import socket
import struct
import threading
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from isorun.errors import StoreError
from isorun.store import Claim, Holder
from isorun.store.files import Files, reported
from isorun.worker.runfolder import open_own

__all__ = ["ByteLocks", "Claims", "FolderClaim", "cell_of", "claim_names", "read_claim"]

_FLOCK: Final = struct.Struct("@hhqqi")
"""struct flock of Linux: type, whence, start, length, process."""


_LARGEST_NUMBER: Final = 2**31 - 1
"""No cell is tried so often, and no process has a higher number."""


@dataclass(frozen=True, slots=True)
class FolderClaim(Claim):
    """The right to execute one cell, in the store of one machine."""

    cell_id: str
    attempt: int
    claims: Claims

    def release(self) -> None:
        """Give the right back; giving it back twice is nothing, also when a later attempt has it by then."""
        self.claims.give_back(self)

    def leave(self) -> None:
        """Go, while the run goes on; the file of the claim says so."""
        self.claims.leave(self)


class Claims:
    """Hands out claims of one store. unreadable: by cell, what was found in place of a claim.

    only_looks: for who may not write there; nothing is made, and no claim can be taken.
    """

    def __init__(self, store: Path, files: Files, *, only_looks: bool = False) -> None:
        self._folder = store / "claims"
        self._files = files
        self._guard = threading.Lock()
        self._held: dict[str, int] = {}
        self._recorded: set[str] = set()
        self.unreadable: dict[str, str] = {}
        with reported("opening the claims", store):
            if not only_looks:
                files.ensure_inner_folder(self._folder)
            self._locks = ByteLocks(store / "claims.lock", only_looks=only_looks)

    def take(
        self, cell_id: str, recorded_attempts: Callable[[str], Iterable[int] | None], again: int | None = None
    ) -> FolderClaim | None:
        """The claim, or None when somebody has it or the cell is finished. again: the attempt that it has to be.

        recorded_attempts: the attempts of a cell that left a record, or None when the cell is finished. It is asked
        after the lock is taken, because the last holder may have finished the cell just before letting go.
        """
        byte = _byte_of(cell_id)
        with reported(f"claiming cell {cell_id}", self._folder):
            if not self._locks.acquire(byte):
                return None
        claim = None
        try:
            recorded = recorded_attempts(cell_id)
            if recorded is not None:
                claim = self._as_attempt(cell_id, recorded, again)
        finally:
            if claim is None:
                self._locks.release(byte)
        return claim

    def record_kept(self, cell_id: str, attempt: int) -> None:
        """Attempt has a record, so that its claim need not be remembered once it is given back."""
        with self._guard:
            if self._held.get(cell_id) == attempt:
                self._recorded.add(cell_id)

    def give_back(self, claim: FolderClaim) -> None:
        """Free the cell, unless a later attempt has it."""
        with self._guard:
            if self._held.get(claim.cell_id) != claim.attempt:
                return
            del self._held[claim.cell_id]
            try:
                if claim.cell_id in self._recorded:
                    self._recorded.discard(claim.cell_id)
                    self._forget(claim.cell_id)
            finally:
                self._locks.release(_byte_of(claim.cell_id))

    def leave(self, claim: FolderClaim) -> None:
        """Free the lock of the cell, whose run goes on; nothing is left where it has a record."""
        with self._guard:
            held = self._held.get(claim.cell_id)
            if held == claim.attempt and claim.cell_id not in self._recorded:
                found = self._read(claim.cell_id)
                if found is not None and found.attempt == held:
                    with reported(f"leaving the run of cell {claim.cell_id}", self._folder):
                        self._replace(claim.cell_id, _written(replace(found, left=True)))
        self.give_back(claim)

    def holders(self) -> list[Holder]:
        """Who holds a claim now, or has left it."""
        with reported("looking at the claims", self._folder):
            names = claim_names(self._files.names(self._folder))
            found = []
            for name in names:
                is_held = self._locks.is_held(_byte_of(name))
                holder = self._holder(name)
                if holder is not None and (is_held or holder.left):
                    found.append(replace(holder, left=False) if is_held else holder)
            return found

    def forget(self, finished: Collection[str]) -> None:
        """Remove what is remembered of finished cells whose holder died before giving the claim back."""
        with reported("cleaning the claims", self._folder):
            for name in self._files.names(self._folder):
                if name not in finished or name in self._held or not self._locks.acquire(_byte_of(name)):
                    continue
                try:
                    self._forget(name)
                finally:
                    self._locks.release(_byte_of(name))

    def remember(self, cell_id: str, attempt: int) -> None:
        """Let the next attempt be a later one than this."""
        if self.latest(cell_id) < attempt < _LARGEST_NUMBER:
            with reported(f"remembering the attempts at cell {cell_id}", self._folder):
                self._replace(cell_id, json.dumps({"attempt": attempt}).encode())

    def latest(self, cell_id: str) -> int:
        """The latest attempt that a claim was given out for, by whomever; 0 where none is remembered."""
        found = self._read(cell_id)
        return found.attempt if found else 0

    def close(self) -> None:
        """Give back all claims taken here."""
        for cell_id, attempt in tuple(self._held.items()):
            self.give_back(FolderClaim(cell_id, attempt, self))
        self._locks.close()

    def _as_attempt(self, cell_id: str, recorded: Iterable[int], again: int | None) -> FolderClaim | None:
        """As the attempt after all that are known; as an earlier one only where none after it is known."""
        found, left_records = self._read(cell_id), list(recorded)
        known = [found.attempt if found else 0, *left_records]
        if found is not None and found.left and again != found.attempt and found.attempt not in left_records:
            return None  # that attempt goes on without the process that claimed it
        if cell_id in self.unreadable:
            known += self._attempts_with_a_folder(cell_id)
        if again is not None and (again in left_records or again < max(known)):
            return None
        attempt = max(known) + 1 if again is None else again
        since = datetime.now(UTC).isoformat(timespec="seconds")
        holder = Holder(cell_id, attempt, socket.gethostname(), os.getpid(), since)
        with reported(f"claiming cell {cell_id}", self._folder):
            self._replace(cell_id, _written(holder))
        with self._guard:
            self._held[cell_id] = attempt
        return FolderClaim(cell_id, attempt, self)

    def _holder(self, cell_id: str) -> Holder | None:
        found = self._read(cell_id)
        return found if found and found.pid else None

    def _read(self, cell_id: str) -> Holder | None:
        """What is remembered of the cell's last attempt; None where nothing is, or where it cannot be read."""
        found = read_claim(self._folder / cell_id, self._files)
        if isinstance(found, str):
            self.unreadable[cell_id] = f"{self._folder / cell_id} is no claim: {found}"
            return None
        return found

    def _attempts_with_a_folder(self, cell_id: str) -> list[int]:
        """The attempts that left a folder of a run: where the claim is damaged, nothing else may tell of them."""
        runs = self._folder.with_name("runs")
        with reported("looking at the folders of runs", runs):
            places = map(cell_of, self._files.names(runs) if runs.is_dir() else ())
            return [place[1] for place in places if place and place[0] == cell_id and place[1] < _LARGEST_NUMBER]

    def _replace(self, cell_id: str, data: bytes) -> None:
        temporary = self._folder / f"{cell_id}.{os.getpid()}-{secrets.token_hex(4)}.tmp"
        try:
            descriptor = self._files.create(temporary)
            try:
                self._files.write(descriptor, data)
            finally:
                self._files.close(descriptor)
            self._files.rename(temporary, self._folder / cell_id)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise

    def _forget(self, cell_id: str) -> None:
        """A claim that cannot be forgotten costs a small file and nothing else."""
        try:
            self._files.unlink(self._folder / cell_id)
        except OSError:
            return


def _written(holder: Holder) -> bytes:
    content = {"attempt": holder.attempt, "host": holder.host, "pid": holder.pid, "since": holder.since}
    return json.dumps({**content, **({"left": True} if holder.left else {})}).encode()


def claim_names(names: Iterable[str]) -> list[str]:
    """Those of the names in the folder of claims that are claims', and neither half-written nor set aside."""
    return sorted(name for name in names if "." not in name)


def read_claim(path: Path, files: Files) -> Holder | str | None:
    """The claim in a file, which anybody may have written; what is wrong with it, or None where there is none.

    What was remembered without a holder has the process number 0.
    """
    try:
        content = json.loads(files.read(path))
        attempt = content["attempt"]
        host, pid, since = content.get("host", ""), content.get("pid", 0), content.get("since", "")
    except FileNotFoundError:
        return None
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        return f"it cannot be read ({type(error).__name__})"
    is_right = _is_number(attempt, 1) and _is_number(pid, 0) and isinstance(host, str) and _is_time(since)
    if not is_right or bool(pid) != bool(since):
        return "it does not say which attempt was made by whom and since when"
    return Holder(path.name, attempt, host, pid, since, left=content.get("left") is True)


def _is_number(value: object, least: int) -> bool:
    return type(value) is int and least <= value <= _LARGEST_NUMBER


def _is_time(text: object) -> bool:
    try:
        return text == "" or (isinstance(text, str) and datetime.fromisoformat(text).tzinfo is not None)
    except ValueError:
        return False


def cell_of(run_id: str) -> tuple[str, int] | None:
    """The cell and the attempt that a run id names; None when the text is no run id."""
    cell_id, _, attempt = run_id.rpartition("-")
    is_one = cell_id and "." not in cell_id and attempt.isascii() and attempt.isdecimal()
    return (cell_id, int(attempt)) if is_one else None


def _byte_of(cell_id: str) -> int:
    """The byte that belongs to the cell, within 62 bits.

    Two cells that share one, which is less likely than a broken disk, cannot be executed at the same time.
    """
    return int.from_bytes(hashlib.sha256(cell_id.encode()).digest()[:8], "big") >> 2


@dataclass(slots=True)
class _LockFile:
    """A lock file this process has open, how many users it has here, and the bytes they hold."""

    descriptor: int
    users: int = 0
    held: set[int] = field(default_factory=set)


class _OpenLockFiles:
    """The lock files this process has open, by device and inode."""

    def __init__(self) -> None:
        self.guard = threading.Lock()
        self.files: dict[tuple[int, int], _LockFile] = {}

    def forget(self) -> None:
        """In a forked child: it holds none of its parent's locks."""
        self.guard = threading.Lock()
        self.files = {}


_OPEN: Final = _OpenLockFiles()
os.register_at_fork(after_in_child=_OPEN.forget)


class ByteLocks:
    """The locks of one file, as one of its users in this process sees them. `close` gives back all that it took."""

    def __init__(self, path: Path, *, only_looks: bool = False) -> None:
        self._mine: set[int] = set()
        with _OPEN.guard:
            self._key = _identity(path)
            if self._key not in _OPEN.files:
                descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC) if only_looks else _open_lock_file(path)
                status = os.fstat(descriptor)
                self._key = (status.st_dev, status.st_ino)
                _OPEN.files[self._key] = _LockFile(descriptor)
            _OPEN.files[self._key].users += 1

    def acquire(self, offset: int, *, timeout_seconds: float = 0.0) -> bool:
        """Lock the byte; False when somebody else, in any process or thread, still holds it after the timeout."""
        deadline = time.monotonic() + timeout_seconds
        while not self._try(offset):
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.005)
        return True

    def release(self, offset: int) -> None:
        """Unlock the byte; nothing happens when it is not held by this user."""
        with _OPEN.guard:
            file = _OPEN.files.get(self._key)
            if file is None or offset not in self._mine:
                return
            self._mine.remove(offset)
            file.held.discard(offset)
            fcntl.lockf(file.descriptor, fcntl.LOCK_UN, 1, offset)

    def is_held(self, offset: int) -> bool:
        """Whether anybody, in any process, holds the byte now; asking takes no lock."""
        with _OPEN.guard:
            file = self._file()
            if offset in file.held:
                return True
            asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, offset, 1, 0)
            return bool(_FLOCK.unpack(fcntl.fcntl(file.descriptor, fcntl.F_GETLK, asked))[0] != fcntl.F_UNLCK)

    def close(self) -> None:
        """Release what this user holds, and the file when nobody else in this process uses it."""
        for offset in tuple(self._mine):
            self.release(offset)
        with _OPEN.guard:
            file = _OPEN.files.get(self._key)
            if file is None:
                return
            file.users -= 1
            if file.users == 0:
                del _OPEN.files[self._key]
                os.close(file.descriptor)

    def _try(self, offset: int) -> bool:
        with _OPEN.guard:
            file = self._file()
            if offset in file.held:
                return False
            try:
                fcntl.lockf(file.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, offset)
            except OSError as error:
                if error.errno in {errno.EACCES, errno.EAGAIN}:
                    return False
                raise
            file.held.add(offset)
            self._mine.add(offset)
            return True

    def _file(self) -> _LockFile:
        file = _OPEN.files.get(self._key)
        if file is None:
            raise StoreError(
                "the store was opened by the process that this one was forked from",
                hint="open the store anew in the child process",
            )
        return file


def _open_lock_file(path: Path) -> int:
    """The lock file, made for whoever may use the store."""
    try:
        return os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return open_own(path, os.O_RDWR | os.O_CREAT)


def _identity(path: Path) -> tuple[int, int]:
    """Device and inode, found without opening the file; (0, 0), which no file has, when it is not there yet."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return (0, 0)
    return (status.st_dev, status.st_ino)
