"""Scheduling: the one loop that carries cells out.

An agenda says which cells are next and hears every record: a list (isorun run), a rule (isorun decide), a search, what
a store has left (isorun worker).
The loop claims its cells in the store, submits jobs to the executor, waits for what the runs tell, makes every record
durable, and then tells agenda and observer. One thread does all of this, so that nothing in it needs a lock; what other
threads have to say, and Ctrl-C, arrives in one queue.

Several isoruns may work on one store at once: a cell that another one holds is left to it and looked at again when
nothing else is left to start, in case its holder died.
"""

from __future__ import annotations

import abc
import queue
import secrets
import signal
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from isorun.errors import IsorunError, StoreConflict
from isorun.execution import Event, ExecutorFailed, Job, Preparing, RowsLogged, RunEnded, RunStarted, job_of
from isorun.session import Session, blaming
from isorun.store import Claim, Holder
from isorun.study.cells import Cell
from isorun.study.design import Study
from isorun.study.records import Note, RunRecord, RunState, step_text

if TYPE_CHECKING:
    from isorun.analysis.evidence import Condition

__all__ = [
    "INTERRUPTED",
    "LEFT",
    "AbstractAgenda",
    "CellList",
    "Observer",
    "Outcome",
    "carry_out",
    "observe_with",
    "observer_of",
    "row_text",
]

INTERRUPTED: Final = "interrupted"
LEFT: Final = "left"
"""What `Outcome.stopped` begins with where runs go on without this process: the same command comes back to them."""
_LOOK_AGAIN_SECONDS: Final = 0.5
_LOST_TRIES: Final = 3
"""How often a cell is tried again after the place of its run lost it: what is lost ever again is no accident."""
_LOST_WITH_PLACE_TRIES: Final = 20
"""The same where the whole place was lost: it takes down whatever runs there, and only rarely is one of these why."""
_LOOKS_BEFORE_ANEW: Final = 3
_GIVE_UP_SECONDS: Final = 20.0
"""How long runs may take to end after an error: longer than executors wait between asking and killing."""
_CONTENT_ERRORS: Final = (ValueError, TypeError, OverflowError, RecursionError, AttributeError, LookupError)
"""What a store may raise over the content of one record, whatever it is made of."""


class AbstractAgenda(abc.ABC):
    """Says which cells are next. The work is over when none is proposed, running, to be retried or held by others."""

    @abc.abstractmethod
    def propose(self, room: Callable[[], int]) -> Sequence[Cell]:
        """Cells that may start now; asked at the start and after every record.

        room: says how many more runs the executor could use now. More may be proposed, and wait. Only who asks it makes
        the loop open its executor; who was told that there is none is asked again until there is.
        A cell is proposed once, and again only when it was heard of for the last time without being finished.
        """

    @abc.abstractmethod
    def hear(self, record: RunRecord, *, final: bool) -> None:
        """A record of a proposed cell, also one that somebody else made. final: no attempt at the cell follows it."""

    def claimed(self, cell: Cell) -> Claim | None:  # noqa: ARG002 - for those who override
        """The claim that the agenda itself has taken of a proposed cell; the base leaves claiming to the loop."""
        return None

    def hear_rows(self, cell: Cell, rows: Sequence[Mapping[str, Any]]) -> bool:  # noqa: ARG002 - for those who override
        """What a running training logged, the latest last. True stops this run, which ends as interrupted.

        The base lets every run go on.
        """
        return False

    def is_waiting(self) -> bool:
        """Whether it could not say yet what is next, and is to be asked again soon; the base never waits."""
        return False

    def to_come(self) -> int:
        """How many more runs it expects to propose later; for the time left that is told, and nothing else."""
        return 0


