"""How the runs stand that were submitted to SLURM and whose end no isorun has recorded, told from any process."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from isorun.errors import ExecutionError
from isorun.execution import Job
from isorun.execution.slurm.commands import ArrayElement, ControllerSilent, Slurm
from isorun.execution.slurm.endings import OVER
from isorun.execution.slurm.ledger import FOLDER, RECORD, Ledger, RunPlace, Submission, is_live

__all__ = ["ENDED", "QUEUED", "RUNNING", "UNKNOWN", "SlurmStanding", "standing"]

QUEUED: Final = "queued"
RUNNING: Final = "running"
ENDED: Final = "ended"
UNKNOWN: Final = "unknown"


@dataclass(frozen=True, slots=True)
class SlurmStanding:
    """One run. state: queued, running, ended (to be recorded by who comes back) or unknown (SLURM does not answer).

    number: how SLURM's commands call it, empty while that is not known. reason: why it waits, in SLURM's word.
    since: when it was submitted, ISO 8601 in UTC.
    """

    job: Job
    state: str
    number: str
    node: str
    reason: str
    since: str

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self.job.run_id


def standing(runs: Path, recorded: Collection[str]) -> list[SlurmStanding]:
    """All runs of a folder of runs whose end is not recorded; SLURM is asked once, if there is anything to ask.

    recorded: the ids of runs that have a record.
    """
    if not (runs / FOLDER).is_dir():
        return []
    ledger = Ledger(runs)
    left = ((one, index) for one, index, run_id in ledger.entries() if run_id not in recorded)
    live = [(submission, index) for submission, index in left if is_live(submission.place(index))]
    if not live:
        return []
    known = _known()
    found = []
    for submission, index in live:
        element = None if known is None else known.get((submission.name, index))
        try:
            job = submission.place(index).job()
        except (OSError, ValueError, ExecutionError):
            continue
        found.append(_standing(submission, index, job, element, answered=known is not None))
    return found


def _known() -> dict[tuple[str, int], ArrayElement] | None:
    """What squeue says; None where there is none, or it does not answer."""
    try:
        return {(element.name, element.index): element for element in Slurm().elements()}
    except (ControllerSilent, ExecutionError):
        return None


def _standing(
    submission: Submission, index: int, job: Job, element: ArrayElement | None, *, answered: bool
) -> SlurmStanding:
    number = element.number if element else f"{submission.number}_{index}" if submission.number else ""
    since = datetime.fromtimestamp(submission.at, UTC).isoformat(timespec="seconds")
    state = _state(submission.place(index), element, answered=answered)
    reason = element.reason if element and state == QUEUED else ""
    return SlurmStanding(job, state, number, element.node if element else "", reason, since)


def _state(place: RunPlace, element: ArrayElement | None, *, answered: bool) -> str:
    if RECORD in place.names() or (element is not None and element.state in OVER):
        return ENDED
    if element is not None:
        return QUEUED if element.state == "PENDING" else RUNNING
    return ENDED if answered else UNKNOWN
