"""Groups in figures: their values, which look alike, and how many of them one figure can tell apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt

from isorun.analysis.measurements import Group
from isorun.analysis.samples import FloatArray, finite_sample
from isorun.analysis.studies.group_result import GroupKey
from isorun.errors import InputError
from isorun.report import count
from isorun.report.figures import marks
from isorun.report.figures.description import Shape
from isorun.study.cells import Level

__all__ = [
    "COLOURS",
    "MOST_LINES",
    "GroupsLike",
    "distinct_series",
    "evenly_spaced",
    "first_lines",
    "left_out",
    "row_names",
    "series_of",
    "shape_of",
    "values_by_name",
]

GroupsLike = Mapping[str, npt.ArrayLike] | Sequence[Group]
"""Groups as `isorun.analysis.measurements.Measurements.groups` gives them, or names with their values."""

COLOURS: Final = 5
MOST_LINES: Final = 2 * COLOURS
"""So many lines can be told apart: each colour plain, and then dotted."""

Shown = TypeVar("Shown")


def values_by_name(groups: GroupsLike) -> dict[str, FloatArray]:
    """The finite values of each group, in the order given; an error for values that are none, or for no group."""
    named = groups.items() if isinstance(groups, Mapping) else ((group.name, group.values.finite) for group in groups)
    values = {str(name): finite_sample(values, f"group {name!r}") for name, values in named}
    if not values:
        raise InputError("there is nothing to draw", found="no group", allowed="at least one group with a value")
    return values


def evenly_spaced(values: FloatArray, most: int) -> FloatArray:
    """The values in order, or `most` of them, evenly spaced by rank, with the smallest and the largest."""
    ordered = np.sort(values)
    if ordered.size <= most:
        return ordered
    return ordered[np.rint(np.linspace(0, ordered.size - 1, most)).astype(np.intp)]


def first_lines(named: Mapping[str, Shown]) -> list[tuple[str, Shown, int, bool]]:
    """As many as can be told apart: name, what is shown, its series, and whether its line is dotted."""
    first = list(named.items())[:MOST_LINES]
    return [(name, shown, place % COLOURS, place >= COLOURS) for place, (name, shown) in enumerate(first)]


def left_out(found: int, noun: str = "group") -> str:
    """A sentence on what is not drawn, or nothing."""
    return f" Drawn are the first {MOST_LINES} of {count(found, noun)}." if found > MOST_LINES else ""


def series_of(key: GroupKey) -> int:
    """The number of the level."""
    return list(Level).index(key.level)


def distinct_series(keys: Sequence[GroupKey]) -> list[int]:
    """A number for each group: that of its level where this tells the groups apart, else running numbers."""
    levels = [series_of(key) for key in keys]
    return levels if len(set(levels)) == len(levels) else list(range(len(levels)))


def shape_of(series: int) -> Shape:
    """The shape of a group among several in one panel."""
    return marks.GROUPS[series % len(marks.GROUPS)]


def row_names(keys: Sequence[GroupKey]) -> dict[GroupKey, str]:
    """Of each group the parts of its name that differ between the groups; the level when none does."""
    parts = [(key.approach, key.config, key.environment, str(key.level)) for key in keys]
    varying = [place for place, column in enumerate(zip(*parts, strict=True)) if len(set(column)) > 1]
    named = (" ".join(own[place] for place in varying) or own[-1] for own in parts)
    return dict(zip(keys, named, strict=True))
