"""Identical runs: their weights, and whether fixing more makes the spread smaller."""

from __future__ import annotations

from collections.abc import Iterator

from isorun.analysis.evidence.judged import JudgedMetric
from isorun.analysis.evidence.run_units import FINAL_WEIGHTS, INITIAL_WEIGHTS, IdenticalRuns
from isorun.analysis.studies.group_result import GroupResult
from isorun.analysis.studies.study_result import LevelComparison, StudyResult
from isorun.report.numbers import UNKNOWN, p_value, significant, style_for
from isorun.report.row_keys import GROUP_COLUMNS, group_cells
from isorun.report.tables import Column, Table

__all__ = ["identical_tables"]


def identical_tables(result: StudyResult) -> Iterator[Table]:
    """Distinct weights among identical runs, and Levene's test between levels."""
    yield _identical_table(result)
    yield _levels_table(result)


def _identical_table(result: StudyResult) -> Table:
    metric = result.primary
    unit = style_for(metric.scale).difference_sign if metric else ""
    columns = (
        *GROUP_COLUMNS,
        Column("seed", key=True),
        Column("runs"),
        Column("initial", group="distinct weights"),
        Column("final", group="distinct weights"),
        Column("sd", unit, metric.name if metric else ""),
        Column("max diff", unit, metric.name if metric else ""),
    )
    rows = tuple(
        (
            *group_cells(group.key),
            _seed(same),
            str(same.runs),
            *_digest_cells(same),
            *_same_seed_cells(group, same, metric),
        )
        for group in result.groups
        for same in group.identical
    )
    note = "Runs in one row had everything fixed that their level fixes. 1 distinct: bit for bit the same weights."
    unknown = ("—: no run left such a digest.",) if any(UNKNOWN in row for row in rows) else ()
    return Table(
        "identical", "Identical runs: do the same seeds give the same weights?", columns, rows, (note, *unknown)
    )


def _seed(same: IdenticalRuns) -> str:
    return "drawn anew" if same.seed is None else str(same.seed)


def _digest_cells(same: IdenticalRuns) -> tuple[str, ...]:
    counts = (same.digest(name) for name in (INITIAL_WEIGHTS, FINAL_WEIGHTS))
    return tuple(UNKNOWN if item is None else _distinct(item.distinct, item.runs, same.runs) for item in counts)


def _distinct(distinct: int, digested: int, runs: int) -> str:
    return str(distinct) if digested == runs else f"{distinct} (of {digested})"


def _same_seed_cells(group: GroupResult, same: IdenticalRuns, metric: JudgedMetric | None) -> tuple[str, str]:
    spread = group.selections[0].by_seed(metric.name).get(same.seed) if metric else None
    if metric is None or spread is None:
        return UNKNOWN, UNKNOWN
    style = style_for(metric.scale)
    return style.difference(spread.sd), style.difference(spread.max_difference, spread.sd)


def _levels_table(result: StudyResult) -> Table:
    unit = style_for(result.primary.scale).difference_sign if result.primary else ""
    columns = (
        *(column for column in GROUP_COLUMNS if column.title != "level"),
        Column("levels", key=True),
        Column("judged at", key=True),
        Column("first", unit, "sd"),
        Column("second", unit, "sd"),
        Column("W"),
        Column("p"),
    )
    rows = tuple(_level_cells(item, result) for item in result.levels)
    reasons = dict.fromkeys(f"—: {item.why_not}." for item in result.levels if item.why_not)
    note = "Levene's test, centred at medians, weak runs included: a small p says that the two levels differ in spread."
    return Table("levels", "Does fixing more make the spread smaller?", columns, rows, (note, *reasons))


def _level_cells(item: LevelComparison, result: StudyResult) -> tuple[str, ...]:
    assert result.primary is not None
    style = style_for(result.primary.scale)
    return (
        item.approach,
        item.config,
        item.environment,
        f"{item.level_a} / {item.level_b}",
        item.selection,
        style.difference(item.sd_a),
        style.difference(item.sd_b),
        UNKNOWN if item.test is None else significant(item.test.statistic, 3),
        UNKNOWN if item.test is None else p_value(item.test.p),
    )
