"""Where shown studies come from. Pages do not know where a study lies: they ask a shelf.

    StoreShelf("here", ".isorun")             the studies that a store keeps, in a folder or in PostgreSQL
    PackageShelf("packages", ["a.isorun"])    package files
    RegistryShelf("registry", registry)       versions of packages in a registry (registry_shelf.py)

What is computed of a study is kept by its name and revision (`kept.py`), so that many readers cost one analysis.
"""

from __future__ import annotations

import abc
import hashlib
import json
import shlex
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, Generic, TypeVar

from isorun.errors import InputError, IsorunError, NothingRecorded, PackageError, StoreError, StoreMissing
from isorun.registry import Scope, Viewer
from isorun.store import SEARCHES, STUDIES, AbstractStore

if TYPE_CHECKING:
    from isorun.analysis.evidence import Condition
    from isorun.analysis.studies.study_result import StudyResult
    from isorun.in_progress import Status
    from isorun.registry.index import ReplicatingPackage
    from isorun.study.design import Study
    from isorun.study.records import RunRecord

__all__ = [
    "MOST_LISTED",
    "NOT_UNDERSTOOD",
    "AbstractShelf",
    "OpenedStudy",
    "PackageShelf",
    "ShelfEntry",
    "StoreShelf",
    "cannot_be_shown",
    "digest_of",
    "not_on_shelf",
    "opened_package",
    "shelves_of",
]

