"""A job that somebody waits for, and what is known of it so far."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Final

from isorun.execution import Job, Tell
from isorun.execution.slurm.endings import LOST
from isorun.execution.slurm.ledger import RunPlace, Submission
from isorun.execution.slurm.watching import EventTail
from isorun.study.records import RunRecord, RunState

__all__ = ["AwaitedRun", "with_reason"]

_FRESH_SECONDS: Final = 15.0
"""For so long after its submission a run is looked at without SLURM having said that it began: it may be short."""


@dataclass(slots=True, eq=False)
class AwaitedRun:
    """A job that somebody waits for. submission: None while it waits to be submitted. The times are monotonic.

    halts: why all work here is to end with it. stop_known: it was asked to stop before it was waited for.
    """

    job: Job
    tell: Tell
    since: float
    submission: Submission | None = None
    index: int = 0
    state: str = ""
    reason: str = ""
    node: str = ""
    stop_asked: bool = False
    halts: str = ""
    stop_known: bool = False
    fenced: bool = False
    cancelled_at: float = 0.0
    absent_since: float | None = None
    over_since: float | None = None
    killed_since: float | None = None
    tail: EventTail = field(default_factory=EventTail)

    @property
    def place(self) -> RunPlace:
        """Where its element leaves what it has to tell."""
        assert self.submission is not None
        return self.submission.place(self.index)

    @property
    def number(self) -> str:
        """How SLURM's commands call it; empty while that is not known."""
        number = self.submission.number if self.submission else ""
        return f"{number}_{self.index}" if number else ""

    @property
    def may_have_begun(self) -> bool:
        """Whether it is worth while to look at its place."""
        return self.state not in {"", "PENDING"} or time.monotonic() - self.since < _FRESH_SECONDS


def with_reason(record: RunRecord, entry: AwaitedRun) -> RunRecord:
    """What SLURM knows of a run that was killed: its memory was over."""
    if record.state is not RunState.FAILED or entry.state not in {"OUT_OF_MEMORY", *LOST}:
        return record
    return replace(record, reason=f"SLURM: {entry.state}: {record.reason}")
