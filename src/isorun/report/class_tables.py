"""Per-class tables: the class that varies most, and all classes beside each other for every group."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Final

from isorun.analysis.evidence.judged import JudgedMetric
from isorun.analysis.spreads import Spread
from isorun.analysis.studies.group_result import GroupResult, MetricSpread
from isorun.analysis.studies.study_result import StudyResult
from isorun.report import UNKNOWN, Column, Table, style_for
from isorun.report.study_tables import (
    GROUP_COLUMNS,
    RESTS_ON,
    group_cells,
    has_weak,
    interval_cell,
    rests_on_cell,
    runs_seen,
    spread_columns,
    spread_rows,
    told_what_rests,
)
from isorun.study import Selection

__all__ = ["class_tables"]

_GROUPS_SIDE_BY_SIDE: Final = 3


def class_tables(result: StudyResult, metric: JudgedMetric) -> Iterator[Table]:
    """The class that varies most and all classes, also without weak runs where there are some.

    Nothing where no run has per-class values. All but the first look are folded.
    """
    if not any(judged.every.metrics[metric.name].classes for group in result.groups for judged in group.selections):
        return
    views = (False, True) if has_weak(result) else (False,)
    yield from (_largest_table(result, metric, without_weak) for without_weak in views)
    for judged in result.selections:
        for without_weak in views:
            yield from _all_classes_tables(result, judged, metric, without_weak)


def _largest_table(result: StudyResult, metric: JudgedMetric, without_weak: bool) -> Table:
    titles = ("class", "max diff", "sd", "90 % interval of sd", RESTS_ON, "min", "max")
    rows = spread_rows(
        result, metric, lambda found: _largest_cells(found, metric), without_weak=without_weak, with_classes=True
    )
    table = Table(
        name=f"class-{metric.name}{_suffix(without_weak)}",
        title=f"{metric.name}: the class that varies most{_ending(without_weak)}",
        columns=(*GROUP_COLUMNS, Column("selection", key=True), *spread_columns(titles, metric)),
        rows=tuple(rows),
        notes=(
            "sd: standard deviation of this class over runs (n - 1).",
            *_end_notes(result, metric, result.selections),
            *_chance_notes(result, metric, without_weak),
        ),
    )
    return told_what_rests(table)


def _end_notes(result: StudyResult, metric: JudgedMetric, selections: Iterable[Selection]) -> Iterator[str]:
    """Where classes are those of another epoch than the one that is judged."""
    names = [
        judged.name
        for judged in selections
        if any(
            metric.name in run.selected.classes_at_end
            for group in result.groups
            for run in group.selection(judged.name).runs
        )
    ]
    if names:
        yield f"Judged at {' and '.join(names)}: classes of runs that logged none there are those that they ended with."


def _chance_notes(result: StudyResult, metric: JudgedMetric, without_weak: bool) -> Iterator[str]:
    """For each group whether its widest gap is what chance alone gives."""
    if without_weak or metric != result.primary:
        return
    for group in result.groups:
        widest = max(group.gaps, key=lambda gap: gap.gap, default=None)
        if widest is not None and widest.gap > 0:
            yield f"{group.key.label}, {widest.sentence}."


def _suffix(without_weak: bool) -> str:
    return "-without-weak" if without_weak else ""


def _ending(without_weak: bool) -> str:
    return ", without weak runs" if without_weak else ""


def _largest_cells(spreads: MetricSpread, metric: JudgedMetric) -> tuple[str, ...]:
    name = spreads.largest_class
    if name is None:
        return (UNKNOWN,) * 7
    style, spread = style_for(metric.scale), spreads.classes[name]
    if not spread.max_difference:
        # No class varies most: the values of one of them would look like those of all.
        return (UNKNOWN, style.difference(spread.max_difference, spread.sd), *(UNKNOWN,) * 5)
    return (
        name,
        style.difference(spread.max_difference, spread.sd),
        style.difference(spread.sd),
        interval_cell(spread, style),
        rests_on_cell(spread),
        style.value(spread.minimum, spread.sd),
        style.value(spread.maximum, spread.sd),
    )


def _all_classes_tables(
    result: StudyResult, judged: Selection, metric: JudgedMetric, without_weak: bool
) -> Iterator[Table]:
    """All classes, a few groups side by side in each table."""
    groups = [group for group in result.groups if group.selection(judged.name).every.metrics[metric.name].classes]
    folded = without_weak or judged != result.selections[0]
    notes = tuple(_end_notes(result, metric, (judged,)))  # once: it asks every group
    for start in range(0, len(groups), _GROUPS_SIDE_BY_SIDE):
        shown = groups[start : start + _GROUPS_SIDE_BY_SIDE]
        part = f"-{start // _GROUPS_SIDE_BY_SIDE + 1}" if start else ""
        yield Table(
            name=f"classes-{metric.name}-{judged.name}{_suffix(without_weak)}{part}",
            title=f"{metric.name} of every class, judged at {judged.name}{_ending(without_weak)}",
            columns=(Column("class", key=True), *_class_columns(shown, metric)),
            rows=tuple(_class_rows(shown, judged, metric, without_weak)),
            notes=notes,
            folded=folded or start > 0,
        )


def _class_columns(groups: list[GroupResult], metric: JudgedMetric) -> Iterator[Column]:
    style = style_for(metric.scale)
    for group in groups:
        heading = _short(group, groups)
        yield Column("mean", style.unit, heading)
        yield Column("sd", style.difference_sign, heading)
        yield Column("max diff", style.difference_sign, heading)


def _class_rows(
    groups: list[GroupResult], judged: Selection, metric: JudgedMetric, without_weak: bool
) -> Iterator[tuple[str, ...]]:
    spreads = [runs_seen(group.selection(judged.name), without_weak).metrics[metric.name].classes for group in groups]
    for name in dict.fromkeys(itertools.chain.from_iterable(spreads)):
        yield (name, *(cell for classes in spreads for cell in _class_cells(classes.get(name), metric)))


def _short(group: GroupResult, groups: list[GroupResult]) -> str:
    """The parts of the group's name that differ between the groups of the table."""
    cells = [group_cells(item.key) for item in groups]
    varying = [place for place in range(4) if len({row[place] for row in cells}) > 1]
    own = group_cells(group.key)
    return " ".join(own[place] for place in varying) or own[-1]


def _class_cells(spread: Spread | None, metric: JudgedMetric) -> tuple[str, str, str]:
    if spread is None:
        return (UNKNOWN, UNKNOWN, UNKNOWN)
    style = style_for(metric.scale)
    return (
        style.value(spread.mean, spread.sd),
        style.difference(spread.sd),
        style.difference(spread.max_difference, spread.sd),
    )
