"""Deciding: run, look, and run more until the verdict is in or the budget is out."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from isorun import workflow
from isorun.analysis.sequential.decision import Decision
from isorun.analysis.sequential.looks import FEWEST_RUNS
from isorun.analysis.sequential.verdict import decide as decide_runs
from isorun.analysis.sequential.verdict import next_action
from isorun.errors import InputError, NothingRecorded, known_names
from isorun.execution.base import AbstractExecutor
from isorun.execution.scheduler import Observer
from isorun.questions import GROUP_FACTORS, Results, refuse_pooling, results
from isorun.study.cells import Cell
from isorun.study.design import Study
from isorun.study.extension import extended
from isorun.study.levels import Level
from isorun.study.plan import cells_of
from isorun.study.records import RunState

__all__ = ["Sides", "StudyDecision", "decide", "decide_study"]


def decide(data: Any, second: Any = None, /, *, direction: str | None = None, **options: Any) -> Decision:
    """Who is better, with a bounded error rate however often one looks.

    decide(runs_a, runs_b, direction="higher"): from the runs made so far, in the order they were made.
    decide("study.toml"): makes more runs until the verdict is in, or max_runs a side are made.
    """
    if second is not None:
        return decide_runs(data, second, direction=direction or "higher", **options)
    return decide_study(data, direction=direction, **options).decision


@dataclass(frozen=True, slots=True)
class StudyDecision:
    """A decision on a study, with the names of both sides and how many runs were made for it.

    stopped: why the work ended before the rule said so. to_keep: what to write into the study so that its reports show
    the runs that were made beyond it.
    """

    decision: Decision
    a: str
    b: str
    runs_made: int
    stopped: str = ""
    to_keep: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON: the sides, then the decision's own keys."""
        return {"a": self.a, "b": self.b, "runs_made": self.runs_made, **self.decision.to_json()}


@dataclass(frozen=True, slots=True)
class Sides:
    """Which cells of a study are compared: those where `by` is a or b and every other factor is as in `fixed`."""

    by: str
    a: str
    b: str
    fixed: Mapping[str, str]

    @property
    def level(self) -> Level:
        """The level of both sides; when levels are compared, the one that leaves more open."""
        levels = [Level(self.a), Level(self.b)] if self.by == "level" else [Level(self.fixed["level"])]
        return Level.DEFAULT if Level.DEFAULT in levels else levels[0]

    def has(self, cell: Cell) -> bool:
        """Whether the cell belongs to one of the sides."""
        return _label(cell, self.by) in (self.a, self.b) and all(
            _label(cell, name) == label for name, label in self.fixed.items()
        )

    def values(self, found: Results, value: str | None) -> list[np.ndarray[Any, np.dtype[np.float64]]]:
        """The values of both sides in the order they were planned: a number a run, or a seed's mean over repeats.

        Repeats of one seed among several are not independent of each other, so together they count once.
        """
        table = found.table.where(self.fixed)
        numbers, labels = table.numbers(found.value(value)), table.labels(self.by)
        seeds = table.labels("seed")
        sides = []
        for side in (self.a, self.b):
            rows = [row for row, label in enumerate(labels) if label == side]
            by_seed = {seed: [float(numbers[row]) for row in group] for seed, group in _grouped(rows, seeds)}
            units = [[statistics.fmean(runs)] for runs in by_seed.values()] if len(by_seed) > 1 else by_seed.values()
            sides.append(np.array([value for unit in units for value in unit], dtype=np.float64))
        return sides


def sides_of(study: Study, by: str | None, a: str | None, b: str | None, where: Mapping[str, str] | None) -> Sides:
    """The two sides of a study, from what was said and what the study leaves no choice about."""
    cells = _cells_where(study, where or {})
    labels = {name: list(dict.fromkeys(_label(cell, name) for cell in cells)) for name in GROUP_FACTORS}
    varying = [name for name, values in labels.items() if len(values) > 1]
    factor = by or (varying[0] if len(varying) == 1 else "")
    if factor not in GROUP_FACTORS:
        raise InputError(
            "which factor tells the sides apart is not clear",
            found=by or f"the study varies in: {', '.join(varying) or 'nothing'}",
            allowed=known_names(by or "", GROUP_FACTORS),
            hint="by=… (--by), and where={…} (--where) for the others",
        )
    first, second = _two_labels(labels[factor], a, b)
    refuse_pooling(labels, factor)
    return Sides(factor, first, second, {name: labels[name][0] for name in GROUP_FACTORS if name != factor})


