"""Arrays kept from an earlier reading: a study reads the same files for every run, and some take minutes to decode.

They lie in the data folder under `.kept`, named after the files they were made from, and can be deleted at any time.
A kept file is never trusted blindly: it is not unpickled, and one whose checksums do not agree is read anew.
"""

from __future__ import annotations

import hashlib
import secrets
import stat
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from isorun import __version__
from isorun.errors import DataError
from isorun.zoo.data.folder import data_folder
from isorun.zoo.data.npz import read_npz

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Arrays = dict[str, NDArray[Any]]

__all__ = ["FOLDER", "kept_or_read"]

FOLDER: Final = ".kept"
_DAY: Final = 86400.0


def kept_or_read(name: str, sources: Sequence[Path], fields: Sequence[str], read: Callable[[], Arrays]) -> Arrays:
    """The arrays `fields` that `read` returns, or returned before, when no source and no isorun has changed since."""
    path = data_folder() / FOLDER / f"{name}-{_fingerprint(sources)}.npz"
    with suppress(DataError):  # not there, or damaged
        return read_npz(path, fields)
    arrays = read()
    with suppress(OSError):  # a folder that is full or not to be written to costs time, not the training
        _keep(arrays, path)
        _tidy(name, path)
    return arrays


def _fingerprint(sources: Sequence[Path]) -> str:
    """Changes when a file changes: names, sizes and times. The time of change moves even when a copy keeps its date."""
    found = hashlib.sha256(f"isorun {__version__}\n".encode())
    for path in sources:
        try:
            about = path.stat()
        except OSError as error:
            missing = isinstance(error, FileNotFoundError)
            raise DataError(str(path), found="no such file" if missing else str(error)) from error
        found.update(f"{path.name}\0{about.st_size}\0{about.st_mtime_ns}\0{about.st_ctime_ns}\n".encode())
    return found.hexdigest()[:16]


def _keep(arrays: Arrays, path: Path) -> None:
    """Whole or not at all; several processes may do it at once, and the last one stays."""
    if not path.parent.parent.stat().st_mode & stat.S_IWUSR:
        return  # root could write here all the same, but it is meant to stay as it is
    path.parent.mkdir(exist_ok=True)
    unfinished = path.with_name(f"{path.name}.{secrets.token_hex(8)}.part")
    try:
        with unfinished.open("xb") as file:
            np.savez(file, allow_pickle=False, **arrays)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def _tidy(name: str, path: Path) -> None:
    """Remove what changed sources and killed processes left behind, once nobody can be at work on it any more."""
    for other in path.parent.glob(f"{name}-{'[0-9a-f]' * 16}.npz*"):
        if other != path and time.time() - other.stat().st_mtime > _DAY:
            other.unlink(missing_ok=True)
