"""The instant executor: records come from a function, and no process is started.

For tests of everything above an executor, and for trying a study out before anything is trained.
"""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from isorun.execution.assemble import Ended, assemble
from isorun.execution.base import AbstractExecutor, Job
from isorun.execution.events import EventLog
from isorun.execution.process import Exit
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
    """Asks `compute` what each run left. An exception in it is a run that failed, as it would be in a training."""

    def __init__(self, compute: Callable[[Job], Computed], jobs: int = 1) -> None:
        self.jobs = jobs
        self._compute = compute
        self._stopping = threading.Event()

    def execute(self, job: Job) -> RunRecord:
        """The record of what was computed."""
        if self._stopping.is_set():
            return assemble(_ended(job, Computed(), asked_to_stop=True))
        try:
            computed = self._compute(job)
        except Exception:  # a training may raise anything
            computed = Computed(exit_code=1, output=traceback.format_exc())
        return assemble(_ended(job, computed, asked_to_stop=self._stopping.is_set()))

    def stop(self) -> None:
        """Runs that end from now on are interrupted."""
        self._stopping.set()

    def close(self) -> None:
        """There is nothing to end but the executor itself."""
        self._stopping.set()


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
    events: list[dict[str, Any]] = [{"kind": "start", "t": 0.0}]
    for metric, series in computed.series.items():
        points = zip(series.steps, series.seconds, series.values, strict=True)
        events += [{"kind": "row", "step": step, "t": t, "values": {metric: value}} for step, t, value in points]
    events.append({"kind": "result", "values": computed.results, "per_class": computed.per_class})
    events += [{"kind": "digest", "name": name, "value": value} for name, value in computed.digests.items()]
    return EventLog.of(events)
