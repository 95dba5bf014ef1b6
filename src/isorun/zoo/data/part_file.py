"""A file on its way: bytes gather under NAME.part, and NAME appears only when they are all there and checked.

One process at a time writes a part: it holds a lock on it that dies with the process. A part outlives a broken
connection, Ctrl-C and a killed process, and the next download goes on from its end.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from isorun.errors import DataError
from isorun.zoo.data.presence import VARIABLE

__all__ = ["PartFile"]

_FULL: Final = (errno.ENOSPC, errno.EDQUOT)
_WAIT: Final = 0.1


class PartFile:
    """The part of one target, locked while the `with` block runs. waiting: called once when another holds it."""

    def __init__(self, target: Path, *, waiting: Callable[[Path], None] | None = None) -> None:
        self.target = target
        self.path = target.with_name(f"{target.name}.part")
        self._waiting = waiting
        self._descriptor = -1
        self._made: list[Path] = []

    def __enter__(self) -> Self:
        try:
            self._made = [folder for folder in self.target.parents if not folder.exists()]
            self.target.parent.mkdir(parents=True, exist_ok=True)
            self._descriptor = self._locked()
        except OSError as error:
            raise _refused(self.target, error) from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):
            if not self.size and _same_file(self._descriptor, self.path):
                self.discard()
            for folder in self._made if error is not None else ():
                folder.rmdir()
        os.close(self._descriptor)

    @property
    def size(self) -> int:
        """How many bytes are there."""
        return os.fstat(self._descriptor).st_size

    def write(self, block: bytes, needed: int | None) -> None:
        """Add bytes at the end; a full disk removes the part, since it only takes space from others."""
        view = memoryview(block)
        try:
            while view:
                view = view[os.write(self._descriptor, view) :]
        except OSError as error:
            if error.errno not in _FULL:
                raise _refused(self.path, error) from None
            self.discard()
            raise _full(self.target, needed) from None

    def ensure_room(self, needed: int | None) -> None:
        """Refuse to begin what cannot fit."""
        if needed is not None and needed - self.size > shutil.disk_usage(self.path.parent).free:
            raise _full(self.target, needed)

    def restart(self) -> None:
        """Begin again at the first byte."""
        os.ftruncate(self._descriptor, 0)

    def discard(self) -> None:
        """Remove the part and nothing else; the file with its final name stays as it is."""
        with suppress(FileNotFoundError):
            self.path.unlink()

    def publish(self) -> None:
        """Give the bytes their final name, all at once, so that they survive a power cut."""
        try:
            os.fsync(self._descriptor)
            self.path.replace(self.target)
            folder = os.open(self.target.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as error:
            raise _refused(self.target, error) from None

    def _locked(self) -> int:
        """A descriptor of the part with the lock; the file may be renamed away while we wait, so look again."""
        told = False
        while True:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _same_file(descriptor, self.path):
                    return descriptor
            except BlockingIOError:
                if not told and self._waiting:
                    self._waiting(self.path)
                told = True
                time.sleep(_WAIT)
            os.close(descriptor)


def _same_file(descriptor: int, path: Path) -> bool:
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(descriptor), path.stat())
    return False


def _full(target: Path, needed: int | None) -> DataError:
    free = shutil.disk_usage(target.parent).free
    return DataError(
        f"there is no room for {target}: the disk is full",
        found=f"{free:,} bytes free",
        allowed=f"{needed:,} bytes needed" if needed is not None else "",
        hint=f"make room, or set {VARIABLE} to a folder on a larger disk; nothing half-written was kept",
    )


def _refused(path: Path, error: OSError) -> DataError:
    reason = error.strerror or str(error)
    hint = f"set {VARIABLE} to a folder that you may write to"
    return DataError(f"{path} cannot be written", found=reason, hint=hint)
