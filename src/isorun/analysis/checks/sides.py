"""The sides of a check: the groups of recorded runs, of a table, or of a list of numbers.

A group is known by its approach, config, environment and level. A table that lacks some of these columns stands for all
labels of them, as long as the study has one group alone that could be meant.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from isorun.analysis.checks import CheckedSide
from isorun.analysis.evidence import Condition
from isorun.analysis.evidence.run_units import FINAL_WEIGHTS
from isorun.analysis.evidence.units import (
    Counting,
    counting_conditions,
    counting_of,
    listed_units,
    names_seed,
    pooled_conditions,
    refuse_value_as_unit,
    unit_conditions,
    unit_labels,
    units_of,
    units_of_rows,
)
from isorun.analysis.measurements import Measurements, Values
from isorun.analysis.samples import FloatArray, mean_of
from isorun.analysis.studies.group_result import GroupResult
from isorun.analysis.studies.study_result import DISTINCT, UNIT
from isorun.errors import InputError
from isorun.study.cells import GROUP_FACTORS, Level
from isorun.study.records import RunRecord, RunState

__all__ = ["WEIGHTS", "CountedRows", "GroupName", "group_name", "list_side", "paired", "record_side", "table_sides"]

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


_SAY_WHAT_WAS_DRAWN: Final = "a column 'seed' in the table says what was drawn: rows that share a label are one unit"
_RESULT: Final = "result."
"""Plain tables of a package write a metric's final values under its name behind this."""


def table_sides(table: Measurements, value: str, asked: Sequence[GroupName]) -> dict[GroupName, CheckedSide]:
    """The rows of a table that belong to each group that is asked for; groups that have none are left out."""
    value = _column_of(table, value)
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


@dataclass(frozen=True, slots=True)
class CountedRows:
    """The rows of a table that are one side: unit, seed and value of each, and what is known of how they are counted.

    A value may be none. The seed is the unit where the table tells none.
    """

    rows: tuple[tuple[str, str, float], ...]
    conditions: tuple[Condition, ...]

    @classmethod
    def of(cls, table: Measurements, value: str, name: GroupName) -> CountedRows | None:
        """Those of a group; None where there are none."""
        columns = [factor for factor in GROUP_FACTORS if factor in table.columns]
        part = _rows(table, {column: getattr(name, column) for column in columns})
        if part is None:
            return None
        value, counting = _column_of(table, value), _counting(part)
        refuse_value_as_unit(counting, value)
        (group,) = part.groups(value, (), drop_missing=True)
        units = units_of_rows(part, group.values, counting)
        numbers = [*group.values.finite.tolist(), *[float("nan")] * group.values.dropped]
        order = [*group.values.rows.tolist(), *group.values.left_out.tolist()]
        told = unit_labels(part, counting.seeds or "seed") if "seed" in part.columns else []
        seeds = [told[row] if told else unit for row, unit in zip(order, units, strict=True)]
        return cls(tuple(zip(units, seeds, numbers, strict=True)), _counted(part, group.values, counting))


def _column_of(table: Measurements, value: str) -> str:
    """The column of the metric, however the table calls it."""
    found = f"{_RESULT}{value}" if value not in table.columns and f"{_RESULT}{value}" in table.columns else value
    table.column(found)
    return found


def _counting(table: Measurements) -> Counting:
    return Counting(UNIT, "unit", recorded=True) if UNIT in table.columns else counting_of(table)


def _counted(table: Measurements, group: Values, counting: Counting) -> tuple[Condition, ...]:
    """What is known against how the rows are counted, as where a table is compared by itself."""
    sides = {table.source: group}
    units = units_of(table, group, counting)
    copies = (one for one in unit_conditions({table.source: units}, next_step="") if one.code == "copies")
    counted = (*counting_conditions(table, sides, counting), *copies)
    pooled = pooled_conditions(table, sides, [name for name in table.columns if _names_a_kind(table, name)])
    return (
        *(replace(one, next_step=_SAY_WHAT_WAS_DRAWN) for one in counted),
        *(replace(one, next_step="name a table that holds the rows of one of them alone") for one in pooled),
    )


def _names_a_kind(table: Measurements, name: str) -> bool:
    """Whether a column tells rows apart that are no repetitions of each other: words that come again, as of a model."""
    if name in {UNIT, WEIGHTS, DISTINCT} or names_seed(name) or table.column(name).dtype.kind in "fiub":
        return False
    labels = Counter(label for label in table.labels(name) if label)
    return len(labels) > 1 and min(labels.values()) > 1 and not any(map(_is_number, labels))


def _is_number(label: str) -> bool:
    try:
        float(label)
    except ValueError:
        return False
    return True


def _rows(table: Measurements, labels: Mapping[str, str]) -> Measurements | None:
    """The rows with these labels; None where there are none."""
    for column, label in labels.items():
        if label not in table.labels(column):
            return None
        table = table.where({column: label})
    return table if table.rows else None


def _table_side(table: Measurements, value: str, name: GroupName) -> CheckedSide:
    counting = _counting(table)
    refuse_value_as_unit(counting, value)
    (group,) = table.groups(value, ())
    units = units_of(table, group.values, counting)
    noun = "seed" if name.fixes_seed and counting.column else "run"
    told = _counted(table, group.values, counting)
    runs = int(units.runs.size)
    return CheckedSide(units.values, units.labels, runs, noun, weights=_table_weights(table), conditions=told)


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
