"""Make a data set complete: check what is there, bring what is not, from the web or from a folder of the user's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from isorun.errors import DataError
from isorun.zoo.data.catalogue import dataset
from isorun.zoo.data.dataset import Dataset, RemoteFile
from isorun.zoo.data.download import Brought, DownloadWatcher, Patience, check_file, download
from isorun.zoo.data.part_file import PartFile
from isorun.zoo.data.presence import Form, at_hand, data_folder, form_of

__all__ = ["Acquired", "acquire", "copy_in", "places_in", "with_needs"]

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


def copy_in(source: Path, file: RemoteFile, target: Path, watcher: DownloadWatcher) -> Brought:
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


@dataclass(frozen=True, slots=True)
class Acquired:
    """A data set after `get`. installed: the copy of an operating system or package that made a download needless."""

    name: str
    folder: Path
    files: tuple[Brought, ...] = ()
    installed: Form | None = None
    note: str = ""


def with_needs(names: Iterable[str]) -> list[str]:
    """The names, each followed by the data sets it needs that are not at hand in any form, none twice."""
    ordered: dict[str, None] = {}
    for name in names:
        missing = [other for other in dataset(name).needs if not at_hand(other)]
        ordered.update(dict.fromkeys([name, *missing]))
    return list(ordered)


def acquire(
    name: str,
    *,
    source: Path | None = None,
    watcher: DownloadWatcher | None = None,
    patience: Patience | None = None,
) -> Acquired:
    """All files of a data set, each checked. source: a folder to copy from instead of downloading."""
    entry = dataset(name)
    watching = watcher or DownloadWatcher()
    folder = data_folder() / name
    form = form_of(name)
    if form is not None and form.kind in {"system", "package"} and source is None:
        return Acquired(name, form.folder, installed=form)
    kept = {file.path: _already(file, folder / file.path, watching) for file in entry.files}
    lacking = [file for file in entry.files if kept[file.path] is None]
    places = places_in(source, entry, lacking) if source is not None and lacking else {}
    files = [kept[file.path] or _bring(file, folder, places, watching, patience) for file in entry.files]
    return Acquired(name, folder, tuple(files), note=_brought_note(entry))


def _already(file: RemoteFile, target: Path, watcher: DownloadWatcher) -> Brought | None:
    """What is there and right. A wrong file stays until a right one takes its place."""
    if not target.is_file():
        return None
    try:
        found = check_file(target, file, name=str(target))
    except DataError as error:
        watcher.says(
            f"{error.what} ({error.found}, published: {error.allowed}); it is replaced once a right one is here"
        )
        return None
    return Brought(target, "already there", target.stat().st_size, found)


def _bring(
    file: RemoteFile, folder: Path, places: dict[str, Path], watcher: DownloadWatcher, patience: Patience | None
) -> Brought:
    target = folder / file.path
    if file.path in places:
        return copy_in(places[file.path], file, target, watcher)
    return download(file, target, watcher=watcher, patience=patience)


def _brought_note(entry: Dataset) -> str:
    return entry.note if entry.brought and form_of(entry.name) is None else ""
