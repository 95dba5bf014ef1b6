"""Where data sets lie, whether one is at hand, and in which of its forms. Nothing is downloaded or opened here.

One folder for all of them, each in a folder of its own name. $ISORUN_DATA names it (a shared disk, an offline machine);
without it, it is the user's cache folder.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from isorun.errors import DataError
from isorun.zoo.data.catalogue import dataset
from isorun.zoo.data.dataset import Dataset

__all__ = ["VARIABLE", "Form", "at_hand", "data_folder", "form_of", "require"]

VARIABLE: Final = "ISORUN_DATA"


def data_folder() -> Path:
    """The folder of all data sets; it need not exist yet."""
    named = os.environ.get(VARIABLE, "").strip()
    if named:
        return _folder(named)
    cache = os.environ.get("XDG_CACHE_HOME", "").strip()
    return (Path(cache) if cache else Path("~/.cache").expanduser()) / "isorun" / "data"


def _folder(named: str) -> Path:
    try:
        folder = Path(named).expanduser().absolute()
    except RuntimeError as error:
        raise DataError(f"{VARIABLE} names no folder", found=f"{named} ({error})") from None
    try:
        is_file = folder.exists() and not folder.is_dir()
    except PermissionError as error:
        hint = f"ask its owner for the right to read it, or unset {VARIABLE}"
        raise DataError(f"the folder that {VARIABLE} names may not be read", found=str(error), hint=hint) from None
    if is_file:
        raise DataError(f"{VARIABLE} names no folder", found=f"{folder}, which is a file")
    return folder


@dataclass(frozen=True, slots=True)
class Form:
    """A form in which a data set lies somewhere.

    kind: "original" (as published), "prepared" (a stand-in or converted copy), "system" or "package" (installed).
    files: whole paths, in the order in which the catalogue names them.
    """

    kind: str
    folder: Path
    files: tuple[Path, ...]


def at_hand(name: str) -> bool:
    """Whether the data set can be loaded, in any of its forms, with all it needs."""
    return form_of(name) is not None and all(at_hand(other) for other in dataset(name).needs)


def require(name: str) -> Path:
    """The folder where the data set lies, or an error that says how to get it."""
    form = form_of(name)
    if form is None:
        raise _missing(dataset(name))
    for other in dataset(name).needs:
        require(other)
    return form.folder


def form_of(name: str) -> Form | None:
    """The first form that is complete: originals before stand-ins, the user's folder before installed copies."""
    entry = dataset(name)
    return next(_complete_forms(entry, data_folder() / name), None)


def _complete_forms(entry: Dataset, folder: Path) -> Iterator[Form]:
    if not all(any(folder.glob(pattern)) for pattern in entry.brought):
        return
    paths = tuple(folder / file.path for file in entry.files)
    sizes = [file.size for file in entry.files]
    if paths and all(_is_whole(path, size) for path, size in zip(paths, sizes, strict=True)):
        yield Form("original", folder, paths)
    for names in entry.prepared:
        paths = tuple(folder / name for name in names)
        if all(path.is_file() for path in paths):
            yield Form("prepared", folder, paths)
    yield from _installed_forms(entry)


def _installed_forms(entry: Dataset) -> Iterator[Form]:
    names = [file.path for file in entry.files]
    for system in map(Path, entry.system):
        if all((system / name).is_file() for name in names):
            yield Form("system", system, tuple(system / name for name in names))
    if entry.package is not None:
        package, inside = entry.package
        spec = importlib.util.find_spec(package)
        for location in (spec.submodule_search_locations or []) if spec else []:
            if (path := Path(location) / inside).is_file():
                yield Form("package", path.parent, (path,))


def _is_whole(path: Path, size: int | None) -> bool:
    return path.is_file() and size in (None, path.stat().st_size)


def _missing(entry: Dataset) -> DataError:
    return DataError(
        f"the data set {entry.name} is not at hand",
        found=f"no complete copy in {data_folder() / entry.name}",
        allowed=entry.note if entry.brought else "",
        hint=f"isorun data get {entry.name}, or set ISORUN_DATA to the folder that holds {entry.name}/",
    )
