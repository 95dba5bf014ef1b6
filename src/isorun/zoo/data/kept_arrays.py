"""Arrays kept from an earlier reading: a study reads the same files for every run, and some take minutes to decode.

They lie in the data folder under `.kept`, named after the files they were made from, and can be deleted at any time.
"""

from __future__ import annotations

import hashlib
import os
import stat
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from isorun.errors import DataError
from isorun.zoo.data.folder import data_folder

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["FOLDER", "kept_or_read"]

FOLDER: Final = ".kept"

if TYPE_CHECKING:
    Arrays = dict[str, NDArray[Any]]


def kept_or_read(name: str, sources: Sequence[Path], read: Callable[[], Arrays]) -> Arrays:
    """What `read` returns, or what it returned before, when no source has changed since."""
    path = data_folder() / FOLDER / f"{name}-{_fingerprint(sources)}.npz"
    kept = _kept(path)
    if kept is not None:
        return kept
    arrays = read()
    _keep(arrays, path)
    return arrays


def _fingerprint(sources: Sequence[Path]) -> str:
    """Changes when a file changes: names, sizes and times, not contents."""
    found = hashlib.sha256()
    for path in sources:
        try:
            about = path.stat()
        except OSError as error:
            missing = isinstance(error, FileNotFoundError)
            raise DataError(str(path), found="no such file" if missing else str(error)) from error
        found.update(f"{path.name}\0{about.st_size}\0{about.st_mtime_ns}\n".encode())
    return found.hexdigest()[:16]


def _kept(path: Path) -> Arrays | None:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as kept:
            return {name: kept[name] for name in kept.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile):  # not there, or damaged: it is read anew
        return None


def _keep(arrays: Arrays, path: Path) -> None:
    """Whole or not at all; a folder that is full or not to be written to costs time, not the training."""
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        if not path.parent.parent.stat().st_mode & stat.S_IWUSR:
            return  # root could write here all the same, but it is meant to stay as it is
        path.parent.mkdir(exist_ok=True)
        with unfinished.open("wb") as file:
            np.savez(file, allow_pickle=False, **arrays)
        unfinished.replace(path)
    except OSError:
        unfinished.unlink(missing_ok=True)
