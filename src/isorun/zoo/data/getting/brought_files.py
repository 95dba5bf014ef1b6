"""Files that a user brought on a disk: found in a folder, copied, and checked as if they were downloaded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Final

from isorun.errors import DataError
from isorun.zoo.data.dataset import Dataset, RemoteFile
from isorun.zoo.data.getting.checking import check_file
from isorun.zoo.data.getting.download import Brought
from isorun.zoo.data.getting.part_file import PartFile
from isorun.zoo.data.getting.watcher import Watcher

__all__ = ["copy_in", "places_in"]

_BLOCK: Final = 1 << 20


def places_in(folder: Path, entry: Dataset, files: Sequence[RemoteFile]) -> dict[str, Path]:
    """Where the files lie in a folder: as in the data folder, below the data set's name, or by their bare names."""
    if not folder.is_dir():
        raise DataError(f"{folder} is no folder", hint=f"isorun data get {entry.name} --from FOLDER")
    bare = Counter(PurePosixPath(file.path).name for file in entry.files)
    found = {file.path: _place(folder, entry, file, bare) for file in files}
    missing = [path for path, place in found.items() if place is None]
    if missing:
        raise DataError(
            f"{folder} lacks {len(missing)} of {len(files)} files of {entry.name}",
            found=", ".join(sorted(item.name for item in folder.iterdir())[:10]) or "an empty folder",
            allowed=", ".join(missing),
        )
    return {path: place for path, place in found.items() if place is not None}


def copy_in(source: Path, file: RemoteFile, target: Path, watcher: Watcher) -> Brought:
    """Copy, check, and only then give the file its name."""
    total = source.stat().st_size
    with PartFile(target) as part:
        part.restart()
        part.ensure_room(total)
        watcher.begins(target, 0, total)
        try:
            with source.open("rb") as content:
                while block := content.read(_BLOCK):
                    part.write(block, total)
                    watcher.moved(part.size)
            found = check_file(part.path, file, name=str(source))
        except DataError as error:
            part.discard()
            raise _with_hint(error) from None
        except OSError as error:
            part.discard()
            raise _unreadable(source, error) from None
        finally:
            watcher.ends()
        part.publish()
    return Brought(target, "copied", total, found)


def _with_hint(error: DataError) -> DataError:
    hint = error.hint or "bring another copy of this file; nothing of it was kept"
    return DataError(error.what, found=error.found, allowed=error.allowed, hint=hint)


def _unreadable(source: Path, error: OSError) -> DataError:
    return DataError(f"{source} cannot be read", found=error.strerror or str(error))


def _place(folder: Path, entry: Dataset, file: RemoteFile, bare: Counter[str]) -> Path | None:
    name = PurePosixPath(file.path).name
    candidates = [folder / file.path, folder / entry.name / file.path]
    candidates += [folder / name] if bare[name] == 1 else []
    return next((path for path in candidates if path.is_file()), None)
