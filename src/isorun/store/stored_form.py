"""The form in which a record is kept: what every store hands back for what it was given.

Every number is a float where the record says float, and seconds are rounded as `axes` says. Keeping a record that was
read back changes nothing, so a record can travel between stores and stay the same record.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from typing import Any

from isorun.store.axes import pack_axis, unpack_axes
from isorun.study.records import RunRecord, Series

__all__ = ["canonical_json", "content_digest", "stored_form"]


def canonical_json(data: Any) -> str:
    """The same ASCII text for the same content: sorted keys, no spaces."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"))


def content_digest(text: str) -> bytes:
    """Sixteen bytes that stand for the text."""
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


def stored_form(record: RunRecord) -> RunRecord:
    """The record as a store hands it back."""
    return dataclasses.replace(
        record,
        wall_seconds=float(record.wall_seconds) + 0.0,
        cpu_seconds=float(record.cpu_seconds) + 0.0,
        peak_memory_bytes=int(record.peak_memory_bytes),
        series={metric: _stored_series(series) for metric, series in record.series.items()},
    )


def _stored_series(series: Series) -> Series:
    axis = unpack_axes([pack_axis(series.steps, series.seconds)])
    return Series(
        steps=tuple(axis.steps.tolist()),
        seconds=tuple(axis.seconds.tolist()),
        values=tuple(float(value) for value in series.values),
    )
