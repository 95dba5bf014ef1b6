"""What went wrong with a file or with SQLite, said so that the user knows what to do."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from isorun.errors import StoreBusy, StoreError

__all__ = ["file_error", "reported", "sqlite_error"]

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_NOT_WRITABLE = {errno.EROFS, errno.EACCES, errno.EPERM}
_SQLITE_DAMAGE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT}
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
        return _damaged(what, str(error), path)
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


def _damaged(what: str, found: str, path: Path) -> StoreError:
    return StoreError(
        what,
        found=f"{found}; the file was left as it is",
        allowed="a database that isorun wrote",
        hint=f"put a backup in its place, or move {path.name} away to start anew with what waits in the inbox",
    )


def _free_bytes(path: Path) -> int:
    existing = next((folder for folder in (path, *path.parents) if folder.exists()), Path("/"))
    status = os.statvfs(existing)
    return status.f_bavail * status.f_frsize
