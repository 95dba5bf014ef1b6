"""Advisory locks on single bytes of a file, for processes and threads alike.

POSIX record locks die with their process, also with `kill -9`, and are not inherited by its children. They have two
traps: a process never conflicts with itself, and closing *any* descriptor of the file drops all its locks. Hence the
table of this process: one descriptor for each lock file however many stores are open, and a note of each byte held.
"""

from __future__ import annotations

import errno
import fcntl
import os
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from isorun.errors import StoreError

__all__ = ["ByteLocks"]


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

    def __init__(self, path: Path) -> None:
        self._mine: set[int] = set()
        with _OPEN.guard:
            self._key = _identity(path)
            if self._key not in _OPEN.files:
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
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
            file = _OPEN.files.get(self._key)
            if file is None:
                raise StoreError(
                    "the store was opened by the process that this one was forked from",
                    hint="open the store anew in the child process",
                )
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


def _identity(path: Path) -> tuple[int, int]:
    """Device and inode, found without opening the file; (0, 0), which no file has, when it is not there yet."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return (0, 0)
    return (status.st_dev, status.st_ino)
