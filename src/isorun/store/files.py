"""The file operations that durability rests on, what is said when one fails, and documents as files.

The store calls nothing else to change files of its own (SQLite changes its file by itself), so that a test can make
the n-th operation fail, kill the process in it, or forget what was not synchronised.

What the store makes, only its owner may read, whatever the umask: records hold commands, paths and output. A store is
shared with a group where its folder is setgid and writable for the group (mode 2770), as `isorun store share` makes it.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import secrets
import sqlite3
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from isorun.errors import StoreBusy, StoreDamaged, StoreError
from isorun.store import AbstractDocuments, refuse_name
from isorun.study.records import content_digest
from isorun.worker.runfolder import make_own_folder, open_own

__all__ = ["Files", "FolderDocuments", "NotAFile", "file_error", "reported", "sqlite_error"]

_WRITTEN_TOGETHER = 2**20


class NotAFile(ValueError):
    """Something else lies where a file of the store should."""


class Files:
    """The operations of the real file system."""

    def create(self, path: Path) -> int:
        """A descriptor of a new file; FileExistsError when there is one."""
        return open_own(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)

    def write(self, descriptor: int, *pieces: bytes) -> None:
        """Write all of the pieces one after another, however many calls that takes; small ones together."""
        small = sum(map(len, pieces)) < _WRITTEN_TOGETHER
        for piece in (b"".join(pieces),) if small else pieces:
            view = memoryview(piece)
            while view:
                view = view[os.write(descriptor, view) :]

    def fsync(self, descriptor: int) -> None:
        """Return when the file's content has reached the disk."""
        os.fsync(descriptor)

    def close(self, descriptor: int) -> None:
        """Let go of the descriptor and of its lock."""
        os.close(descriptor)

    def write_whole(self, path: Path, data: bytes, *, changed_ns: int | None = None) -> None:
        """Put a small file in place: whole and on the disk, or not at all. changed_ns: its time stamp; None for now."""
        temporary = path.with_name(f"{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
        try:
            descriptor = self.create(temporary)
            try:
                self.write(descriptor, data)
                with suppress(OSError):  # the kernel's own time stamps are too coarse to order two documents by
                    os.utime(descriptor, ns=(time.time_ns() if changed_ns is None else changed_ns,) * 2)
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
        """Make the folder of a store, which only its owner may look into, unless it is there."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(mode=0o700, exist_ok=True)

    def ensure_inner_folder(self, path: Path) -> None:
        """Make a folder within a store, for those who may look into the store, unless it is there."""
        if not path.is_dir():
            with suppress(FileExistsError):  # another process made it just now
                make_own_folder(path)

    def close_to_others(self, paths: Iterable[Path]) -> None:
        """Take from group and others what they may do with these, where they are ours; an older isorun left it open."""
        for path in paths:
            with suppress(OSError):
                mode = stat.S_IMODE(path.stat().st_mode)
                if mode & 0o077:
                    path.chmod(mode & 0o700)

    def names(self, folder: Path) -> list[str]:
        """The names in the folder, in no order."""
        with os.scandir(folder) as entries:
            return [entry.name for entry in entries]

    def read(self, path: Path) -> bytes:
        """The whole file; NotAFile for a pipe, a device, a folder or a link, none of which is opened or waited for."""
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            descriptor = os.open(path, flags)
        except OSError as error:
            if error.errno in {errno.ELOOP, errno.ENXIO}:  # a link; a socket
                raise NotAFile(f"{path} is no regular file") from None
            raise
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise NotAFile(f"{path} is no regular file")
            return file.read()

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


_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_NOT_WRITABLE = {errno.EROFS, errno.EACCES, errno.EPERM}
# Statements of ours that make no sense to SQLite, or give text that is none, met a database that is not ours any more.
_NO_CODE = 0
_SQLITE_DAMAGE = {
    _NO_CODE,
    sqlite3.SQLITE_ERROR,
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_FORMAT,
    sqlite3.SQLITE_TOOBIG,
    sqlite3.SQLITE_MISMATCH,
}
_SQLITE_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_SQLITE_NOT_WRITABLE = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM}


@contextmanager
def reported(doing: str, path: Path) -> Iterator[None]:
    """Turn errors of the file system and of SQLite into store errors that say what was being done."""
    try:
        yield
    except OSError as error:
        raise file_error(error, doing, path) from error
    except sqlite3.Error as error:
        raise sqlite_error(error, doing, path) from error
    except (UnicodeDecodeError, TypeError, OverflowError) as error:
        # SQLite gave what no isorun wrote: text that is no text, nothing where a number belongs.
        found = f"{type(error).__name__}: {error}; the file was left as it is"
        raise StoreDamaged(f"{doing} failed at {path}", found=found) from error


def file_error(error: OSError, doing: str, path: Path) -> StoreError:
    """The store error for a failed file operation on or under `path`."""
    what = f"{doing} failed at {path}"
    if error.errno in _FULL:
        return _disk_full(what, error.strerror or str(error), path)
    found = error.strerror or str(error)
    if error.errno in _NOT_WRITABLE:
        return StoreError(what, found=found, hint="make the folder writable, or choose another with --store")
    if error.errno in {errno.ENOTDIR, errno.EEXIST}:
        return StoreError(what, found=found, allowed="a folder", hint="choose another place with --store")
    return StoreError(what, found=found, hint="check the disk and the system log, then run the same command again")


def sqlite_error(error: sqlite3.Error, doing: str, path: Path) -> StoreError:
    """The store error for an error that SQLite reported about the database at `path`."""
    what = f"{doing} failed at {path}"
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return _disk_full(what, str(error), path)
    if code in _SQLITE_DAMAGE:
        return StoreDamaged(what, found=f"{error}; the file was left as it is")
    if code in _SQLITE_BUSY:
        return StoreBusy(
            what, found="another process holds it", hint="wait for the other command to end, and try again"
        )
    if code in _SQLITE_NOT_WRITABLE:
        hint = "make the folder and its files readable and writable, or copy the store to a place that is"
        return StoreError(what, found=str(error), hint=hint)
    return StoreError(what, found=str(error), hint="check the disk and the system log, then run the same command again")


def _disk_full(what: str, found: str, path: Path) -> StoreError:
    return StoreError(
        what,
        found=f"{found}; {_free_bytes(path):,} bytes are free there",
        hint="free some space and run the same command again; everything acknowledged before is intact",
    )


def _free_bytes(path: Path) -> int:
    existing = next((folder for folder in (path, *path.parents) if folder.exists()), Path("/"))
    status = os.statvfs(existing)
    return status.f_bavail * status.f_frsize


class FolderDocuments(AbstractDocuments):
    """The documents of one kind, in `<store>/<kind>`; the folder is made with the first of them."""

    def __init__(self, store: Path, kind: str, files: Files | None = None) -> None:
        self._folder = store / kind
        self._files = files or Files()

    def names(self) -> tuple[str, ...]:
        """The names of all documents, the one written last first."""
        # A link may lead nowhere; whoever reads it is told that it is no file.
        paths = sorted(self._folder.glob("*.json"), key=lambda path: path.lstat().st_mtime_ns, reverse=True)
        return tuple(path.stem for path in paths)

    def place(self, name: str) -> str:
        """The file."""
        return str(self._path(name))

    def read(self, name: str) -> dict[str, Any] | None:
        """The document; None where there is none."""
        if "/" in name:  # no name, but a way to another folder
            return None
        path = self._path(name)
        try:
            data = self._files.read(path)
            document = json.loads(data)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, RecursionError) as error:
            raise _unreadable(path, f"{type(error).__name__}: {error}") from None
        if not isinstance(document, dict):
            raise _unreadable(path, "it holds no table")
        if document.pop(_DIGEST, None) is not None and not _checks(data):
            raise _unreadable(path, "it is not as it was written: its digest is another")
        return document

    def has_digest(self, name: str) -> bool:
        """Whether the document can be checked; an older isorun kept none."""
        try:
            return _SEAL.search(self._files.read(self._path(name))) is not None
        except (OSError, ValueError):
            return True  # what cannot be read is told otherwise

    def write(self, name: str, document: dict[str, Any], *, changed_ns: int | None = None) -> None:
        """Write the document under another name, then put it in place; a write that failed leaves nothing behind.

        changed_ns: when it was written, for one that keeps its place among the others; None for now.
        """
        refuse_name(name)
        with reported(f"keeping {name}", self._folder):
            self._files.ensure_folder(self._folder.parent)
            self._files.ensure_inner_folder(self._folder)
            self._files.write_whole(self._path(name), _sealed(document), changed_ns=changed_ns)

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.json"


_DIGEST = "_digest"
_SEAL = re.compile(rb',\n "_digest": "([0-9a-f]{32})"\n}\Z')


def _sealed(document: dict[str, Any]) -> bytes:
    """The document as JSON; its last key is the digest of the bytes before."""
    text = json.dumps(document, indent=1).encode()
    if not document:
        return text
    content = text.removesuffix(b"\n}")
    return b'%b,\n "%b": "%b"\n}' % (content, _DIGEST.encode(), content_digest(content).hex().encode())


def _checks(data: bytes) -> bool:
    seal = _SEAL.search(data)
    return seal is not None and content_digest(data[: seal.start()]).hex().encode() == seal[1]


def _unreadable(path: Path, found: str) -> StoreError:
    return StoreError(f"{path} cannot be read", found=found, hint="move the file away, and make it anew")
