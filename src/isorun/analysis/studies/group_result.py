"""The result of one group: all its runs under every selection, with and without weak runs.

From the records of one group to its result.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from isorun.analysis.evidence.judged import JudgedMetric
from isorun.analysis.evidence.provenance import Provenance, provenance
from isorun.analysis.evidence.run_units import FINAL_WEIGHTS, IdenticalRuns, RunUnits, identical_runs, run_units
from isorun.analysis.spreads import Spread, pooled_sd, spread
from isorun.analysis.spreads.churn import Churn
from isorun.analysis.spreads.class_gaps import ClassGap
from isorun.analysis.spreads.noise import NoiseShares
from isorun.analysis.studies.class_values import (
    answers_of_the_end,
    churn_of_votes,
    group_gaps,
    group_votes,
    noise_of_votes,
)
from isorun.analysis.studies.selection import (
    LearningCurves,
    Selected,
    last_words,
    learning_curves,
    select,
    training_seconds,
)
from isorun.analysis.studies.study_metrics import WeakRule
from isorun.study.cells import Level
from isorun.study.design import Selection
from isorun.study.imported import IMPORTED
from isorun.study.records import RunRecord, RunState, states

__all__ = [
    "Cost",
    "FailedRun",
    "GroupKey",
    "GroupResult",
    "JudgedRun",
    "MetricSpread",
    "SelectionResult",
    "SelectionSpread",
    "analyse_group",
    "values_of",
]


@dataclass(frozen=True, slots=True)
class GroupKey:
    """What the runs of a group share apart from the seed."""

    approach: str
    config: str
    environment: str
    level: Level

    @classmethod
    def of(cls, record: RunRecord) -> GroupKey:
        """The group a record belongs to."""
        cell = record.cell
        return cls(cell.approach, cell.config, cell.environment, cell.level)

    @property
    def label(self) -> str:
        """A name for sentences: the approach, and the config and environment where they are not the default."""
        parts = [self.approach, *(part for part in (self.config, self.environment) if part != "default")]
        return f"{' '.join(parts)} at level {self.level}"


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """One finished run as a selection sees it.

    unit: the independent draw that it belongs to. distinct: the run that it is a copy of, itself where it is none.
    weights: the digest of its final weights, empty where there is none. folder: where what it left lies.
    """

    run_id: str
    seed: int | None
    repeat: int
    selected: Selected
    weak: bool
    unit: str = ""
    distinct: str = ""
    weights: str = ""
    folder: str = ""


@dataclass(frozen=True, slots=True)
class MetricSpread:
    """One metric over the runs, overall and for every class."""

    overall: Spread
    classes: Mapping[str, Spread]

    @property
    def largest_class(self) -> str | None:
        """The class with the largest difference between two runs, the first on ties; None without classes."""
        differences = {name: item.max_difference for name, item in self.classes.items()}
        known = {name: value for name, value in differences.items() if value is not None}
        return max(known, key=lambda name: known[name], default=None)


@dataclass(frozen=True, slots=True)
class SelectionSpread:
    """All that varies between the runs under one selection. seconds / epochs: training up to the epoch picked."""

    metrics: Mapping[str, MetricSpread]
    seconds: Spread
    epochs: Spread


@dataclass(frozen=True, slots=True)
class SelectionResult:
    """One selection. without_weak: None when no run is weak. unjudged: run id to why it picked no epoch."""

    selection: Selection
    runs: tuple[JudgedRun, ...]
    unjudged: Mapping[str, str]
    every: SelectionSpread
    without_weak: SelectionSpread | None

    @property
    def weak_runs(self) -> tuple[str, ...]:
        """The ids of the weak runs."""
        return tuple(run.run_id for run in self.runs if run.weak)

    def by_seed(self, metric: str) -> Mapping[int | None, Spread]:
        """The spread among the runs of each seed."""
        runs: defaultdict[int | None, list[JudgedRun]] = defaultdict(list)
        for run in self.runs:
            runs[run.seed].append(run)
        return {seed: _spread_over(of_seed, metric) for seed, of_seed in runs.items()}

    def within_seed_sd(self, metric: str) -> float | None:
        """The standard deviation among runs of the same seed, pooled over seeds."""
        return pooled_sd(self.by_seed(metric).values())

    def values(self, metric: str) -> tuple[float, ...]:
        """The value of every run that has one, NaN included."""
        return tuple(values_of(self.runs, metric))

    def run_ids(self, metric: str) -> tuple[str, ...]:
        """The runs behind these values."""
        return tuple(run.run_id for run in self.runs if metric in run.selected.values)


@dataclass(frozen=True, slots=True)
class Cost:
    """What the finished runs of a group took.

    startup_seconds: interpreter and imports, over the runs whose start-up is known. training_seconds: the rest of the
    wall time; of a run whose start-up is not known, all of it.
    """

    wall_seconds: Spread
    startup_seconds: Spread
    training_seconds: Spread
    cpu_seconds: Spread
    peak_memory_bytes: Spread


@dataclass(frozen=True, slots=True)
class FailedRun:
    """A run without a result. finished_later: another attempt at the same cell succeeded.

    draw: the unit that has no result by it; empty where that tells nothing of the approach, as when it was interrupted,
    or when a tracker kept it, where trials of everything lie.
    """

    run_id: str
    state: RunState
    reason: str
    log_end: str
    finished_later: bool
    draw: str = ""


@dataclass(frozen=True, slots=True)
class GroupResult:
    """Everything about one group.

    planned: the cells the study has for it. noise: what the finite test set does, where predictions were kept.
    gaps: the classes' gaps by the primary metric and selection beside what chance gives, where labels were kept.
    units: what the finished runs count as. provenance: from which code, machine and launch they come.
    undigested: why runs have no digest of their weights, as they noted it. churn: on which examples the runs disagree,
    where predictions were kept. answers_of_the_end: noise and churn are of what runs answered when they ended, since
    not all left their answers at the epoch judged.
    """

    key: GroupKey
    planned: int
    states: Mapping[RunState, int]
    selections: tuple[SelectionResult, ...]
    identical: tuple[IdenticalRuns, ...]
    cost: Cost
    curves: tuple[LearningCurves, ...]
    failed: tuple[FailedRun, ...]
    noise: NoiseShares | None
    gaps: tuple[ClassGap, ...]
    units: RunUnits
    provenance: Provenance
    undigested: tuple[str, ...] = ()
    churn: Churn | None = None
    answers_of_the_end: bool = False

    @property
    def finished(self) -> int:
        """How many runs finished."""
        return self.states[RunState.FINISHED]

    def selection(self, name: str) -> SelectionResult:
        """The result under the selection of this name."""
        return next(item for item in self.selections if item.selection.name == name)

    def lost(self, selection: str | None = None) -> frozenset[str]:
        """The units with a run that ended without a result: it failed, or picks no epoch.

        selection: the name of one; the first one when not given.
        """
        judged = self.selection(selection) if selection else self.selections[0]
        failed = {run.draw for run in self.failed if not run.finished_later} - {""}
        return frozenset(failed | {self.units.unit[run] for run in judged.unjudged})


def values_of(runs: Iterable[JudgedRun], metric: str) -> list[float]:
    """The value of every run that has one, NaN included."""
    return [run.selected.values[metric] for run in runs if metric in run.selected.values]


def _draws(runs: Sequence[JudgedRun]) -> Mapping[str, str]:
    """Run id to what a spread of these runs counts once: the unit, or among runs of one unit what is no copy."""
    units = {run.run_id: run.unit for run in runs}
    return units if len(set(units.values())) > 1 else {run.run_id: run.distinct for run in runs}


def _spread_over(runs: Sequence[JudgedRun], metric: str) -> Spread:
    return _spread_of([(run, run.selected.values.get(metric)) for run in runs], _draws(runs))


def analyse_group(
    key: GroupKey,
    records: Sequence[RunRecord],
    *,
    planned: int,
    metrics: Sequence[JudgedMetric],
    selections: Sequence[Selection],
    weak: WeakRule | None,
) -> GroupResult:
    """The result of one group from all its records, failed ones included."""
    finished = [record for record in records if record.state is RunState.FINISHED]
    names = [metric.name for metric in metrics]
    shown = dict.fromkeys([*(selection.metric for selection in selections if selection.metric), *names])
    curves = (learning_curves(name, finished) for name in shown)
    units = run_units(finished)
    judged = tuple(_judge(finished, units, selection, names, weak) for selection in selections)
    judged_at = {run.run_id: run.selected.step for run in judged[0].runs}
    votes = group_votes(finished, judged_at, names[0] if names else "")
    return GroupResult(
        key=key,
        planned=planned,
        states=states(records),
        selections=judged,
        identical=identical_runs(finished),
        cost=_cost(finished),
        curves=tuple(curve for curve in curves if curve is not None),
        failed=_failed(records),
        noise=noise_of_votes(votes),
        gaps=_gaps(judged[0], finished, metrics[0]) if metrics else (),
        units=units,
        provenance=provenance(finished),
        undigested=_undigested(finished),
        churn=churn_of_votes(votes),
        answers_of_the_end=answers_of_the_end(finished, judged_at),
    )


def _undigested(finished: Sequence[RunRecord]) -> tuple[str, ...]:
    """Of the runs whose final weights have no digest; what else could not be digested is left aside."""
    without = [record for record in finished if FINAL_WEIGHTS not in record.digests]
    noted = (note.message for record in without for note in record.notes if note.code == "no-digest")
    return tuple(dict.fromkeys(message.removeprefix(f"{FINAL_WEIGHTS}: ") for message in noted))


def _gaps(judged: SelectionResult, finished: Sequence[RunRecord], metric: JudgedMetric) -> tuple[ClassGap, ...]:
    per_class = [run.selected.per_class.get(metric.name, {}) for run in judged.runs]
    return group_gaps(per_class, finished, metric.name, metric.perfect)


def _judge(
    finished: Sequence[RunRecord], units: RunUnits, selection: Selection, names: Sequence[str], weak: WeakRule | None
) -> SelectionResult:
    every = [_judged_run(record, units, selection, names, weak) for record in finished]
    runs = tuple(run for run in every if not run.selected.problem)
    strong = [run for run in runs if not run.weak]
    return SelectionResult(
        selection=selection,
        runs=runs,
        unjudged={run.run_id: run.selected.problem for run in every if run.selected.problem},
        every=_selection_spread(runs, names),
        without_weak=_selection_spread(strong, names) if len(strong) < len(runs) else None,
    )


def _judged_run(
    record: RunRecord, units: RunUnits, selection: Selection, names: Sequence[str], weak: WeakRule | None
) -> JudgedRun:
    selected = select(record, selection, names)
    is_weak = weak is not None and weak.metric in selected.values and weak.is_weak(selected.values[weak.metric])
    return JudgedRun(
        run_id=record.run_id,
        seed=record.cell.seed,
        repeat=record.cell.repeat,
        selected=selected,
        weak=is_weak,
        unit=units.unit[record.run_id],
        distinct=units.distinct[record.run_id],
        weights=str(record.digests.get(FINAL_WEIGHTS, "")),
        folder=str(record.where.get("folder", "")),
    )


def _selection_spread(runs: Sequence[JudgedRun], names: Iterable[str]) -> SelectionSpread:
    return SelectionSpread(
        metrics={name: _metric_spread(name, runs) for name in names},
        seconds=spread(run.selected.seconds for run in runs if run.selected.seconds is not None),
        epochs=_spread_of([(run, run.selected.epochs) for run in runs], _draws(runs)),
    )


def _metric_spread(name: str, runs: Sequence[JudgedRun]) -> MetricSpread:
    per_class = [run.selected.per_class.get(name, {}) for run in runs]
    classes = _in_order({class_name for values in per_class for class_name in values})
    draws = _draws(runs)
    return MetricSpread(
        overall=_spread_over(runs, name),
        classes={
            item: _spread_of([(run, values.get(item)) for run, values in zip(runs, per_class, strict=True)], draws)
            for item in classes
        },
    )


def _spread_of(values: Iterable[tuple[JudgedRun, float | None]], draws: Mapping[str, str]) -> Spread:
    """The spread of what runs have; None has a run that lacks it."""
    having = [(value, draws[run.run_id]) for run, value in values if value is not None]
    return spread([value for value, _ in having], [draw for _, draw in having])


def _in_order(classes: Iterable[str]) -> list[str]:
    """Numbers by size, before names by alphabet."""
    return sorted(classes, key=lambda name: (not name.isdecimal(), int(name) if name.isdecimal() else 0, name))


def _cost(finished: Sequence[RunRecord]) -> Cost:
    """Trackers tell when a run began and ended, and nothing of CPU time and memory."""
    measured = [record for record in finished if record.launch != IMPORTED]
    return Cost(
        wall_seconds=spread(record.wall_seconds for record in finished),
        startup_seconds=spread(run.startup_seconds for run in finished if run.startup_seconds is not None),
        training_seconds=spread(training_seconds(record) for record in finished),
        cpu_seconds=spread(record.cpu_seconds for record in measured),
        peak_memory_bytes=spread(record.peak_memory_bytes for record in measured),
    )


def _failed(records: Sequence[RunRecord]) -> tuple[FailedRun, ...]:
    done = {record.cell.id for record in records if record.state is RunState.FINISHED}
    return tuple(
        FailedRun(
            record.run_id,
            record.state,
            record.reason,
            last_words(record.log_tail),
            record.cell.id in done,
            _lost_draw(record),
        )
        for record in records
        if record.state is not RunState.FINISHED
    )


def _lost_draw(record: RunRecord) -> str:
    """What a failed run would have been a measurement of; attempts at one cell would all have been of one."""
    if record.state is RunState.INTERRUPTED or record.launch == IMPORTED:
        return ""
    return f"cell {record.cell.id}" if record.cell.seed is None else str(record.cell.seed)
