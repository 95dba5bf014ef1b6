"""Time and epochs to the epoch judged: the paper's Table 3, for any study."""

from __future__ import annotations

from collections.abc import Iterator

from isorun.analysis.spreads.spread import Spread
from isorun.analysis.studies.group_result import SelectionSpread
from isorun.analysis.studies.study_result import StudyResult
from isorun.report.numbers import percentage, seconds, whole
from isorun.report.row_keys import GROUP_COLUMNS, group_cells
from isorun.report.tables import Column, Table
from isorun.report.weak_views import has_weak, view

__all__ = ["time_tables"]


def time_tables(result: StudyResult) -> Iterator[Table]:
    """Seconds, also without weak runs where there are some, and epochs."""
    yield _convergence_table(result, without_weak=False)
    if has_weak(result):
        yield _convergence_table(result, without_weak=True)
    yield _epochs_table(result)


def _convergence_table(result: StudyResult, *, without_weak: bool) -> Table:
    titles = (("mean", "s"), ("Diff", "s"), ("RelDiff", "%"), ("RelSDev", "%"))
    columns = [Column(title, unit, rule.name) for rule in result.selections for title, unit in titles]
    rows = tuple(
        (
            *group_cells(group.key),
            *(cell for rule in group.selections for cell in _time_cells(view(rule, without_weak))),
        )
        for group in result.groups
        if group.finished
    )
    return Table(
        name=f"time{'-without-weak' if without_weak else ''}",
        title=f"Seconds to the epoch judged{', without weak runs' if without_weak else ''}",
        columns=(*GROUP_COLUMNS, *columns),
        rows=rows,
        notes=("Diff: slowest minus fastest run. RelDiff: Diff over the fastest. RelSDev: sd over mean.",),
    )


def _time_cells(spread: SelectionSpread) -> tuple[str, ...]:
    time = spread.seconds
    return (
        seconds(time.mean),
        seconds(time.max_difference),
        percentage(time.relative_difference),
        percentage(time.relative_sd),
    )


def _epochs_table(result: StudyResult) -> Table:
    titles = (("mean", ""), ("min", ""), ("max", ""), ("RelSDev", "%"))
    columns = [Column(title, unit, rule.name) for rule in result.selections for title, unit in titles]
    rows = tuple(
        (*group_cells(group.key), *(cell for rule in group.selections for cell in _epoch_cells(rule.every.epochs)))
        for group in result.groups
        if any(rule.every.epochs.n for rule in group.selections)
    )
    return Table("epochs", "Epochs to the epoch judged", (*GROUP_COLUMNS, *columns), rows)


def _epoch_cells(epochs: Spread) -> tuple[str, ...]:
    return (
        whole(epochs.mean),
        whole(epochs.minimum),
        whole(epochs.maximum),
        percentage(epochs.relative_sd),
    )
