"""How values are distributed: box plots with every run, box and strip of any groups, and distribution functions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from isorun.analysis.samples import FloatArray
from isorun.analysis.spreads import Spread, spread
from isorun.report import Column, Table, count, decimals_for, fixed, significant
from isorun.report.figures.axes import row_axis, side_by_side, value_axis
from isorun.report.figures.description import Axis, Box, Dot, Figure, Legend, Line, Tick
from isorun.report.figures.groups import COLOURS, GroupsLike, evenly_spaced, first_lines, left_out, values_by_name
from isorun.report.figures.marks import DOUBTFUL, MEAN, RUN

__all__ = ["BoxRow", "RunValue", "box_figure", "ecdf", "strip"]

_FEWEST_BOXED: Final = 5
"""Quartiles of fewer values are made up between them; the values themselves say more."""
_MOST_LARGE: Final = 40
_MOST_ROWS: Final = 60
_MOST_DOTS: Final = 300
"""A row with more dots is a bar."""
_MOST_STEPS: Final = 400
"""Finer steps than these cannot be seen."""
_QUANTILES: Final = (0, 10, 25, 50, 75, 90, 100)
SHARE_TICKS: Final = tuple(Tick(share / 100, f"{share} %") for share in range(0, 101, 20))


@dataclass(frozen=True, slots=True)
class RunValue:
    """The finite value of one run."""

    run: str
    value: float
    weak: bool = False


@dataclass(frozen=True, slots=True)
class BoxRow:
    """One row: its name, the spread of its values, and the values themselves, or as many of them as are drawn."""

    name: str
    spread: Spread
    runs: tuple[RunValue, ...]
    series: int
    thinned: bool = False


def box_figure(
    name: str, title: str, label: str, rows: Sequence[BoxRow], sentence: str, *, factor: float = 1.0, decimals: int = 2
) -> Figure | None:
    """A box plot of rows with values, each value multiplied by `factor`; None when there is no such row.

    Boxes are of all values. As many rows, and runs of a row, are drawn as can be seen; the sentence says so.
    """
    all_filled = [row for row in rows if row.runs]
    if not all_filled:
        return None
    filled = [_with_drawn_runs(row) for row in all_filled[:_MOST_ROWS]]
    sentence += _left_out_of_boxes(all_filled)
    x = value_axis(label, [factor * run.value for row in filled for run in row.runs])
    number = _Written(factor, decimals, _narrowest(filled))
    return Figure(
        name=name,
        title=title,
        sentence=sentence,
        x=x,
        y=row_axis("", [f"{row.name} (n\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}{row.spread.n})" for row in filled]),
        data=_box_data_table(name, (title, label), filled, number),
        boxes=tuple(box for place, row in enumerate(filled) for box in _box(row, place, factor)),
        dots=tuple(dot for place, row in enumerate(filled) for dot in _box_dots(row, place, x, number)),
        legend=tuple(_legend(filled)),
    )


@dataclass(frozen=True, slots=True)
class _Written:
    """How values are written: multiplied by `factor`, so that three digits of the smallest spread are seen."""

    factor: float
    decimals: int
    spread: float | None

    def text(self, value: float) -> str:
        """One value as texts and tables show it."""
        beside = None if self.spread is None else self.factor * self.spread / 10
        return fixed(self.factor * value, self.decimals, beside)


def _narrowest(rows: Sequence[BoxRow]) -> float | None:
    return min((row.spread.sd for row in rows if row.spread.sd), default=None)


def _with_drawn_runs(row: BoxRow) -> BoxRow:
    """The row with as many runs as are drawn: evenly spaced by rank, the smallest and the largest among them."""
    if len(row.runs) <= _MOST_DOTS:
        return row
    ordered = sorted(row.runs, key=lambda run: run.value)
    places = np.rint(np.linspace(0, len(ordered) - 1, _MOST_DOTS)).astype(np.intp)
    return replace(row, runs=tuple(ordered[place] for place in places.tolist()), thinned=True)


def _left_out_of_boxes(rows: Sequence[BoxRow]) -> str:
    said = ""
    if any(len(row.runs) > _MOST_DOTS for row in rows[:_MOST_ROWS]):
        said += f" Of rows with more than {_MOST_DOTS} runs as many are drawn, evenly spaced by rank; boxes hold all."
    if len(rows) > _MOST_ROWS:
        said += f" Drawn are the first {_MOST_ROWS} of {len(rows):,} rows."
    return said


def _box(row: BoxRow, place: int, factor: float) -> Iterator[Box]:
    spread = row.spread
    if spread.n < _FEWEST_BOXED:
        return
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


def _box_dots(row: BoxRow, place: int, x: Axis, number: _Written) -> Iterator[Dot]:
    values = [number.factor * run.value for run in row.runs]
    for run, value, offset in zip(row.runs, values, side_by_side(values, x), strict=True):
        shape = DOUBTFUL if run.weak else RUN
        weak = ", weak" if run.weak else ""
        words = f"run {run.run}: {number.text(run.value)}{weak}"
        yield Dot(value, place + offset, shape, row.series, words, small=row.thinned and shape is RUN)
    if row.spread.mean is not None:
        mean, words = number.factor * row.spread.mean, f"mean of {row.name}: {number.text(row.spread.mean)}"
        yield Dot(mean, float(place), MEAN, row.series, words)


def _legend(rows: Sequence[BoxRow]) -> Iterator[Legend]:
    series = rows[0].series
    yield Legend("a run", RUN, series)
    if any(run.weak for row in rows for run in row.runs):
        yield Legend("a weak run (near chance)", DOUBTFUL, series)
    yield Legend("mean", MEAN, series)
    if any(row.spread.n >= _FEWEST_BOXED for row in rows):
        yield Legend("box: quartiles and median; whiskers: 1.5 box lengths", None, series, area=True)


def _data_rows(rows: Sequence[BoxRow], number: _Written) -> Iterator[tuple[str, ...]]:
    for row in rows:
        for run in row.runs:
            yield (row.name, run.run, number.text(run.value), "yes" if run.weak else "no")


def _box_data_table(name: str, heading: tuple[str, str], rows: Sequence[BoxRow], number: _Written) -> Table:
    title, label = heading
    columns = (Column("row", key=True), Column("run", key=True), Column(label), Column("weak", key=True))
    notes = ("Runs that are drawn; the JSON report has all.",) if any(row.thinned for row in rows) else ()
    cells = tuple(_data_rows(rows, number))
    return Table(f"data-{name}", f"Data: {title}", columns, cells, notes, folded=True)


def strip(groups: GroupsLike, value: str = "value", *, name: str = "strip", title: str = "") -> Figure:
    """Box plots with every value; value: what is measured, as the axis says it.

    Boxes and counts are of all values. Of a larger group 300 values are drawn, evenly spaced by rank.
    """
    values = values_by_name(groups)
    rows = [
        BoxRow(group, spread(sample.tolist()), _strip_dots(sample), place % COLOURS)
        for place, (group, sample) in enumerate(values.items())
    ]
    sentence = _strip_sentence({row.name: row.spread for row in rows}, value) + _thinned(values)
    figure = box_figure(name, title or f"{value} of every group", value, rows, sentence, decimals=_decimals(rows))
    assert figure is not None
    return _with_small_dots(figure) if any(len(row.runs) > _MOST_LARGE for row in rows) else figure


def _strip_dots(sample: FloatArray) -> tuple[RunValue, ...]:
    """Runs by their number in the order given, or by their rank where not all are drawn."""
    if sample.size <= _MOST_DOTS:
        return tuple(RunValue(str(place), value) for place, value in enumerate(sample.tolist(), start=1))
    drawn = evenly_spaced(sample, _MOST_DOTS).tolist()
    return tuple(RunValue(f"at {100 * place / (_MOST_DOTS - 1):.0f} %", value) for place, value in enumerate(drawn))


def _with_small_dots(figure: Figure) -> Figure:
    """Every value small, so that boxes stay visible; the means as large as ever."""
    return replace(figure, dots=tuple(replace(dot, small=dot.shape is RUN) for dot in figure.dots))


def _strip_sentence(spreads: Mapping[str, Spread], value: str) -> str:
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


def ecdf(groups: GroupsLike, value: str = "value", *, name: str = "ecdf", title: str = "") -> Figure:
    """The share of runs at or below each value, a step line a group; value: what is measured."""
    values = values_by_name(groups)
    shown = first_lines(values)
    x = value_axis(value, [end for _, sample, _, _ in shown for end in (float(sample.min()), float(sample.max()))])
    heading = title or f"How {value} is distributed in every group"
    return Figure(
        name=name,
        title=heading,
        sentence=_ecdf_sentence(values, value) + left_out(len(values)),
        x=x,
        y=Axis("share of runs at or below", -0.03, 1.03, SHARE_TICKS),
        data=_ecdf_data_table(name, heading, values),
        lines=tuple(Line(_steps(sample, x), series, dotted=dotted) for _, sample, series, dotted in shown),
        legend=tuple(
            Legend(f"{group} (n\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}{sample.size})", None, series, dotted=dotted)
            for group, sample, series, dotted in shown
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


def _ecdf_sentence(values: Mapping[str, FloatArray], value: str) -> str:
    if len(values) == 1:
        (name, sample), *_ = values.items()
        if sample.min() == sample.max():
            return f"{name}: {value} is {significant(float(sample[0]), 4)} in {count(sample.size, 'run')}."
        low, high = (significant(float(end), 4) for end in np.quantile(sample, (0.1, 0.9)))
        return f"The middle 80 % of {name} lie between {low} and {high} of {value}."
    return (
        f"A line further right has higher values of {value}; lines that cross swap their order; steep is little spread."
    )


def _ecdf_data_table(name: str, title: str, values: Mapping[str, FloatArray]) -> Table:
    columns = (Column("group", key=True), Column("n"), *(Column(f"{percent} %") for percent in _QUANTILES))
    rows = tuple(
        (group, str(sample.size), *(significant(float(cut), 4) for cut in np.percentile(sample, _QUANTILES)))
        for group, sample in values.items()
    )
    return Table(f"data-{name}", f"Data: {title}", columns, rows, ("Columns are quantiles.",), folded=True)
