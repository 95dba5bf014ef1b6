"""The file operations that durability rests on, as one replaceable object.

The store calls nothing else to change files of its own (SQLite changes its file by itself), so that a test can make
the n-th operation fail, kill the process in it, or forget what was not synchronised.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from pathlib import Path

__all__ = ["Files"]


class Files:
    """The operations of the real file system."""

    def create(self, path: Path) -> int:
        """A descriptor of a new file; FileExistsError when there is one."""
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)

    def write(self, descriptor: int, data: bytes) -> None:
        """Write all of `data`, however many calls that takes."""
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]

    def fsync(self, descriptor: int) -> None:
        """Return when the file's content has reached the disk."""
        os.fsync(descriptor)

    def close(self, descriptor: int) -> None:
        """Let go of the descriptor and of its lock."""
        os.close(descriptor)

    def write_whole(self, path: Path, data: bytes) -> None:
        """Put a small file in place: whole and on the disk, or not at all."""
        temporary = path.with_name(f"{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
        try:
            descriptor = self.create(temporary)
            try:
                self.write(descriptor, data)
                self.fsync(descriptor)
            finally:
                self.close(descriptor)
            self.rename(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        self.fsync_folder(path.parent)

    def rename(self, source: Path, target: Path) -> None:
        """Give the file its final name in one step."""
        source.replace(target)

    def fsync_folder(self, folder: Path) -> None:
        """Return when the names in the folder have reached the disk."""
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def unlink(self, path: Path) -> None:
        """Remove the file; nothing happens when it has gone already."""
        path.unlink(missing_ok=True)

    def ensure_folder(self, path: Path) -> None:
        """Make the folder, which only its owner may look into, unless it is there."""
        path.mkdir(mode=0o700, parents=True, exist_ok=True)

    def names(self, folder: Path) -> list[str]:
        """The names in the folder, in no order."""
        with os.scandir(folder) as entries:
            return [entry.name for entry in entries]

    def read(self, path: Path) -> bytes:
        """The whole file."""
        return path.read_bytes()

    def lock(self, descriptor: int) -> bool:
        """Lock the open file for as long as it stays open; False when another open file has the lock."""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def is_abandoned(self, path: Path) -> bool:
        """Whether nobody holds the lock of an existing file: its writer has gone."""
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            return self.lock(descriptor)
        finally:
            os.close(descriptor)
