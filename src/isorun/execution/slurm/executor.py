"""Submitting, watching, stopping, leaving: one thread asks SLURM and looks at the folders of the runs."""

from __future__ import annotations

import re
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from isorun.environments.interpreter import check_command
from isorun.errors import ExecutionError
from isorun.execution import AbstractExecutor, Event, ExecutorFailed, Job, Preparing, Resources, RunEnded, Tell
from isorun.execution.assemble import STOPPED, lost_record
from isorun.execution.slurm.commands import (
    AccountingSilent,
    ArrayElement,
    ControllerSilent,
    JobEnd,
    QueueFull,
    Slurm,
    SubmissionRefused,
)
from isorun.execution.slurm.endings import HELD_FOR_GOOD, OVER, Left, ending
from isorun.execution.slurm.entries import AwaitedRun, with_reason
from isorun.execution.slurm.ledger import RECORD, Ledger, Submission, is_live, latest_begin
from isorun.execution.slurm.settings import settings_of
from isorun.execution.slurm.submitting import Submitter
from isorun.study import Environment
from isorun.study.records import RunRecord, RunState

__all__ = ["SlurmExecutor"]

_NO_CLUSTER: Final = re.compile(
    r"establish a configuration source|(?:unable to|can't|could not) (?:open|find|read) .*slurm\.conf", re.I
)
"""What SLURM's commands say where nobody told them of a cluster."""
_GATHER_SECONDS: Final = 0.3
"""How long after a job more of them are waited for: they become one array."""
_GATHER_MOST_SECONDS: Final = 3.0
_LOOK_SECONDS: Final = 1.0
_ASK_SECONDS: Final = 3.0
_ASK_BY_TIME: Final = 20
"""So many times as long as squeue took is waited until it is asked again: a busy controller is left in peace."""
_ASK_MOST_SECONDS: Final = 60.0
_GONE_SECONDS: Final = 6.0
"""How long squeue must not know an element before it counts as gone: a job on its way is not there yet."""
_SETTLE_SECONDS: Final = 2.0
_VISIBLE_SECONDS: Final = 15.0
"""How long a record may take to be seen from here that its element says it wrote."""
_FULL_SECONDS: Final = 30.0
_SILENT_SECONDS: Final = 60.0
_CLOSE_SECONDS: Final = 90.0
_CANCEL_AGAIN_SECONDS: Final = 15.0
_STOP: Final = "stop"


