"""Scores of many approaches out of a table: by approach, and by task or by what pairs their runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from isorun.analysis.evidence.condition import Condition
from isorun.analysis.evidence.unit_conditions import counting_conditions
from isorun.analysis.evidence.units import Counting, Units, paired_units, refuse_value_as_unit, units_of
from isorun.analysis.inputs.samples import FloatArray
from isorun.analysis.inputs.tables import Table
from isorun.analysis.leaderboards.compare_many import ManyComparison, compare_many
from isorun.analysis.leaderboards.task_scores import TaskScores, same_tasks, task_scores
from isorun.errors import InputError

__all__ = ["BoardScores", "board_scores"]


@dataclass(frozen=True, slots=True)
class BoardScores:
    """The runs of every approach by task, and the blocks that make approaches comparable one by one.

    scores: one value a unit. blocks: a value for each approach and block: tasks' means, or runs that belong together;
    None without both. units: every approach's, task after task.
    """

    scores: Mapping[str, TaskScores]
    blocks: Mapping[str, FloatArray] | None
    notes: tuple[str, ...] = ()
    units: Mapping[str, tuple[Units, ...]] = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()

    def compared(self, *, direction: str, post_hoc: str | None, correction: str) -> ManyComparison:
        """Friedman's test over blocks where there are any, else Kruskal's of all runs."""
        samples = self.blocks or {name: runs.values for name, runs in self.scores.items()}
        paired = self.blocks is not None
        return compare_many(samples, paired=paired, direction=direction, post_hoc=post_hoc, correction=correction)


def board_scores(
    table: Table,
    value: str,
    by: str,
    *,
    counting: Counting,
    task: str | None = None,
    pair: str | None = None,
    drop_missing: bool = False,
) -> BoardScores:
    """The scores in column `value` of the approaches in column `by`."""
    refuse_value_as_unit(counting, value)
    if task and pair:
        hint = "task for several runs on each of many tasks; pair for one run of each approach in each block"
        raise InputError("approaches are compared by task or by pair", found=f"task {task!r}, pair {pair!r}", hint=hint)
    groups = table.groups(value, (by, task) if task else (by,), drop_missing=drop_missing)
    by_task: dict[str, dict[str, Units]] = {}
    for group in groups:
        of_task = by_task.setdefault(group.labels[by], {})
        of_task[group.labels[task] if task else value] = units_of(table, group.values, counting)
    scores = _on_the_same_tasks(by_task)
    units = {name: tuple(tasks.values()) for name, tasks in by_task.items()}
    dropped = sum(group.values.dropped for group in groups)
    notes = [f"{dropped} values are not finite and were left out"] if dropped else []
    told = counting_conditions(table, {group.name: group.values for group in groups}, counting)
    if task:
        return BoardScores(scores, _task_means(scores), tuple(notes), units, told)
    if pair is None:
        return BoardScores(scores, None, tuple(notes), units, told)
    paired = paired_units(table, [group.values for group in groups], pair, counting)
    blocks = {group.labels[by]: side for group, side in zip(groups, paired.sides, strict=True)}
    lost = len(paired.unmatched)
    notes += [f"{lost} labels of {pair!r} are not in every approach, and not in the paired tests"] * (lost > 0)
    return BoardScores(scores, blocks, tuple(notes), units, told)


def _on_the_same_tasks(by_task: Mapping[str, Mapping[str, Units]]) -> dict[str, TaskScores]:
    if len(by_task) < 2:
        found = ", ".join(map(repr, by_task))
        raise InputError("there is nothing to rank", found=f"one approach: {found}", allowed="2 or more approaches")
    values = {name: {task: units.values for task, units in tasks.items()} for name, tasks in by_task.items()}
    data = {name: task_scores(tasks, f"the scores of {name!r}") for name, tasks in values.items()}
    first = next(iter(data.values()))
    return {name: same_tasks(first, runs)[1] for name, runs in data.items()}


def _task_means(scores: Mapping[str, TaskScores]) -> dict[str, FloatArray]:
    return {name: np.array([runs.of(task).mean() for task in runs.tasks]) for name, runs in scores.items()}
