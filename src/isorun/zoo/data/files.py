"""Files that may be damaged or something else: members of archives, arrays, and arrays kept from an earlier reading.

Members of tar files are read in place: nothing is unpacked, so no member's path can escape. Kept arrays lie in the data
folder under `.kept`, named after the files they were made from, since a study reads the same files for every run and
some take minutes to decode; they can be deleted at any time. A kept file is never trusted blindly: it is not unpickled,
and one whose checksums do not agree is read anew.
"""

from __future__ import annotations

import hashlib
import lzma
import secrets
import stat
import tarfile
import time
import zipfile
import zlib
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from isorun import __version__
from isorun.errors import DataError
from isorun.zoo.data.presence import data_folder

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Arrays = dict[str, NDArray[Any]]

__all__ = ["DAMAGE", "FOLDER", "kept_or_read", "read_members", "read_npz"]

DAMAGE: Final = (OSError, EOFError, ValueError, RuntimeError, zlib.error, lzma.LZMAError, zipfile.BadZipFile)
"""What Python raises for a damaged gzip or zip file; a changed bit can also ask for a password or another method."""
_MOST_BYTES: Final = 1 << 30


def read_members(path: Path, wanted: Collection[str]) -> dict[str, bytes]:
    """The wanted members by name, in one pass; all must be there as plain files of reasonable size."""
    found: dict[str, bytes] = {}
    try:
        with tarfile.open(path, mode="r|gz") as archive:
            for member in archive:
                if member.name in wanted and member.isfile() and member.size <= _MOST_BYTES:
                    file = archive.extractfile(member)
                    found[member.name] = file.read() if file else b""
                if len(found) == len(wanted):
                    break
    except (tarfile.TarError, *DAMAGE) as error:
        raise _damaged(path, str(error)) from None
    missing = [name for name in wanted if name not in found]
    if missing:
        raise _damaged(path, f"no {', '.join(missing)} in it")
    return found


def _damaged(path: Path, found: str) -> DataError:
    hint = f"remove {path} and get it again: isorun data get {path.parent.name}"
    return DataError(f"{path} is damaged", found=found, hint=hint)


def read_npz(path: Path, names: Sequence[str] = (), *, hint: str = "") -> dict[str, Any]:
    """The named arrays, or all when none is named. Nothing is unpickled; zip's checksums guard every array."""
    import numpy as np  # noqa: PLC0415 - listing data sets needs no arrays

    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            missing = [name for name in names if name not in archive.files]
            arrays = {name: archive[name] for name in names or archive.files} if not missing else {}
    except Exception as error:
        # Wrong bytes fail wherever they are noticed: in zip, deflate, the array's head, or its parser.
        raise DataError(f"{path} is damaged", found=str(error) or type(error).__name__, hint=hint) from None
    if missing:
        raise DataError(
            f"{path} lacks {', '.join(missing)}", allowed=f"an .npz file with {', '.join(names)}", hint=hint
        )
    return arrays


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
    import numpy as np  # noqa: PLC0415 - listing data sets needs no arrays

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
