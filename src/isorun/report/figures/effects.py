"""Effects: estimates with their intervals, shares of the variance, and changes of the same seeds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from isorun.analysis.comparison import Comparison
from isorun.analysis.mixed.result import Difference, VarianceShare
from isorun.analysis.samples import Pairs
from isorun.errors import InputError
from isorun.report import UNKNOWN, Column, Table, count, p_value, percentage, significant
from isorun.report.figures.axes import row_axis, value_axis
from isorun.report.figures.description import Axis, Dot, Figure, Legend, Line, Shape, Tick, Tile
from isorun.report.figures.marks import ESTIMATE, GREY, MEAN, OPEN_ESTIMATE, RUN

__all__ = ["ForestRow", "forest", "paired_change", "shares_figure"]

_CLEAR, _OPEN = 0, GREY
_RANDOM, _RESIDUAL = 0, GREY
_BAR, _CAP = 0.32, 0.14
_UP, _DOWN, _SAME, _MEAN = 0, 1, GREY, 3
_NAMES: Final = {_UP: "higher", _DOWN: "lower", _SAME: "the same"}
_FEW: Final = 12
"""So many slopes are drawn strong; more are drawn faint with small dots, so that each can be seen."""


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
        sentence=_forest_sentence(rows, reference, level),
        x=value_axis(label, [reference, *(number for row in rows for number in _numbers(row))]),
        y=row_axis("", [row.name for row in rows]),
        data=_forest_data_table(name, heading, rows, label),
        lines=(_reference_line(reference, len(rows)), *_intervals(rows, reference)),
        dots=tuple(_dots(rows, reference)),
        legend=tuple(_forest_legend(rows, reference)),
    )


def _row(result: ForestRow | Difference | Comparison) -> ForestRow:
    if isinstance(result, ForestRow):
        return result
    if isinstance(result, Comparison):
        name = f"{result.a.name} − {result.b.name}"
        # Whoever asked by pairs is answered by pairs: an interval that leaves pairing out may contradict the verdict.
        asked = result.means if result.paired is None else result.paired.t
        return ForestRow(name, asked.difference, asked.ci95, asked.p)
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
            yield Line(((low, float(place)), (high, float(place))), _forest_series(row, reference))


def _dots(rows: Sequence[ForestRow], reference: float) -> Iterator[Dot]:
    for place, row in enumerate(rows):
        if row.estimate is not None:
            yield Dot(
                row.estimate, float(place), _shape(row, reference), _forest_series(row, reference), _forest_words(row)
            )


def _forest_series(row: ForestRow, reference: float) -> int:
    return _CLEAR if row.clear_of(reference) else _OPEN


def _shape(row: ForestRow, reference: float) -> Shape:
    return ESTIMATE if row.clear_of(reference) else OPEN_ESTIMATE


def _forest_words(row: ForestRow) -> str:
    interval = "" if row.interval is None else f" ({significant(row.interval[0])} to {significant(row.interval[1])})"
    return f"{row.name}: {significant(row.estimate)}{interval}"


def _forest_legend(rows: Sequence[ForestRow], reference: float) -> Iterator[Legend]:
    known = [row for row in rows if row.interval is not None]
    if any(row.clear_of(reference) for row in known):
        yield Legend(f"interval leaves {reference:g} out", ESTIMATE, _CLEAR)
    if any(not row.clear_of(reference) for row in known):
        yield Legend(f"interval holds {reference:g}", OPEN_ESTIMATE, _OPEN)
    if any(row.interval is None and row.estimate is not None for row in rows):
        yield Legend("without a line: no interval can be given", OPEN_ESTIMATE, _OPEN)
    yield Legend(f"no difference ({reference:g})" if not reference else f"{reference:g}", None, GREY, dashed=True)


def _forest_sentence(rows: Sequence[ForestRow], reference: float, level: float) -> str:
    clear = sum(row.clear_of(reference) for row in rows)
    known = sum(row.interval is not None for row in rows)
    if len(rows) == 1 and known:
        sentence = f"{_forest_words(rows[0])}; the interval {'leaves' if clear else 'holds'} {reference:g}"
        sentence += " out." if clear else "."
    elif not known:
        return "No interval can be given: too few runs, or runs that do not vary."
    else:
        sentence = f"{clear} of {known} intervals leave {reference:g} out"
        sentence += f" ({100 * level:g} % each, not widened for their number)."
    return sentence + (f" For {len(rows) - known} no interval can be given." if known < len(rows) else "")


def _forest_data_table(name: str, title: str, rows: Sequence[ForestRow], label: str) -> Table:
    columns = (Column("row", key=True), Column(label), Column("lower"), Column("upper"), Column("p"))
    cells = tuple(
        (row.name, significant(row.estimate, 4), *_forest_ends(row), UNKNOWN if row.p is None else p_value(row.p))
        for row in rows
    )
    notes = (
        ("p is adjusted where the differences of a model are compared.",)
        if any(row.p is not None for row in rows)
        else ()
    )
    return Table(f"data-{name}", f"Data: {title}", columns, cells, notes, folded=True)


def _forest_ends(row: ForestRow) -> tuple[str, str]:
    low, high = row.interval or (None, None)
    return significant(low, 4), significant(high, 4)


def shares_figure(
    shares: Sequence[VarianceShare], *, name: str = "variance-shares", title: str = "Where the variance comes from"
) -> Figure:
    """A bar for each random effect and the residual, as `isorun.analysis.mixed.hypotheses` gives them."""
    if not shares:
        raise InputError("there is nothing to draw", found="no variance share", allowed="at least one")
    return Figure(
        name=name,
        title=title,
        sentence=_share_sentence(shares),
        x=value_axis("share of the variance that the fixed effects leave (%)", [0.0, 100.0]),
        y=row_axis("", [f"{row.group} ({percentage(row.share)}\N{NO-BREAK SPACE}%)" for row in shares]),
        data=_share_data_table(name, title, shares),
        tiles=tuple(_bar(row, place) for place, row in enumerate(shares)),
        lines=tuple(line for place, row in enumerate(shares) for line in _interval(row, place)),
        dots=tuple(
            Dot(100 * row.share, float(place), ESTIMATE, _share_series(row), _share_words(row))
            for place, row in enumerate(shares)
        ),
        legend=tuple(_share_legend(shares)),
    )


def _bar(row: VarianceShare, place: int) -> Tile:
    return Tile((0.0, 100 * row.share), (place - _BAR, place + _BAR), _share_series(row), 0.6, _share_words(row))


def _interval(row: VarianceShare, place: int) -> Iterator[Line]:
    """The interval with caps at its ends."""
    low, high = 100 * row.lower, 100 * row.upper
    yield Line(((low, float(place)), (high, float(place))), _share_series(row))
    for end in (low, high):
        yield Line(((end, place - _CAP), (end, place + _CAP)), _share_series(row))


def _share_series(row: VarianceShare) -> int:
    return _RESIDUAL if row.group == "Residual" else _RANDOM


def _share_words(row: VarianceShare) -> str:
    return f"{row.group}: {percentage(row.share)} % ({percentage(row.lower)} to {percentage(row.upper)} %)"


def _share_legend(shares: Sequence[VarianceShare]) -> Iterator[Legend]:
    series = _share_series(shares[0])
    yield Legend("estimate", ESTIMATE, series)
    yield Legend("interval", None, series)


def _share_sentence(shares: Sequence[VarianceShare]) -> str:
    largest = max(shares, key=lambda row: row.share)
    what = "what no effect explains" if largest.group == "Residual" else largest.group
    interval = f"interval {percentage(largest.lower)} to {percentage(largest.upper)} %"
    return f"The largest share of the variance, {percentage(largest.share)} % ({interval}), comes from {what}."


def _share_data_table(name: str, title: str, shares: Sequence[VarianceShare]) -> Table:
    columns = (Column("effect", key=True), Column("share", "%"), Column("lower", "%"), Column("upper", "%"))
    rows = tuple((row.group, *map(percentage, (row.share, row.lower, row.upper))) for row in shares)
    return Table(f"data-{name}", f"Data: {title}", columns, rows, folded=True)


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
        sentence=_change_sentence(pairs, changes, a, b),
        x=Axis("", -0.45, 1.45, (Tick(0.0, a), Tick(1.0, b)), rows=True),
        y=value_axis(value, [end for pair in both for end in pair]),
        data=_change_data_table(name, heading, both, called, (a, b)),
        lines=(*_slopes(both, changes), _mean_line(pairs)),
        dots=(*_change_ends(both, changes, called, (a, b)), *_mean_dots(pairs, (a, b))),
        legend=tuple(_change_legend(changes, b)),
    )


def _direction(first: float, second: float) -> int:
    return _UP if second > first else _DOWN if second < first else _SAME


def _slopes(both: Sequence[tuple[float, float]], changes: Sequence[int]) -> Iterator[Line]:
    for (first, second), series in zip(both, changes, strict=True):
        yield Line(((0.0, first), (1.0, second)), series, thin=len(both) <= _FEW, faint=len(both) > _FEW)


def _change_ends(
    both: Sequence[tuple[float, float]], changes: Sequence[int], called: Sequence[str], sides: tuple[str, str]
) -> Iterator[Dot]:
    small = len(both) > _FEW
    for pair, series, label in zip(both, changes, called, strict=True):
        for place, (value, side) in enumerate(zip(pair, sides, strict=True)):
            yield Dot(float(place), value, RUN, series, f"{label} under {side}: {significant(value, 4)}", small)


def _means(pairs: Pairs) -> tuple[float, float]:
    return float(np.mean(pairs.first)), float(np.mean(pairs.second))


def _mean_line(pairs: Pairs) -> Line:
    first, second = _means(pairs)
    return Line(((0.0, first), (1.0, second)), _MEAN)


def _mean_dots(pairs: Pairs, sides: tuple[str, str]) -> Iterator[Dot]:
    for place, (mean, side) in enumerate(zip(_means(pairs), sides, strict=True)):
        yield Dot(float(place), mean, MEAN, _MEAN, f"mean under {side}: {significant(mean, 4)}")


def _change_legend(changes: Sequence[int], b: str) -> Iterator[Legend]:
    for series, words in _NAMES.items():
        if series in changes:
            yield Legend(f"runs: {words} under {b} ({changes.count(series)})", RUN, series)
    yield Legend("mean", MEAN, _MEAN)


def _change_sentence(pairs: Pairs, changes: Sequence[int], a: str, b: str) -> str:
    first, second = _means(pairs)
    counted = [f"{changes.count(series)} {words}" for series, words in _NAMES.items() if series in changes]
    sentence = f"Of {count(len(changes), 'pair')}, under {b} against {a}: {', '.join(counted)}"
    sentence += f"; the mean {_moved(first, second)}."
    if pairs.unmatched:
        sentence += f" Not drawn, for want of a partner: {count(len(pairs.unmatched), 'run')}."
    return sentence


def _moved(first: float, second: float) -> str:
    """With as many digits as tell the two apart, where they differ at all."""
    if first == second:
        return f"stays {significant(first, 4)}"
    told = ((significant(first, digits), significant(second, digits)) for digits in range(4, 18))
    before, after = next((pair for pair in told if pair[0] != pair[1]), (str(first), str(second)))
    return f"changes from {before} to {after}"


def _change_data_table(
    name: str, title: str, both: Sequence[tuple[float, float]], called: Sequence[str], sides: tuple[str, str]
) -> Table:
    columns = (Column("pair", key=True), Column(sides[0]), Column(sides[1]), Column("change"))
    rows = tuple(
        (label, significant(first, 6), significant(second, 6), significant(second - first, 3))
        for label, (first, second) in zip(called, both, strict=True)
    )
    return Table(f"data-{name}", f"Data: {title}", columns, rows, folded=True)
