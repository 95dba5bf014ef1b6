"""The local executor: every run is a process of its own on this machine, pinned to its own CPUs."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from isorun.errors import ExecutionError, known_names
from isorun.execution.assemble import Ended, assemble
from isorun.execution.base import AbstractExecutor, Job
from isorun.execution.codeversions import CodeVersions, with_script
from isorun.execution.events import EventLog, read_run_folder
from isorun.execution.interpreter import Interpreters
from isorun.execution.launch import LAUNCH_MODES, Launcher
from isorun.execution.masking import Mask
from isorun.execution.output import BoundedLog, LineSplitter, Output, readable_tail
from isorun.execution.plan import Plan, plan
from isorun.execution.process import GRACE_SECONDS, Exit
from isorun.execution.slots import Slots
from isorun.execution.sources import Found, LineMetrics, read_files
from isorun.execution.strays import Marks, end_strays
from isorun.execution.watch import Running, watch
from isorun.study.records import Note, RunRecord
from isorun.worker.redaction import secret_values

__all__ = ["LocalExecutor"]

_NEVER_STARTED: Final = Exit(None, "", 0.0, 0.0, 0)


class LocalExecutor(AbstractExecutor):
    """Carries out jobs on this machine.

    jobs: how many runs at once; the CPUs are divided among them. launch: "fresh" starts a new interpreter for each
    run (the reference), "warm" forks one that has imported the frameworks, "auto" is warm where that changes nothing.
    grace_seconds: how long a run may take to end after it was asked to.
    """

    def __init__(self, jobs: int = 1, *, launch: str = "auto", grace_seconds: float = GRACE_SECONDS) -> None:
        if launch not in LAUNCH_MODES:
            raise ExecutionError(f"unknown launch mode {launch!r}", allowed=known_names(launch, LAUNCH_MODES))
        self.jobs = jobs
        self._slots = Slots(jobs)
        self._interpreters = Interpreters()
        self._launcher = Launcher(launch, grace_seconds)
        self._code_versions = CodeVersions()
        self._running: set[Running] = set()
        self._lock = threading.Lock()
        self._stopping = False

    def execute(self, job: Job) -> RunRecord:
        """Run the job to its end and return everything it left."""
        with self._slots.lend(job.threads) as cpus:
            planned = plan(job, cpus, self._interpreters)
            return assemble(_not_started(planned) if self._stopping else self._carry_out(planned))

    def _carry_out(self, planned: Plan) -> Ended:
        job = planned.job
        metrics = LineMetrics(job.sources)
        lines = LineSplitter(metrics.feed)
        log = BoundedLog(job.folder / "output.log")
        output = Output(log, lines, Mask(secret_values(planned.env)))
        code = self._code_versions.ask(job.working_folder)
        try:
            began_unix = time.time()
            launched = self._launcher.start(planned)
            with self._registered(launched.running):
                watched = watch(launched.running, output, job.time_limit_seconds)
                asked_to_stop = self._stopping
            if not watched.exit.kept:
                end_strays(Marks(job.folder))
        finally:
            log.close()
        events = read_run_folder(job.folder)
        return Ended(
            job=job,
            launch=launched.mode,
            began_unix=began_unix,
            exit=watched.exit,
            timed_out=watched.timed_out,
            asked_to_stop=asked_to_stop,
            events=events,
            lines=metrics.finish(),
            files=read_files(job.sources, job.working_folder, began_unix),
            log_tail=readable_tail(log.end()),
            requested=planned.requested(),
            code=with_script(code.result(), events.effective),
            notes=(*launched.notes, *_output_notes(log, lines)),
        )

    @contextmanager
    def _registered(self, running: Running) -> Iterator[None]:
        """While a run is registered, `stop` reaches it; afterwards nothing of it is left."""
        with self._lock:
            self._running.add(running)
            if self._stopping:
                running.ask_to_stop()
        try:
            yield
        finally:
            with self._lock:
                self._running.discard(running)
            running.close()

    def stop(self) -> None:
        """End the runs in progress, and start none any more."""
        with self._lock:
            self._stopping = True
            for running in self._running:
                running.ask_to_stop()

    def close(self) -> None:
        """End everything this executor started."""
        with self._lock:
            self._stopping = True
            for running in self._running:
                running.kill()
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
