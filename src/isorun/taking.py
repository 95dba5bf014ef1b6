"""Taking what a store has left: the agenda of `isorun worker`, on any number of machines at once.

    take("postgresql://lab/isorun", jobs=4)

Its cells are those of the studies that the store keeps, without a finished record. They are claimed as there is room,
several in one go, so that workers do not meet at the same cell; what others hold is looked at again, in case they
died. A cell that failed as often as the study's `retries` allow, whoever tried it, is left as it is. Where the first
runs of a study all fail here, something is missing here that nobody could foresee, and the rest is left to others.
"""

from __future__ import annotations

import hashlib
import math
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from isorun.analysis.evidence import Condition, some
from isorun.errors import StudyError, known_names
from isorun.execution import Job
from isorun.execution.local import LocalExecutor
from isorun.offers import Offer, Offers, StudyFolders
from isorun.scheduling import AbstractAgenda, Observer, Outcome, carry_out
from isorun.session import ExecutorOptions, Session, open_existing_store, place_of, runs_folder
from isorun.store import STUDIES, WORKER_CLAIM, AbstractStore, Claim
from isorun.study.cells import Cell
from isorun.study.design import Study
from isorun.study.records import RunRecord, RunState
from isorun.workflow import store_conditions

__all__ = ["TakenCells", "WhatIsLeft", "take"]

CALLED: Final = "worker"
"""What records say of who carried them out."""
_WINDOW: Final = 2048
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 5.0
_DOCUMENTS_SECONDS: Final = 2.0
_DOCUMENTS_AT_WORK_SECONDS: Final = 30.0
"""How long a study that was kept anew may go unnoticed while there is enough to do without it."""
_FAILED_AT_FIRST: Final = 3
_WORKERS_A_HOST: Final = 256
_FAILURES: Final = (RunState.FAILED, RunState.TIMED_OUT)


@dataclass(frozen=True, slots=True)
class TakenCells:
    """What a worker did: the outcome, of which study each record is, and how many cells are left in each study.

    left: cells without a finished record that could be carried out here, and were not. away: whether cells could not
    be carried out here at all.
    """

    outcome: Outcome
    study_of: dict[str, str]
    left: dict[str, int]
    away: bool

    def to_json(self) -> dict[str, Any]:
        """How many ended how, by study."""
        names = dict.fromkeys((*self.left, *self.study_of.values()))
        return {name: {**self._counts(name), "left": self.left.get(name, 0)} for name in names}

    def _counts(self, name: str) -> dict[str, int]:
        own = [one for one in self.outcome.records if self.study_of.get(one.cell.id) == name]
        finished = sum(one.state is RunState.FINISHED for one in own)
        return {"finished": finished, "did_not_finish": len(own) - finished}


def take(
    store: str | Path | AbstractStore | None = None,
    *,
    studies: Sequence[str] = (),
    folders: Sequence[str] = (),
    jobs: int = 1,
    launch: str = "auto",
    devices: str = "auto",
    failed: bool = False,
    anyway: bool = False,
    idle_seconds: float = 0.0,
    observer: Observer | None = None,
) -> TakenCells:
    """Carry out here what the store has left, until nothing is; what `isorun worker` does.

    studies: by name; all that are kept where none is given. folders: where those of studies lie, see `StudyFolders`.
    failed: whether cells are tried again that failed before. anyway: also with other code, or without data that earlier
    runs read. idle_seconds: how long to wait for more when nothing is left.
    """
    observer, where = observer or Observer(), place_of(None, store)
    with ExitStack() as stack:
        opened = where if isinstance(where, AbstractStore) else stack.enter_context(open_existing_store(where))
        _refuse_unknown(studies, opened)
        runs = _RunFolders(opened)
        executor = LocalExecutor(runs.of, jobs, launch=launch, devices=devices, called=CALLED)
        stack.callback(executor.close)
        session = Session(opened, executor, ExecutorOptions(runs_folder(opened), jobs, launch, devices))
        offers = Offers(opened, executor, tuple(studies), StudyFolders.of(folders), anyway)
        agenda = WhatIsLeft(opened, offers, observer, failed=failed, idle_seconds=idle_seconds)
        with _present(opened):
            outcome = carry_out(agenda, session, agenda.study_of, observer)
        known = (*agenda.told, *outcome.conditions, *store_conditions(opened))
        outcome = replace(outcome, conditions=tuple(dict.fromkeys(known)))
        return TakenCells(outcome, agenda.names(), agenda.left(), agenda.away)


class _RunFolders:
    """Where the folders of runs lie: in a store that is a folder, else beside the study that the run belongs to."""

    def __init__(self, store: AbstractStore) -> None:
        self._store = store

    def of(self, job: Job) -> Path:
        return runs_folder(self._store, job.working_folder)


@contextmanager
def _present(store: AbstractStore) -> Iterator[None]:
    """While this process is at work, a claim says so to whoever asks for the status, also when it waits."""
    host = hashlib.sha256(socket.gethostname().encode()).hexdigest()[:8]
    names = [f"{WORKER_CLAIM}{host}-{number}" for number in range(_WORKERS_A_HOST)]
    claims = store.claim_any(names)
    try:
        yield
    finally:
        for claim in claims:
            claim.release()