class CellList(AbstractAgenda):
    """All cells at once, and nothing depends on what comes of them."""

    def __init__(self, cells: Iterable[Cell]) -> None:
        self._cells: tuple[Cell, ...] = tuple(cells)

    def propose(self, room: Callable[[], int]) -> Sequence[Cell]:  # noqa: ARG002 - what has no room waits
        """All of them, the first time."""
        cells, self._cells = self._cells, ()
        return cells

    def hear(self, record: RunRecord, *, final: bool) -> None:
        """Nothing: a list does not change."""


class Observer:
    """Told what happens, from the thread that carries out the work; the base does nothing."""

    def warned(self, condition: Condition) -> None:
        """Something to know before the first run: whoever hears it may want to stop."""

    def made_before(self, runs: int, some: Sequence[RunRecord]) -> None:
        """So many runs of the study were finished before; some of them, to tell from how long the others may take."""

    def work_planned(self, runs: int) -> None:
        """So many more runs are to come."""

    def environment_told(self, cell: Cell, message: str) -> None:
        """The environment of a run is being made, which may take long: how far that is."""

    def run_started(self, cell: Cell) -> None:
        """A run begins."""

    def rows_logged(self, cell: Cell, rows: Sequence[Mapping[str, Any]]) -> None:
        """A running training logged these rows, the latest last."""

    def run_ended(self, record: RunRecord) -> None:
        """A run ended and its record is durable."""

    def waiting_for(self, cell: Cell, holder: Holder | None) -> None:
        """Nothing is left to do here but cells that others hold; None when the holder cannot be told any more."""

    def waiting_for_room(self) -> None:
        """Nothing runs, and the executor has no room for a run; told once until it has."""

    def work_ended(self) -> None:
        """Nothing is told any more."""


_OBSERVED_BY: Final[list[Callable[[Study], Observer]]] = []


def observe_with(make: Callable[[Study], Observer]) -> None:
    """Work that is given no observer has such a one from now on: a notebook shows what goes on in it."""
    _OBSERVED_BY[:] = [make]


def observer_of(study: Study, given: Observer | None) -> Observer:
    """Who is told of the work on a study: whom it was given, or who looks where nobody was."""
    return given or (_OBSERVED_BY[0](study) if _OBSERVED_BY else Observer())


def row_text(row: Mapping[str, Any]) -> str:
    """One logged row in a few words: its step and its first values."""
    values = row.get("values", {})
    step = row.get("step")
    shown = ", ".join(
        f"{name} {value:.4g}" if isinstance(value, float | int) else f"{name} {value}"
        for name, value in list(values.items())[:4]
    )
    return f"{f'at {step_text(step)}: ' if isinstance(step, float | int) else ''}{shown}"


@dataclass(frozen=True, slots=True, repr=False)
class Outcome:
    """What one call carried out.

    elsewhere: cells whose record was there when their turn came, or when our run of them ended: made by another isorun,
    or earlier. proposed: how many cells there were to do. stopped: why it ended before all of them were done, empty if
    it did not. conditions: what there is to know about the runs, those that were used again included.
    """

    records: tuple[RunRecord, ...]
    elsewhere: int = 0
    stopped: str = ""
    proposed: int = 0
    conditions: tuple[Condition, ...] = ()

    def count(self, state: RunState) -> int:
        """How many of the records ended in this state."""
        return sum(record.state == state for record in self.records)

    def __str__(self) -> str:
        """How many runs ended how in the first line, then what there is to know about them."""
        told = (f"[{item.code}] {item.message}\n  next: {item.next_step}" for item in self.conditions)
        return "\n".join((self.counted, *told))

    @property
    def counted(self) -> str:
        """How many runs ended how, in one line."""
        finished = self.count(RunState.FINISHED)
        failed = len(self.records) - finished
        parts = [f"{finished} finished"] if self.proposed or self.records else ["nothing was missing"]
        parts += [f"{failed} did not finish"] if failed else []
        parts += [f"{self.elsewhere} done by another isorun or earlier"] if self.elsewhere else []
        return ", ".join(parts) + (f"; stopped: {self.stopped}" if self.stopped else "")

    def __repr__(self) -> str:
        """How many ended how; the records are in `records`."""
        return f"<Outcome: {self.counted}>"

    def _repr_html_(self) -> str:
        from isorun.report.designs import outcome_view  # noqa: PLC0415  for notebooks alone

        return outcome_view(self.counted, self.records, self.conditions).html_fragment()


