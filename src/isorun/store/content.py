"""What a store keeps of a record, and when two records are the same one.

Every number is a float where the record says float, and seconds are rounded as `axes` says. Keeping a record that was
read back changes nothing, so a record can travel between stores and stay the same record.

One finished record a cell, and no attempt after the one that finished it, in whatever order the records arrive: a
failed attempt may be recorded after the later one that finished the cell, but a worker that was stopped, replaced and
woken up cannot finish its cell any more.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any, NamedTuple

from isorun.errors import StoreConflict
from isorun.store.axes import pack_axis, unpack_axis
from isorun.study.records import Numbers, RunRecord, RunState, Series, canonical_json, content_digest, number_to_json

__all__ = ["KnownAttempt", "digest_in_version_1", "is_known", "stored_form"]


class KnownAttempt(NamedTuple):
    """An attempt at a cell that has a record already; a tuple, because a store knows many thousands."""

    attempt: int
    finished: bool
    digest: bytes


def stored_form(record: RunRecord) -> RunRecord:
    """The record as a store hands it back. Adding zero makes one zero of the two that float64 has."""
    return dataclasses.replace(
        record,
        wall_seconds=float(record.wall_seconds) + 0.0,
        cpu_seconds=float(record.cpu_seconds) + 0.0,
        peak_memory_bytes=int(record.peak_memory_bytes),
        series=_stored_series(record),
    )


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


def digest_in_version_1(record: RunRecord) -> bytes:
    """The digest that records had in their first version, whose series were lists."""
    content = dataclasses.replace(record, series={}).to_json()
    for name in ("startup_seconds", "devices", "where"):
        del content[name]
    series = {metric: _series_in_version_1(item) for metric, item in record.series.items()}
    return content_digest(canonical_json({**content, "record": 1, "series": series}).encode("ascii"))


def _series_in_version_1(series: Series) -> dict[str, Any]:
    values = [number_to_json(value) for value in series.values]
    return {"steps": list(series.steps), "seconds": list(series.seconds), "values": values}


def _stored_series(record: RunRecord) -> dict[str, Series]:
    """The series with their seconds rounded; metrics that were logged together go on sharing steps and seconds."""
    rounded: dict[tuple[bytes, bytes], tuple[Numbers, Numbers]] = {}
    found = {}
    for metric, series in record.series.items():
        steps, seconds = Numbers(series.steps), Numbers(series.seconds)
        key = (content_digest(memoryview(steps)), content_digest(memoryview(seconds)))
        if key not in rounded:
            rounded[key] = unpack_axis(pack_axis(steps, seconds))
        found[metric] = Series(*rounded[key], series.values)
    return found


def _conflict(record: RunRecord, found: str) -> StoreConflict:
    return StoreConflict(
        f"a second, different record for run {record.run_id} ({record.cell.label})",
        found=found,
        allowed="one finished record a cell; the first one is kept",
        hint="if the new record is the right one, repeat the study in an empty store with --store",
    )