_Seen = TypeVar("_Seen")
_LOOKED_AT_SECONDS: Final = 1.0
"""For so long a shelf trusts what it saw of a study: many readers ask at once."""
MOST_LISTED: Final = 1_000
"""So many studies of a shelf are listed at the most; how many more there are is told."""
NOT_UNDERSTOOD: Final = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What records of others may raise that are of the right form and make no sense."""


@dataclass(frozen=True, slots=True)
class ShelfEntry:
    """A study as a shelf lists it.

    name: what opens it. runs: those that left a record. when: when its latest run began, in a registry when it was
    pushed, ISO 8601; empty where no run has ended. address: of a package. tier: how far others bear it out, in the
    words of the registry; empty where nobody keeps count. replications: packages of others that replicate it, on the
    same shelf. replicates: the address of what it says that it replicates itself, original: that one's name on the same
    shelf, where the study was opened for somebody who may see it. words: what it is found by, beside its name. problem:
    why it cannot be shown, remedy: what to type next.
    """

    name: str
    runs: int = 0
    when: str = ""
    address: str = ""
    tier: str = ""
    replications: tuple[ReplicatingPackage, ...] = ()
    words: tuple[str, ...] = ()
    problem: str = ""
    remedy: str = ""
    replicates: str = ""
    original: str = ""

    @property
    def replicated_by(self) -> tuple[str, ...]:
        """Who pushed packages that replicate it."""
        return tuple(dict.fromkeys(one.by for one in self.replications))

    def matches(self, text: str) -> bool:
        """Whether every word of the text is in its name, or in what it is found by."""
        known = " ".join((self.name, self.address, *self.words)).casefold()
        return all(word in known for word in text.casefold().split())


@dataclass(frozen=True, slots=True)
class OpenedStudy:
    """A study off its shelf: its design, its runs, and what its store has to say.

    source: what names the study in a command, store: what names its store there; empty where none is needed. place:
    that of the store alone, for people. analyse: what is asked in place of the statistics of runs alone, where the
    study has searches.
    """

    entry: ShelfEntry
    revision: str
    design: Study
    records: tuple[RunRecord, ...]
    told: tuple[Condition, ...] = ()
    source: str = ""
    store: str = ""
    place: str = ""
    analyse: Callable[[], StudyResult] | None = field(default=None, compare=False)

    def analysed(self) -> StudyResult:
        """What its runs say, and what is said of its searches; NothingRecorded where no run has ended."""
        if self.analyse is not None:
            return self.analyse()
        from isorun.workflow import analyse_records  # noqa: PLC0415 - statistics load when a study is looked at

        return analyse_records(self.design, self.records, self.told)


class AbstractShelf(abc.ABC):
    """Studies to show: it lists them, and opens one.

    - `entries` names what the viewer may see, the latest first; each name listed can be opened. Of very many some are
      not listed, and `unlisted` says how many.
    - What is not there, and what the viewer may not see, is the same: NothingRecorded.
    - `revision` changes whenever something of the study came or changed, within a second, and not otherwise; `opened`
      says of which revision it is. Asking for it is cheap.
    - Names are looked up, and never become a path.
    - Nothing is changed by showing it. Any number of threads may ask at once.

    name: what pages' addresses call it: letters, digits and hyphens. title: for people. is_registry: whether packages
    of many people are on it, some of which are seen by those who log in; when they were pushed is what it goes by.
    """

    name: str
    title: str
    is_registry: ClassVar[bool] = False

    @abc.abstractmethod
    def entries(self, viewer: Viewer, text: str = "") -> Sequence[ShelfEntry]:
        """What the viewer may see and the text matches, the latest first."""

    def unlisted(self, viewer: Viewer, text: str = "") -> int:  # noqa: ARG002 - most list all
        """How many more there are that `entries` does not name, although the viewer may see them."""
        return 0

    @abc.abstractmethod
    def revision(self, name: str, viewer: Viewer) -> str:
        """What changes whenever something of the study came."""

    @abc.abstractmethod
    def opened(self, name: str, viewer: Viewer) -> OpenedStudy:
        """The study with all its runs."""

    def standing(self, name: str, viewer: Viewer) -> Status | None:
        """What of the study runs now; None where nothing can run."""
        self.revision(name, viewer)
        return None

    def close(self) -> None:  # noqa: B027 - many have nothing to close
        """Let go of files."""


def not_on_shelf(name: str) -> NothingRecorded:
    """What to say of a study that is not there, or not for this viewer."""
    return NothingRecorded("there is no such study here", found=name[:100], hint="the first page lists what there is")


def cannot_be_shown(entry: ShelfEntry) -> PackageError:
    """What to say of a package that is there, and is not whole."""
    return PackageError(f"{entry.name} cannot be shown", found=entry.problem, hint=entry.remedy)


def _refuse_strangers(name: str, viewer: Viewer) -> None:
    """Files of whoever serves them: for all who may read there."""
    if Scope.READ not in viewer.scopes:
        raise not_on_shelf(name)


class _Remembered(Generic[_Seen]):
    """The latest answer for a key, as long as it is young, and one question at a time."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._known: dict[str, tuple[float, _Seen]] = {}

    def of(self, key: str, ask: Callable[[], _Seen]) -> _Seen:
        with self._guard:
            known = self._known.get(key)
            if known is None or time.monotonic() - known[0] > _LOOKED_AT_SECONDS:
                known = (time.monotonic(), ask())
                self._known[key] = known
            return known[1]


def digest_of(parts: Iterable[str]) -> str:
    """What tells contents apart, short."""
    seen = hashlib.sha256()
    for part in parts:
        seen.update(part.encode("utf-8", "surrogatepass"))
        seen.update(b"\0")
    return seen.hexdigest()[:24]


@dataclass(slots=True)
class _Known:
    """What a store shelf knows of a study: as it was declared when looked at last, also as text, and its cells."""

    study: Study
    declared: str
    cells: frozenset[str]