def decide_study(
    study: Study | str | Path,
    *,
    by: str | None = None,
    a: str | None = None,
    b: str | None = None,
    where: Mapping[str, str] | None = None,
    value: str | None = None,
    direction: str | None = None,
    rule: str | None = None,
    store: str | Path | None = None,
    jobs: int = 1,
    launch: str = "auto",
    executor: AbstractExecutor | None = None,
    observer: Observer | None = None,
    on_look: Callable[[Decision], None] | None = None,
    **options: Any,
) -> StudyDecision:
    """Make runs of the two sides until the rule says to stop; options as in `verdict.decide`."""
    study = workflow.load(study, store=store)
    sides = sides_of(study, by, a, b, where)
    units, made = int(options.get("min_runs", FEWEST_RUNS)), 0
    while True:
        larger = extended(study, sides.level, units)
        outcome = workflow.run(
            larger, store=store, jobs=jobs, launch=launch, executor=executor, observer=observer, only=sides.has
        )
        made += len(outcome.records)
        found = results(larger, store=store, rule=rule)
        decision = _look(found, sides, value, {"direction": found.direction(direction), **options})
        if on_look is not None:
            on_look(decision)
        action = next_action(decision)
        stuck = outcome.count(RunState.FINISHED) == 0 and made > 0
        if action.stop or outcome.stopped or stuck:
            reason = outcome.stopped or ("the last runs all failed" if stuck and not action.stop else "")
            return StudyDecision(decision, sides.a, sides.b, made, reason, _beyond(study, larger))
        units = min(decision.n_a, decision.n_b) + max(action.runs_a, action.runs_b, 1)


def _beyond(study: Study, larger: Study) -> str:
    if larger.repeats > study.repeats:
        return f"repeats = {larger.repeats}"
    return f"seeds = {list(larger.seeds)}" if larger.seeds != study.seeds else ""


def _look(found: Results, sides: Sides, value: str | None, options: Mapping[str, Any]) -> Decision:
    values = sides.values(found, value)
    if not all(side.size for side in values):
        name = sides.a if not values[0].size else sides.b
        raise NothingRecorded(f"no run of {name!r} has finished", hint="isorun report shows why runs failed")
    return decide_runs(*values, **options)


def _cells_where(study: Study, where: Mapping[str, str]) -> list[Cell]:
    cells = list(cells_of(study))
    for name, label in where.items():
        if name not in GROUP_FACTORS:
            raise InputError(f"a study has no factor {name!r}", allowed=known_names(name, GROUP_FACTORS))
        labels = dict.fromkeys(_label(cell, name) for cell in cells)
        if label not in labels:
            raise InputError(f"no {name} of the study is {label!r}", allowed=known_names(label, labels))
        cells = [cell for cell in cells if _label(cell, name) == label]
    return cells


def _two_labels(labels: list[str], a: str | None, b: str | None) -> tuple[str, str]:
    for name in (a, b):
        if name is not None and name not in labels:
            raise InputError(f"the study has no {name!r} to compare", allowed=known_names(name, labels))
    if a is None and b is None and len(labels) == 2:
        return labels[0], labels[1]
    if a is None or b is None or a == b:
        raise InputError("say which two to compare: a and b (--a, --b)", allowed=", ".join(labels))
    return a, b


def _label(cell: Cell, factor: str) -> str:
    return str(getattr(cell, factor))


def _grouped(rows: list[int], seeds: list[str]) -> list[tuple[str, list[int]]]:
    ordered = sorted(rows, key=lambda row: seeds[row])
    groups = [(seed, sorted(group)) for seed, group in itertools.groupby(ordered, key=lambda row: seeds[row])]
    return sorted(groups, key=lambda item: item[1][0])
