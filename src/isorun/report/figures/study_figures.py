"""The figures of a study, each with a plain sentence on what it shows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from isorun.analysis.evidence.judged import JudgedMetric
from isorun.analysis.spreads.spread import Spread
from isorun.analysis.studies.group_result import GroupResult, JudgedRun, SelectionResult
from isorun.analysis.studies.study_result import StudyResult
from isorun.report.figures.boxplot import BoxRow, RunValue, box_figure
from isorun.report.figures.classes import class_figure
from isorun.report.figures.curves import curve_figures
from isorun.report.figures.description import Figure
from isorun.report.figures.series import row_name, series_of
from isorun.report.numbers import decimals_for, seconds, style_for

__all__ = ["class_figures", "curve_figures", "overall_figures", "study_figures", "time_figures"]

_DETAIL: Final = 3
"""Significant digits of the spread in a figure's data: one more than in the tables."""


def study_figures(result: StudyResult) -> tuple[Figure, ...]:
    """All figures that have something to show, in reading order."""
    return (*overall_figures(result), *class_figures(result), *time_figures(result), *curve_figures(result))


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
    """The metric of every run by the primary rule, a row a group; None without values, or without weak runs to omit."""
    judged = [(group, group.selections[0]) for group in result.groups]
    if without_weak and not any(rule.weak_runs for _, rule in judged):
        return None
    rows = [_metric_row(result, group, rule, metric.name, without_weak) for group, rule in judged]
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
    """Seconds to the epoch judged, a row for every group and rule; None when no two runs can be compared."""
    rows = [
        BoxRow(
            f"{row_name(group.key, [item.key for item in result.groups])}, {rule.selection.name}",
            rule.every.seconds,
            _run_values(rule, lambda run: run.selected.seconds),
            series_of(group.key),
        )
        for group in result.groups
        for rule in group.selections
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


def _metric_row(
    result: StudyResult, group: GroupResult, rule: SelectionResult, metric: str, without_weak: bool
) -> BoxRow:
    view = rule.without_weak if without_weak and rule.without_weak is not None else rule.every
    return BoxRow(
        row_name(group.key, [item.key for item in result.groups]),
        view.metrics[metric].overall,
        _run_values(rule, lambda run: None if without_weak and run.weak else run.selected.values.get(metric)),
        series_of(group.key),
    )


def _run_values(rule: SelectionResult, value: Callable[[JudgedRun], float | None]) -> tuple[RunValue, ...]:
    found = ((run, value(run)) for run in rule.runs)
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
    first = f"{metric.name} varies most in {most.name}, where {words(most.spread)}"
    return f"{first}; least in {least.name}: {words(least.spread)}."
