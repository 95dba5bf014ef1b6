"""Make a data set complete: check what is there, bring what is not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from isorun.errors import DataError
from isorun.zoo.data.catalogue import dataset
from isorun.zoo.data.dataset import Dataset, RemoteFile
from isorun.zoo.data.folder import data_folder
from isorun.zoo.data.getting.brought_files import copy_in, places_in
from isorun.zoo.data.getting.checking import check_file
from isorun.zoo.data.getting.download import Brought, Patience, download
from isorun.zoo.data.getting.watcher import Watcher
from isorun.zoo.data.presence import Form, at_hand, form_of

__all__ = ["Acquired", "acquire", "with_needs"]


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
    watcher: Watcher | None = None,
    patience: Patience | None = None,
) -> Acquired:
    """All files of a data set, each checked. source: a folder to copy from instead of downloading."""
    entry = dataset(name)
    watching = watcher or Watcher()
    folder = data_folder() / name
    form = form_of(name)
    if form is not None and form.kind in {"system", "package"} and source is None:
        return Acquired(name, form.folder, installed=form)
    kept = {file.path: _already(file, folder / file.path, watching) for file in entry.files}
    lacking = [file for file in entry.files if kept[file.path] is None]
    places = places_in(source, entry, lacking) if source is not None and lacking else {}
    files = [kept[file.path] or _bring(file, folder, places, watching, patience) for file in entry.files]
    return Acquired(name, folder, tuple(files), note=_brought_note(entry))


def _already(file: RemoteFile, target: Path, watcher: Watcher) -> Brought | None:
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
    file: RemoteFile, folder: Path, places: dict[str, Path], watcher: Watcher, patience: Patience | None
) -> Brought:
    target = folder / file.path
    if file.path in places:
        return copy_in(places[file.path], file, target, watcher)
    return download(file, target, watcher=watcher, patience=patience)


def _brought_note(entry: Dataset) -> str:
    return entry.note if entry.brought and form_of(entry.name) is None else ""