def carry_out(
    agenda: AbstractAgenda,
    session: Session,
    study: Study | Callable[[Cell], Study],
    observer: Observer | None = None,
    *,
    before_first: Callable[[], None] = lambda: None,
    detach: bool = False,
) -> Outcome:
    """Run what the agenda proposes, by the policy of the study, until each cell is done or something stops the work.

    study: that of all cells, or what says it of a cell, where an agenda has cells of several. Ctrl-C, SIGTERM and
    SIGHUP ask the runs to stop and record them as interrupted; the second of them kills the runs.
    Where runs outlive this process (`AbstractExecutor.stays`) they are left as they are instead, and found again.
    before_first: called once, before the first run starts, or in the end where none had to. detach: leave as soon as
    all that can be submitted is.
    """
    observer = observer_of(study, observer) if isinstance(study, Study) else observer or Observer()
    try:
        return _Loop(agenda, session, study, observer, before_first, detach=detach).carry_out()
    finally:
        observer.work_ended()


@dataclass(frozen=True, slots=True)
class _Running:
    job: Job
    claim: Claim

    @property
    def cell(self) -> Cell:
        return self.job.cell


@dataclass(frozen=True, slots=True)
class _StopAsked:
    """A signal that asks for an end."""


class _Loop:
    """The state of one call of `carry_out`."""

    def __init__(
        self,
        agenda: AbstractAgenda,
        session: Session,
        study: Study | Callable[[Cell], Study],
        observer: Observer,
        before_first: Callable[[], None],
        *,
        detach: bool = False,
    ) -> None:
        self._before_first: Callable[[], None] | None = before_first
        self._detach = detach
        self._agenda = agenda
        self._session = session
        self._store = session.store
        self._study_of: Callable[[Cell], Study] = (lambda _: study) if isinstance(study, Study) else study
        self._observer = observer
        self._told: queue.SimpleQueue[Event | _StopAsked] = queue.SimpleQueue()
        self._ready: deque[Cell] = deque()
        # Each with the time from which on another look is worth while; those of a long study are long due at its end.
        self._held: deque[tuple[float, Cell]] = deque()
        self._running: dict[str, _Running] = {}
        self._tries: Counter[str] = Counter()
        self._lost: Counter[str] = Counter()
        self._fallen: Counter[str] = Counter()
        self._refused: Counter[str] = Counter()
        self._not_granted: Counter[str] = Counter()
        self._held_now: dict[str, Holder] = {}
        self._in_queues: list[Cell] = []
        self._holders_until = 0.0
        self._latest_attempts: dict[str, int] = {}
        self._known_holders: dict[str, Holder | None] = {}
        self._checked: set[tuple[str, str, int]] = set()
        self._records: list[RunRecord] = []
        self._conditions: list[Condition] = []
        self._elsewhere = self._proposed = self._signals = 0
        # The agenda wanted to know how much room there is, and there was none for it.
        self._turned_away = False
        self._told_of_no_room = False
        self._closed = self._is_impossible = False
        self._stopped = ""

    def carry_out(self) -> Outcome:
        """The loop itself."""
        with _signals_told_to(self._told.put):
            try:
                self._ask_agenda()
                self._start_runs()
                if self._detach and self._running:
                    self._leave()
                while self._running or (self._is_something_left() and not self._stopped):
                    self._hear(self._next_told())
                    self._start_runs()
                if not self._stopped:
                    self._begin()
            except BaseException:
                self._leave_or_give_up()
                raise
        self._tell_of_queues()
        return Outcome(tuple(self._records), self._elsewhere, self._stopped, self._proposed, tuple(self._conditions))

    def _tell_of_queues(self) -> None:
        """Cells that were left to a cluster, which has their runs: made here as well they would be made twice."""
        if not self._in_queues:
            return
        from isorun.analysis.evidence import Condition, some  # noqa: PLC0415  hardly ever needed

        study = self._study_of(self._in_queues[0])
        are = f"{some(len(self._in_queues), 'run')} of {study.name}"
        message = f"{are} are in a cluster's queue or run there, and were left to it"
        next_step = f"--executor slurm, where they were queued, comes back to them; isorun stop {study.name} ends them"
        self._conditions.append(Condition("in-slurm", message, next_step))
        self._stopped = self._stopped or f"{some(len(self._in_queues), 'cell')} left to a cluster's queue"

    def _is_something_left(self) -> bool:
        return bool(self._ready or self._held or self._turned_away)

    def _ask_agenda(self) -> None:
        self._turned_away = False
        cells = () if self._stopped else self._agenda.propose(self._room)
        if cells:
            self._turned_away = False
            self._refuse_impossible(cells)
            self._ready.extend(cells)
            self._proposed += len(cells)
            self._read_attempts(cells)
            for cell in cells:
                self._tries.pop(cell.id, None)
                for lost in (self._lost, self._fallen):
                    lost.pop(cell.id, None)
            self._observer.work_planned(len(cells) + self._agenda.to_come())
        self._turned_away = self._turned_away or (not self._stopped and self._agenda.is_waiting())

    def _refuse_impossible(self, cells: Sequence[Cell]) -> None:
        """A command that cannot begin is refused before a word on runs of it is said, and before it is kept."""
        asked = {(cell.approach, cell.environment, id(self._study_of(cell))): cell for cell in cells}
        new = asked.keys() - self._checked
        self._checked |= new
        for approach, name, number in sorted(new):
            executor, study = self._session.executor, self._study_of(asked[approach, name, number])
            environment = study.environments[name]
            own = environment if environment.python else replace(environment, python=self._session.python)
            with blaming("executor", executor):
                executor.check_command(study.approaches[approach].command, own, Path(study.folder).resolve())

    def _read_attempts(self, cells: Sequence[Cell]) -> None:
        """Which attempts at these cells are known, so that those of others which follow are told from earlier ones."""
        new = [cell.id for cell in cells if cell.id not in self._latest_attempts]
        with blaming("store", self._store):
            self._latest_attempts |= dict.fromkeys(new, 0) | _latest_attempts(self._store.run_ids(new))

    def _room(self) -> int:
        """How many more runs the executor could use now."""
        room = max(self._capacity() - len(self._running) - len(self._ready), 0)
        # Who proposes nothing because there is no room would hear no record, and so is asked again.
        self._turned_away = self._turned_away or (room == 0 and not self._running and not self._ready)
        return room

    def _capacity(self) -> int:
        executor = self._session.executor
        with blaming("executor", executor):
            return executor.capacity

    def _start_runs(self) -> None:
        while not self._stopped and self._has_room() and (cell := self._next_cell()):
            self._serve(cell)

    def _has_room(self) -> bool:
        """Whether something is left and the executor can use it; it is not even opened where nothing is left."""
        return self._is_something_left() and len(self._running) < self._capacity()

    def _next_cell(self) -> Cell | None:
        if self._ready:
            return self._ready.popleft()
        if self._held and self._held[0][0] <= time.monotonic():
            return self._held.popleft()[1]
        return None

    def _serve(self, cell: Cell) -> None:
        """Start a run of the cell, unless somebody else has it or has done it; or come back to one that goes on."""
        if self._come_back_to(cell):
            return
        with blaming("store", self._store):
            claim = self._agenda.claimed(cell) or self._store.claim(cell.id)
        if claim is None:
            self._look_again(cell)
            return
        try:
            # An attempt that follows the last one known here says that nobody else tried the cell in between.
            expected = self._latest_attempts.get(cell.id, 0) + 1
            by_others = self._done_by_others(cell) if claim.attempt != expected else None
            if by_others is None:
                self._submit(cell, claim)
                return
        except BaseException:
            self._running.pop(f"{cell.id}-{claim.attempt}", None)
            self._release(claim)
            raise
        self._release(claim)
        self._leave_to_others(by_others)

    def _come_back_to(self, cell: Cell) -> bool:
        """Wait for a run of the cell that an earlier isorun submitted and left, as the attempt that it is."""
        executor = self._session.executor
        if not executor.stays:
            return False
        with blaming("executor", executor):
            job = executor.in_flight(cell.id)
        if job is None:
            return False
        with blaming("store", self._store):
            claim = self._store.claim_again(cell.id, job.attempt)
        if claim is None:
            return self._waits_for_holder(cell, job.attempt)
        try:
            self._submit_job(job, claim)
        except BaseException:
            self._free(job.run_id)
            raise
        return True

    def _waits_for_holder(self, cell: Cell, attempt: int) -> bool:
        """Whether a run that goes on is another isorun's now, so that the cell is looked at again.

        Who lets go of it just now leaves it to be taken again; only a run that nobody holds and that cannot be taken
        again either, on several looks, is made anew: a later attempt was claimed, and its holder is gone.
        """
        with blaming("store", self._store):
            recorded = _latest_attempts(self._store.run_ids([cell.id])).get(cell.id, 0)
        if cell.id not in self._holders_now() or self._is_in_a_queue(cell):
            self._not_granted[cell.id] += 1
        if recorded >= attempt or self._not_granted[cell.id] > _LOOKS_BEFORE_ANEW:
            return False
        self._look_again(cell, is_ours=True)
        return True

    def _is_in_a_queue(self, cell: Cell) -> bool:
        """Whether a run of the cell goes on in a cluster's queue without an isorun: nobody hears of its end."""
        holder = self._holders_now().get(cell.id)
        return holder is not None and holder.left

    def _holders_now(self) -> dict[str, Holder]:
        """Who holds which cell; of one moment for all cells that are looked at together."""
        if time.monotonic() >= self._holders_until:
            with blaming("store", self._store):
                self._held_now = {holder.cell_id: holder for holder in self._store.holders()}
            self._holders_until = time.monotonic() + _LOOK_AGAIN_SECONDS / 2
        return self._held_now

    def _begin(self) -> None:
        """What comes before the first run; the executor is open by then."""
        before, self._before_first = self._before_first, None
        if before is not None:
            before()

    def _submit(self, cell: Cell, claim: Claim) -> None:
        seed = secrets.randbelow(2**31) if cell.seed is None else cell.seed
        job = job_of(self._study_of(cell), cell, claim.attempt, seed).with_python(self._session.python)
        self._submit_job(job, claim)

    def _submit_job(self, job: Job, claim: Claim) -> None:
        self._begin()
        self._latest_attempts[job.cell.id] = claim.attempt
        self._running[job.run_id] = _Running(job, claim)
        self._told_of_no_room = False
        executor = self._session.executor
        with blaming("executor", executor):
            executor.submit(job, self._told.put)

    def _look_again(self, cell: Cell, *, is_ours: bool = False) -> None:
        """Come back to a cell that somebody has. is_ours: its run is in the queue of our own executor."""
        by_others = self._done_by_others(cell)
        if by_others is None and not is_ours and self._is_in_a_queue(cell):
            self._in_queues.append(cell)
        elif by_others is None:
            self._held.append((time.monotonic() + _LOOK_AGAIN_SECONDS, cell))
        else:
            self._leave_to_others(by_others)

    def _done_by_others(self, cell: Cell) -> RunRecord | None:
        """The record that leaves nothing to do here: finished, or tried since by another isorun and not interrupted."""
        with blaming("store", self._store):
            found = self._store.records([cell.id])
        for record in reversed(found):
            news = record.attempt > self._latest_attempts.get(cell.id, 0)
            if record.state is RunState.FINISHED or (news and record.state is not RunState.INTERRUPTED):
                return record
        return None

    def _leave_to_others(self, record: RunRecord) -> None:
        self._elsewhere += 1
        self._agenda.hear(record, final=True)
        self._ask_agenda()

    def _next_told(self) -> Event | _StopAsked | None:
        """What is told next; None when it is time to look again at what could not start."""
        if self._closed:  # nothing is told any more: what is not in the queue will never be
            return self._told_before_closing()
        patience = self._patience()
        if patience is not None and not self._running:
            self._tell_what_we_wait_for()
        with suppress(queue.Empty):
            return self._told.get(timeout=patience)
        return None

    def _told_before_closing(self) -> Event | _StopAsked:
        """The rest of what was told, and then what should have been: a run that was killed has a record, too."""
        with suppress(queue.Empty):
            return self._told.get_nowait()
        run_id, running = next(iter(self._running.items()))
        return RunEnded(run_id, _killed(running.job))

    def _patience(self) -> float | None:
        """How long to wait for news before another look: capacity may change, and holders of cells may die."""
        if self._stopped or not self._is_something_left():
            return None
        if self._ready or self._turned_away or not self._has_room():
            return _LOOK_AGAIN_SECONDS
        return max(self._held[0][0] - time.monotonic(), 0.0)

    def _tell_what_we_wait_for(self) -> None:
        if self._has_room():
            self._tell_whom_we_wait_for()
        elif not self._told_of_no_room:
            self._told_of_no_room = True
            self._observer.waiting_for_room()

    def _tell_whom_we_wait_for(self) -> None:
        if not self._held:
            return
        with blaming("store", self._store):
            holders = {holder.cell_id: holder for holder in self._store.holders()}
        for _, cell in self._held:
            holder = holders.get(cell.id)
            if cell.id not in self._known_holders or holder != self._known_holders[cell.id]:
                self._known_holders[cell.id] = holder
                self._observer.waiting_for(cell, holder)

    def _hear(self, told: Event | _StopAsked | None) -> None:
        match told:
            case Preparing(run_id, message) if run_id in self._running:
                self._observer.environment_told(self._running[run_id].cell, message)
            case RunStarted(run_id) if run_id in self._running:
                self._observer.run_started(self._running[run_id].cell)
            case RowsLogged(run_id, rows) if run_id in self._running:
                cell = self._running[run_id].cell
                self._observer.rows_logged(cell, rows)
                if self._agenda.hear_rows(cell, rows):
                    self._stop_run(run_id)
            case RunEnded(run_id, record, lost, halts, with_its_place) if run_id in self._running:
                ended = self._running.pop(run_id)
                if halts:
                    self._halt(halts)
                self._end(ended, record, lost=lost, with_its_place=with_its_place)
            case ExecutorFailed(error, run_id):
                self._free(run_id)
                self._is_impossible = True
                raise error
            case _StopAsked():
                self._signals += 1
                if not self._leave():
                    self._halt(INTERRUPTED)
                    if self._signals > 1:
                        self._kill()
            case None if self._turned_away:
                self._ask_agenda()
            case _:
                pass

    def _end(self, running: _Running, record: RunRecord, *, lost: bool, with_its_place: bool = False) -> None:
        try:
            kept, is_ours = self._keep(record)
        finally:
            self._release(running.claim)
        if kept is None:
            self._held.append((time.monotonic() + _LOOK_AGAIN_SECONDS, running.cell))
            return
        record = kept
        self._observer.run_ended(record)
        if not is_ours:
            self._leave_to_others(record)
            return
        self._records.append(record)
        if lost:
            again = self._tries_lost_again(running.cell, with_its_place=with_its_place)
        else:
            again = self._tries_again(running.cell, record)
        self._agenda.hear(record, final=not again)
        self._ask_agenda()

    def _keep(self, record: RunRecord) -> tuple[RunRecord | None, bool]:
        """Make the record durable; one whose content cannot be kept becomes a failed run, and stops nobody else.

        Where another isorun has made the cell meanwhile its record is the one that counts; False says so. None where
        it has taken the claim over and is still at it.
        """
        try:
            with blaming("store", self._store, but=_CONTENT_ERRORS):
                self._store.finish(record)
        except StoreConflict as conflict:
            return self._record_that_counts(record, conflict), False
        except IsorunError:
            raise  # the store itself is in trouble
        except _CONTENT_ERRORS as error:
            record = _unkeepable(record, error)
            with blaming("store", self._store):
                self._store.finish(record)
        return record, True

    def _record_that_counts(self, record: RunRecord, conflict: StoreConflict) -> RunRecord | None:
        with blaming("store", self._store):
            known = self._store.records([record.cell.id])
            held = {holder.cell_id: holder.attempt for holder in self._store.holders()}
        # An older failure says nothing about what replaced this run: whoever replaced it may be at it, or have died.
        later = [one for one in known if one.attempt >= record.attempt]
        kept = self._done_by_others(record.cell) or (later[-1] if later else None)
        if kept is None and held.get(record.cell.id, 0) <= record.attempt:
            self._refused[record.cell.id] += 1
            if self._refused[record.cell.id] > _LOST_TRIES:
                raise conflict
        message = f"{record.cell.label} was run here too, as {record.run_id}, which is not kept: {conflict.what}"
        from isorun.analysis.evidence import Condition  # noqa: PLC0415  hardly ever needed

        self._conditions.append(Condition("made-elsewhere", message, "isorun report shows the record that counts"))
        return kept

    def _tries_again(self, cell: Cell, record: RunRecord) -> bool:
        if record.state in (RunState.FINISHED, RunState.INTERRUPTED):
            return False
        self._tries[cell.id] += 1
        policy = self._study_of(cell).policy
        if self._tries[cell.id] <= policy.retries:
            self._ready.append(cell)
            return True
        if policy.on_failure == "fail-fast":
            self._halt(f"{cell.label} failed ({record.reason}) and the policy is fail-fast")
        return False

    def _tries_lost_again(self, cell: Cell, *, with_its_place: bool) -> bool:
        """Whether a run whose place lost it is made again; one that somebody stopped meanwhile is not."""
        lost, most = (self._fallen, _LOST_WITH_PLACE_TRIES) if with_its_place else (self._lost, _LOST_TRIES)
        lost[cell.id] += 1
        if self._stopped or lost[cell.id] > most:
            return False
        self._ready.append(cell)
        return True

    def _halt(self, reason: str) -> None:
        self._stopped = self._stopped or reason
        self._stop_runs()

    def _stop_runs(self) -> None:
        """Each by its name: an executor that somebody else opened may have other work, and will be used again."""
        for run_id in tuple(self._running):
            self._stop_run(run_id)

    def _stop_run(self, run_id: str) -> None:
        executor = self._session.executor
        with blaming("executor", executor):
            executor.stop(run_id)

    def _kill(self) -> None:
        """End runs that do not end when asked, where the executor is ours to close; others kill them in their time."""
        if self._running and self._session.owns_executor:
            self._session.close()
            self._closed = True

    def _leave(self) -> bool:
        """Leave runs that go on without this process, free to be come back to; False where none does."""
        executor = self._session.executor
        if not self._running or not executor.stays or not self._session.owns_executor:
            return False
        with blaming("executor", executor):
            staying = set(executor.leave()) & self._running.keys()
        with suppress(queue.Empty):  # what was told before that is recorded now, and not first when somebody comes back
            while True:
                if isinstance(told := self._told.get_nowait(), RunEnded):
                    self._hear(told)
        self._stopped = _left(len(staying & self._running.keys()), len(self._running.keys() - staying))
        for run_id in tuple(self._running):
            if run_id in staying:
                self._leave_claim(self._running.pop(run_id).claim)
            else:
                self._free(run_id)
        return True

    def _leave_or_give_up(self) -> None:
        """After an error: what goes on without this process is left, unless it is what the error is about."""
        with suppress(Exception):
            if not self._is_impossible and self._leave():
                return
        self._give_up()

    def _give_up(self) -> None:
        """After an error: end the runs, keep what they left as far as that is still possible, and free their cells."""
        with suppress(Exception):
            self._stop_runs()
            until = time.monotonic() + _GIVE_UP_SECONDS
            while self._running and (left := until - time.monotonic()) > 0:
                told = self._told.get(timeout=left)
                if isinstance(told, RunEnded):
                    with suppress(Exception):
                        self._keep(told.record)
                if isinstance(told, RunEnded | ExecutorFailed):
                    self._free(told.run_id)
        for run_id, running in tuple(self._running.items()):
            with suppress(Exception):
                self._keep(_killed(running.job))
            with suppress(Exception):
                self._free(run_id)

    def _free(self, run_id: str) -> None:
        running = self._running.pop(run_id, None)
        if running is not None:
            self._release(running.claim)

    def _leave_claim(self, claim: Claim) -> None:
        with blaming("store", self._store):
            claim.leave()

    def _release(self, claim: Claim) -> None:
        with blaming("store", self._store):
            claim.release()


