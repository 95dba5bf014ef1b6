"""Whether a file is the published one: its size and its checksum."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

from isorun.errors import DataError
from isorun.zoo.data.dataset import Checksum, RemoteFile

__all__ = ["check_file", "file_digest", "record_path"]

_BLOCK: Final = 1 << 20


def check_file(path: Path, file: RemoteFile, *, name: str) -> Checksum:
    """The checksum that the file has, or an error naming file, expected and found.

    path: where the bytes lie now (perhaps still under another name). Without a published checksum the file is held to
    the one written down when it was first downloaded, if there is one.
    """
    size = path.stat().st_size
    if file.size is not None and size != file.size:
        raise _mismatch(name, expected=f"{file.size:,} bytes", found=f"{size:,} bytes")
    expected = file.checksum or _written_down(Path(name))
    algorithm = expected.algorithm if expected else "sha256"
    found = Checksum(algorithm, file_digest(path, algorithm), "computed")
    if expected and found.value != expected.value:
        raise _mismatch(name, expected=f"{expected} ({expected.source})", found=str(found))
    return found


def file_digest(path: Path, algorithm: str) -> str:
    """The digest of a file, read in blocks. git: the id under which git keeps these bytes."""
    digest = hashlib.new("sha1" if algorithm == "git" else algorithm, usedforsecurity=False)
    if algorithm == "git":
        digest.update(b"blob %d\0" % path.stat().st_size)
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def record_path(target: Path) -> Path:
    """Where the checksum of a file is written down that nobody published one for."""
    return target.with_name(f"{target.name}.sha256")


def _written_down(target: Path) -> Checksum | None:
    record = record_path(target)
    words = record.read_text(encoding="utf-8").split() if record.is_file() else []
    return Checksum("sha256", words[0], "written down at the first download") if words else None


def _mismatch(name: str, *, expected: str, found: str) -> DataError:
    return DataError(f"{name} is not the published file", found=found, allowed=expected)
