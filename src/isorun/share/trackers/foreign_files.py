"""Files that other tools wrote: opened for reading alone, with messages for those who named the wrong one."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from isorun.errors import InputError
from isorun.share.trackers import shown_where
from isorun.sources.trackers import DATABASE, opened_database

__all__ = ["asked_database", "database_of", "has_tables", "plain_files", "refuse_missing", "small_text"]

_STEPS: Final = 20_000_000
_LONGEST: Final = 1 << 28
_PATIENCE: Final = 10.0


def database_of(where: str) -> Path:
    """The file of `sqlite:///FILE`, or of a path."""
    return Path(where.removeprefix("sqlite:///").partition("?")[0]) if where.startswith("sqlite:///") else Path(where)


def refuse_missing(path: Path, what: str, hint: str = "") -> None:
    """InputError where there is nothing."""
    if not path.exists():
        raise InputError(f"{what} {shown_where(str(path))} is not there", hint=hint or "check the path: ls")


@contextmanager
def asked_database(path: Path, what: str) -> Iterator[sqlite3.Connection]:
    """The database there; whatever is wrong with it is an InputError that names it."""
    shown = shown_where(str(path))
    refuse_missing(path, what)
    try:
        with path.open("rb") as opened:
            begins = opened.read(16)
        if begins != DATABASE:
            found = "a folder" if path.is_dir() else "it does not begin as one does"
            raise InputError(f"{what} {shown} is no SQLite database", found=found)
        with opened_database(path, steps=_STEPS, longest=_LONGEST, patience=_PATIENCE) as database:
            yield database
    except (OSError, sqlite3.Error, OverflowError, TypeError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise InputError(
            f"{what} {shown} cannot be read",
            found=why[:200],
            hint="if it is in use, try again; a copy that its own tool can open can be imported, too",
        ) from None


def has_tables(database: sqlite3.Connection, wanted: Iterable[str], shown: str, tool: str, allowed: str) -> None:
    """InputError where a database is not that tool's. Views do not count: one may be any program."""
    there = {row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    missing = [name for name in wanted if name not in there]
    if missing:
        raise InputError(
            f"{shown} is no database of {tool}",
            found=f"no table {missing[0]!r}; there are: {', '.join(sorted(there)[:8]) or 'none'}",
            allowed=allowed,
        )


def plain_files(folder: Path) -> Iterator[Path]:
    """Every plain file below the folder, in order; links are not followed, so that none leads out of it.

    A folder that may not be looked into is an InputError: runs or values that lie in it would be missing in silence.
    """
    for place, folders, names in os.walk(folder, followlinks=False, onerror=_refuse_unreadable):
        folders[:] = sorted(name for name in folders if not Path(place, name).is_symlink())
        for name in sorted(names):
            path = Path(place, name)
            try:
                if stat.S_ISREG(path.lstat().st_mode):
                    yield path
            except OSError:
                continue


def _refuse_unreadable(error: OSError) -> None:
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return
    raise InputError(
        f"the folder {shown_where(str(error.filename))} cannot be read",
        found=error.strerror or str(error),
        hint="the right to read it, or a folder beside it alone as what is imported",
    )


def small_text(path: Path, longest: int = 1 << 26) -> str:
    """The text of a small file; what is no text stands as a sign for that."""
    try:
        if path.stat().st_size > longest:
            raise InputError(
                f"{shown_where(str(path))} is larger than {longest >> 20} MiB", hint="is it the right file?"
            )
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise InputError(f"{shown_where(str(path))} cannot be read", found=error.strerror or str(error)) from None