def _left(staying: int, unsure: int) -> str:
    """What `Outcome.stopped` says of runs that were left. unsure: those that may not be in the queue."""
    runs = "1 run goes" if staying == 1 else f"{staying} runs go"
    told = f"{LEFT}, and {runs} on without isorun"
    if not unsure:
        return told
    more = "1 more is" if unsure == 1 else f"{unsure} more are"
    return f"{told}; {more} not known to be queued: the same command finds or queues them"


def _killed(job: Job) -> RunRecord:
    """The record of a run whose end nobody told."""
    from isorun.execution.assemble import lost_record  # noqa: PLC0415  hardly ever needed

    reason = "killed with its executor, or left behind by it, before its end was known"
    return lost_record(job, reason, state=RunState.INTERRUPTED)


def _unkeepable(record: RunRecord, error: Exception) -> RunRecord:
    """What can be kept of any record: none of the numbers that may be the trouble."""
    what = f"what the run left cannot be kept ({type(error).__name__}: {error})"[:300]
    return RunRecord(
        cell=record.cell,
        attempt=record.attempt,
        state=RunState.FAILED,
        exit_code=None,
        signal="",
        reason=what,
        launch=str(record.launch),
        seed_used=record.seed_used,
        started_at=str(record.started_at),
        wall_seconds=0.0,
        cpu_seconds=0.0,
        peak_memory_bytes=0,
        notes=(Note("record-not-kept", what),),
    )


def _latest_attempts(run_ids: Iterable[str]) -> dict[str, int]:
    latest: dict[str, int] = {}
    for run_id in run_ids:
        cell_id, _, attempt = run_id.rpartition("-")
        if attempt.isdecimal():
            latest[cell_id] = max(latest.get(cell_id, 0), int(attempt))
    return latest


@contextmanager
def _signals_told_to(tell: Callable[[_StopAsked], None]) -> Iterator[None]:
    """While the work goes on, signals that ask for an end only say so: a run is recorded before this process ends.

    One that is ignored (nohup) stays ignored. From the third on Ctrl-C is what it always is, in case we are stuck.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    asked = 0

    def ask(*_: object) -> None:
        nonlocal asked
        asked += 1
        if asked > 2:
            raise KeyboardInterrupt
        tell(_StopAsked())

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in numbers}
    taken = [number for number in numbers if before[number] not in (signal.SIG_IGN, None)]
    for number in taken:
        signal.signal(number, ask)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, before[number])
