"""Axes with round ticks, and dots side by side where they would hide each other."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from isorun.report import fixed
from isorun.report.figures.description import Axis, Tick

__all__ = ["row_axis", "side_by_side", "value_axis"]

_LARGEST_PLAIN: Final = 1e9
_MOST_DECIMALS: Final = 7
"""Longer labels would run into each other."""


def value_axis(label: str, values: Sequence[float], *, whole: bool = False) -> Axis:
    """An axis that holds all values with a little room, ticks at round numbers (`whole`: at integers)."""
    if values and not any(values):  # a scale would say that there is something to measure
        return Axis(label, -1.0, 1.0, (Tick(0.0, "0"),))
    low, high = _with_room(min(values, default=0.0), max(values, default=1.0))
    step = _round_step((high - low) / 7)
    step = max(1.0, round(step)) if whole else step
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return Axis(label, low, high, tuple(_ticks([number * step for number in range(first, last + 1)], step)))


def _ticks(values: Sequence[float], step: float) -> Iterator[Tick]:
    """All written alike: where one of them takes a power of ten, so do the others, with digits that tell them apart."""
    decimals = _decimals_of(step)
    largest = max(map(abs, values), default=0.0)
    if largest < _LARGEST_PLAIN and decimals <= _MOST_DECIMALS:
        yield from (Tick(value, fixed(value, decimals)) for value in values)
        return
    power = math.floor(math.log10(largest) + 1e-9) if largest else 0
    for value in values:
        digits = max(_decimals_of(step / 10.0**power) + _power_of(value, power) - power, 0)
        yield Tick(value, f"{value:.{digits}e}" if abs(value) > step / 2 else "0")


def _power_of(value: float, otherwise: int) -> int:
    return math.floor(math.log10(abs(value)) + 1e-9) if value else otherwise


def row_axis(label: str, names: Sequence[str]) -> Axis:
    """An axis of named rows at 0, 1, 2, …"""
    return Axis(
        label, -0.5, len(names) - 0.5, tuple(Tick(float(row), name) for row, name in enumerate(names)), rows=True
    )


def side_by_side(values: Sequence[float], axis: Axis) -> list[float]:
    """An offset from the row's middle for every value, so that near values do not cover each other.

    The same values always get the same offsets: nothing is drawn at random.
    """
    near = 0.014 * (axis.high - axis.low)
    lanes: list[list[float]] = []
    offsets = [0.0] * len(values)
    for place in sorted(range(len(values)), key=lambda place: (values[place], place)):
        lane = next((number for number, taken in enumerate(lanes) if values[place] - taken[-1] >= near), len(lanes))
        lanes[lane:] = lanes[lane:] or [[]]
        lanes[lane].append(values[place])
        offsets[place] = _lane_offset(lane)
    tallest = max((abs(offset) for offset in offsets), default=0.0)
    return [offset * 0.34 / tallest if tallest > 0.34 else offset for offset in offsets]


def _lane_offset(lane: int) -> float:
    """0, then above, below, further above, …"""
    side = -1 if lane % 2 else 1
    return 0.11 * ((lane + 1) // 2) * side


def _with_room(low: float, high: float) -> tuple[float, float]:
    if high > low:
        room = 0.06 * (high - low)
        return low - room, high + room
    room = 0.05 * abs(low) or 0.5
    return low - room, high + room


def _decimals_of(step: float) -> int:
    """As many decimals as tell the multiples of a round step apart: 1 for 2.5, 2 for 0.25."""
    leading = max(0, -math.floor(math.log10(step) + 1e-9))
    return leading if math.isclose(step, round(step, leading)) else leading + 1


def _round_step(rough: float) -> float:
    """The next of 1, 2, 2.5, 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(rough))
    return next(factor * power for factor in (1.0, 2.0, 2.5, 5.0, 10.0) if factor * power >= rough * (1 - 1e-9))
