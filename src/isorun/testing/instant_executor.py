"""The instant executor: records come from a function, and no process is started.

For tests of everything above an executor, and for trying a study out before anything is trained.
"""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from isorun.errors import IsorunError
from isorun.execution import AbstractExecutor, Event, ExecutorFailed, Job, RowsLogged, RunEnded, RunStarted, Tell
from isorun.execution.assemble import Ended, assemble
from isorun.execution.process import Exit
from isorun.execution.worker_events import EventLog
from isorun.sources import Found
from isorun.study.records import RunRecord, Series

__all__ = ["Computed", "InstantExecutor"]


@dataclass(frozen=True, slots=True)
class Computed:
    """What a training would have left. wall_seconds: how long it is said to have taken; no time passes."""

    results: Mapping[str, float] = field(default_factory=dict)
    per_class: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    series: Mapping[str, Series] = field(default_factory=dict)
    digests: Mapping[str, str] = field(default_factory=dict)
    exit_code: int = 0
    wall_seconds: float = 0.0
    output: str = ""


class InstantExecutor(AbstractExecutor):
    """Asks `compute` what each run left. An exception in it is a run that failed, as it would be in a training.

    An IsorunError means that no run is possible. `compute` is called in one of `capacity` threads.
    """

    def __init__(self, compute: Callable[[Job], Computed], capacity: int = 1) -> None:
        self.capacity = capacity
        self._compute = compute
        self._pool = ThreadPoolExecutor(capacity, thread_name_prefix="instant")
        self._stopping = threading.Event()
        self._open: set[str] = set()
        self._stopped: set[str] = set()

    def submit(self, job: Job, tell: Tell) -> None:
        """Compute what the job leaves."""
        self._open.add(job.run_id)
        self._pool.submit(self._carry_out, job, tell)

    def _carry_out(self, job: Job, tell: Tell) -> None:
        event: Event
        try:
            event = RunEnded(job.run_id, self._record(job, self._computed(job, tell)))
        except IsorunError as error:
            event = ExecutorFailed(error, job.run_id)
        self._open.discard(job.run_id)
        self._stopped.discard(job.run_id)
        tell(event)

    def _computed(self, job: Job, tell: Tell) -> Computed:
        if self._is_stopped(job):
            return Computed()
        tell(RunStarted(job.run_id, {"host": "", "folder": ""}))
        try:
            computed = self._compute(job)
        except IsorunError:
            raise
        except Exception:  # a training may raise anything
            computed = Computed(exit_code=1, output=traceback.format_exc())
        if rows := tuple(_rows(computed)):
            tell(RowsLogged(job.run_id, rows))
        return computed

    def _is_stopped(self, job: Job) -> bool:
        return self._stopping.is_set() or job.run_id in self._stopped

    def _record(self, job: Job, computed: Computed) -> RunRecord:
        return assemble(_ended(job, computed, asked_to_stop=self._is_stopped(job)))

    def stop(self, run_id: str | None = None) -> None:
        """Runs that end from now on are interrupted, or the one."""
        if run_id is None:
            self._stopping.set()
        elif run_id in self._open:
            self._stopped.add(run_id)

    def close(self) -> None:
        """Wait for what is being computed."""
        self._stopping.set()
        self._pool.shutdown()


def _ended(job: Job, computed: Computed, *, asked_to_stop: bool) -> Ended:
    limit = job.time_limit_seconds
    timed_out = limit is not None and computed.wall_seconds > limit
    wall_seconds = min(computed.wall_seconds, limit) if limit is not None else computed.wall_seconds
    return Ended(
        job=job,
        launch="instant",
        began_unix=time.time(),
        exit=Exit(None if timed_out or asked_to_stop else computed.exit_code, "", wall_seconds, 0.0, 0),
        timed_out=timed_out,
        asked_to_stop=asked_to_stop,
        events=_events(computed),
        lines=Found(),
        files=Found(),
        log_tail=computed.output.rstrip("\n"),
        requested={"level": str(job.cell.level)},
    )


def _events(computed: Computed) -> EventLog:
    """The events a worker would have written for it."""
    events: list[dict[str, Any]] = [{"kind": "start", "t": 0.0}, *_rows(computed)]
    events.append({"kind": "result", "values": computed.results, "per_class": computed.per_class})
    events += [{"kind": "digest", "name": name, "value": value} for name, value in computed.digests.items()]
    return EventLog.of(events)


def _rows(computed: Computed) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for metric, series in computed.series.items():
        points = zip(series.steps, series.seconds, series.values, strict=True)
        rows += [{"kind": "row", "step": step, "t": t, "values": {metric: value}} for step, t, value in points]
    return rows
