"""Summaries: what the runs of each group look like, the numbers of Pham et al. (ASE 2020), tables 2 and 3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from isorun.analysis.evidence.condition import Condition
from isorun.analysis.evidence.units import Counting, Units, counted, counting_of, units_of
from isorun.analysis.inputs.samples import Interval
from isorun.analysis.inputs.tables import Group, Table, read_table
from isorun.analysis.spreads.robust_means import interquartile_mean
from isorun.analysis.spreads.spread import spread
from isorun.errors import InputError

__all__ = ["GroupSummary", "column_names", "summarize"]


@dataclass(frozen=True, slots=True)
class GroupSummary:
    """The runs that share their labels.

    group: column to label. sd has n - 1 in the denominator; sd_ci90 is its chi-square interval for normal values.
    iqm: the mean of the middle half. max_diff: the largest minus the smallest. rel_sd: sd over mean; rel_max_diff:
    max_diff over the smallest value. None where one run, or a zero to divide by, allows no answer.
    dropped: how many values were left out because they were not finite numbers.
    units: how many independent draws the n runs are, and unit: what one is. With fewer units than runs there is no
    interval of the sd: its law is that of independent runs.
    """

    group: Mapping[str, str]
    n: int
    mean: float
    sd: float | None
    sd_ci90: Interval | None
    median: float
    iqm: float
    min: float
    max: float
    max_diff: float
    rel_sd: float | None
    rel_max_diff: float | None
    units: int
    unit: str
    dropped: int = 0
    warnings: tuple[Condition, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain JSON with the documented keys."""
        return {
            "group": dict(self.group),
            "n": self.n,
            "mean": self.mean,
            "sd": self.sd,
            "sd_ci90": None if self.sd_ci90 is None else list(self.sd_ci90),
            "median": self.median,
            "iqm": self.iqm,
            "min": self.min,
            "max": self.max,
            "max_diff": self.max_diff,
            "rel_sd": self.rel_sd,
            "rel_max_diff": self.rel_max_diff,
            "dropped": self.dropped,
            "units": self.units,
            "unit": self.unit,
            "warnings": [warning.to_json() for warning in self.warnings],
        }


def summarize(
    data: Any,
    *,
    value: str,
    by: str | Sequence[str] = (),
    where: Mapping[str, str] | None = None,
    drop_missing: bool = False,
    unit: str | Counting | None = None,
) -> tuple[GroupSummary, ...]:
    """Summaries of column `value` for each combination of the labels in the columns `by`, ordered by label.

    data: anything `read_table` reads. where: only rows with these labels. Values that are not finite are an error
    unless drop_missing leaves them out and counts them. unit: the column that says what was drawn independently.
    """
    table = read_table(data).where(where or {})
    counting = unit if isinstance(unit, Counting) else counting_of(table, unit)
    groups = table.groups(value, column_names(by, tuple(table.columns)), drop_missing=drop_missing)
    return tuple(_summary(table, group, value, counting) for group in groups)


def column_names(by: str | Sequence[str], columns: Sequence[str]) -> tuple[str, ...]:
    """The columns that "model,setting" or ("model", "setting") name; a column's own name may hold a comma."""
    if not isinstance(by, str):
        return tuple(by)
    if by in columns or not by:
        return (by,) if by else ()
    return tuple(name.strip() for name in by.split(","))


def _summary(table: Table, group: Group, value: str, counting: Counting) -> GroupSummary:
    finite = group.values.finite
    if not finite.size:
        raise InputError(
            f"group {group.name!r} has no finite value in column {value!r}",
            found=f"{group.values.dropped} values, all missing, NaN or infinite",
        )
    return _summary_of(units_of(table, group.values, counting), group.labels, group.values.dropped)


def _summary_of(units: Units, labels: Mapping[str, str], dropped: int) -> GroupSummary:
    """The summary of at least one finite value."""
    finite = units.runs
    seen = spread(finite)
    assert seen.mean is not None
    assert seen.median is not None
    smallest, largest = float(finite.min()), float(finite.max())
    return GroupSummary(
        group=dict(labels),
        n=seen.n,
        mean=seen.mean,
        sd=seen.sd,
        sd_ci90=seen.sd_interval if units.count == finite.size else None,
        median=seen.median,
        iqm=interquartile_mean(finite),
        min=smallest,
        max=largest,
        max_diff=largest - smallest,
        rel_sd=seen.relative_sd,
        rel_max_diff=seen.relative_difference,
        units=units.count,
        unit=units.noun,
        dropped=dropped,
        warnings=_warnings(units),
    )


def _warnings(units: Units) -> tuple[Condition, ...]:
    if units.count == units.runs.size:
        return ()
    message = f"{counted(units)}: the runs are not independent, so their sd has no interval"
    return (Condition("fewer-units", message, "isorun mixed tells what comes from seeds and what from repeats"),)
