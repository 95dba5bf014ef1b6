"""When a record is new, when it is the same again, and when it contradicts what is known.

One finished record a cell, and no attempt after the one that finished it, in whatever order the records arrive: a
failed attempt may be recorded after the later one that finished the cell, but a worker that was stopped, replaced and
woken up cannot finish its cell any more.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from isorun.errors import StoreConflict
from isorun.study.records import RunRecord, RunState

__all__ = ["KnownAttempt", "is_known"]


@dataclass(frozen=True, slots=True)
class KnownAttempt:
    """An attempt at the same cell that has a record already."""

    attempt: int
    finished: bool
    digest: bytes


def is_known(record: RunRecord, digest: bytes, known: Iterable[KnownAttempt]) -> bool:
    """Whether the very same record is known; StoreConflict when a known one contradicts it."""
    finished = record.state is RunState.FINISHED
    for other in known:
        if other.attempt == record.attempt:
            if other.digest == digest:
                return True
            raise _conflict(record, f"another record of the same run, with the digest {other.digest.hex()}")
        if other.finished and (finished or record.attempt > other.attempt):
            raise _conflict(record, f"the cell was finished by attempt {other.attempt}")
        if finished and other.attempt > record.attempt:
            raise _conflict(record, f"attempt {other.attempt} was made and recorded after it")
    return False


def _conflict(record: RunRecord, found: str) -> StoreConflict:
    return StoreConflict(
        f"a second, different record for run {record.run_id} ({record.cell.label})",
        found=found,
        allowed="one finished record a cell; the first one is kept",
        hint="if the new record is the right one, repeat the study in an empty store with --store",
    )
