"""The sides of a check: the groups of recorded runs, of a table, or of a list of numbers.

A group is known by its approach, config, environment and level. A table that lacks some of these columns stands for all
labels of them, as long as the study has one group alone that could be meant.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from isorun.analysis.checks import CheckedSide
from isorun.analysis.evidence.run_units import FINAL_WEIGHTS
from isorun.analysis.evidence.units import (
    Counting,
    counting_of,
    listed_units,
    refuse_value_as_unit,
    unit_labels,
    units_of,
)
from isorun.analysis.measurements import Measurements
from isorun.analysis.samples import FloatArray, mean_of
from isorun.analysis.studies.group_result import GroupResult
from isorun.analysis.studies.study_result import UNIT
from isorun.errors import InputError
from isorun.study.cells import GROUP_FACTORS, Level
from isorun.study.records import RunRecord, RunState

__all__ = ["WEIGHTS", "GroupName", "group_name", "list_side", "paired", "record_side", "table_sides"]

WEIGHTS: Final = "weights"
"""The column of a table with the digest that a run's weights ended with."""


@dataclass(frozen=True, slots=True)
class GroupName:
    """What tells a group apart: one label a factor of the study."""

    approach: str
    config: str
    environment: str
    level: str

    @property
    def label(self) -> str:
        """As reports name it."""
        parts = [self.approach, *(part for part in (self.config, self.environment) if part != "default")]
        return f"{' '.join(parts)} at level {self.level}"

    @property
    def fixes_seed(self) -> bool:
        """Whether a seed of it is drawn once, so that both sides can have the same."""
        return self.level != str(Level.DEFAULT)


def group_name(group: GroupResult) -> GroupName:
    """The name of a group of recorded runs."""
    key = group.key
    return GroupName(key.approach, key.config, key.environment, str(key.level))


def record_side(group: GroupResult, records: Sequence[RunRecord], selection: str, metric: str) -> CheckedSide:
    """The units of a recorded group. A run that picks no epoch, or whose value is not finite, has ended without one."""
    judged = group.selection(selection)
    by_unit: defaultdict[str, list[float]] = defaultdict(list)
    for run in sorted(judged.runs, key=lambda run: (run.repeat, -1 if run.seed is None else run.seed)):
        by_unit[run.unit].append(run.selected.values.get(metric, np.nan))
    for run_id in judged.unjudged:
        by_unit[group.units.unit[run_id]].append(np.nan)
    values = np.array([_mean(runs) for runs in by_unit.values()], dtype=np.float64)
    weights: defaultdict[str, set[str]] = defaultdict(set)
    for record in records:
        if record.state is RunState.FINISHED and record.cell.seed is not None and FINAL_WEIGHTS in record.digests:
            weights[str(record.cell.seed)].add(record.digests[FINAL_WEIGHTS])
    failed = {run.run_id.partition("-")[0] for run in group.failed if not run.finished_later}
    return CheckedSide(
        values,
        tuple(by_unit),
        sum(map(len, by_unit.values())),
        "seed" if group.key.level.fixes_seed else "run",
        len(failed),
        {seed: frozenset(found) for seed, found in weights.items()},
    )


def _mean(values: Sequence[float]) -> float:
    """That of equal runs is exactly their value; NaN where one of them has none."""
    return mean_of(values) if np.isfinite(values).all() else float("nan")


_RESULT: Final = "result."
"""Plain tables of a package write a metric's final values under its name behind this."""


def table_sides(table: Measurements, value: str, asked: Sequence[GroupName]) -> dict[GroupName, CheckedSide]:
    """The rows of a table that belong to each group that is asked for; groups that have none are left out."""
    if value not in table.columns and f"{_RESULT}{value}" in table.columns:
        value = f"{_RESULT}{value}"
    table.column(value)
    columns = [name for name in GROUP_FACTORS if name in table.columns]
    telling = {tuple(getattr(name, column) for column in columns) for name in asked}
    if len(telling) < len(asked):
        missing = [name for name in GROUP_FACTORS if name not in columns and len({getattr(a, name) for a in asked}) > 1]
        raise InputError(
            f"which rows of {table.source} belong to which group of the study is not said",
            found=f"{len(asked)} groups, and no column {', '.join(missing)}",
            hint=f"where={{{missing[0]!r}: …}} (--where {missing[0]}=…) keeps one group, or add the column",
        )
    found = {name: _rows(table, {column: getattr(name, column) for column in columns}) for name in asked}
    return {name: _table_side(part, value, name) for name, part in found.items() if part is not None}


def _rows(table: Measurements, labels: Mapping[str, str]) -> Measurements | None:
    """The rows with these labels; None where there are none."""
    for column, label in labels.items():
        if label not in table.labels(column):
            return None
        table = table.where({column: label})
    return table if table.rows else None


def _table_side(table: Measurements, value: str, name: GroupName) -> CheckedSide:
    has_units = UNIT in table.columns
    counting = Counting(UNIT, "unit", recorded=True) if has_units else counting_of(table)
    refuse_value_as_unit(counting, value)
    (group,) = table.groups(value, ())
    units = units_of(table, group.values, counting)
    noun = "seed" if name.fixes_seed and counting.column else "run"
    return CheckedSide(units.values, units.labels, int(units.runs.size), noun, weights=_table_weights(table))


def _table_weights(table: Measurements) -> dict[str, frozenset[str]]:
    if WEIGHTS not in table.columns or "seed" not in table.columns:
        return {}
    found: defaultdict[str, set[str]] = defaultdict(set)
    for seed, digest in zip(unit_labels(table, "seed"), table.labels(WEIGHTS), strict=True):
        if seed and digest:
            found[seed].add(digest)
    return {seed: frozenset(digests) for seed, digests in found.items()}


def list_side(numbers: FloatArray) -> CheckedSide:
    """A plain list of runs, of which nothing else is known."""
    units = listed_units(numbers)
    return CheckedSide(units.values, units.labels, int(numbers.size))


def paired(new: CheckedSide, baseline: CheckedSide) -> tuple[CheckedSide, CheckedSide]:
    """Both sides with the units that both have, in one order."""
    shared = [label for label in new.labels if label in baseline.labels]
    return _in_order(new, shared), _in_order(baseline, shared)


def _in_order(side: CheckedSide, labels: Sequence[str]) -> CheckedSide:
    places = {label: place for place, label in enumerate(side.labels)}
    return replace(side, values=side.values[[places[label] for label in labels]], labels=tuple(labels))