def _refuse_unknown(studies: Sequence[str], store: AbstractStore) -> None:
    names = store.documents(STUDIES).names()
    for name in studies:
        if name not in names:
            raise StudyError(
                f"the store keeps no study {name!r}",
                allowed=known_names(name, names) if names else "none: the store keeps no study",
                hint="isorun run study.toml --queue keeps one for workers",
            )


class WhatIsLeft(AbstractAgenda):
    """The cells of kept studies without a finished record, claimed as there is room.

    told: what was said of studies, each once. away: whether some of their cells cannot be carried out here.
    """

    def __init__(
        self,
        store: AbstractStore,
        offers: Offers,
        observer: Observer,
        *,
        failed: bool = False,
        idle_seconds: float = 0.0,
    ) -> None:
        self.told: dict[Condition, None] = {}
        self.away = False
        self._store = store
        self._offers = offers
        self._observer = observer
        self._takes_failed = failed
        self._idle_seconds = idle_seconds
        self._known: dict[str, Offer] = {}
        self._offer_of: dict[str, tuple[str, Offer]] = {}
        # Cells that are neither finished nor in progress here. Those of `_order` that are not in it are passed over.
        self._left: dict[str, Cell] = {}
        self._left_to_others: set[str] = set()
        self._order: list[str] = []
        self._next = 0
        self._claimed: dict[str, Claim] = {}
        self._failures: Counter[str] = Counter()
        self._went_well: set[str] = set()
        self._failed_here: Counter[str] = Counter()
        self._given_up: set[str] = set()
        self._withdrawn: set[str] = set()
        self._looked_at_documents = -math.inf
        self._look_at = self._busy_until = 0.0
        self._pause = _FIRST_PAUSE
        self._waits = False

    def study_of(self, cell: Cell) -> Study:
        """The study that a proposed cell belongs to."""
        study = self._offer_of[cell.id][1].study
        assert study is not None  # it has cells
        return study

    def names(self) -> dict[str, str]:
        """Of each cell the name of its study."""
        return {cell_id: name for cell_id, (name, _) in self._offer_of.items()}

    def left(self) -> dict[str, int]:
        """How many cells of each study are left."""
        others = self._left_to_others - self._store.finished(self._left_to_others)
        counted = Counter(self._offer_of[cell_id][0] for cell_id in (*self._left, *others))
        return {name: counted[name] for name in self._known}

    def propose(self, room: Callable[[], int]) -> Sequence[Cell]:
        """As many cells as there is room for, each claimed already."""
        count = room()
        now = time.monotonic()
        if count <= 0 or now < self._look_at:
            return ()
        if self._known and now - self._looked_at_documents >= _DOCUMENTS_AT_WORK_SECONDS:
            self._read_documents(now)
        claims = self._claim(count)
        if len(claims) < count:
            self._look_around()
            claims += self._claim(count - len(claims))
        if not claims:
            self._wait(now)
            return ()
        self._pause, self._waits, self._busy_until = _FIRST_PAUSE, False, now
        return [self._begin(claim) for claim in claims]

    def claimed(self, cell: Cell) -> Claim | None:
        """The claim that was taken when the cell was proposed."""
        return self._claimed.pop(cell.id, None)

    def is_waiting(self) -> bool:
        """Whether others hold what is left, or more is waited for."""
        return self._waits

    def to_come(self) -> int:
        """What is left beside what is proposed now; others may take it."""
        return len(self._left)

    def hear(self, record: RunRecord, *, final: bool) -> None:  # noqa: ARG002 - the loop itself tries nothing again
        """A cell that failed is tried again as far as its study allows, by whoever comes first."""
        cell = record.cell
        name, offer = self._offer_of[cell.id]
        self._busy_until, self._look_at = time.monotonic(), 0.0
        if record.state is RunState.FINISHED:
            if name not in self._went_well:  # what it was made of is known now, and may differ from what others found
                self._looked_at_documents = -math.inf
            self._went_well.add(name)
        elif record.state in _FAILURES:
            self._failures[cell.id] += 1
            self._failed_here[name] += 1
            if self._failures[cell.id] <= offer.retries:
                self._put_back(cell)
            self._give_up_on(name, offer, record)

    def _put_back(self, cell: Cell) -> None:
        self._left[cell.id] = cell
        self._order.append(cell.id)

    def _give_up_on(self, name: str, offer: Offer, record: RunRecord) -> None:
        """Leave the rest of a study where it fails here from the first run on, or is to stop at the first failure."""
        if name in self._given_up or (name in self._went_well and not offer.fails_fast):
            return
        if offer.fails_fast and self._failures[record.cell.id] > offer.retries:
            why, hint = "its policy is fail-fast", "the same command with --failed goes on with it"
        elif self._failed_here[name] >= _FAILED_AT_FIRST and name not in self._went_well:
            why = f"its first {_FAILED_AT_FIRST} runs here all failed, so that something may be missing here"
            hint = f"look at {record.where.get('folder', 'its output')}, then repeat the command with --failed"
        else:
            return
        self._given_up.add(name)
        rest = [cell_id for cell_id in self._left if self._offer_of[cell_id][0] == name]
        for cell_id in rest:
            del self._left[cell_id]
        self._left_to_others.update(rest)
        last = f"the last: {record.cell.label}: {record.reason}"
        message = f"{name}: {some(len(rest), 'cell')} left to others: {why} ({last})"
        self._tell(Condition("left-after-failures", message, hint))
        self.away = True

    def _begin(self, claim: Claim) -> Cell:
        self._claimed[claim.cell_id] = claim
        return self._left.pop(claim.cell_id)

    def _claim(self, count: int) -> list[Claim]:
        """Up to so many claims of what is left, from behind what was taken last."""
        taken: list[Claim] = []
        while len(taken) < count and self._next < len(self._order):
            window = self._order[self._next : self._next + _WINDOW]
            wanted = [cell_id for cell_id in window if cell_id in self._left]
            got = self._store.claim_any(wanted, count - len(taken)) if wanted else []
            if len(taken) + len(got) < count:
                self._next += len(window)
            else:
                self._next += window.index(got[-1].cell_id) + 1
            taken += self._worth_a_try(got)
        return taken

    def _worth_a_try(self, claims: Sequence[Claim]) -> list[Claim]:
        """Those that have not failed too often, by whomever; the others are given back, and left."""
        tried = [claim.cell_id for claim in claims if claim.attempt > 1]
        found = self._store.records(tried) if tried and not self._takes_failed else ()
        for cell_id, times in Counter(one.cell.id for one in found if one.state in _FAILURES).items():
            self._failures[cell_id] = max(self._failures[cell_id], times)
        worth = []
        for claim in claims:
            name, offer = self._offer_of[claim.cell_id]
            if self._failures[claim.cell_id] <= offer.retries:
                worth.append(claim)
                continue
            claim.release()
            del self._left[claim.cell_id]
            message = f"{name}: cells whose runs failed as often as its retries allow are left as they are"
            hint = "the same command with --failed tries them again; isorun report shows why they failed"
            self._tell(Condition("failed-before", message, hint))
        return worth

    def _look_around(self) -> None:
        """What is finished by now goes, what was kept since comes, and all that is left is looked at from the start."""
        now = time.monotonic()
        if now - self._looked_at_documents >= _DOCUMENTS_SECONDS:
            self._read_documents(now)
        for cell_id in self._store.finished(self._left) if self._left else ():
            self._left.pop(cell_id, None)
        self._order = list(self._left)
        self._next = 0

    def _read_documents(self, now: float) -> None:
        self._looked_at_documents = now
        for name, offer in self._offers.look().items():
            if self._known.get(name) is offer:
                continue
            self._known[name] = offer
            for condition in offer.conditions:
                self._tell(condition)
            self.away |= any(not one.code.startswith(("left-to", "study-edited")) for one in offer.conditions)
            self._given_up.discard(name)
            self._add(name, offer)

    def _add(self, name: str, offer: Offer) -> None:
        """Take in what a study offers now; what it no longer does, or no longer here, is left to others."""
        offered = {cell.id for cell in offer.cells}
        gone = [one for one in self._left if self._offer_of[one][0] == name and one not in offered]
        for cell_id in gone:
            del self._left[cell_id]
        self._withdrawn.update(gone)
        finished = self._store.finished(cell.id for cell in offer.cells) if offer.cells else set()
        for cell in offer.cells:
            if cell.id in self._offer_of and self._offer_of[cell.id][0] != name:
                continue  # of the same content, and the other study's already
            is_new = cell.id not in self._offer_of or cell.id in self._withdrawn
            self._withdrawn.discard(cell.id)
            self._offer_of[cell.id] = (name, offer)
            if is_new and cell.id not in finished:
                self._left[cell.id] = cell

    def _wait(self, now: float) -> None:
        """Nothing can be claimed: it is over, unless others hold something or more is waited for."""
        idle = now - (self._busy_until or now)
        self._busy_until = self._busy_until or now
        self._look_at = now + self._pause
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)
        holders = {holder.cell_id: holder for holder in self._store.holders()} if self._left else {}
        in_queues = [cell_id for cell_id in self._left if cell_id in holders and holders[cell_id].left]
        self._tell_of_queues(in_queues)
        self._waits = len(self._left) > len(in_queues) or idle < self._idle_seconds
        for cell in self._left.values():
            if cell.id in holders and not holders[cell.id].left:
                self._observer.waiting_for(cell, holders[cell.id])

    def _tell_of_queues(self, cell_ids: Iterable[str]) -> None:
        """Runs that go on in a cluster's queue end when somebody comes back to them: they are not waited for."""
        for name in sorted({self._offer_of[cell_id][0] for cell_id in cell_ids}):
            message = f"{name}: cells whose runs are in a cluster's queue or run there are left to it"
            hint = f"isorun run {name} --executor slurm, where they were submitted, records them; isorun stop ends them"
            self._tell(Condition("in-slurm", message, hint))

    def _tell(self, condition: Condition) -> None:
        if condition not in self.told:
            self.told[condition] = None
            self._observer.warned(condition)
