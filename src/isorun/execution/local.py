"""The local executor: every run is a process of its own on this machine, pinned to its own CPUs."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from isorun.errors import ExecutionError, IsorunError, known_names
from isorun.execution.assemble import Ended, assemble
from isorun.execution.base import AbstractExecutor, ExecutorFailed, Job, RunEnded, Tell
from isorun.execution.codeversions import CodeVersions, with_script
from isorun.execution.events import EventLog
from isorun.execution.interpreter import Interpreters
from isorun.execution.launch import LAUNCH_MODES, Launcher
from isorun.execution.masking import Mask
from isorun.execution.output import BoundedLog, LineSplitter, Output, readable_tail
from isorun.execution.plan import Plan, plan
from isorun.execution.process import GRACE_SECONDS, Exit
from isorun.execution.runfolder import read_run_folder
from isorun.execution.slots import Slots
from isorun.execution.strays import Marks, end_strays
from isorun.execution.watch import Running, watch
from isorun.sources import Found, Reading
from isorun.study.records import Note, RunRecord
from isorun.worker.redaction import secret_values

__all__ = ["LocalExecutor"]

_NEVER_STARTED: Final = Exit(None, "", 0.0, 0.0, 0)


class LocalExecutor(AbstractExecutor):
    """Carries out jobs on this machine.

    runs: where run folders are made. jobs: how many runs at once; the
    CPUs are divided among them. launch: "fresh" starts a new interpreter for each
    run (the reference), "warm" forks one that has imported the frameworks, "auto" is warm where that changes nothing.
    grace_seconds: how long a run may take to end after it was asked to.
    """

    def __init__(
        self, runs: Path, jobs: int = 1, *, launch: str = "auto", grace_seconds: float = GRACE_SECONDS
    ) -> None:
        if launch not in LAUNCH_MODES:
            raise ExecutionError(f"unknown launch mode {launch!r}", allowed=known_names(launch, LAUNCH_MODES))
        self.capacity = jobs
        self._runs = runs
        self._slots = Slots(jobs)
        self._pool = ThreadPoolExecutor(jobs, thread_name_prefix="slot")
        self._interpreters = Interpreters()
        self._launcher = Launcher(launch, grace_seconds)
        self._code_versions = CodeVersions()
        self._running: dict[str, Running] = {}
        self._open: set[str] = set()
        self._stopped: set[str] = set()
        self._lock = threading.Lock()
        self._stopping = False

    def submit(self, job: Job, tell: Tell) -> None:
        """Run the job when a slot is free."""
        with self._lock:
            self._open.add(job.run_id)
        self._pool.submit(self._execute, job, tell)

    def _execute(self, job: Job, tell: Tell) -> None:
        try:
            tell(RunEnded(job.run_id, self._record(job)))
        except IsorunError as error:
            tell(ExecutorFailed(error, job.run_id))
        except Exception as error:  # whatever it is, the one who waits for the job must hear of it
            what = f"the run {job.run_id} could not be carried out"
            tell(ExecutorFailed(ExecutionError(what, found=f"{type(error).__name__}: {error}"), job.run_id))

    def _record(self, job: Job) -> RunRecord:
        folder = self._runs / job.run_id
        folder.mkdir(parents=True, exist_ok=True)
        with self._slots.lend(job.resources.cpus) as cpus:
            planned = plan(job, folder, cpus, self._interpreters)
            return assemble(_not_started(planned) if self._is_stopped(job) else self._carry_out(planned))

    def _carry_out(self, planned: Plan) -> Ended:
        job = planned.job
        reading = Reading(job.sources)
        lines = LineSplitter(reading.feed)
        log = BoundedLog(planned.folder / "output.log")
        output = Output(log, lines, Mask(secret_values(planned.env)))
        code = self._code_versions.ask(job.working_folder)
        try:
            began_unix = time.time()
            launched = self._launcher.start(planned)
            with self._registered(job, launched.running):
                watched = watch(launched.running, output, job.time_limit_seconds)
                asked_to_stop = self._is_stopped(job)
            if not watched.exit.kept:
                end_strays(Marks(planned.folder))
        finally:
            log.close()
        events = read_run_folder(planned.folder)
        written, printed = reading.finish(job.working_folder, began_unix)
        return Ended(
            job=job,
            launch=launched.mode,
            began_unix=began_unix,
            exit=watched.exit,
            timed_out=watched.timed_out,
            asked_to_stop=asked_to_stop,
            events=events,
            lines=printed,
            files=written,
            log_tail=readable_tail(log.end()),
            requested=planned.requested(),
            code=with_script(code.result(), events.effective),
            notes=(*launched.notes, *_output_notes(log, lines)),
        )

    @contextmanager
    def _registered(self, job: Job, running: Running) -> Iterator[None]:
        """While a run is registered, `stop` reaches it; afterwards nothing of it is left."""
        with self._lock:
            self._running[job.run_id] = running
            if self._is_stopped(job):
                running.ask_to_stop()
        try:
            yield
        finally:
            with self._lock:
                del self._running[job.run_id]
            running.close()

    def stop(self, run_id: str | None = None) -> None:
        """End one run, or those in progress and start none any more."""
        with self._lock:
            self._stopping = self._stopping or run_id is None
            self._stopped |= {run_id} & self._open if run_id else set()
            for name, running in self._running.items():
                if run_id in (None, name):
                    running.ask_to_stop()

    def _is_stopped(self, job: Job) -> bool:
        return self._stopping or job.run_id in self._stopped

    def close(self) -> None:
        """End everything this executor started."""
        with self._lock:
            self._stopping = True
            for running in self._running.values():
                running.kill()
        self._pool.shutdown()
        self._launcher.close()
        self._code_versions.close()


def _not_started(planned: Plan) -> Ended:
    return Ended(
        job=planned.job,
        launch="none",
        began_unix=time.time(),
        exit=_NEVER_STARTED,
        timed_out=False,
        asked_to_stop=True,
        events=EventLog(),
        lines=Found(),
        files=Found(),
        log_tail="",
        requested=planned.requested(),
    )


def _output_notes(log: BoundedLog, lines: LineSplitter) -> list[Note]:
    notes = []
    if log.cut_bytes:
        notes.append(Note("output-cut", f"{log.cut_bytes} bytes in the middle of the output were not kept"))
    if log.failure:
        notes.append(Note("output-lost", f"the output could not be kept: {log.failure}"))
    if lines.cut_lines:
        notes.append(Note("line-cut", f"{lines.cut_lines} lines were too long and were read for metrics only in part"))
    return notes
