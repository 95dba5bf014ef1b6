"""Paired change: the same seeds under two environments, a slope each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from isorun.analysis.samples import Pairs
from isorun.errors import InputError
from isorun.report.figures.axes import value_axis
from isorun.report.figures.description import Axis, Dot, Figure, Legend, Line, Shape, Tick
from isorun.report.numbers import count, significant
from isorun.report.tables import Column, Table

__all__ = ["paired_change"]

_UP, _DOWN, _SAME, _MEAN = 0, 1, 5, 3
_NAMES: Final = {_UP: "higher", _DOWN: "lower", _SAME: "the same"}
_FEW: Final = 12
"""So many slopes are drawn strong; more are drawn faint with small dots, so that each can be seen."""


def paired_change(
    pairs: Pairs,
    a: str = "A",
    b: str = "B",
    value: str = "value",
    *,
    labels: Sequence[str] | None = None,
    name: str = "paired-change",
    title: str = "",
) -> Figure:
    """A line from the value under `a` to that under `b` for every pair; the means as triangles.

    labels: what the pairs are called, as their seeds; numbers from 1 by default.
    """
    both = list(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True))
    if not both:
        raise InputError("there is nothing to draw", found="no pair", allowed="at least one pair of runs")
    called = [str(place) for place in range(1, len(both) + 1)] if labels is None else [str(label) for label in labels]
    if len(called) != len(both):
        raise InputError("every pair needs a label", found=f"{len(called)} labels for {len(both)} pairs")
    changes = [_direction(first, second) for first, second in both]
    heading = title or f"{value} of the same seeds under {a} and {b}"
    return Figure(
        name=name,
        title=heading,
        sentence=_sentence(pairs, changes, a, b),
        x=Axis("", -0.45, 1.45, (Tick(0.0, a), Tick(1.0, b)), rows=True),
        y=value_axis(value, [end for pair in both for end in pair]),
        data=_data_table(name, heading, both, called, (a, b)),
        lines=(*_slopes(both, changes), _mean_line(pairs)),
        dots=(*_ends(both, changes, called, (a, b)), *_mean_dots(pairs, (a, b))),
        legend=tuple(_legend(changes, b)),
    )


def _direction(first: float, second: float) -> int:
    return _UP if second > first else _DOWN if second < first else _SAME


def _slopes(both: Sequence[tuple[float, float]], changes: Sequence[int]) -> Iterator[Line]:
    for (first, second), series in zip(both, changes, strict=True):
        yield Line(((0.0, first), (1.0, second)), series, faint=len(both) > _FEW)


def _ends(
    both: Sequence[tuple[float, float]], changes: Sequence[int], called: Sequence[str], sides: tuple[str, str]
) -> Iterator[Dot]:
    small = len(both) > _FEW
    for pair, series, label in zip(both, changes, called, strict=True):
        for place, (value, side) in enumerate(zip(pair, sides, strict=True)):
            yield Dot(
                float(place), value, Shape.CIRCLE, series, f"{label} under {side}: {significant(value, 4)}", small
            )


def _means(pairs: Pairs) -> tuple[float, float]:
    return float(np.mean(pairs.first)), float(np.mean(pairs.second))


def _mean_line(pairs: Pairs) -> Line:
    first, second = _means(pairs)
    return Line(((0.0, first), (1.0, second)), _MEAN, dashed=True)


def _mean_dots(pairs: Pairs, sides: tuple[str, str]) -> Iterator[Dot]:
    for place, (mean, side) in enumerate(zip(_means(pairs), sides, strict=True)):
        yield Dot(float(place), mean, Shape.TRIANGLE, _MEAN, f"mean under {side}: {significant(mean, 4)}")


def _legend(changes: Sequence[int], b: str) -> Iterator[Legend]:
    for series, words in _NAMES.items():
        if series in changes:
            yield Legend(f"{words} under {b} ({changes.count(series)})", Shape.CIRCLE, series)
    yield Legend("mean", Shape.TRIANGLE, _MEAN)


def _sentence(pairs: Pairs, changes: Sequence[int], a: str, b: str) -> str:
    first, second = _means(pairs)
    counted = [f"{changes.count(series)} {words}" for series, words in _NAMES.items() if series in changes]
    sentence = f"Of {count(len(changes), 'pair')}, under {b} against {a}: {', '.join(counted)}"
    sentence += f"; the mean changes from {significant(first, 4)} to {significant(second, 4)}."
    if pairs.unmatched:
        sentence += f" Not drawn, for want of a partner: {count(len(pairs.unmatched), 'run')}."
    return sentence


def _data_table(
    name: str, title: str, both: Sequence[tuple[float, float]], called: Sequence[str], sides: tuple[str, str]
) -> Table:
    columns = (Column("pair", key=True), Column(sides[0]), Column(sides[1]), Column("change"))
    rows = tuple(
        (label, significant(first, 6), significant(second, 6), significant(second - first, 3))
        for label, (first, second) in zip(called, both, strict=True)
    )
    return Table(f"data-{name}", f"Data: {title}", columns, rows, folded=True)
