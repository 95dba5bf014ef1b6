"""Which groups look alike: a level has the same colour and shape in every figure."""

from __future__ import annotations

from collections.abc import Sequence

from isorun.analysis.studies.group_result import GroupKey
from isorun.report.figures.description import Shape
from isorun.study.levels import Level

__all__ = ["distinct_series", "row_name", "series_of", "shape_of"]

_SHAPES = (Shape.CIRCLE, Shape.SQUARE, Shape.DIAMOND, Shape.TRIANGLE, Shape.CROSS)


def series_of(key: GroupKey) -> int:
    """The number of the level."""
    return list(Level).index(key.level)


def distinct_series(keys: Sequence[GroupKey]) -> list[int]:
    """A number for each group: that of its level where this tells the groups apart, else running numbers."""
    levels = [series_of(key) for key in keys]
    return levels if len(set(levels)) == len(levels) else list(range(len(levels)))


def shape_of(series: int) -> Shape:
    """The shape of a series."""
    return _SHAPES[series % len(_SHAPES)]


def row_name(key: GroupKey, keys: Sequence[GroupKey]) -> str:
    """The parts of a group's name that differ between the groups; the level when none does."""
    parts = (key.approach, key.config, key.environment, str(key.level))
    columns = zip(*((item.approach, item.config, item.environment, str(item.level)) for item in keys), strict=True)
    varying = [part for part, column in zip(parts, columns, strict=True) if len(set(column)) > 1]
    return " ".join(varying) or parts[-1]
