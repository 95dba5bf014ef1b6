"""Box plots: every run a point, the mean a triangle, weak runs crosses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from isorun.analysis.spreads.spread import Spread
from isorun.report.figures.axes import row_axis, side_by_side, value_axis
from isorun.report.figures.description import Axis, Box, Dot, Figure, Legend, Shape
from isorun.report.numbers import fixed
from isorun.report.tables import Column, Table

__all__ = ["BoxRow", "RunValue", "box_figure"]


@dataclass(frozen=True, slots=True)
class RunValue:
    """The finite value of one run."""

    run: str
    value: float
    weak: bool = False


@dataclass(frozen=True, slots=True)
class BoxRow:
    """One row: its name, the spread of its values, and the values themselves."""

    name: str
    spread: Spread
    runs: tuple[RunValue, ...]
    series: int


def box_figure(
    name: str, title: str, label: str, rows: Sequence[BoxRow], sentence: str, *, factor: float = 1.0, decimals: int = 2
) -> Figure | None:
    """A box plot of rows with values, each value multiplied by `factor`; None when there is no such row."""
    filled = [row for row in rows if row.runs]
    if not filled:
        return None
    x = value_axis(label, [factor * run.value for row in filled for run in row.runs])
    return Figure(
        name=name,
        title=title,
        sentence=sentence,
        x=x,
        y=row_axis("", [f"{row.name} (n\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}{row.spread.n})" for row in filled]),
        data=_data_table(name, title, Column(label), tuple(_data_rows(filled, factor, decimals))),
        boxes=tuple(box for place, row in enumerate(filled) for box in _box(row, place, factor)),
        dots=tuple(dot for place, row in enumerate(filled) for dot in _dots(row, place, x, factor, decimals)),
        legend=tuple(_legend(filled)),
    )


def _box(row: BoxRow, place: int, factor: float) -> Iterator[Box]:
    spread = row.spread
    if spread.whiskers is None or spread.quartile_low is None or spread.median is None or spread.quartile_high is None:
        return
    low, high = spread.whiskers
    yield Box(
        y=float(place),
        low_whisker=factor * low,
        low=factor * spread.quartile_low,
        median=factor * spread.median,
        high=factor * spread.quartile_high,
        high_whisker=factor * high,
        series=row.series,
    )


def _dots(row: BoxRow, place: int, x: Axis, factor: float, decimals: int) -> Iterator[Dot]:
    values = [factor * run.value for run in row.runs]
    for run, value, offset in zip(row.runs, values, side_by_side(values, x), strict=True):
        shape = Shape.CROSS if run.weak else Shape.CIRCLE
        weak = ", weak" if run.weak else ""
        yield Dot(value, place + offset, shape, row.series, f"run {run.run}: {fixed(value, decimals)}{weak}")
    if row.spread.mean is not None:
        mean = factor * row.spread.mean
        yield Dot(mean, float(place), Shape.TRIANGLE, row.series, f"mean of {row.name}: {fixed(mean, decimals)}")


def _legend(rows: Sequence[BoxRow]) -> Iterator[Legend]:
    series = rows[0].series
    yield Legend("a run", Shape.CIRCLE, series)
    if any(run.weak for row in rows for run in row.runs):
        yield Legend("a weak run (near chance)", Shape.CROSS, series)
    yield Legend("mean", Shape.TRIANGLE, series)
    yield Legend("box: quartiles and median; whiskers: 1.5 box lengths", None, series)


def _data_rows(rows: Sequence[BoxRow], factor: float, decimals: int) -> Iterator[tuple[str, ...]]:
    for row in rows:
        for run in row.runs:
            yield (row.name, run.run, fixed(factor * run.value, decimals), "yes" if run.weak else "no")


def _data_table(name: str, title: str, values: Column, rows: tuple[tuple[str, ...], ...]) -> Table:
    columns = (Column("row", key=True), Column("run", key=True), values, Column("weak", key=True))
    return Table(f"data-{name}", f"Data: {title}", columns, rows, folded=True)
