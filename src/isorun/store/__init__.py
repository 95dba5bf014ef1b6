"""What every store promises: it keeps records and who holds a cell. It never sees a process or a run folder."""

from __future__ import annotations

import abc
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from isorun.errors import StoreDamaged, StoreError, without_passwords
from isorun.study.design import KEPT_NAMES, can_be_kept
from isorun.study.records import Note, RunRecord, open_envelope, sealed

if TYPE_CHECKING:
    from isorun.store.content import KnownAttempt, is_known, stored_form

__all__ = [
    "NO_CELLS",
    "PLANS",
    "REPLAYS",
    "SEARCHES",
    "SEARCH_CLAIM",
    "STUDIES",
    "STUDY_CLAIM",
    "STUDY_PLACE",
    "WORKER_CLAIM",
    "AbstractDocuments",
    "AbstractStore",
    "Claim",
    "Holder",
    "KnownAttempt",
    "given_place",
    "is_known",
    "open_envelope",
    "refuse_name",
    "sealed",
    "shown_place",
    "stored_form",
]

STUDIES: Final = "studies"
STUDY_PLACE: Final = frozenset({"folder", "file", "code"})
"""What a kept study has beside its declaration: where it lay when it was kept, and with which code."""
PLANS: Final = "plans"
SEARCHES: Final = "searches"
REPLAYS: Final = "replays"
"""Which runs were made again, and under which ids those are kept: they belong to no study."""
SEARCH_CLAIM: Final = "search-"
"""What the name of a claim begins with that is a search's, while a trial of it is chosen: no cell, and no run."""
WORKER_CLAIM: Final = "worker-"
"""What the name of a claim begins with that says no more than that an `isorun worker` is at work."""
STUDY_CLAIM: Final = "study-"
"""What the name of a claim begins with that is a kept study's, while its declaration is replaced."""
NO_CELLS: Final = (SEARCH_CLAIM, WORKER_CLAIM, STUDY_CLAIM)
"""What the names of claims begin with that are no cells'."""


_WHOLE_PASSWORD: Final = re.compile(r"(?s)\A([A-Za-z][\w+.-]*://[^:@/?#\s]*):.*@")
"""Of what is a URL as a whole, also one whose password has a space in it."""
_WITH_PASSWORDS: Final[dict[str, str]] = {}
"""Places that were given with passwords, by what is shown and handed on of them. It ends with the process."""


def shown_place(place: str) -> str:
    """A place as it may be shown, kept and handed on: without passwords, which this process remembers."""
    shown = without_passwords(_WHOLE_PASSWORD.sub(r"\1:***@", place))
    if shown != place:
        _WITH_PASSWORDS[shown] = place
    return shown


def given_place(place: str) -> str:
    """The place as it was given, for whoever opens it."""
    return _WITH_PASSWORDS.get(place, place)


