"""What there is and what was brought, for people and for machines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from isorun.analysis.evidence import Condition
from isorun.report import UNKNOWN, Column, Table, View, count
from isorun.zoo.data.acquisition import Acquired
from isorun.zoo.data.catalogue import DATASETS, dataset
from isorun.zoo.data.dataset import Dataset
from isorun.zoo.data.presence import VARIABLE, Form, at_hand, data_folder, form_of

__all__ = ["Listed", "acquired_json", "acquired_lines", "listed", "listing_json", "listing_view"]

_STATES: Final = {"original": "original", "prepared": "prepared", "system": "installed", "package": "installed"}

_PREPARED: Final = "prepared: a converted copy, or a smaller stand-in; whoever loads it is told which."


@dataclass(frozen=True, slots=True)
class Listed:
    """A data set and whether it is there. form: the form its own files have, even when what it needs is missing."""

    dataset: Dataset
    form: Form | None
    at_hand: bool

    @property
    def folder(self) -> Path:
        """Where it lies, or would lie."""
        return self.form.folder if self.form else data_folder() / self.dataset.name


def listed(names: Sequence[str] = ()) -> tuple[Listed, ...]:
    """The named data sets, or all."""
    chosen = [dataset(name) for name in names] or list(DATASETS.values())
    return tuple(Listed(entry, form_of(entry.name), at_hand(entry.name)) for entry in chosen)


def listing_view(entries: Sequence[Listed]) -> View:
    """How many are at hand first, then each."""
    here = sum(entry.at_hand for entry in entries)
    verb = "is" if 1 in (here, len(entries)) else "are"
    verdict = f"{here} of {count(len(entries), 'data set')} {verb} at hand in {data_folder()}"
    sets = Table(
        name="data-sets",
        title="Data sets",
        columns=tuple(Column(title, key=True) for title in ("name", "at hand", "size", "what")),
        rows=tuple(_row(entry) for entry in entries),
        notes=(f"get one: isorun data get NAME. ${VARIABLE} names the folder.", _PREPARED),
    )
    terms = Table(
        name="terms",
        title="Who uses them, and under which terms",
        columns=tuple(Column(title, key=True) for title in ("name", "papers", "licence")),
        rows=tuple((entry.dataset.name, ", ".join(entry.dataset.papers), entry.dataset.licence) for entry in entries),
    )
    return View((verdict,), (sets, terms), tuple(_notes(entries)))


def listing_json(entries: Sequence[Listed]) -> dict[str, Any]:
    """The same as plain JSON, with addresses and checksums."""
    return {"folder": str(data_folder()), "data_sets": [_entry_json(entry) for entry in entries]}


def acquired_lines(got: Acquired) -> Iterator[str]:
    """What `get` did, the verdict first."""
    if got.installed is not None:
        yield f"{got.name} is installed in {got.folder}; nothing to download"
        return
    states = Counter(file.status for file in got.files)
    yield f"{got.name} is in {got.folder}: " + ", ".join(f"{number} {state}" for state, number in states.items())
    checked = Counter(file.checksum.algorithm for file in got.files if not file.recorded)
    if checked:
        ways = ", ".join(f"{number} by {algorithm}" for algorithm, number in checked.items())
        yield f"  size and checksum agree: {ways}"
    for file in got.files:
        if file.recorded:
            yield f"  nobody published a checksum of {file.path.name}; written down: sha256 {file.checksum.value}"
    if got.note:
        yield f"  {got.note}"


def acquired_json(done: Sequence[Acquired]) -> dict[str, Any]:
    """The same as plain JSON."""
    return {"folder": str(data_folder()), "data_sets": [_acquired_json(got) for got in done]}


def _row(entry: Listed) -> tuple[str, ...]:
    known = entry.dataset
    size = _size(known.size) if known.size is not None else UNKNOWN
    return (known.name, _state(entry), size, known.title)


def _state(entry: Listed) -> str:
    if entry.form is None:
        return "no"
    return _STATES[entry.form.kind] if entry.at_hand else f"needs {', '.join(entry.dataset.needs)}"


def _size(size: int) -> str:
    return f"{size / 10**6:,.0f} MB" if size >= 10**6 else f"{max(size / 10**3, 1):,.0f} kB"


def _notes(entries: Sequence[Listed]) -> Iterator[Condition]:
    for entry in entries:
        if entry.dataset.brought and not entry.at_hand:
            step = f"isorun data get {entry.dataset.name}, then copy the images into {entry.folder / 'images'}"
            yield Condition("images-to-bring", f"{entry.dataset.name}: {entry.dataset.note}", step)


def _entry_json(entry: Listed) -> dict[str, Any]:
    known = entry.dataset
    return {
        "name": known.name,
        "title": known.title,
        "licence": known.licence,
        "citation": known.citation,
        "papers": list(known.papers),
        "size": known.size,
        "at_hand": entry.at_hand,
        "form": entry.form.kind if entry.form else None,
        "folder": str(entry.folder),
        "needs": list(known.needs),
        "note": known.note,
        "files": [
            {
                "path": file.path,
                "urls": list(file.urls),
                "size": file.size,
                "checksum": str(file.checksum) if file.checksum else None,
                "checksum_source": file.checksum.source if file.checksum else None,
            }
            for file in known.files
        ],
    }


def _acquired_json(got: Acquired) -> dict[str, Any]:
    return {
        "name": got.name,
        "folder": str(got.folder),
        "installed": got.installed is not None,
        "note": got.note,
        "files": [
            {
                "path": str(file.path),
                "status": file.status,
                "size": file.size,
                "checksum": str(file.checksum),
                "recorded": file.recorded,
            }
            for file in got.files
        ],
    }
