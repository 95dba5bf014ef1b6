"""What was computed once and is shown to many: analyses by the revision of their study, and finished answers.

Whoever asks for what is being computed waits for that, so that fifty readers cost one analysis.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from isorun.errors import InputError, NothingRecorded
from isorun.registry import Viewer
from isorun.serving.shelves import NOT_UNDERSTOOD, AbstractShelf, OpenedStudy, ShelfEntry, not_on_shelf

if TYPE_CHECKING:
    from isorun.analysis.studies.study_result import StudyResult

__all__ = ["AnalysedStudy", "Kept", "ShownStudies"]

_Value = TypeVar("_Value")
_MOST_ANALYSES: Final = 24
_MOST_ANSWER_BYTES: Final = 48 * 2**20


class Kept(Generic[_Value]):
    """Values by key, the ones used last; together they weigh at most so much. Each is made once at a time."""

    def __init__(self, most: float, weight: Callable[[_Value], float] = lambda _: 1.0) -> None:
        self._most = most
        self._weight = weight
        self._guard = threading.Lock()
        self._values: OrderedDict[Hashable, tuple[_Value, float]] = OrderedDict()
        self._making: dict[Hashable, threading.Lock] = {}
        self._total = 0.0

    def of(self, key: Hashable, make: Callable[[], _Value]) -> _Value:
        """The value of the key, made where it is not there; what making it raises is kept by nobody."""
        with self._guard:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key][0]
            lock = self._making.setdefault(key, threading.Lock())
        with lock:
            with self._guard:
                if key in self._values:
                    return self._values[key][0]
            try:
                value = make()
            finally:
                with self._guard:
                    self._making.pop(key, None)
            self._keep(key, value)
            return value

    def _keep(self, key: Hashable, value: _Value) -> None:
        weight = self._weight(value)
        with self._guard:
            if key in self._values or weight > self._most:
                return
            self._values[key] = (value, weight)
            self._total += weight
            while self._total > self._most:
                _, (_, gone) = self._values.popitem(last=False)
                self._total -= gone

    def __len__(self) -> int:
        return len(self._values)


@dataclass(frozen=True, slots=True)
class AnalysedStudy:
    """A study and what its runs say. result: None where none has ended. shelf: the name of the one it comes from."""

    shelf: str
    study: OpenedStudy
    result: StudyResult | None

    @property
    def name(self) -> str:
        """Its name on the shelf."""
        return self.study.entry.name


class ShownStudies:
    """All shelves, what was computed of their studies, and finished answers."""

    def __init__(self, shelves: Sequence[AbstractShelf]) -> None:
        self._shelves: Mapping[str, AbstractShelf] = {shelf.name: shelf for shelf in shelves}
        self._analyses: Kept[AnalysedStudy] = Kept(_MOST_ANALYSES)
        self.answers: Kept[bytes] = Kept(_MOST_ANSWER_BYTES, len)

    @property
    def shelves(self) -> Sequence[AbstractShelf]:
        """In the order they are shown."""
        return tuple(self._shelves.values())

    def shelf(self, name: str) -> AbstractShelf:
        """The shelf of this name."""
        if name not in self._shelves:
            raise not_on_shelf(name)
        return self._shelves[name]

    def entries(self, viewer: Viewer, text: str = "") -> list[tuple[AbstractShelf, ShelfEntry]]:
        """All that the viewer may see and the text matches, the latest first."""
        found = [(shelf, entry) for shelf in self.shelves for entry in shelf.entries(viewer, text)]
        return sorted(found, key=lambda pair: pair[1].when, reverse=True)

    def unlisted(self, viewer: Viewer, text: str = "") -> list[tuple[AbstractShelf, int]]:
        """Shelves that have more than they list, and how many."""
        counted = [(shelf, shelf.unlisted(viewer, text)) for shelf in self.shelves]
        return [(shelf, more) for shelf, more in counted if more]

    def revision(self, shelf: str, name: str, viewer: Viewer) -> str:
        """What changes whenever something of the study came; it also says whether the viewer may see it."""
        return self.shelf(shelf).revision(name, viewer)

    def analysed(self, shelf: str, name: str, viewer: Viewer) -> AnalysedStudy:
        """The study and what its runs say, computed once for each revision."""
        found = self.shelf(shelf)
        revision = found.revision(name, viewer)
        return self._analyses.of((shelf, name, revision), lambda: _analysed(found, name, viewer))

    def close(self) -> None:
        """Close all shelves."""
        for shelf in self.shelves:
            shelf.close()


def _analysed(shelf: AbstractShelf, name: str, viewer: Viewer) -> AnalysedStudy:
    opened = shelf.opened(name, viewer)
    try:
        return AnalysedStudy(shelf.name, opened, opened.analysed())
    except NothingRecorded:
        return AnalysedStudy(shelf.name, opened, None)
    except NOT_UNDERSTOOD as error:
        if not opened.entry.address:  # a store's records are isorun's own: a mistake of ours is shown as one
            raise
        found = f"{type(error).__name__}, in the records of a package"
        raise InputError("what this package says of its runs cannot be understood", found=found) from error
