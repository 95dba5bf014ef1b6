"""Axes: the steps and seconds that the metrics of a run share, packed small.

Steps that form an arithmetic range are kept as its first number and stride, others as float64. Seconds that never
decrease are kept as whole numbers of a tick, the finest power of two (not under 2^-40 s) for which every gap between
neighbours fits 16 bits, so a point costs two bytes. All times are rounded to ticks before gaps are taken, so errors do
not add up: **each time is kept to within 1/65,000 of the longest gap between two points of its axis**. Rounding a
second time changes nothing, because the rounded times are multiples of their tick. Other seconds are kept as float64.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["PackedAxis", "UnpackedAxes", "pack_axis", "unpack_axes"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_WIDEST_GAP = 2**16 - 1
_FINEST_EXPONENT = -40
_LARGEST_TICK_COUNT = 2.0**62
_LATEST_SECOND = 2.0**62


class PackedAxis(NamedTuple):
    """One axis as it is stored; a tuple, because a frame reads tens of thousands of them.

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


@dataclass(frozen=True, slots=True, eq=False)
class UnpackedAxes:
    """Several axes one after another: axis i is the slice from offsets[i] to offsets[i + 1]."""

    offsets: Integers
    steps: Floats
    seconds: Floats


def pack_axis(steps: Sequence[float], seconds: Sequence[float]) -> PackedAxis:
    """Pack equally long steps and seconds."""
    first_step, stride, kept_steps = _pack_steps(np.asarray(steps, dtype=np.float64))
    exponent, first_tick, kept_seconds = _pack_seconds(np.asarray(seconds, dtype=np.float64))
    return PackedAxis(len(steps), first_step, stride, kept_steps, exponent, first_tick, kept_seconds)


def unpack_axes(axes: Sequence[PackedAxis]) -> UnpackedAxes:
    """Unpack all axes together, which is far faster than one by one."""
    offsets = np.concatenate([[0], np.cumsum([axis.points for axis in axes], dtype=np.int64)]).astype(np.int64)
    return UnpackedAxes(offsets, _unpack_steps(axes, offsets), _unpack_seconds(axes, offsets))


def _pack_steps(steps: Floats) -> tuple[float, float, bytes | None]:
    if not steps.size:
        return 0.0, 0.0, None
    first = float(steps[0])
    stride = float(steps[1]) - first if steps.size > 1 else 0.0
    if math.isfinite(first) and math.isfinite(stride):
        with np.errstate(over="ignore"):
            is_range = bool(np.array_equal(first + stride * np.arange(steps.size), steps))
        if is_range:
            return first, stride, None
    return 0.0, 0.0, steps.astype("<f8").tobytes()


def _pack_seconds(seconds: Floats) -> tuple[int | None, int, bytes]:
    exponent = _tick_exponent(seconds)
    if exponent is None:
        return None, 0, seconds.astype("<f8").tobytes()
    ticks = _in_ticks(seconds, exponent)
    return exponent, int(ticks[0]), np.diff(ticks).astype("<u2").tobytes()


def _tick_exponent(seconds: Floats) -> int | None:
    """The exponent of the finest tick that works; None when the seconds have to be kept as they are."""
    if seconds.size < 2 or not (np.abs(seconds) < _LATEST_SECOND).all():
        return None
    gaps = np.diff(seconds)
    if gaps.min() < 0:
        return None
    widest = float(gaps.max())
    exponent = max(_FINEST_EXPONENT, math.frexp(widest / _WIDEST_GAP)[1] - 2) if widest > 0 else _FINEST_EXPONENT
    while not _fits(seconds, exponent):
        exponent += 1
    return exponent


def _fits(seconds: Floats, exponent: int) -> bool:
    if np.abs(np.ldexp(seconds[[0, -1]], -exponent)).max() >= _LARGEST_TICK_COUNT:
        return False
    return bool(np.diff(_in_ticks(seconds, exponent)).max() <= _WIDEST_GAP)


def _in_ticks(seconds: Floats, exponent: int) -> Integers:
    return np.rint(np.ldexp(seconds, -exponent)).astype(np.int64)


def _unpack_steps(axes: Sequence[PackedAxis], offsets: Integers) -> Floats:
    points = np.diff(offsets)
    position = np.arange(offsets[-1]) - np.repeat(offsets[:-1], points)
    first = np.repeat(np.array([axis.first_step for axis in axes], dtype=np.float64), points)
    stride = np.repeat(np.array([axis.stride for axis in axes], dtype=np.float64), points)
    steps: Floats = first + stride * position
    for number, axis in enumerate(axes):
        if axis.steps is not None:
            steps[offsets[number] : offsets[number + 1]] = np.frombuffer(axis.steps, dtype="<f8")
    return steps


def _unpack_seconds(axes: Sequence[PackedAxis], offsets: Integers) -> Floats:
    seconds = np.empty(int(offsets[-1]), dtype=np.float64)
    in_ticks = [number for number, axis in enumerate(axes) if axis.exponent is not None]
    if len(in_ticks) == len(axes) and axes:
        return _from_gaps(axes)
    if in_ticks:
        belongs = np.repeat(np.array([axis.exponent is not None for axis in axes]), np.diff(offsets))
        seconds[belongs] = _from_gaps([axes[number] for number in in_ticks])
    for number, axis in enumerate(axes):
        if axis.exponent is None:
            seconds[offsets[number] : offsets[number + 1]] = np.frombuffer(axis.seconds, dtype="<f8")
    return seconds


def _from_gaps(axes: Sequence[PackedAxis]) -> Floats:
    """The seconds of axes kept in ticks: one running sum over all gaps, restarted at every axis."""
    points = np.array([axis.points for axis in axes], dtype=np.int64)
    starts = np.cumsum(points) - points
    is_gap = np.ones(int(points.sum()), dtype=bool)
    is_gap[starts] = False
    running = np.zeros(is_gap.size, dtype=np.int64)
    running[is_gap] = np.frombuffer(b"".join(axis.seconds for axis in axes), dtype="<u2")
    np.cumsum(running, out=running)
    first = np.array([axis.first_tick for axis in axes], dtype=np.int64)
    running += np.repeat(first - running[starts], points)
    exponents = np.array([axis.exponent for axis in axes], dtype=np.int32)
    return np.ldexp(running.astype(np.float64), np.repeat(exponents, points))