def __getattr__(name: str) -> Any:
    """What stores call to know what to keep; it needs NumPy, and most who come here do not."""
    if name in {"KnownAttempt", "is_known", "stored_form"}:
        from isorun.store import content  # noqa: PLC0415

        return getattr(content, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class Claim(abc.ABC):
    """The right to execute one cell, held until `release` or the death of the process, or beyond it after `leave`."""

    cell_id: str
    attempt: int

    @abc.abstractmethod
    def release(self) -> None:
        """Give the right back; giving it back twice is nothing, also when a later attempt has it by then."""

    def leave(self) -> None:
        """Go, while the run goes on without this process: a job in a cluster's queue.

        The cell is nobody's but of who takes this very attempt again (`AbstractStore.claim_again`), on any machine and
        however long that takes. The base gives the right back: then another attempt may begin beside the run.
        """
        self.release()


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a claim now. since: when it was claimed, ISO 8601 in UTC.

    left: the process has gone, and its run goes on (`Claim.leave`).
    """

    cell_id: str
    attempt: int
    host: str
    pid: int
    since: str
    left: bool = False


def refuse_name(name: str) -> None:
    """StoreError for a name that no document is kept under."""
    if not can_be_kept(name):
        raise StoreError("no document can be kept under this name", found=f"{name!r:.60}", allowed=KEPT_NAMES)


class AbstractDocuments(abc.ABC):
    """One kind of small documents that a store keeps beside its records: kept studies, plans of decisions.

    A document is replaced as a whole: a reader finds the old one or the new one, and never half of one. A name that no
    study can be kept under is refused (`refuse_name`): it may come from whoever made a package, and becomes a path.
    """

    @abc.abstractmethod
    def names(self) -> tuple[str, ...]:
        """The names of all documents, the one written last first."""

    @abc.abstractmethod
    def read(self, name: str) -> dict[str, Any] | None:
        """The document; None where there is none. StoreError when it cannot be read."""

    @abc.abstractmethod
    def write(self, name: str, document: dict[str, Any]) -> None:
        """Keep the document; it has reached the disk when this returns."""

    @abc.abstractmethod
    def place(self, name: str) -> str:
        """Where the document lies, for messages."""


class AbstractStore(abc.ABC):
    """Keeps records, and says who executes a cell. It never sees a process or a run folder.

    After any fault and one reopening there is exactly one finished record for every cell whose `finish` returned,
    none that was never given, and an unacknowledged one appears once or not at all. What is read is what was kept: a
    store that finds its content changed says so (StoreDamaged) instead of handing it out.

    What is kept of a record is `stored_form(record)`: floats where the record says float, one
    zero instead of two, and each time of a series to within 1/65,000 of the longest gap between its points. Records
    are the same one when their stored forms have the same digest (`sealed`).

    Which records contradict each other is what `is_known` says; a store asks it with the attempts
    that it knows of the cell, and keeps nothing when it raises StoreConflict:
    - two different records of one run, and two finished records of one cell;
    - any record of an attempt later than the one that finished the cell;
    - a finished record of an attempt after which another was recorded, or claimed: whoever was stopped, replaced and
      woken up cannot finish the cell any more. So `finish` asks whether the claim is still the latest one.
    A failed attempt may arrive after the later one that finished the cell.

    Opening: whoever opens a store says whether it may be made (`create`). Without, a store that is not there is
    StoreMissing, and nothing is made. Faults of what a store rests on (a disk, a server that does not answer) are other
    StoreErrors: what cannot be reached may be full of records. Messages are the store's own; callers go by the type.

    key: secret bytes that belong to this store and never leave it. Values withheld from records are told apart by it.
    """

    key: bytes

    looked_over_by: str = ""
    """The command with which a user has the store looked over; empty where there is none."""

    @abc.abstractmethod
    def claim(self, cell_id: str) -> Claim | None:
        """The right to execute the cell; None when it is finished, or somebody else is executing it now.

        Each claim carries an attempt number higher than any before it, recorded or not.
        """

    def claim_again(self, cell_id: str, attempt: int) -> Claim | None:  # noqa: ARG002 - for those who override
        """The right to an attempt that was claimed before and goes on without the process that claimed it.

        For runs that outlive it, such as jobs in a cluster's queue: whoever comes back takes their claims again, as the
        same attempts. None where a later attempt was claimed or recorded, this one left a record, the cell is finished,
        or somebody holds it now. The base takes none again: such a run is then made anew, and the other one refused.
        """
        return None

    def claim_any(self, cell_ids: Sequence[str], limit: int = 1) -> list[Claim]:
        """The rights to execute up to so many of these cells, the first ones that are free in the order given.

        An empty list: all of them are finished, or are being executed now. For workers that take whatever is left; a
        store that can do it in one go overrides this.
        """
        taken: list[Claim] = []
        for cell_id in cell_ids:
            if len(taken) == limit:
                break
            claim = self.claim(cell_id)
            taken += [] if claim is None else [claim]
        return taken

    @abc.abstractmethod
    def holders(self) -> Sequence[Holder]:
        """Who holds a claim now, in this process or in another, or has left it; holders that died are not among them.

        Of a claim that was left, which can be taken again, the one who left it.
        """

    @abc.abstractmethod
    def finish(self, record: RunRecord) -> None:
        """Make the record durable. When this returns the record survives a crash of the machine.

        Finishing the same record twice is nothing; one that contradicts what is kept raises StoreConflict.
        """

    @abc.abstractmethod
    def finished(self, cell_ids: Iterable[str] | None = None) -> set[str]:
        """The ids of the cells that have a finished record, among the given ones or all."""

    @abc.abstractmethod
    def records(self, cell_ids: Iterable[str] | None = None) -> Sequence[RunRecord]:
        """All records, failed attempts included, or those of the given cells; ordered by cell id and attempt."""

    def each_record(self, cell_id: str) -> Iterator[RunRecord | StoreDamaged]:
        """The records of a cell, and in place of a damaged one what is wrong with it, so that the others can be saved.

        The base reads them together: where one is damaged, all are.
        """
        try:
            yield from self.records([cell_id])
        except StoreDamaged as error:
            yield error

    @abc.abstractmethod
    def run_ids(self, cell_ids: Iterable[str] | None = None) -> set[str]:
        """The ids of all runs that have a record, failed attempts included, or of those of the given cells."""

    @abc.abstractmethod
    def documents(self, kind: str) -> AbstractDocuments:
        """The documents of one kind: STUDIES, PLANS, SEARCHES or REPLAYS."""

    @abc.abstractmethod
    def notes(self) -> tuple[Note, ...]:
        """What a user of this store should know, such as records that were set aside."""

    @abc.abstractmethod
    def close(self) -> None:
        """Give back all claims and let go of files and locks; closing twice is nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
