"""A copy of a registry while it is in use: first the index, then every file that the copy names.

No file that is named is ever removed, so that what the copied index names is there to be copied. A copy is a registry:
`isorun serve --registry COPY` serves it. An index in PostgreSQL is copied by its own means (pg_dump), before the files.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from isorun.errors import InputError
from isorun.registry.blobs import Blobs
from isorun.registry.database import SQLITE, SqliteDatabase
from isorun.registry.opening import Registry
from isorun.store.files import Files, reported

__all__ = ["back_up"]


def back_up(registry: Registry, target: Path) -> int:
    """Copy the registry there, or what is new since the last copy; how many files came."""
    if target.resolve() == registry.folder.resolve():
        raise InputError("a copy has to lie elsewhere", found=str(target))
    files = Files()
    with reported("copying the registry", target):
        files.ensure_folder(target)
        if isinstance(registry.database, SqliteDatabase):
            _copy_index(registry.folder / SQLITE, target / SQLITE, files)
    digests = registry.index.digests()
    blobs, copied = Blobs(target), 0
    for digest in sorted(digests):
        if blobs.path(digest).is_file():
            continue
        with blobs.incoming() as part:
            for piece in registry.blobs.pieces(digest):
                part.write(piece)
            if part.digest != digest:
                raise InputError(f"the blob {digest} is damaged", hint=f"isorun registry verify {registry.folder}")
            part.received()
            blobs.keep(part)
            copied += 1
    return copied


def _copy_index(source: Path, target: Path, files: Files) -> None:
    unfinished = target.with_name(f"{target.name}.part")
    files.unlink(unfinished)
    files.close(files.create(unfinished))
    reading = sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True)
    writing = sqlite3.connect(unfinished)
    try:
        reading.backup(writing)
    finally:
        writing.close()
        reading.close()
    files.rename(unfinished, target)
    files.fsync_folder(target.parent)
