"""Empirical distribution functions: the share of values at or below each value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from isorun.analysis.samples import FloatArray
from isorun.report.figures.axes import value_axis
from isorun.report.figures.description import Axis, Figure, Legend, Line, Tick
from isorun.report.figures.groups import GroupsLike, evenly_spaced, first_lines, left_out, values_by_name
from isorun.report.numbers import count, significant
from isorun.report.tables import Column, Table

__all__ = ["ecdf"]

_MOST_STEPS: Final = 400
"""Finer steps than these cannot be seen."""
_QUANTILES: Final = (0, 10, 25, 50, 75, 90, 100)
SHARE_TICKS: Final = tuple(Tick(share / 100, f"{share} %") for share in range(0, 101, 20))


def ecdf(groups: GroupsLike, value: str = "value", *, name: str = "ecdf", title: str = "") -> Figure:
    """The share of runs at or below each value, a step line a group; value: what is measured."""
    values = values_by_name(groups)
    shown = first_lines(values)
    x = value_axis(value, [end for _, sample, _, _ in shown for end in (float(sample.min()), float(sample.max()))])
    heading = title or f"How {value} is distributed in every group"
    return Figure(
        name=name,
        title=heading,
        sentence=_sentence(values, value) + left_out(len(values)),
        x=x,
        y=Axis("share of runs at or below", -0.03, 1.03, SHARE_TICKS),
        data=_data_table(name, heading, values),
        lines=tuple(Line(_steps(sample, x), series, dashed=dashed) for _, sample, series, dashed in shown),
        legend=tuple(
            Legend(f"{group} (n\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}{sample.size})", None, series, dashed)
            for group, sample, series, dashed in shown
        ),
    )


def _steps(sample: FloatArray, x: Axis) -> tuple[tuple[float, float], ...]:
    """From the left edge up a step at every value to the right edge."""
    ordered = evenly_spaced(sample, _MOST_STEPS)
    places, counts = np.unique(ordered, return_counts=True)
    points, share = [(x.low, 0.0)], 0.0
    for place, reached in zip(places.tolist(), (np.cumsum(counts) / ordered.size).tolist(), strict=True):
        points += [(place, share), (place, reached)]
        share = reached
    return (*points, (x.high, 1.0))


def _sentence(values: Mapping[str, FloatArray], value: str) -> str:
    if len(values) == 1:
        (name, sample), *_ = values.items()
        if sample.min() == sample.max():
            return f"{name}: {value} is {significant(float(sample[0]), 4)} in {count(sample.size, 'run')}."
        low, high = (significant(float(end), 4) for end in np.quantile(sample, (0.1, 0.9)))
        return f"The middle 80 % of {name} lie between {low} and {high} of {value}."
    return (
        f"A line further right has higher values of {value}; lines that cross swap their order; steep is little spread."
    )


def _data_table(name: str, title: str, values: Mapping[str, FloatArray]) -> Table:
    columns = (Column("group", key=True), Column("n"), *(Column(f"{percent} %") for percent in _QUANTILES))
    rows = tuple(
        (group, str(sample.size), *(significant(float(cut), 4) for cut in np.percentile(sample, _QUANTILES)))
        for group, sample in values.items()
    )
    return Table(f"data-{name}", f"Data: {title}", columns, rows, ("Columns are quantiles.",), folded=True)
