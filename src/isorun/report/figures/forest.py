"""Interval forest: estimates with their intervals, a row each, against the value that means no difference."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from isorun.analysis.comparison import Comparison
from isorun.analysis.mixed.result import Difference
from isorun.errors import InputError
from isorun.report.figures.axes import row_axis, value_axis
from isorun.report.figures.description import Dot, Figure, Legend, Line, Shape
from isorun.report.numbers import UNKNOWN, p_value, significant
from isorun.report.tables import Column, Table

__all__ = ["ForestRow", "forest"]

_CLEAR, _OPEN = 0, 5


@dataclass(frozen=True, slots=True)
class ForestRow:
    """An estimate with its interval. estimate None: it cannot be known; interval None: its error cannot."""

    name: str
    estimate: float | None
    interval: tuple[float, float] | None
    p: float | None = None

    def clear_of(self, reference: float) -> bool:
        """Whether the interval leaves the reference out."""
        return self.interval is not None and not self.interval[0] <= reference <= self.interval[1]


def forest(
    results: Sequence[ForestRow | Difference | Comparison],
    label: str = "difference",
    *,
    reference: float = 0.0,
    level: float = 0.95,
    name: str = "forest",
    title: str = "",
) -> Figure:
    """A row for each result: the differences of a mixed model, comparisons, or rows made by hand.

    label: what is estimated, as the axis says it. reference: the value that means no difference. level: of the
    intervals, for the sentence.
    """
    rows = [_row(result) for result in results]
    if not rows:
        raise InputError("there is nothing to draw", found="no estimate", allowed="at least one row")
    heading = title or f"{label[:1].upper()}{label[1:]}, with {level:.0%} intervals".replace("%", "\N{NO-BREAK SPACE}%")
    return Figure(
        name=name,
        title=heading,
        sentence=_sentence(rows, reference, level),
        x=value_axis(label, [reference, *(number for row in rows for number in _numbers(row))]),
        y=row_axis("", [row.name for row in rows]),
        data=_data_table(name, heading, rows, label),
        lines=(_reference_line(reference, len(rows)), *_intervals(rows, reference)),
        dots=tuple(_dots(rows, reference)),
        legend=tuple(_legend(rows, reference)),
    )


def _row(result: ForestRow | Difference | Comparison) -> ForestRow:
    if isinstance(result, ForestRow):
        return result
    if isinstance(result, Comparison):
        name = f"{result.a.name} − {result.b.name}"
        return ForestRow(name, result.difference, result.means.ci95, result.means.p)
    name = f"{result.a} − {result.b}"
    if math.isnan(result.estimate):
        return ForestRow(name, None, None)
    return ForestRow(name, result.estimate, (result.lower, result.upper), result.p_adjusted)


def _numbers(row: ForestRow) -> Iterator[float]:
    if row.estimate is not None:
        yield row.estimate
        yield from row.interval or ()


def _reference_line(reference: float, rows: int) -> Line:
    return Line(((reference, -0.5), (reference, rows - 0.5)), _OPEN, dashed=True)


def _intervals(rows: Sequence[ForestRow], reference: float) -> Iterator[Line]:
    for place, row in enumerate(rows):
        if row.interval is not None:
            low, high = row.interval
            yield Line(((low, float(place)), (high, float(place))), _series(row, reference))


def _dots(rows: Sequence[ForestRow], reference: float) -> Iterator[Dot]:
    for place, row in enumerate(rows):
        if row.estimate is not None:
            yield Dot(row.estimate, float(place), _shape(row, reference), _series(row, reference), _words(row))


def _series(row: ForestRow, reference: float) -> int:
    return _CLEAR if row.clear_of(reference) else _OPEN


def _shape(row: ForestRow, reference: float) -> Shape:
    return Shape.SQUARE if row.clear_of(reference) else Shape.CIRCLE


def _words(row: ForestRow) -> str:
    interval = "" if row.interval is None else f" ({significant(row.interval[0])} to {significant(row.interval[1])})"
    return f"{row.name}: {significant(row.estimate)}{interval}"


def _legend(rows: Sequence[ForestRow], reference: float) -> Iterator[Legend]:
    known = [row for row in rows if row.interval is not None]
    if any(row.clear_of(reference) for row in known):
        yield Legend(f"interval leaves {reference:g} out", Shape.SQUARE, _CLEAR)
    if any(not row.clear_of(reference) for row in known):
        yield Legend(f"interval holds {reference:g}", Shape.CIRCLE, _OPEN)


def _sentence(rows: Sequence[ForestRow], reference: float, level: float) -> str:
    clear = sum(row.clear_of(reference) for row in rows)
    known = sum(row.interval is not None for row in rows)
    if len(rows) == 1 and known:
        sentence = f"{_words(rows[0])}; the interval {'leaves' if clear else 'holds'} {reference:g}"
        sentence += " out." if clear else "."
    elif not known:
        return "No interval can be given: too few runs, or runs that do not vary."
    else:
        sentence = f"{clear} of {known} intervals leave {reference:g} out"
        sentence += f" ({100 * level:g} % each, not widened for their number)."
    return sentence + (f" For {len(rows) - known} no interval can be given." if known < len(rows) else "")


def _data_table(name: str, title: str, rows: Sequence[ForestRow], label: str) -> Table:
    columns = (Column("row", key=True), Column(label), Column("lower"), Column("upper"), Column("p"))
    cells = tuple(
        (row.name, significant(row.estimate, 4), *_ends(row), UNKNOWN if row.p is None else p_value(row.p))
        for row in rows
    )
    notes = (
        ("p is adjusted where the differences of a model are compared.",)
        if any(row.p is not None for row in rows)
        else ()
    )
    return Table(f"data-{name}", f"Data: {title}", columns, cells, notes, folded=True)


def _ends(row: ForestRow) -> tuple[str, str]:
    low, high = row.interval or (None, None)
    return significant(low, 4), significant(high, 4)
