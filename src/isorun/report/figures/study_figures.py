"""The figures of a study, each with a plain sentence on what it shows: runs, classes, time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from isorun.analysis.evidence import first_of
from isorun.analysis.evidence.judged import JudgedMetric
from isorun.analysis.spreads import Spread
from isorun.analysis.studies.group_result import GroupResult, JudgedRun, SelectionResult
from isorun.analysis.studies.study_result import StudyResult
from isorun.report import UNKNOWN, Column, NumberStyle, Table, decimals_for, seconds, style_for
from isorun.report.figures.axes import row_axis, value_axis
from isorun.report.figures.description import Dot, Figure, Legend, Tile
from isorun.report.figures.distributions import BoxRow, RunValue, box_figure
from isorun.report.figures.groups import distinct_series, row_names, series_of, shape_of
from isorun.report.figures.marks import GREY

__all__ = ["class_figure", "class_figures", "overall_figures", "time_figures"]

_DETAIL: Final = 3
"""Significant digits of the spread in a figure's data: one more than in the tables."""

_CHANCE: Final = "what chance alone stays within in 95 of 100 cases"
_MOST_CLASSES: Final = 25
_MOST_NAMED: Final = 3
_MOST_GROUPS: Final = 5
_APART: Final = 0.3
"""How far the marks of two groups in one row are from each other, in rows."""


def overall_figures(result: StudyResult) -> Iterator[Figure]:
    """Box plots of every metric, also without weak runs where there are some."""
    for metric in result.metrics:
        for without_weak in (False, True):
            figure = overall_figure(result, metric, without_weak=without_weak)
            if figure is not None:
                yield figure


def class_figures(result: StudyResult) -> Iterator[Figure]:
    """Per-class differences of every metric that has them."""
    yield from (figure for metric in result.metrics if (figure := class_figure(result, metric)) is not None)


def time_figures(result: StudyResult) -> Iterator[Figure]:
    """Time to the epoch judged, where there is a metric to judge by."""
    figure = time_figure(result) if result.metrics else None
    if figure is not None:
        yield figure


def overall_figure(result: StudyResult, metric: JudgedMetric, *, without_weak: bool = False) -> Figure | None:
    """The metric of every run by the primary selection, a row a group; None without values or weak runs to omit."""
    judged = [(group, group.selections[0]) for group in result.groups]
    if without_weak and not any(one.weak_runs for _, one in judged):
        return None
    names = row_names([group.key for group in result.groups])
    rows = [_metric_row(names[group.key], group, one, metric.name, without_weak) for group, one in judged]
    style = style_for(metric.scale)
    return box_figure(
        name=f"{metric.name}{'-without-weak' if without_weak else ''}",
        title=f"{metric.name} of every run{', without weak runs' if without_weak else ''}",
        label=f"{metric.name} ({style.unit})" if style.unit else metric.name,
        rows=rows,
        sentence=f"{_widest(rows, metric)} Every run is judged at {result.selections[0].name}.",
        factor=style.factor,
        decimals=_decimals(rows, style.factor),
    )


def time_figure(result: StudyResult) -> Figure | None:
    """Seconds to the epoch judged, a row for every group and selection; None when no two runs can be compared."""
    names = row_names([group.key for group in result.groups])
    rows = [
        BoxRow(
            f"{names[group.key]}, {one.selection.name}",
            one.every.seconds,
            _run_values(one, lambda run: run.selected.seconds),
            series_of(group.key),
        )
        for group in result.groups
        for one in group.selections
    ]
    varying = [(row.spread.relative_difference, row) for row in rows if row.spread.relative_difference is not None]
    if not varying:
        return None
    most, row = max(varying, key=lambda pair: pair[0])
    sentence = (
        f"Time varies most in {row.name}: the slowest run took {seconds(row.spread.maximum)} s, "
        f"{100 * most:,.0f} % more than the fastest ({seconds(row.spread.minimum)} s)."
    )
    return box_figure("time", "Time to the epoch judged", "seconds", rows, sentence, decimals=_decimals(rows, 1.0))


