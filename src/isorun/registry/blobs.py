"""Files by their digest: `blobs/sha256/ab/abcdef…`. No path is ever made from what somebody else says.

A file comes as `blobs/incoming/RANDOM.part` while it is hashed; then fsync, rename to its digest, fsync of the folder.
What the index does not name is swept when nobody writes: whoever writes holds a lock from the first byte until the
index knows the file, and the kernel drops it when he dies.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from isorun.errors import RegistryError, StoreError
from isorun.store.files import Files, reported

__all__ = ["Blobs", "Incoming"]

_DIGEST: Final = re.compile("[0-9a-f]{64}")
_PIECE: Final = 2**18


class Incoming:
    """A file that is being received. It is gone when the block ends, unless it was kept."""

    def __init__(self, folder: Path, lock: Path, files: Files) -> None:
        self._files = files
        self._lock = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_SH)
            self.path = folder / f"{secrets.token_hex(16)}.part"
            self._file = files.create(self.path)
        except BaseException:
            os.close(self._lock)
            raise
        self._hash = hashlib.sha256()
        self._open = True
        self.size = 0

    def write(self, piece: bytes) -> None:
        """One more piece."""
        with reported("receiving a package", self.path.parent):
            self._files.write(self._file, piece)
        self._hash.update(piece)
        self.size += len(piece)

    @property
    def digest(self) -> str:
        """SHA-256 of all that came."""
        return self._hash.hexdigest()

    def received(self) -> None:
        """All of it is there and on the disk."""
        with reported("receiving a package", self.path.parent):
            self._files.fsync(self._file)
        self._close()

    def _close(self) -> None:
        if self._open:
            self._open = False
            self._files.close(self._file)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()
        self._files.unlink(self.path)
        os.close(self._lock)


class Blobs:
    """The files of a registry."""

    def __init__(self, folder: Path, files: Files | None = None) -> None:
        self._files = files or Files()
        self._root = folder / "blobs"
        self._incoming = self._root / "incoming"
        self._kept = self._root / "sha256"
        self._lock = self._root / "writing.lock"
        with reported("opening the blobs", folder):
            self._files.ensure_folder(self._root)
            for inner in (self._incoming, self._kept):
                self._files.ensure_inner_folder(inner)

    def incoming(self) -> Incoming:
        """A file to be received."""
        with reported("receiving a package", self._root):
            return Incoming(self._incoming, self._lock, self._files)

    def keep(self, part: Incoming) -> None:
        """Give the received file its name, durably, in place of one that holds the same or is damaged."""
        path = self.path(part.digest)
        with reported("keeping a package", self._root):
            if not path.parent.is_dir():
                self._files.ensure_inner_folder(path.parent)
                self._files.fsync_folder(self._kept)
            self._files.rename(part.path, path)
            self._files.fsync_folder(path.parent)

    def path(self, digest: str) -> Path:
        """Where a file lies, by a digest of ours."""
        if not _DIGEST.fullmatch(digest):
            raise ValueError("this is no digest")
        return self._kept / digest[:2] / digest

    def pieces(self, digest: str) -> Iterator[bytes]:
        """The file, piece by piece. It is opened at once, so that one that is lost is told before an answer begins."""
        try:
            file = self.path(digest).open("rb")
        except FileNotFoundError:
            raise StoreError(f"the blob {digest} is not there", hint="restore it from a backup") from None

        def read() -> Iterator[bytes]:
            with file:
                while piece := file.read(_PIECE):
                    yield piece

        return read()

    def check(self, digest: str) -> int:
        """The size of a file that is what it is called; StoreError where it is not."""
        hashed, size = hashlib.sha256(), 0
        for piece in self.pieces(digest):
            hashed.update(piece)
            size += len(piece)
        if hashed.hexdigest() != digest:
            raise StoreError(
                f"the blob {digest} is damaged",
                found=f"sha256 {hashed.hexdigest()}",
                hint="restore it from a backup, or ask whoever has the package to push it again",
            )
        return size

    def count(self) -> int:
        """How many packages are kept."""
        return sum(1 for _ in self._kept.glob("*/*"))

    def sweep(self, named: Callable[[], set[str]]) -> list[str] | None:
        """Remove what the index does not name; what was removed, or None where somebody writes just now.

        named: asked while nobody can write.
        """
        lock = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno in {errno.EWOULDBLOCK, errno.EACCES}:
                    return None
                raise
            return self._swept(named())
        finally:
            os.close(lock)

    def _swept(self, named: set[str]) -> list[str]:
        kept = list(self._kept.glob("*/*"))
        unnamed = [path for path in kept if path.name not in named]
        if named and kept and len(unnamed) == len(kept):  # what was cut lies beside what was not
            raise RegistryError(
                f"the index names none of the files in {self._root}, and nothing was swept",
                found=f"{len(kept):,} files here, {len(named):,} others in the index",
                hint="--index URL names the index that belongs to them",
            )
        removed = [*self._incoming.glob("*.part"), *unnamed]
        for path in removed:
            self._files.unlink(path)
        return sorted(path.name for path in removed)