class StoreShelf(AbstractShelf):
    """The studies that a store keeps: a folder, or a PostgreSQL database. It stays open as long as the shelf."""

    def __init__(self, name: str, place: str) -> None:
        from isorun.session import open_existing_store  # noqa: PLC0415 - only shelves of stores open some
        from isorun.store import shown_place  # noqa: PLC0415

        self.name = name
        self.title = shown_place(place)
        self._place = place
        self._guard = threading.RLock()
        self._store: AbstractStore | None = open_existing_store(place)
        self._revisions: _Remembered[str] = _Remembered()
        self._standings: _Remembered[Status] = _Remembered()
        self._listed: _Remembered[Sequence[ShelfEntry]] = _Remembered()
        self._known: dict[str, _Known] = {}
        self._began: dict[str, dict[str, str]] = {}

    def _opened_store(self) -> AbstractStore:
        from isorun.session import open_existing_store  # noqa: PLC0415 - as above

        if self._store is None:
            self._store = open_existing_store(self._place)
        return self._store

    def _study(self, name: str) -> _Known:
        """The study as it is declared now, with the cells that the store knows; for who holds the guard."""
        from isorun.session import recalled  # noqa: PLC0415
        from isorun.study.cells import cells_of  # noqa: PLC0415
        from isorun.study.design import document_without_secrets  # noqa: PLC0415
        from isorun.workflow import known_to  # noqa: PLC0415

        store = self._opened_store()
        if name not in store.documents(STUDIES).names():
            raise not_on_shelf(name)
        declared = recalled(name, store)
        known = self._known.get(name)
        if known is None or declared.searches or known.study != declared:
            cells = frozenset(cell.id for cell in cells_of(known_to(declared, store)))
            content = json.dumps(document_without_secrets(declared), sort_keys=True, default=str)
            known = self._known[name] = _Known(declared, content, cells)
        return known

    def entries(self, viewer: Viewer, text: str = "") -> Sequence[ShelfEntry]:
        """What is kept in the store, by when its latest run began."""
        found = self._listed.of("", self._list) if Scope.READ in viewer.scopes else ()
        return [entry for entry in found if entry.matches(text)]

    def unlisted(self, viewer: Viewer, text: str = "") -> int:  # noqa: ARG002 - what was not looked at may match
        """Studies beyond the first thousand, which no search finds either."""
        if Scope.READ not in viewer.scopes:
            return 0
        with self._guard, _reopened_after_errors(self):
            return max(0, len(self._opened_store().documents(STUDIES).names()) - MOST_LISTED)

    def _list(self) -> Sequence[ShelfEntry]:
        with self._guard, _reopened_after_errors(self):
            names = self._opened_store().documents(STUDIES).names()[:MOST_LISTED]
            self._look_at_runs()
            found = [self._entry(name) for name in names]
        return sorted(found, key=lambda entry: entry.when, reverse=True)

    def _look_at_runs(self) -> None:
        """When each run of each cell began, read once: records are large."""
        store = self._opened_store()
        runs = ((run.rpartition("-")[0], run) for run in store.run_ids())
        new = {cell for cell, run in runs if run not in self._began.get(cell, ())}
        for record in store.records(new) if new else ():
            self._began.setdefault(record.cell.id, {})[record.run_id] = record.started_at

    def _entry(self, name: str) -> ShelfEntry:
        try:
            known = self._study(name)
        except IsorunError as error:  # one that cannot be read is listed as such, beside all others
            return ShelfEntry(name, problem=error.what, remedy=error.hint)
        began = [at for cell in known.cells for at in self._began.get(cell, {}).values()]
        return ShelfEntry(name, len(began), max(began, default=""), words=_words(known.study))

    def revision(self, name: str, viewer: Viewer) -> str:
        """From the declaration and the ids of its runs; what a search keeps counts, too."""
        _refuse_strangers(name, viewer)
        return self._revisions.of(name, lambda: self._look(name))

    def _look(self, name: str) -> str:
        with self._guard, _reopened_after_errors(self):
            known, store = self._study(name), self._opened_store()
            kept = sorted(store.documents(SEARCHES).names()) if known.study.searches else []
            runs = sorted(store.run_ids(known.cells))
        return digest_of((known.declared, *kept, "", *runs))

    def forget(self) -> None:
        """Open the store anew when it is asked next: what lay there may have been replaced."""
        store, self._store = self._store, None
        if store is not None:
            store.close()

    def opened(self, name: str, viewer: Viewer) -> OpenedStudy:
        """The study with the records of its cells."""
        from isorun.workflow import known_to, store_words, told_beside  # noqa: PLC0415 - as above

        revision = self.revision(name, viewer)
        with self._guard, _reopened_after_errors(self):
            known, store = self._study(name), self._opened_store()
            records = tuple(store.records(known.cells))
            design = known_to(known.study, store)
            told = told_beside(design, store)
            entry = self._entry_of(name, known, records)
        opened = OpenedStudy(entry, revision, design, records, told, name, store_words(self._place), self.title)
        return replace(opened, analyse=lambda: self._with_searches(name)) if design.searches else opened

    def _entry_of(self, name: str, known: _Known, records: Sequence[RunRecord]) -> ShelfEntry:
        when = max((record.started_at for record in records), default="")
        return ShelfEntry(name, len(records), when, words=_words(known.study))

    def _with_searches(self, name: str) -> StudyResult:
        from isorun.workflow import analyse  # noqa: PLC0415 - as above

        with self._guard, _reopened_after_errors(self):
            return analyse(name, store=self._opened_store())

    def standing(self, name: str, viewer: Viewer) -> Status | None:
        """What of the study runs now."""
        self.revision(name, viewer)
        return self._standings.of(name, lambda: self._stand(name))

    def _stand(self, name: str) -> Status:
        from isorun.in_progress import status  # noqa: PLC0415 - as above

        with self._guard, _reopened_after_errors(self):
            return status(name, store=self._opened_store())

    def close(self) -> None:
        """Close the store."""
        with self._guard:
            self.forget()


