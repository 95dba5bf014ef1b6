"""The runs of a study as a table for machines: numbers as they were recorded, and nothing where nothing is known.

Tables on pages are for people, whose digits are rounded by what runs spread by. Whoever takes a CSV computes with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isorun.report import Column, Table
from isorun.study.cells import GROUP_FACTORS

if TYPE_CHECKING:
    from isorun.analysis.studies.group_result import GroupResult, JudgedRun
    from isorun.analysis.studies.study_result import StudyResult

__all__ = ["every_run"]


def every_run(result: StudyResult) -> Table:
    """Each finished run with its group, and all metrics that were judged, in their own numbers."""
    metrics = [metric.name for metric in result.metrics]
    titles = (*GROUP_FACTORS, "run", "seed", *metrics, "epoch", "weights")
    rows = tuple(
        _row(group, run, metrics) for group in result.groups if group.selections for run in group.selections[0].runs
    )
    return Table("every-run", "Every finished run", tuple(map(Column, titles)), rows)


def _row(group: GroupResult, run: JudgedRun, metrics: list[str]) -> tuple[str, ...]:
    names = [str(getattr(group.key, factor)) for factor in GROUP_FACTORS]
    values = [_number(run.selected.values.get(name)) for name in metrics]
    seed = "" if run.seed is None else str(run.seed)
    return (*names, run.run_id, seed, *values, _number(run.selected.step), run.weights)


def _number(value: float | None) -> str:
    """All digits; a whole number without a point."""
    if value is None:
        return ""
    return str(int(value)) if value == value // 1 and abs(value) < 2**53 else repr(float(value))
