"""The result of one group: all its runs under every selection rule, with and without weak runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from isorun.analysis.evidence.identical import IdenticalRuns
from isorun.analysis.evidence.provenance import Provenance
from isorun.analysis.evidence.run_units import RunUnits
from isorun.analysis.spreads.class_gaps import ClassGap
from isorun.analysis.spreads.spread import Spread, pooled_sd, spread
from isorun.analysis.spreads.test_noise import NoiseShares
from isorun.analysis.studies.curves import LearningCurves
from isorun.analysis.studies.selection import Selected
from isorun.study.design import Selection
from isorun.study.levels import Level
from isorun.study.records import RunRecord, RunState

__all__ = [
    "Cost",
    "FailedRun",
    "GroupKey",
    "GroupResult",
    "JudgedRun",
    "MetricSpread",
    "RuleResult",
    "RuleSpread",
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
    """One finished run as a rule sees it.

    unit: the independent draw that it belongs to. distinct: the run that it is a copy of, itself where it is none.
    """

    run_id: str
    seed: int | None
    repeat: int
    selected: Selected
    weak: bool
    unit: str = ""
    distinct: str = ""


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
class RuleSpread:
    """All that varies between the runs under one rule. seconds / epochs: training up to the epoch picked."""

    metrics: Mapping[str, MetricSpread]
    seconds: Spread
    epochs: Spread


@dataclass(frozen=True, slots=True)
class RuleResult:
    """One selection rule. without_weak: None when no run is weak. unjudged: run id to why the rule picked nothing."""

    rule: Selection
    runs: tuple[JudgedRun, ...]
    unjudged: Mapping[str, str]
    every: RuleSpread
    without_weak: RuleSpread | None

    @property
    def weak_runs(self) -> tuple[str, ...]:
        """The ids of the weak runs."""
        return tuple(run.run_id for run in self.runs if run.weak)

    def by_seed(self, metric: str) -> Mapping[int | None, Spread]:
        """The spread among the runs of each seed."""
        seeds = dict.fromkeys(run.seed for run in self.runs)
        return {seed: spread(values_of([run for run in self.runs if run.seed == seed], metric)) for seed in seeds}

    def within_seed_sd(self, metric: str) -> float | None:
        """The standard deviation among runs of the same seed, pooled over seeds."""
        return pooled_sd(self.by_seed(metric).values())

    def values(self, metric: str) -> tuple[float, ...]:
        """The value of every run that has one, NaN included."""
        return tuple(values_of(self.runs, metric))


@dataclass(frozen=True, slots=True)
class Cost:
    """What the finished runs of a group took."""

    wall_seconds: Spread
    cpu_seconds: Spread
    peak_memory_bytes: Spread


@dataclass(frozen=True, slots=True)
class FailedRun:
    """A run without a result. finished_later: another attempt at the same cell succeeded."""

    run_id: str
    state: RunState
    reason: str
    log_end: str
    finished_later: bool


@dataclass(frozen=True, slots=True)
class GroupResult:
    """Everything about one group.

    planned: the cells the study has for it. noise: what the finite test set does, where predictions were kept.
    gaps: the classes' gaps by the primary metric and rule beside what chance gives, where labels were kept.
    units: what the finished runs count as. provenance: from which code, machine and launch they come.
    """

    key: GroupKey
    planned: int
    states: Mapping[RunState, int]
    rules: tuple[RuleResult, ...]
    identical: tuple[IdenticalRuns, ...]
    cost: Cost
    curves: tuple[LearningCurves, ...]
    failed: tuple[FailedRun, ...]
    noise: NoiseShares | None
    gaps: tuple[ClassGap, ...]
    units: RunUnits
    provenance: Provenance

    @property
    def finished(self) -> int:
        """How many runs finished."""
        return self.states[RunState.FINISHED]

    def rule(self, name: str) -> RuleResult:
        """The result under the rule of this name."""
        return next(item for item in self.rules if item.rule.name == name)


def values_of(runs: Iterable[JudgedRun], metric: str) -> list[float]:
    """The value of every run that has one, NaN included."""
    return [run.selected.values[metric] for run in runs if metric in run.selected.values]
