"""What a store keeps of a record, and when two records are the same one. Part of the contract: every store calls it.

Every number is a float where the record says float. Keeping a record that was read back changes nothing, so a record
can travel between stores and stay the same record.

One finished record a cell, and no attempt after the one that finished it, in whatever order the records arrive: a
failed attempt may be recorded after the later one that finished the cell, but a worker that was stopped, replaced and
woken up cannot finish its cell any more.

The metrics of a run share axes (steps and seconds), packed small. Steps that form an arithmetic range are kept as its
first number and stride, others as float64. Seconds that never decrease are kept as whole numbers of a tick, the finest
power of two (not under 2^-40 s) for which every gap between neighbours fits 16 bits, so a point costs two bytes. All
times are rounded to ticks before gaps are taken, so errors do not add up: **each time is kept to within 1/65,000 of
the longest gap between two points of its axis**. Rounding a second time changes nothing, because the rounded times are
multiples of their tick. Other seconds are kept as float64.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import operator
import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from types import ModuleType
from typing import Any, NamedTuple

from isorun.errors import StoreConflict
from isorun.study.records import Numbers, RunRecord, RunState, Series, canonical_json, content_digest, number_to_json

__all__ = [
    "KnownAttempt",
    "PackedAxis",
    "digest_in_version_1",
    "is_known",
    "pack_axis",
    "stored_form",
    "unpack_axes",
    "unpack_axis",
]

_WIDEST_GAP = 2**16 - 1
_FINEST_EXPONENT = -40
_LARGEST_TICK_COUNT = 2.0**62
_LATEST_SECOND = 2.0**62
_FEW = 5_000
"""So many points are packed by plain Python, which starts sooner and gives the same bits."""
_AT_ONCE = 2**17


class PackedAxis(NamedTuple):
    """One axis as it is stored; a tuple, because tens of thousands of them are read at a time.

    steps: float64, or None when they are the range from first_step by stride.
    exponent: the tick is 2^exponent seconds; None when `seconds` is float64 rather than 16-bit gaps after first_tick.
    """

    points: int
    first_step: float
    stride: float
    steps: bytes | None
    exponent: int | None
    first_tick: int
    seconds: bytes


_KINDS = (int, float, float, type(None), int, int, bytes)
"""Of the fields of an axis whose steps are a range and whose seconds are ticks; a damaged one may have any."""


def pack_axis(steps: Sequence[float], seconds: Sequence[float]) -> PackedAxis:
    """Pack equally long steps and seconds."""
    first_step, stride, kept_steps = _pack_steps(_numbers(steps))
    exponent, first_tick, kept_seconds = _pack_seconds(_numbers(seconds))
    return PackedAxis(len(steps), first_step, stride, kept_steps, exponent, first_tick, kept_seconds)


def _numbers(values: Sequence[float]) -> Numbers:
    return values if isinstance(values, Numbers) else Numbers(values)


def unpack_axis(axis: PackedAxis) -> tuple[Numbers, Numbers]:
    """Steps and seconds; ValueError when the parts of the axis do not fit together."""
    seconds = Numbers.unpacked(axis.seconds) if axis.exponent is None else _from_gaps(axis, axis.exponent)
    if len(seconds) != axis.points:
        raise ValueError(f"an axis of {axis.points} points has {len(seconds)} seconds")
    steps = _range(axis.points, axis.first_step, axis.stride) if axis.steps is None else Numbers.unpacked(axis.steps)
    if len(steps) != axis.points:
        raise ValueError(f"an axis of {axis.points} points has {len(steps)} steps")
    return steps, seconds


def unpack_axes(axes: Iterable[PackedAxis]) -> dict[PackedAxis, tuple[Numbers, Numbers]]:
    """Steps and seconds of many axes, the same as `unpack_axis` gives and in a fraction of its time.

    What is out of the ordinary is left out, and told when it is asked for alone.
    """
    found: dict[PackedAxis, tuple[Numbers, Numbers]] = {}
    ordinary = filter(_is_ordinary, axes)
    while group := _some(ordinary):
        for axis, seconds in zip(group, _from_many_gaps(group), strict=True):
            found[axis] = (_range(axis.points, axis.first_step, axis.stride), seconds)
    return found


def _is_ordinary(axis: PackedAxis) -> bool:
    """Whether the steps are a range and the seconds ticks, as nearly always, and all of it fits together."""
    return (
        axis.steps is None
        and tuple(map(type, axis)) == _KINDS
        and len(axis.seconds) == 2 * axis.points - 2
        and abs(axis.exponent or 0) < 1_000
        and abs(axis.first_tick) < _LARGEST_TICK_COUNT
    )


def _some(axes: Iterator[PackedAxis]) -> list[PackedAxis]:
    """The next ones, as many as have about so many points."""
    group, points = list[PackedAxis](), 0
    for axis in axes:
        group.append(axis)
        points += axis.points
        if points >= _AT_ONCE:
            break
    return group


def _from_many_gaps(axes: Sequence[PackedAxis]) -> Iterator[Numbers]:
    np = _numpy()
    points = np.array([axis.points for axis in axes])
    ends = np.cumsum(points)
    begins = ends - points
    ticks = np.zeros(ends[-1], np.int64)
    is_gap = np.ones(len(ticks), np.bool_)
    is_gap[begins] = False
    ticks[is_gap] = np.frombuffer(b"".join(axis.seconds for axis in axes), "<u2")
    np.cumsum(ticks, out=ticks)
    ticks += np.repeat(np.array([axis.first_tick for axis in axes]) - ticks[begins], points)
    tick = np.array([_tick(axis.exponent) for axis in axes if axis.exponent is not None])
    seconds = ticks * np.repeat(tick, points)
    for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
        yield Numbers(seconds[begin:end])


@functools.lru_cache(maxsize=64)
def _range(points: int, first: float, stride: float) -> Numbers:
    """The steps of a range; runs of a study mostly have the same ones, and then share them."""
    if points > _FEW:
        np = _numpy()
        with np.errstate(over="ignore"):
            return Numbers(first + stride * np.arange(points))
    return Numbers(map(first.__add__, map(stride.__mul__, map(float, range(points)))))


def _from_gaps(axis: PackedAxis, exponent: int) -> Numbers:
    ticks = itertools.accumulate(_turned(array("H", axis.seconds)), initial=axis.first_tick)
    return Numbers(map(_tick(exponent).__mul__, map(float, ticks)))


def _pack_steps(steps: Numbers) -> tuple[float, float, bytes | None]:
    if not steps:
        return 0.0, 0.0, None
    first = steps[0] + 0.0
    stride = steps[1] - first + 0.0 if len(steps) > 1 else 0.0
    if math.isfinite(first) and math.isfinite(stride) and _range(len(steps), first, stride) == steps:
        return first, stride, None
    return 0.0, 0.0, steps.packed()


def _pack_seconds(seconds: Numbers) -> tuple[int | None, int, bytes]:
    exponent = _finest_exponent(seconds)
    if exponent is None:
        return None, 0, seconds.packed()
    while True:
        if max(abs(seconds[0]), abs(seconds[-1])) * _tick(-exponent) < _LARGEST_TICK_COUNT:
            ticks = _in_ticks(seconds, exponent)
            with suppress(OverflowError):  # a gap that 16 bits do not hold
                return exponent, ticks[0], _turned(array("H", _gaps(ticks))).tobytes()
        exponent += 1


def _finest_exponent(seconds: Numbers) -> int | None:
    """The exponent of the finest tick that may do; None when the seconds have to be kept as they are."""
    gaps = _gaps(seconds)
    if not gaps or not all(map((0.0).__le__, gaps)) or max(-seconds[0], seconds[-1]) >= _LATEST_SECOND:
        return None
    widest = max(gaps)
    exponent = max(_FINEST_EXPONENT, math.frexp(widest / _WIDEST_GAP)[1] - 2) if widest > 0 else _FINEST_EXPONENT
    while widest * _tick(-exponent) > _WIDEST_GAP + 2:  # rounding both its ends makes no gap so much shorter
        exponent += 1
    return exponent


def _in_ticks(seconds: Numbers, exponent: int) -> array[int]:
    if len(seconds) > _FEW:
        np = _numpy()
        return array("q", np.rint(np.asarray(seconds) * _tick(-exponent)).astype(np.int64).tobytes())
    return array("q", map(round, map(_tick(-exponent).__mul__, seconds)))


def _tick(exponent: int) -> float:
    """A power of two: multiplying by it changes the exponent alone."""
    return math.ldexp(1.0, exponent)


def _gaps(numbers: array[Any]) -> array[Any]:
    if len(numbers) > _FEW:
        np = _numpy()
        with np.errstate(invalid="ignore", over="ignore"):
            return array(numbers.typecode, np.diff(np.asarray(numbers)).tobytes())
    return array(numbers.typecode, map(operator.sub, itertools.islice(numbers, 1, None), numbers))


def _turned(gaps: array[int]) -> array[int]:
    """To or from little-endian numbers."""
    if sys.byteorder == "big":
        gaps.byteswap()
    return gaps


def _numpy() -> ModuleType:
    """Only for many numbers: to import it takes longer than all else that a study of a few runs asks of its store."""
    import numpy as np  # noqa: PLC0415

    return np


class KnownAttempt(NamedTuple):
    """An attempt at a cell that has a record already; a tuple, because a store knows many thousands."""

    attempt: int
    finished: bool
    digest: bytes


def stored_form(record: RunRecord) -> RunRecord:
    """The record as a store hands it back. Adding zero makes one zero of the two that float64 has.

    ValueError for numbers that no database has a place for: nobody is told that such a record was kept.
    """
    whole = (record.attempt, record.cell.repeat, record.exit_code or 0, record.peak_memory_bytes)
    if not all(-(2**63) <= int(number) < 2**63 for number in whole):
        raise ValueError("attempt, repeat, exit code and memory are whole numbers of at most 64 bits")
    return dataclasses.replace(
        record,
        wall_seconds=float(record.wall_seconds) + 0.0,
        cpu_seconds=float(record.cpu_seconds) + 0.0,
        peak_memory_bytes=int(record.peak_memory_bytes),
        series=_stored_series(record),
    )


def is_known(record: RunRecord, digest: bytes, known: Iterable[KnownAttempt], claimed: int = 0) -> bool:
    """Whether the very same record is known; StoreConflict when a known one contradicts it.

    claimed: the latest attempt that a claim was given out for, where the record comes from who had a claim.
    """
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
    if finished and claimed > record.attempt:
        raise _conflict(record, f"the cell was claimed again after it, as attempt {claimed}")
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
    rounded: dict[tuple[bytes, ...], tuple[Numbers, Numbers]] = {}
    found = {}
    for metric, series in record.series.items():
        axis = (series.steps, series.seconds)
        key = tuple(content_digest(memoryview(_numbers(column))) for column in axis)
        if key not in rounded:
            rounded[key] = unpack_axis(pack_axis(*axis))
        found[metric] = Series(*rounded[key], series.values)
    return found


def _conflict(record: RunRecord, found: str) -> StoreConflict:
    return StoreConflict(
        f"the record of run {record.run_id} ({record.cell.label}) contradicts what is known of its cell",
        found=found,
        allowed="one finished record a cell; the first one is kept",
        hint="if the new record is the right one, repeat the study in an empty store with --store",
    )
