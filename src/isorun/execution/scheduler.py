"""The scheduler: carries out the cells of a study that are still missing.

It knows neither a store nor a kind of executor: it is handed what claims a cell, what carries out a job, and what
makes a record durable. Several schedulers may work on one study at once; a cell that another one holds is left to it
and looked at again at the end, in case its holder died.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from isorun.execution.base import AbstractExecutor, Event, ExecutorFailed, Job, RunEnded
from isorun.study.cells import Cell
from isorun.study.parts import Policy
from isorun.study.records import RunRecord, RunState

__all__ = ["Desk", "Observer", "Outcome", "Scheduler"]

_LOOK_AGAIN_SECONDS = 0.5


class Ticket(Protocol):
    """The right to carry out one cell."""

    def release(self) -> None:
        """Give the right back."""


class Desk(Protocol):
    """What a scheduler needs from the store: rights, jobs, and a place for records."""

    def claim(self, cell: Cell) -> Ticket | None:
        """The right to carry out the cell; None when it is done, or somebody else has the right now."""

    def is_done(self, cell: Cell) -> bool:
        """Whether nobody needs to carry out the cell any more (finished, or tried by another scheduler)."""

    def job(self, cell: Cell, ticket: Ticket) -> Job:
        """What to carry out."""

    def keep(self, record: RunRecord) -> None:
        """Make the record durable."""


class Observer:
    """Told what happens, from the scheduler's threads; the base does nothing."""

    def work_planned(self, runs: int) -> None:
        """So many runs are to come."""

    def run_started(self, cell: Cell) -> None:
        """A run begins."""

    def run_ended(self, record: RunRecord) -> None:
        """A run ended and its record is durable."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one call carried out. stopped: why it ended before all cells were done, empty if it did not."""

    records: tuple[RunRecord, ...]
    elsewhere: int = 0
    stopped: str = ""

    def count(self, state: RunState) -> int:
        """How many of the records ended in this state."""
        return sum(record.state == state for record in self.records)


@dataclass
class Scheduler:
    """Carries out cells with as many threads as the executor has slots."""

    executor: AbstractExecutor
    desk: Desk
    policy: Policy
    observer: Observer = field(default_factory=Observer)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)
    _stop: threading.Event = field(default_factory=threading.Event, init=False)
    _all_ended: threading.Event = field(default_factory=threading.Event, init=False)

    def carry_out(self, cells: Sequence[Cell]) -> Outcome:
        """Run the cells; return when each is done here or elsewhere, or something stopped the work."""
        self.observer.work_planned(len(cells))
        self._pending = deque(cells)
        # Each with the time from which on another look is worth while; those of a long study are long due at its end.
        self._held_elsewhere: deque[tuple[float, Cell]] = deque()
        self._records: list[RunRecord] = []
        self._elsewhere = 0
        self._failure: BaseException | None = None
        self._reason = ""
        self._watch([threading.Thread(target=self._work, name=f"slot-{n}") for n in range(self.executor.capacity)])
        if self._failure is not None:
            raise self._failure
        return Outcome(tuple(self._records), self._elsewhere, self._reason)

    def _watch(self, threads: list[threading.Thread]) -> None:
        """Wait for all threads; the first Ctrl-C asks the runs to stop, a second one kills them.

        Waiting is done on an event of our own: a Ctrl-C inside Thread.join makes Python 3.11 take a living thread
        for an ended one.
        """
        self._active = len(threads)
        for thread in threads:
            thread.start()
        while not self._all_ended.is_set():
            try:
                self._all_ended.wait(0.2)
            except KeyboardInterrupt:
                if self._stop.is_set():
                    self.executor.close()
                self._halt("interrupted")

    def _work(self) -> None:
        try:
            while not self._stop.is_set() and (cell := self._next()):
                self._serve(cell)
        except BaseException as error:
            self._failure = self._failure or error
            self._halt("error")
        finally:
            self._leave()

    def _leave(self) -> None:
        with self._lock:
            self._active -= 1
            if self._active == 0:
                self._all_ended.set()

    def _next(self) -> Cell | None:
        with self._lock:
            if self._pending:
                return self._pending.popleft()
            if not self._held_elsewhere:
                return None
            due, waiting = self._held_elsewhere.popleft()
        stopped = self._stop.wait(max(due - time.monotonic(), 0.0))
        return None if stopped else waiting

    def _serve(self, cell: Cell) -> None:
        ticket = self.desk.claim(cell)
        if ticket is None:
            self._look_again(cell)
            return
        try:
            record = self._run(cell, ticket)
        finally:
            ticket.release()
        self._judge(cell, record)

    def _run(self, cell: Cell, ticket: Ticket) -> RunRecord:
        job = self.desk.job(cell, ticket)
        self.observer.run_started(cell)
        record = _execute(self.executor, job)
        self.desk.keep(record)
        with self._lock:
            self._records.append(record)
        self.observer.run_ended(record)
        return record

    def _judge(self, cell: Cell, record: RunRecord) -> None:
        if record.state in (RunState.FINISHED, RunState.INTERRUPTED):
            return
        with self._lock:
            tries = sum(item.cell.id == cell.id for item in self._records)
            if tries <= self.policy.retries:
                self._pending.append(cell)
                return
        if self.policy.on_failure == "fail-fast":
            self._halt(f"{cell.label} failed ({record.reason}) and the policy is fail-fast")

    def _look_again(self, cell: Cell) -> None:
        if self.desk.is_done(cell):
            self._count_elsewhere()
            return
        with self._lock:
            self._held_elsewhere.append((time.monotonic() + _LOOK_AGAIN_SECONDS, cell))

    def _count_elsewhere(self) -> None:
        with self._lock:
            self._elsewhere += 1

    def _halt(self, reason: str) -> None:
        self._reason = self._reason or reason
        self._stop.set()
        self.executor.stop()


def _execute(executor: AbstractExecutor, job: Job) -> RunRecord:
    events: queue.Queue[Event] = queue.Queue()
    executor.submit(job, events.put)
    while True:
        event = events.get()
        if isinstance(event, ExecutorFailed):
            raise event.error
        if isinstance(event, RunEnded):
            return event.record
