"""Variance shares: which effect the run-to-run variance comes from, as bars with intervals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from isorun.analysis.mixed.result import VarianceShare
from isorun.errors import InputError
from isorun.report.figures.axes import row_axis, value_axis
from isorun.report.figures.description import Cell, Dot, Figure, Legend, Line, Shape
from isorun.report.numbers import percentage
from isorun.report.tables import Column, Table

__all__ = ["variance_shares"]

_RANDOM, _RESIDUAL = 0, 5
_BAR, _CAP = 0.32, 0.14


def variance_shares(
    shares: Sequence[VarianceShare], *, name: str = "variance-shares", title: str = "Where the variance comes from"
) -> Figure:
    """A bar for each random effect and the residual, as `isorun.analysis.mixed.hypotheses` gives them."""
    if not shares:
        raise InputError("there is nothing to draw", found="no variance share", allowed="at least one")
    return Figure(
        name=name,
        title=title,
        sentence=_sentence(shares),
        x=value_axis("share of the variance that the fixed effects leave (%)", [0.0, 100.0]),
        y=row_axis("", [f"{row.group} ({percentage(row.share)}\N{NO-BREAK SPACE}%)" for row in shares]),
        data=_data_table(name, title, shares),
        cells=tuple(_bar(row, place) for place, row in enumerate(shares)),
        lines=tuple(line for place, row in enumerate(shares) for line in _interval(row, place)),
        dots=tuple(
            Dot(100 * row.share, float(place), Shape.SQUARE, _series(row), _words(row))
            for place, row in enumerate(shares)
        ),
        legend=tuple(_legend(shares)),
    )


def _bar(row: VarianceShare, place: int) -> Cell:
    return Cell((0.0, 100 * row.share), (place - _BAR, place + _BAR), _series(row), 0.6, _words(row))


def _interval(row: VarianceShare, place: int) -> Iterator[Line]:
    """The interval with caps at its ends."""
    low, high = 100 * row.lower, 100 * row.upper
    yield Line(((low, float(place)), (high, float(place))), _series(row))
    for end in (low, high):
        yield Line(((end, place - _CAP), (end, place + _CAP)), _series(row))


def _series(row: VarianceShare) -> int:
    return _RESIDUAL if row.group == "Residual" else _RANDOM


def _words(row: VarianceShare) -> str:
    return f"{row.group}: {percentage(row.share)} % ({percentage(row.lower)} to {percentage(row.upper)} %)"


def _legend(shares: Sequence[VarianceShare]) -> Iterator[Legend]:
    series = _series(shares[0])
    yield Legend("estimate", Shape.SQUARE, series)
    yield Legend("interval", None, series)


def _sentence(shares: Sequence[VarianceShare]) -> str:
    largest = max(shares, key=lambda row: row.share)
    what = "what no effect explains" if largest.group == "Residual" else largest.group
    interval = f"interval {percentage(largest.lower)} to {percentage(largest.upper)} %"
    return f"The largest share of the variance, {percentage(largest.share)} % ({interval}), comes from {what}."


def _data_table(name: str, title: str, shares: Sequence[VarianceShare]) -> Table:
    columns = (Column("effect", key=True), Column("share", "%"), Column("lower", "%"), Column("upper", "%"))
    rows = tuple((row.group, *map(percentage, (row.share, row.lower, row.upper))) for row in shares)
    return Table(f"data-{name}", f"Data: {title}", columns, rows, folded=True)