class _reopened_after_errors:  # noqa: N801 - read as a phrase where it is used
    """Around questions to a store: one that failed is opened anew next time."""

    def __init__(self, shelf: StoreShelf) -> None:
        self._shelf = shelf

    def __enter__(self) -> None:
        """Nothing is done before."""

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and issubclass(kind, StoreError):
            self._shelf.forget()


def _words(study: Study) -> tuple[str, ...]:
    """What a study is found by: what it compares, and what it measures."""
    return tuple(dict.fromkeys((*study.approaches, *study.configs, *study.environments, *study.metrics)))


class PackageShelf(AbstractShelf):
    """Package files. A file is read whole and checked when its study is opened; its name here is that of the file."""

    def __init__(self, name: str, paths: Sequence[str | Path]) -> None:
        self.name = name
        self.title = "packages"
        self._guard = threading.Lock()
        self._entries: dict[str, tuple[tuple[int, int], ShelfEntry]] = {}
        self._paths: dict[str, Path] = {}
        for path in map(Path, paths):
            called, number = path.stem, 1
            while called in self._paths:
                number += 1
                called = f"{path.stem}-{number}"
            self._paths[called] = path

    def entries(self, viewer: Viewer, text: str = "") -> Sequence[ShelfEntry]:
        """What the files' manifests say."""
        found = [self._entry(name) for name in self._paths] if Scope.READ in viewer.scopes else []
        return sorted((one for one in found if one.matches(text)), key=lambda entry: entry.when, reverse=True)

    def _entry(self, name: str) -> ShelfEntry:
        """What the package says of itself, or what is wrong with it; read again when the file is another one."""
        try:
            seen = self._paths[name].stat()
        except OSError as error:
            return self._broken(name, f"it cannot be read: {error.strerror}")
        mark = seen.st_mtime_ns, seen.st_size
        with self._guard:
            known = self._entries.get(name)
            if known is None or known[0] != mark:
                known = self._entries[name] = (mark, self._read(name))
        return known[1]

    def _read(self, name: str) -> ShelfEntry:
        try:
            return package_entry(name, self._paths[name])
        except PackageError as error:
            return self._broken(name, f"it is damaged: {error.what}")
        except IsorunError as error:
            return self._broken(name, error.what)
        except NOT_UNDERSTOOD as error:
            return self._broken(name, f"what it says of its runs cannot be understood ({type(error).__name__})")

    def _broken(self, name: str, problem: str) -> ShelfEntry:
        remedy = f"isorun verify {shlex.quote(str(self._paths[name]))}"
        return ShelfEntry(name, problem=problem, remedy=remedy)

    def revision(self, name: str, viewer: Viewer) -> str:
        """Its address."""
        _refuse_strangers(name, viewer)
        if name not in self._paths:
            raise not_on_shelf(name)
        return self._whole(name).address

    def opened(self, name: str, viewer: Viewer) -> OpenedStudy:
        """The study with all its runs."""
        self.revision(name, viewer)
        return opened_package(self._whole(name), self._paths[name])

    def _whole(self, name: str) -> ShelfEntry:
        entry = self._entry(name)
        if entry.problem:
            raise cannot_be_shown(entry)
        return entry