class SlurmExecutor(AbstractExecutor):
    """Carries out jobs on a SLURM cluster that this machine can submit to.

    runs: where the folders of runs lie, which every node must see. settings, url: what was asked of the cluster
    (`SlurmSettings`). jobs: runs at a time; None where nobody said, and the queue decides.
    """

    stays = True

    def __init__(
        self, runs: Path, settings: Mapping[str, str] | None = None, *, url: str = "", jobs: int | None = None
    ) -> None:
        self._settings = settings_of(settings or {}, url, jobs)
        self._slurm = Slurm()
        try:
            self._partitions = self._slurm.partitions()
            self._largest_array = self._array_that_fits = self._slurm.largest_array()
        except ControllerSilent as silence:
            if _NO_CLUSTER.search(str(silence)):
                raise ExecutionError(
                    "SLURM's commands are here, and belong to no cluster",
                    found=str(silence),
                    hint="isorun run … on a login node of the cluster, or SLURM_CONF=/path/to/slurm.conf before it",
                ) from None
            raise ExecutionError(
                "SLURM's controller does not answer",
                found=str(silence),
                hint="scontrol ping says whether it is up; what was submitted stays, and is found again later",
            ) from None
        self._settings.check(self._partitions)
        self.capacity = self._settings.at_once
        self._ledger = Ledger(runs)
        self._ledger.sweep()
        self._submitter = Submitter(self._slurm, self._settings, self._ledger)
        self._entries: dict[str, AwaitedRun] = {}
        self._waiting: list[AwaitedRun] = []
        self._some_started = self._all_stopped = self._leaving = self._closed = False
        self._ask_at = self._submit_at = self._silent_at = 0.0
        self._silent_since: float | None = None
        self._told_silence = False
        self._troubles: list[Exception] = []
        # A signal handler calls `stop` in the thread that may hold it just then.
        self._changed = threading.Condition(threading.RLock())
        self._thread: threading.Thread | None = None

    def check(self, environment: Environment) -> None:
        """Refuse what no node of the partition has."""
        needs = Resources(environment.threads, environment.devices_per_run, environment.memory_bytes)
        self._settings.check_run(needs, self._partitions)

    def check_command(self, command: Sequence[str], environment: Environment, working_folder: Path) -> None:
        """Refuse a program that is not there; with a prelude only the nodes know that."""
        if not self._settings.prelude:
            check_command(command, environment, working_folder)

    def in_flight(self, cell_id: str) -> Job | None:
        """The run of this cell that is queued, running, or ended while nobody waited for it."""
        found = self._latest_of(cell_id)
        if found is None:
            return None
        try:
            return found[0].place(found[1]).job()
        except (OSError, ValueError, ExecutionError):
            return None

    def _latest_of(self, cell_id: str) -> tuple[Submission, int] | None:
        known = self._ledger.of_cell(cell_id)
        return next((found for found in known if is_live(found[0].place(found[1]))), None)

    def submit(self, job: Job, tell: Tell) -> None:
        """Queue the job with those that follow at once; one that is in flight already is waited for, not made again."""
        entry = AwaitedRun(replace(job, executor="slurm"), tell, time.monotonic())
        known = self._latest_of(job.cell.id)
        with self._changed:
            self._entries[job.run_id] = entry
            if known is not None and known[0].runs[known[1]] == job.run_id:
                entry.submission, entry.index = known
                entry.stop_known = _STOP in entry.place.names()
                self._ask_at = 0.0
            else:
                if known is not None:
                    self._fence(known[0], known[1], "a later attempt was made")
                self._waiting.append(entry)
                self._submit_at = min(entry.since + _GATHER_SECONDS, self._waiting[0].since + _GATHER_MOST_SECONDS)
            entry.stop_asked = self._all_stopped
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="slurm", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def stop(self, run_id: str | None = None) -> None:
        """End one run, or all and submit no more."""
        with self._changed:
            self._all_stopped = self._all_stopped or run_id is None
            for name, entry in self._entries.items():
                if run_id in (None, name):
                    entry.stop_asked = True
            self._changed.notify_all()

    def cancel(self, run_id: str) -> None:
        """Have a run end that another process waits for, which is told so, records its end, and ends its work."""
        for submission, index in self._ledger.of_cell(run_id.rpartition("-")[0]):
            if submission.runs[index] == run_id:
                submission.place(index).mark(_STOP)
                if submission.number:
                    with suppress(ControllerSilent):
                        self._slurm.cancel([f"{submission.number}_{index}"])

    def leave(self) -> tuple[str, ...]:
        """Submit what still waits to be, and go: what is queued or running goes on. The runs that do for certain.

        A run that SLURM did not take yet, or did not answer for, is not among them; who comes back finds or submits it.
        """
        with self._changed:
            self._leaving = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(_CLOSE_SECONDS)
        with self._changed:
            staying = tuple(run_id for run_id, entry in self._entries.items() if entry.number and not entry.fenced)
            self._closed = True
            self._entries.clear()
            self._changed.notify_all()
        return staying

    def close(self) -> None:
        """End everything that somebody waits for here; who has left has ended nothing."""
        with self._changed:
            if self._closed and not self._entries:
                return
        self.stop()
        until = time.monotonic() + _CLOSE_SECONDS
        with self._changed:
            while self._entries and self._is_at_work() and time.monotonic() < until:
                self._changed.wait(0.5)
            self._closed = True
            left = list(self._entries.values())
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(_CLOSE_SECONDS)
        for entry in left:
            reason = "stopped on request; SLURM has not told its end"
            self._end(entry, lost_record(entry.job, reason, state=RunState.INTERRUPTED))

    def _is_at_work(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _work(self) -> None:
        while self._pause():
            self._step()

    def _pause(self) -> bool:
        """Wait until there is something to do; False when there will be nothing any more."""
        with self._changed:
            if self._closed or (self._leaving and not self._waiting):
                return False
            if self._leaving:
                self._changed.wait(0.05 if self._silent_since is None else _LOOK_SECONDS)
            else:
                now = time.monotonic()
                soon = [self._submit_at] if self._waiting else []
                self._changed.wait(max(min([now + _LOOK_SECONDS, *soon]) - now, 0.01))
            return not self._closed

    def _step(self) -> None:
        self._troubles.clear()
        with self._changed:
            entries = list(self._entries.values())
        self._attempt(self._stop_asked, [entry for entry in entries if entry.stop_asked])
        self._attempt(self._submit_gathered)
        for entry in entries:
            if entry.submission is not None and entry.may_have_begun:
                self._attempt(self._look_at, entry)
        is_asked = bool(entries) and time.monotonic() >= self._ask_at
        if is_asked:
            self._attempt(self._ask)
        if self._troubles:
            self._bear(self._troubles[0])
        elif is_asked and time.monotonic() - self._silent_at > 2 * _ASK_SECONDS:
            self._silent_since, self._told_silence = None, False

    def _attempt(self, act: Callable[..., None], *arguments: object) -> bool:
        """One part of a step: what goes wrong in it ends no run, and keeps other parts from nothing.

        False where SLURM's controller does not answer, so that there is no use in asking it more.
        """
        try:
            act(*arguments)
        except Exception as trouble:
            self._troubles.append(trouble)
            return isinstance(trouble, AccountingSilent) or not isinstance(trouble, ControllerSilent)
        return True

    def _bear(self, trouble: Exception) -> None:
        """The controller is away, or a file cannot be read: runs go on, and all is tried again; a long time is told."""
        now = time.monotonic()
        self._silent_since, self._silent_at = self._silent_since or now, now
        with self._changed:
            some = next(iter(self._entries.values()), None)
        if some is not None and not self._told_silence and now - self._silent_since > _SILENT_SECONDS:
            self._told_silence = True
            who = "accounting" if isinstance(trouble, AccountingSilent) else "controller"
            away = f"SLURM's {who} has not answered for a minute ({trouble})"
            if not isinstance(trouble, ControllerSilent):
                away = f"SLURM's runs could not be watched for a minute ({type(trouble).__name__}: {trouble})"
            some.tell(Preparing(some.job.run_id, f"{away}; what SLURM has stays, and is waited for"))

    # submitting

    def _submit_gathered(self) -> None:
        with self._changed:
            if not self._waiting or (time.monotonic() < self._submit_at and not self._leaving):
                return
            alike = [one for one in self._waiting if one.job.resources == self._waiting[0].job.resources]
            some = alike[: self._array_that_fits]
        try:
            submission = self._submitter.submitted([entry.job for entry in some])
        except QueueFull as full:
            self._wait_for_the_queue(some, full)
            return
        except SubmissionRefused as refused:
            with self._changed:
                self._waiting = []
            error = ExecutionError("SLURM refuses the runs", found=str(refused), hint="sinfo, and sacctmgr show assoc")
            self._end_with(some[0], ExecutorFailed(error, some[0].job.run_id))
            return
        except Exception:  # a full disk, a file server that is away: tried again
            self._submit_at = time.monotonic() + _ASK_SECONDS
            raise
        self._taken(some, submission)

    def _taken(self, some: Sequence[AwaitedRun], submission: Submission) -> None:
        now = time.monotonic()
        self._array_that_fits = min(2 * self._array_that_fits, self._largest_array)  # the queue is not full for ever
        with self._changed:
            for index, entry in enumerate(some):
                entry.submission, entry.index, entry.since, entry.state = submission, index, now, ""
                entry.absent_since = None
                self._waiting.remove(entry)
            self._ask_at = now + _LOOK_SECONDS
        if submission.number:
            runs = f"{len(some)} runs" if len(some) > 1 else "1 run"
            some[0].tell(Preparing(some[0].job.run_id, f"{runs} queued in SLURM as job {submission.number}"))

    def _wait_for_the_queue(self, some: Sequence[AwaitedRun], full: QueueFull) -> None:
        """As many as may be queued are; the others wait until some have ended."""
        if len(some) > 1:
            self._array_that_fits = len(some) // 2
            return
        if self._leaving:  # whoever comes back submits them
            with self._changed:
                self._waiting = []
            return
        self._submit_at = time.monotonic() + _FULL_SECONDS
        message = f"waiting: SLURM takes no more jobs of this user now ({full})"
        some[0].tell(Preparing(some[0].job.run_id, message))

    # stopping

    def _stop_asked(self, entries: Iterable[AwaitedRun]) -> None:
        now, numbers = time.monotonic(), []
        for entry in entries:
            if entry.submission is None:
                with self._changed:
                    if entry in self._waiting:
                        self._waiting.remove(entry)
                self._end(entry, lost_record(entry.job, STOPPED, state=RunState.INTERRUPTED))
                continue
            if not entry.fenced:
                entry.fenced = True
                entry.place.mark("fenced", STOPPED)
            if entry.number and now - entry.cancelled_at > _CANCEL_AGAIN_SECONDS:
                entry.cancelled_at = now
                numbers.append(entry.number)
        if numbers:
            self._ask_at = min(self._ask_at, now + _LOOK_SECONDS)
            self._slurm.cancel(numbers)

    def _fence(self, submission: Submission, index: int, why: str) -> None:
        """Let a run that nobody waits for any more end by itself, and ask SLURM to end it."""
        submission.place(index).mark("fenced", why)
        submission.place(index).forget_secrets()
        submission.forget_environment_if_over()
        if submission.number:
            with suppress(ControllerSilent):
                self._slurm.cancel([f"{submission.number}_{index}"])

    # watching

    def _look_at(self, entry: AwaitedRun) -> None:
        """What the run left in its folder since the last look."""
        names = entry.place.names()
        if _STOP in names and not entry.stop_known:
            entry.stop_known = entry.stop_asked = True
            entry.halts = "isorun stop"
        for event in entry.tail.new(entry.place, entry.job.run_id, names):
            self._some_started = True
            entry.tell(event)
        record = entry.place.record() if RECORD in names else None
        self._some_started = self._some_started or record is not None
        if record is not None and not self._waits_for_a_reason(entry, record):
            self._end(entry, with_reason(record, entry))
        elif record is None and entry.stop_asked and f"ended-{latest_begin(names)}" in names:
            self._end_by(entry, JobEnd("CANCELLED"))

    def _waits_for_a_reason(self, entry: AwaitedRun, record: RunRecord) -> bool:
        """Whether SLURM may still say why the training was killed: it tells that when the whole job has ended."""
        if record.signal != "SIGKILL" or record.state is not RunState.FAILED or entry.state in OVER:
            return False
        entry.killed_since = entry.killed_since or time.monotonic()
        return time.monotonic() - entry.killed_since < _VISIBLE_SECONDS

    def _ask(self) -> None:
        """How SLURM says that all runs stand, in one question."""
        began = time.monotonic()
        try:
            found = {(one.name, one.index): one for one in self._slurm.elements()}
        finally:
            now = time.monotonic()
            self._ask_at = now + _ASK_SECONDS
        self._ask_at = now + min(max(_ASK_SECONDS, _ASK_BY_TIME * (now - began)), _ASK_MOST_SECONDS)
        with self._changed:
            entries = [entry for entry in self._entries.values() if entry.submission is not None]
        for entry in entries:
            assert entry.submission is not None
            if not self._attempt(self._hear, entry, found.get((entry.submission.name, entry.index))):
                return

    def _hear(self, entry: AwaitedRun, element: ArrayElement | None) -> None:
        assert entry.submission is not None
        now = time.monotonic()
        if element is None:
            entry.absent_since = entry.absent_since or now
            if now - entry.absent_since > _GONE_SECONDS:
                self._gone(entry)
            return
        entry.absent_since = None
        if not entry.submission.number:
            entry.submission.queued(element.job)
        if element.state == "PENDING" and entry.state in {"RUNNING", "COMPLETING"}:
            message = f"SLURM put {entry.number} back into the queue ({element.reason}): its node was lost or needed"
            entry.tell(Preparing(entry.job.run_id, message))
        entry.state, entry.node, entry.reason = element.state, element.node, element.reason
        if element.state == "PENDING" and element.reason.strip("()") in HELD_FOR_GOOD:
            self._give_up(entry, element)
        elif element.state in OVER:
            entry.over_since = entry.over_since or now
            wait = _VISIBLE_SECONDS if element.state == "COMPLETED" and not entry.stop_asked else _SETTLE_SECONDS
            self._look_at(entry)
            if self._is_open(entry) and now - entry.over_since >= wait:
                end = JobEnd(element.state)
                with suppress(AccountingSilent):  # squeue has said how it ended, though not why
                    end = self._slurm.end_of(entry.number, entry.submission.name) or end
                if end.state in OVER:
                    self._end_by(entry, end)
                else:  # put back into the queue between the two questions
                    entry.over_since = None
        else:
            entry.over_since = None

    def _gone(self, entry: AwaitedRun) -> None:
        """SLURM does not know it: it ended long ago, was never queued, or the controller lost it."""
        assert entry.submission is not None
        self._look_at(entry)
        if not self._is_open(entry):
            return
        end = self._slurm.end_of(entry.number, entry.submission.name) if entry.number else None
        if end is not None and end.state not in OVER:
            return
        entry.place.mark("fenced", "SLURM does not know it")
        entry.fenced = True
        began = latest_begin(entry.place.names()) >= 0
        if end is None and not began and not entry.stop_asked:
            # It never began and never will: it is submitted anew, and is still the same attempt.
            entry.place.forget_secrets()
            entry.submission.forget_environment_if_over()
            with self._changed:
                entry.submission, entry.fenced, entry.absent_since = None, False, None
                self._waiting.append(entry)
                self._submit_at = time.monotonic() + _GATHER_SECONDS
            return
        self._end_by(entry, end)

    def _give_up(self, entry: AwaitedRun, element: ArrayElement) -> None:
        entry.place.mark("fenced", element.reason)
        self._slurm.cancel([element.number])
        self._end_by(entry, JobEnd("LAUNCH_FAILED", node=element.node, reason=element.reason))

    # ending

    def _end_by(self, entry: AwaitedRun, end: JobEnd | None) -> None:
        """Tell the end of a run that left no record."""
        assert entry.submission is not None
        place = entry.place
        began = latest_begin(place.names()) >= 0
        left = Left(began, place.stopped_record(), place.failure(), entry.submission.log_of(entry.index))
        told = ending(entry.job, end, left, stop_asked=entry.stop_asked)
        place.mark("over", end.state if end else "")
        record = place.record()
        if record is not None:  # left while SLURM was asked: it is the end, and is found again by who comes back
            place.unmark("over")
            self._end(entry, with_reason(record, entry))
            return
        if told.error is not None and not self._some_started:
            self._end_with(entry, ExecutorFailed(told.error, entry.job.run_id))
            return
        if told.error is not None and end is not None and end.node:
            self._submitter.bad_nodes.add(end.node)
        assert told.record is not None
        self._end(entry, told.record, lost=told.lost, with_its_place=told.with_its_place)

    def _end(self, entry: AwaitedRun, record: RunRecord, *, lost: bool = False, with_its_place: bool = False) -> None:
        if entry.number:
            record = replace(record, where={**record.where, "executor": "slurm", "job": entry.number})
        self._end_with(entry, RunEnded(entry.job.run_id, record, lost, entry.halts, with_its_place))

    def _end_with(self, entry: AwaitedRun, event: Event) -> None:
        with self._changed:
            if not self._is_open(entry):
                return
            del self._entries[entry.job.run_id]
            last = not any(other.submission is entry.submission for other in self._entries.values())
        try:
            if entry.submission is not None:
                self._tidy(entry, entry.submission, is_last=last)
        finally:
            entry.tell(event)
            with self._changed:
                self._changed.notify_all()

    def _tidy(self, entry: AwaitedRun, submission: Submission, *, is_last: bool) -> None:
        if entry.state == "PENDING" and entry.number:  # SLURM would begin again what has ended, or holds it
            with suppress(ControllerSilent):
                self._slurm.cancel([entry.number])
        self._keep_log(entry)
        entry.place.forget_secrets()
        if is_last:
            submission.forget_environment_if_over()

    def _keep_log(self, entry: AwaitedRun) -> None:
        """What the element itself printed goes into the run's folder, where there is one."""
        assert entry.submission is not None
        log = entry.submission.folder / f"log-{entry.index}.txt"
        folder = self._ledger.folder.parent / entry.job.run_id
        with suppress(OSError):
            if log.stat().st_size and folder.is_dir():
                shutil.copyfile(log, folder / "slurm.log")

    def _is_open(self, entry: AwaitedRun) -> bool:
        return self._entries.get(entry.job.run_id) is entry
