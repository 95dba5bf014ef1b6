"""Overall spread between runs: the left half of the paper's Table 2, for any study."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from isorun.analysis.evidence.judged import JudgedMetric
from isorun.analysis.spreads.spread import Spread
from isorun.analysis.studies.selection import FINAL
from isorun.analysis.studies.study_result import StudyResult
from isorun.report.numbers import count, significant, style_for
from isorun.report.row_keys import GROUP_COLUMNS, group_cells, interval_cell
from isorun.report.tables import Column, Table
from isorun.report.weak_views import has_weak, view

__all__ = ["spread_tables"]

_INTERVAL: Final = "The 90 % interval of sd is the chi-square interval for normal values."


def spread_tables(result: StudyResult, metric: JudgedMetric) -> Iterator[Table]:
    """All runs; where some are weak, also the others alone."""
    yield _overall_table(result, metric, without_weak=False)
    if has_weak(result):
        yield _overall_table(result, metric, without_weak=True)


def _overall_table(result: StudyResult, metric: JudgedMetric, *, without_weak: bool) -> Table:
    style = style_for(metric.scale)
    columns = (
        *GROUP_COLUMNS,
        Column("judged at", key=True),
        Column("n"),
        Column("mean", style.unit),
        Column("sd", style.difference_sign),
        Column("90 % interval of sd", style.difference_sign),
        Column("max diff", style.difference_sign),
        Column("min", style.unit),
        Column("max", style.unit),
    )
    rows = tuple(
        (
            *group_cells(group.key),
            rule.selection.name,
            *_spread_cells(view(rule, without_weak).metrics[metric.name].overall, metric),
        )
        for group in result.groups
        for rule in group.selections
    )
    ending = ", without weak runs" if without_weak else ""
    return Table(
        name=f"overall-{metric.name}{'-without-weak' if without_weak else ''}",
        title=f"{metric.name}: spread between runs{ending}",
        columns=columns,
        rows=rows,
        notes=(_weak_counts(result),) if without_weak else tuple(_overall_notes(result, metric)),
    )


def _overall_notes(result: StudyResult, metric: JudgedMetric) -> Iterator[str]:
    points = " pts: percentage points." if style_for(metric.scale).difference_sign else ""
    yield f"sd: standard deviation over runs (n - 1). {_INTERVAL} max diff: largest minus smallest run.{points}"
    rules = [f"{rule.name}: the epoch with the best {rule.metric}" for rule in result.selections if rule != FINAL]
    if rules:
        yield f"Judged at: {'; '.join(rules)}."
    if metric == result.primary and result.weak is not None:
        yield _weak_note(result)
    if metric == result.primary:
        yield from (f"{group.key.label}: {group.noise.sentence}" for group in result.groups if group.noise is not None)
    excluded = sum(
        rule.every.metrics[metric.name].overall.excluded for group in result.groups for rule in group.selections
    )
    if excluded:
        yield f"{count(excluded, 'value')} not finite (NaN or infinite) and left out."


def _weak_note(result: StudyResult) -> str:
    assert result.weak is not None
    assert result.primary is not None
    if result.weak.below is None:
        return f"{result.weak.reason[0].upper()}{result.weak.reason[1:]}."
    style = style_for(result.primary.scale)
    below = style.with_unit(significant(result.weak.below * style.factor, 3))
    return f"Weak: {result.primary.name} below {below}, {result.weak.reason}. {_weak_counts(result)}"


def _weak_counts(result: StudyResult) -> str:
    weak = [group for group in result.groups if group.selections[0].weak_runs]
    if not weak:
        return "No run is weak."
    parts = [
        f"{len(group.selections[0].weak_runs)} of {len(group.selections[0].runs)} ({group.key.label})" for group in weak
    ]
    return f"Weak runs: {'; '.join(parts)}."


def _spread_cells(spread: Spread, metric: JudgedMetric) -> tuple[str, ...]:
    style = style_for(metric.scale)
    return (
        str(spread.n),
        style.value(spread.mean, spread.sd),
        style.difference(spread.sd),
        interval_cell(spread, style),
        style.difference(spread.max_difference, spread.sd),
        style.value(spread.minimum, spread.sd),
        style.value(spread.maximum, spread.sd),
    )
