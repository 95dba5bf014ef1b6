"""Members of tar files, read in place: nothing is unpacked, so no member's path can escape. And how archives fail."""

from __future__ import annotations

import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Collection
from pathlib import Path
from typing import Final

from isorun.errors import DataError

__all__ = ["DAMAGE", "read_members"]

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
