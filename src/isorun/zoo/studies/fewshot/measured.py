"""What the records of the studies say: finished runs with their accuracy, and what is missing and why.

Of the control: the same training with the same seed, many times; by how much do the results differ?
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from isorun.analysis.spreads import spread
from isorun.report import UNKNOWN, fixed
from isorun.study.records import RunRecord, RunState
from isorun.zoo.paper import last_attempts
from isorun.zoo.studies.fewshot.design import METRIC
from isorun.zoo.studies.fewshot.experiments import experiment_round
from isorun.zoo.studies.fewshot.published import TABLE_5

__all__ = [
    "Collected",
    "ControlResult",
    "ControlRun",
    "FinishedRun",
    "Identical",
    "collect",
    "control_results",
    "control_runs",
    "data_of",
    "identical_settings",
]

_WEIGHTS = "weights.final"


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """A finished run of section 4. weights: digest of the trained weights, "" where none was left."""

    approach: str
    experiment: str
    round: int
    config: str
    seed: str
    repeat: str
    accuracy: float
    weights: str

    @property
    def setting(self) -> tuple[str, str, str]:
        """What identical runs share, in whichever round: experiment, config and seed."""
        return (self.experiment, self.config, self.seed)


@dataclass(frozen=True, slots=True)
class ControlRun:
    """A finished run of the control."""

    control: str
    accuracy: float
    weights: str


@dataclass(frozen=True, slots=True)
class Identical:
    """Of the settings with two runs or more: how many always gave the same accuracy, and bit for bit the same weights.

    same_weights: None where runs left no digest of their weights.
    """

    settings: int
    same_accuracy: int
    same_weights: int | None

    @property
    def no_noise(self) -> bool:
        """Whether identical runs always gave the same accuracy."""
        return self.settings > 0 and self.same_accuracy == self.settings


@dataclass(frozen=True, slots=True)
class Collected:
    """runs: with a finite accuracy. failed, unusable: cells by approach that failed, or ended without such a value."""

    runs: tuple[FinishedRun, ...]
    failed: Mapping[str, int]
    unusable: Mapping[str, int]


def collect(records: Iterable[RunRecord]) -> Collected:
    """The runs of section 4; a cell counts as failed when no attempt at it finished."""
    known = [record for record in records if experiment_round(record.cell.approach)]
    finished = [record for record in last_attempts(known) if record.state is RunState.FINISHED]
    usable = [record for record in finished if math.isfinite(accuracy_of(record))]
    done = {record.cell.id for record in finished}
    failed = {record.cell.id: record.cell.approach for record in known if record.cell.id not in done}
    return Collected(
        tuple(_run(record) for record in usable),
        Counter(failed.values()),
        Counter(record.cell.approach for record in finished if not math.isfinite(accuracy_of(record))),
    )


def control_runs(records: Iterable[RunRecord]) -> tuple[ControlRun, ...]:
    """The control's runs that ended with a finite accuracy."""
    finished = [record for record in last_attempts(records) if record.state is RunState.FINISHED]
    return tuple(
        ControlRun(record.cell.approach, accuracy_of(record), record.digests.get(_WEIGHTS, ""))
        for record in finished
        if math.isfinite(accuracy_of(record))
    )


def accuracy_of(record: RunRecord) -> float:
    """The run's final accuracy, NaN where it left none."""
    return record.results.get(METRIC, math.nan)


def data_of(records: Iterable[RunRecord]) -> tuple[str, ...]:
    """The data sets the runs were made with, as their commands say; made data where none was at hand."""
    found: dict[str, None] = {}
    for record in records:
        command = record.cell.command
        if "--made-data" in command:
            found["small data made on the spot"] = None
        elif "--data" in command[:-1]:
            found[command[command.index("--data") + 1]] = None
    return tuple(found)


def identical_settings(runs: Iterable[FinishedRun]) -> Identical:
    """Count the settings whose runs, of both rounds, gave the same."""
    by_setting = defaultdict(list)
    for run in runs:
        by_setting[run.setting].append(run)
    several = [group for group in by_setting.values() if len(group) > 1]
    known = all(run.weights for group in several for run in group)
    return Identical(
        settings=len(several),
        same_accuracy=sum(len({run.accuracy for run in group}) == 1 for group in several),
        same_weights=sum(len({run.weights for run in group}) == 1 for group in several) if known and several else None,
    )


def _run(record: RunRecord) -> FinishedRun:
    cell = record.cell
    found = experiment_round(cell.approach)
    assert found is not None
    seed = "" if cell.seed is None else str(cell.seed)
    weights = record.digests.get(_WEIGHTS, "")
    return FinishedRun(cell.approach, *found, cell.config, seed, str(cell.repeat), accuracy_of(record), weights)


@dataclass(frozen=True, slots=True)
class ControlResult:
    """n finished runs of one control; mean and sd (n - 1) as fractions, None where there are too few.

    weights: how many different trained weights they left, None where runs left no digest.
    """

    control: str
    n: int
    mean: float | None
    sd: float | None
    weights: int | None

    @property
    def text(self) -> str:
        """As Table 5 writes it, in percent."""
        if self.mean is None:
            return UNKNOWN
        return f"{fixed(100.0 * self.mean, 2)} (± {fixed(None if self.sd is None else 100.0 * self.sd, 2)})"


def control_results(runs: Sequence[ControlRun]) -> tuple[ControlResult, ...]:
    """One for each column of Table 5, with or without runs."""
    return tuple(_result(name, [run for run in runs if run.control == name]) for name in TABLE_5)


def _result(name: str, runs: Sequence[ControlRun]) -> ControlResult:
    found = spread(run.accuracy for run in runs)
    digests = {run.weights for run in runs}
    return ControlResult(name, found.n, found.mean, found.sd, len(digests) if digests and "" not in digests else None)
