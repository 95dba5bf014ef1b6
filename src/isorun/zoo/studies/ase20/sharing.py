"""How many runs had to share a GPU: their times say how long they waited for each other, too.

Runs on CPUs have CPUs of their own, so that only runs that used a GPU are counted.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from isorun.study.levels import Level
from isorun.study.records import RunRecord, RunState

__all__ = ["GroupName", "gpu_runs_at_once"]

GroupName = tuple[str, str, Level]
"""The study, the approach and the level of a group of runs."""

_HANDOVER: Final = 0.1
"""Seconds by which a run may seem to begin before the last one ended, where clocks and rounding are to blame."""


def gpu_runs_at_once(records: Mapping[str, Sequence[RunRecord]]) -> dict[GroupName, int]:
    """The most runs that used a GPU at a time while a finished run of the group did; no entry where none used one."""
    used = [(study, record, _span(record)) for study, found in records.items() for record in found if _has_gpu(record)]
    begins = sorted(begin for _, _, (begin, _) in used)
    ends = sorted(end for _, _, (_, end) in used)
    going_on = [bisect_right(begins, begin) - bisect_right(ends, begin) for begin in begins]
    most: dict[GroupName, int] = {}
    for study, record, (begin, end) in used:
        if record.state is RunState.FINISHED:
            name = (study, record.cell.approach, record.cell.level)
            during = going_on[bisect_left(begins, begin) : bisect_left(begins, end)]
            most[name] = max(most.get(name, 1), *during)
    return most


def _has_gpu(record: RunRecord) -> bool:
    gpu = record.environment.get("effective", {}).get("gpu") or {}
    return bool(gpu.get("devices"))


def _span(record: RunRecord) -> tuple[float, float]:
    """Begin and end, at least a moment apart."""
    begin = datetime.fromisoformat(record.started_at).timestamp()
    return begin, begin + max(record.wall_seconds - _HANDOVER, 0.001)
