"""Box and strip: every value of every group as a dot on its box."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from isorun.analysis.samples import FloatArray
from isorun.analysis.spreads.spread import Spread, spread
from isorun.report.figures.boxplot import BoxRow, RunValue, box_figure
from isorun.report.figures.description import Figure, Shape
from isorun.report.figures.groups import COLOURS, GroupsLike, evenly_spaced, values_by_name
from isorun.report.numbers import count, decimals_for, significant

__all__ = ["strip"]

_MOST_LARGE: Final = 40
_MOST_DOTS: Final = 300
"""A row with more dots is a bar."""


def strip(groups: GroupsLike, value: str = "value", *, name: str = "strip", title: str = "") -> Figure:
    """Box plots with every value; value: what is measured, as the axis says it.

    Boxes and counts are of all values. Of a larger group 300 values are drawn, evenly spaced by rank.
    """
    values = values_by_name(groups)
    rows = [
        BoxRow(group, spread(sample.tolist()), _dots(sample), place % COLOURS)
        for place, (group, sample) in enumerate(values.items())
    ]
    sentence = _sentence({row.name: row.spread for row in rows}, value) + _thinned(values)
    figure = box_figure(name, title or f"{value} of every group", value, rows, sentence, decimals=_decimals(rows))
    assert figure is not None
    return _with_small_dots(figure) if any(len(row.runs) > _MOST_LARGE for row in rows) else figure


def _dots(sample: FloatArray) -> tuple[RunValue, ...]:
    """Runs by their number in the order given, or by their rank where not all are drawn."""
    if sample.size <= _MOST_DOTS:
        return tuple(RunValue(str(place), value) for place, value in enumerate(sample.tolist(), start=1))
    drawn = evenly_spaced(sample, _MOST_DOTS).tolist()
    return tuple(RunValue(f"at {100 * place / (_MOST_DOTS - 1):.0f} %", value) for place, value in enumerate(drawn))


def _with_small_dots(figure: Figure) -> Figure:
    """Every value small, so that boxes stay visible; the means as large as ever."""
    return replace(figure, dots=tuple(replace(dot, small=dot.shape is Shape.CIRCLE) for dot in figure.dots))


def _sentence(spreads: Mapping[str, Spread], value: str) -> str:
    medians = {name: seen.median for name, seen in spreads.items() if seen.median is not None}
    best, worst = max(medians, key=lambda name: medians[name]), min(medians, key=lambda name: medians[name])
    if len(medians) == 1:
        seen = spreads[best]
        if seen.minimum == seen.maximum:
            return f"{best}: {value} is {significant(seen.median, 4)} in {count(seen.n, 'run')}."
        low, high = significant(seen.minimum, 4), significant(seen.maximum, 4)
        return f"{best}: {value} lies between {low} and {high}, in the middle at {significant(seen.median, 4)}."
    if medians[best] == medians[worst]:
        return f"The median of {value} is {significant(medians[best], 4)} in all groups."
    return (
        f"The median of {value} is highest for {best} ({significant(medians[best], 4)}) "
        f"and lowest for {worst} ({significant(medians[worst], 4)})."
    )


def _thinned(values: Mapping[str, FloatArray]) -> str:
    if all(sample.size <= _MOST_DOTS for sample in values.values()):
        return ""
    return f" Of groups with more than {_MOST_DOTS} values as many are drawn, evenly spaced by rank; boxes hold all."


def _decimals(rows: list[BoxRow]) -> int:
    return max((decimals_for(row.spread.sd, 3) for row in rows if row.spread.sd), default=4)