def package_entry(name: str, path: Path) -> ShelfEntry:
    """What a package says of itself. Every byte is checked: one that is damaged is told as such where it is listed."""
    from isorun.packages.reading import open_package  # noqa: PLC0415 - only where packages are shown

    with open_package(path) as package:
        package.check_all()
        study = package.study()
        when = max((record.started_at for record in package.records()), default="")
        runs = package.manifest.runs
        return ShelfEntry(name, runs, when, package.address, words=(study.name, *_words(study)))


def opened_package(entry: ShelfEntry, path: Path, source: str = "", most: int | None = None) -> OpenedStudy:
    """The study of a package, which is checked whole. source: what names it in a command, if not its path.

    most: how many bytes may come out of it; NoRoom beyond.
    """
    from isorun.packages.opened import PackageStore  # noqa: PLC0415 - as above
    from isorun.session import recalled  # noqa: PLC0415 - as above
    from isorun.workflow import analyse, known_to, told_beside  # noqa: PLC0415 - as above

    with PackageStore(path, most) as store:
        design = known_to(recalled(store.documents(STUDIES).names()[0], store), store)
        opened = OpenedStudy(
            entry, entry.address, design, tuple(store.records()), told_beside(design, store), source or str(path)
        )
    return replace(opened, analyse=lambda: analyse(path)) if design.searches else opened


def shelves_of(places: Sequence[str]) -> list[AbstractShelf]:
    """A shelf for each store, and one for all packages; what cannot be opened is refused at once."""
    from isorun.session import folder_of, is_package, is_there, store_place  # noqa: PLC0415 - as above

    packages = [place for place in places if is_package(place)]
    for place in packages:
        if not Path(place).is_file():
            raise InputError(f"there is no package {place}", hint="isorun pack STUDY makes one")
    stores = [place for place in places if place not in packages]
    for place in stores:
        if folder_of(place) is not None and not is_there(place):
            allowed = "the folder of a store (.isorun), postgresql://…, a package (NAME.isorun)"
            raise StoreMissing(f"there is no store {place}", allowed=allowed, hint="isorun run makes one")
    names: set[str] = set()
    shown = stores or ([] if packages else [store_place(None)])
    shelves: list[AbstractShelf] = [StoreShelf(_slug(place, names), place) for place in shown]
    return [*shelves, *([PackageShelf(_slug("packages", names), packages)] if packages else [])]


def _slug(place: str, taken: set[str]) -> str:
    """A short name for addresses: the folder's, or that of the folder around `.isorun`."""
    parts = [part for part in Path(place.partition("://")[2] or place).absolute().parts if part not in {"/", ".isorun"}]
    letters = "".join(char if char.isascii() and char.isalnum() else "-" for char in (parts or ["store"])[-1].lower())
    wanted = "-".join(filter(None, letters.split("-")))[:40] or "store"
    name, number = wanted, 1
    while name in taken:
        number += 1
        name = f"{wanted}-{number}"
    taken.add(name)
    return name