def _metric_row(name: str, group: GroupResult, one: SelectionResult, metric: str, without_weak: bool) -> BoxRow:
    view = one.without_weak if without_weak and one.without_weak is not None else one.every
    return BoxRow(
        name,
        view.metrics[metric].overall,
        _run_values(one, lambda run: None if without_weak and run.weak else run.selected.values.get(metric)),
        series_of(group.key),
    )


def _run_values(one: SelectionResult, value: Callable[[JudgedRun], float | None]) -> tuple[RunValue, ...]:
    found = ((run, value(run)) for run in one.runs)
    return tuple(
        RunValue(run.run_id, number, run.weak) for run, number in found if number is not None and math.isfinite(number)
    )


def _decimals(rows: Sequence[BoxRow], factor: float) -> int:
    spreads = [row.spread.sd * factor for row in rows if row.spread.sd]
    return max((decimals_for(sd, _DETAIL) for sd in spreads), default=2)


def _widest(rows: Sequence[BoxRow], metric: JudgedMetric) -> str:
    """The row that varies most, and the one that varies least where there are several."""
    style = style_for(metric.scale)
    varying = [(row.spread.max_difference, row) for row in rows if row.spread.max_difference is not None]
    if not varying:
        return f"One run a row: {metric.name} cannot be said to vary or not."

    def words(spread: Spread) -> str:
        if not spread.max_difference:
            return "all runs are equal"
        return f"two runs differ by up to {style.difference_with_unit(style.difference(spread.max_difference))}"

    ordered = sorted(varying, key=lambda pair: pair[0])
    least, most = ordered[0][1], ordered[-1][1]
    if least is most or not most.spread.max_difference:
        return f"{most.name}: {words(most.spread)}."
    if least.spread.max_difference == most.spread.max_difference:
        return f"{metric.name} varies alike in all rows: {words(most.spread)}."

    def named(extreme: float | None) -> str:
        return first_of([row.name for difference, row in varying if difference == extreme], _MOST_NAMED, ", ")

    first = f"{metric.name} varies most in {named(most.spread.max_difference)}, where {words(most.spread)}"
    return f"{first}; least in {named(least.spread.max_difference)}: {words(least.spread)}."


@dataclass(frozen=True, slots=True)
class _Group:
    """The largest difference in every class of one group, as shown, and what chance alone stays within there."""

    name: str
    series: int
    differences: Mapping[str, float]
    chance: Mapping[str, float]


def class_figure(result: StudyResult, metric: JudgedMetric) -> Figure | None:
    """The largest difference between two runs in every class, by the primary selection; None without per-class values.

    With many classes those that vary most are shown, with many groups the first ones; the sentence says so.
    """
    style = style_for(metric.scale)
    groups = _groups(result, metric, style.factor)
    if not groups:
        return None
    shown = groups[:_MOST_GROUPS]
    classes = _widest_classes(shown)
    title = f"{metric.name}: differences between runs in every class"
    values = [
        part[name] for group in shown for part in (group.differences, group.chance) for name in classes if name in part
    ]
    return Figure(
        name=f"{metric.name}-classes",
        title=title,
        sentence=_class_sentence(groups, len(classes), style),
        x=value_axis(
            f"largest difference between two runs ({style.difference_unit or metric.name})",
            [0.0, *values],
        ),
        y=row_axis("class", [f"class {name}" for name in classes]),
        data=_class_data_table(metric.name, title, groups, style),
        dots=tuple(_dots(shown, classes)),
        tiles=tuple(_chance_tiles(shown, classes)),
        legend=(
            *(Legend(group.name, shape_of(group.series), group.series) for group in shown),
            *([Legend(_chance_words(shown), None, GREY, area=True)] if any(group.chance for group in shown) else []),
        ),
    )


def _chance(result: StudyResult, group: GroupResult, metric: JudgedMetric, factor: float) -> dict[str, float]:
    """What chance alone stays within in 95 of 100 cases, a class."""
    return {gap.name: factor * gap.chance_gap_95 for gap in group.gaps} if metric == result.primary else {}


