"""Named groups of values, from a table's groups or a plain mapping, and how many of them one figure can tell apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt

from isorun.analysis.measurements import Group
from isorun.analysis.samples import FloatArray, finite_sample
from isorun.errors import InputError
from isorun.report.numbers import count

__all__ = ["COLOURS", "MOST_LINES", "GroupsLike", "evenly_spaced", "first_lines", "left_out", "values_by_name"]

GroupsLike = Mapping[str, npt.ArrayLike] | Sequence[Group]
"""Groups as `isorun.analysis.measurements.Table.groups` gives them, or names with their values."""

COLOURS: Final = 6
MOST_LINES: Final = 2 * COLOURS
"""So many lines can be told apart: each colour plain, and then dashed."""

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
    """As many as can be told apart: name, what is shown, its series, and whether its line is dashed."""
    first = list(named.items())[:MOST_LINES]
    return [(name, shown, place % COLOURS, place >= COLOURS) for place, (name, shown) in enumerate(first)]


def left_out(found: int, noun: str = "group") -> str:
    """A sentence on what is not drawn, or nothing."""
    return f" Drawn are the first {MOST_LINES} of {count(found, noun)}." if found > MOST_LINES else ""