def _chance_words(groups: Sequence[_Group]) -> str:
    return _CHANCE if len(groups) == 1 else f"{_CHANCE}, behind each mark"


def _chance_tiles(groups: Sequence[_Group], classes: Sequence[str]) -> Iterator[Tile]:
    """Behind the mark of each group its own: chance does more where fewer examples are right."""
    high = 0.4 if len(groups) == 1 else 0.45 * _apart(groups)
    for place, group in enumerate(groups):
        for row, name in enumerate(classes):
            if bound := group.chance.get(name):
                title = f"class {name}, {group.name}: chance alone gives up to {bound:.3g}"
                middle = row + _above(place, groups)
                yield Tile((0.0, bound), (middle - high, middle + high), GREY, 0.35, title)


def _groups(result: StudyResult, metric: JudgedMetric, factor: float) -> list[_Group]:
    keys = [group.key for group in result.groups]
    names = row_names(keys)
    found = [
        _Group(
            names[group.key],
            series,
            _differences(group.selections[0], metric.name, factor),
            _chance(result, group, metric, factor),
        )
        for group, series in zip(result.groups, distinct_series(keys), strict=True)
    ]
    return [group for group in found if group.differences]


def _differences(one: SelectionResult, metric: str, factor: float) -> dict[str, float]:
    spreads = one.every.metrics[metric].classes.items()
    return {name: factor * spread.max_difference for name, spread in spreads if spread.max_difference is not None}


def _widest_classes(groups: Sequence[_Group]) -> list[str]:
    """All classes in their order, or those that vary most where there are too many to show."""
    names = _class_names(groups)
    widest = {name: max(group.differences.get(name, 0.0) for group in groups) for name in names}
    if len(names) <= _MOST_CLASSES:
        return names
    return sorted(names, key=lambda name: -widest[name])[:_MOST_CLASSES]


def _class_names(groups: Sequence[_Group]) -> list[str]:
    return list(dict.fromkeys(name for group in groups for name in group.differences))


def _dots(groups: Sequence[_Group], classes: Sequence[str]) -> Iterator[Dot]:
    """A little above each other, so that groups with the same difference do not hide each other."""
    for place, group in enumerate(groups):
        for row, name in enumerate(classes):
            if name in group.differences:
                difference = group.differences[name]
                title = f"class {name}, {group.name}: {difference:.3g}"
                yield Dot(difference, row + _above(place, groups), shape_of(group.series), group.series, title)


def _apart(groups: Sequence[_Group]) -> float:
    return min(_APART, 3 * _APART / len(groups))


def _above(place: int, groups: Sequence[_Group]) -> float:
    """How far above the middle of a row the mark of this group is."""
    return _apart(groups) * (place - (len(groups) - 1) / 2)


def _class_sentence(groups: Sequence[_Group], shown_classes: int, style: NumberStyle) -> str:
    worst = max(groups, key=lambda group: max(group.differences.values()))
    name = max(worst.differences, key=lambda name: worst.differences[name])
    if not worst.differences[name]:
        return "No class varies between runs."
    amount = style.difference_with_unit(style.difference(worst.differences[name] / style.factor))
    sentence = f"A single class varies by up to {amount} between two runs (class {name}, {worst.name})."
    classes = len(_class_names(groups))
    if shown_classes < classes:
        sentence += f" Shown are the {shown_classes} of {classes} classes that vary most."
    if len(groups) > _MOST_GROUPS:
        sentence += f" Shown are the first {_MOST_GROUPS} of {len(groups)} groups."
    return sentence


def _class_data_table(metric: str, title: str, groups: Sequence[_Group], style: NumberStyle) -> Table:
    rows = tuple(
        (name, *(f"{group.differences[name]:.3g}" if name in group.differences else UNKNOWN for group in groups))
        for name in _class_names(groups)
    )
    columns = (Column("class", key=True), *(Column(group.name, style.difference_sign) for group in groups))
    return Table(f"data-{metric}-classes", f"Data: {title}", columns, rows, folded=True)
