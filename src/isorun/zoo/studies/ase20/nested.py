"""Seed against kernel noise: repeats within seeds, with deterministic runs of the same seeds beside them.

At level fixed-seed the runs of one seed share initial weights and order, so that only kernels tell them apart: what
varies within seeds is kernel noise, what varies between seeds beyond it is the seed. With deterministic kernels the
seed is all that is left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from isorun.analysis.evidence.run_units import FINAL_WEIGHTS
from isorun.analysis.spreads.nested import NestedDisagreement, NestedVariance, nested_disagreement, nested_variance
from isorun.analysis.spreads.spread import Spread, spread
from isorun.analysis.studies.class_values import predicted_and_labels
from isorun.analysis.studies.group_result import GroupResult
from isorun.study.levels import Level
from isorun.study.records import RunRecord, RunState
from isorun.zoo.studies.ase20.design import METRIC, SELECTIONS
from isorun.zoo.studies.ase20.measured import PartResult

__all__ = ["FEWEST_REPEATS", "FEWEST_SEEDS", "RULES", "Convergence", "Nested", "NestedRun", "SeedRuns", "nested_of"]

LAST: Final = "last-epoch"
RULES: Final = (*SELECTIONS, LAST)
FEWEST_SEEDS: Final = 5
FEWEST_REPEATS: Final = 3
"""Below these nothing is said about shares: the interval would be nearly everything there is."""


@dataclass(frozen=True, slots=True)
class NestedRun:
    """One run. accuracy and epoch: under each selection rule and after the last epoch.

    per_class: class to accuracy at the best validation loss.
    """

    seed: int
    repeat: int
    accuracy: Mapping[str, float]
    epoch: Mapping[str, int]
    per_class: Mapping[str, float]
    weights: str


@dataclass(frozen=True, slots=True)
class SeedRuns:
    """All runs at one level, seed by seed."""

    level: Level
    runs: tuple[NestedRun, ...]

    @property
    def by_seed(self) -> Mapping[int, tuple[NestedRun, ...]]:
        """Seed to its runs."""
        seeds = dict.fromkeys(run.seed for run in self.runs)
        return {seed: tuple(run for run in self.runs if run.seed == seed) for seed in seeds}

    @property
    def fewest_repeats(self) -> int:
        """Runs of the seed that has the fewest."""
        return min((len(runs) for runs in self.by_seed.values()), default=0)

    @property
    def different_weights(self) -> int:
        """Different final weights, added up over the seeds."""
        return sum(len({run.weights for run in runs}) for runs in self.by_seed.values())

    def values(self, rule: str) -> list[list[float]]:
        """Accuracies under a rule, a list a seed."""
        return [[run.accuracy[rule] for run in runs] for runs in self.by_seed.values()]

    def between(self, rule: str) -> Spread:
        """The spread of the seeds' means."""
        return spread(float(np.mean(values)) for values in self.values(rule))

    def components(self, rule: str) -> NestedVariance | None:
        """Variance between and within seeds."""
        return nested_variance(self.values(rule))


@dataclass(frozen=True, slots=True)
class Convergence:
    """Whether the trainings had stopped improving: means over all runs, epoch by epoch."""

    val_loss: tuple[float, ...]
    val_accuracy: tuple[float, ...]
    test_accuracy: tuple[float, ...]

    @property
    def epochs(self) -> int:
        """How many epochs every run had."""
        return len(self.val_loss)

    @property
    def late_gain(self) -> float | None:
        """By how much the last third of the epochs raised the mean validation accuracy; None below three epochs."""
        before = self.val_accuracy[: -(self.epochs // 3) or None]
        return self.val_accuracy[-1] - before[-1] if self.epochs >= 3 else None


@dataclass(frozen=True, slots=True)
class Nested:
    """The whole design. deterministic: None where none was run. disagreement: of answers after the last epoch."""

    network: str
    data: str
    fixed: SeedRuns
    deterministic: SeedRuns | None
    disagreement: NestedDisagreement | None
    convergence: Convergence

    @property
    def is_enough(self) -> bool:
        """Whether there are seeds and repeats enough to speak of shares."""
        return len(self.fixed.by_seed) >= FEWEST_SEEDS and self.fixed.fewest_repeats >= FEWEST_REPEATS

    def to_json(self) -> dict[str, Any]:
        """Plain JSON, with every run."""
        return {
            "network": self.network,
            "data": self.data,
            "fixed_seed": _level_json(self.fixed),
            "deterministic": self.deterministic and _level_json(self.deterministic),
            "disagreement": self.disagreement and self.disagreement.to_json(),
            "convergence": {
                "epochs": self.convergence.epochs,
                "val_loss": list(self.convergence.val_loss),
                "val_accuracy": list(self.convergence.val_accuracy),
                "test_accuracy": list(self.convergence.test_accuracy),
                "late_gain": self.convergence.late_gain,
            },
        }


def nested_of(parts: Sequence[PartResult], records: Mapping[str, Sequence[RunRecord]]) -> Nested | None:
    """From the parts with repeats within seeds; None where none of them has a run at level fixed-seed."""
    nested = [part for part in parts if part.planned.nested and part.result]
    levels = {item.level: (part, item) for part in nested for item in _levels(part, records)}
    if Level.FIXED_SEED not in levels:
        return None
    part, fixed = levels[Level.FIXED_SEED]
    finished = _finished(records.get(part.planned.name, ()))
    return Nested(
        part.planned.networks[0].name,
        part.planned.data,
        fixed,
        levels[Level.DETERMINISTIC][1] if Level.DETERMINISTIC in levels else None,
        _disagreement(finished),
        _convergence(finished),
    )


def _levels(part: PartResult, records: Mapping[str, Sequence[RunRecord]]) -> list[SeedRuns]:
    groups = part.result.groups if part.result else ()
    finished = _finished(records.get(part.planned.name, ()))
    return [SeedRuns(group.key.level, _runs(group, finished)) for group in groups if group.finished]


def _runs(group: GroupResult, records: Sequence[RunRecord]) -> tuple[NestedRun, ...]:
    by_id = {record.run_id: record for record in records}
    judged = {rule.selection.name: {run.run_id: run for run in rule.runs} for rule in group.selections}
    ids = [run for run in by_id if all(METRIC in _values(found, run) for found in judged.values())]
    return tuple(
        NestedRun(
            seed=by_id[name].cell.seed or 0,
            repeat=by_id[name].cell.repeat,
            accuracy={
                **{rule: found[name].selected.values[METRIC] for rule, found in judged.items()},
                LAST: by_id[name].series[METRIC].values[-1],
            },
            epoch={
                **{rule: found[name].selected.epochs or 0 for rule, found in judged.items()},
                LAST: len(by_id[name].series[METRIC].values),
            },
            per_class=judged[RULES[0]][name].selected.per_class.get(METRIC, {}),
            weights=by_id[name].digests.get(FINAL_WEIGHTS, ""),
        )
        for name in sorted(ids, key=lambda name: (by_id[name].cell.seed or 0, by_id[name].cell.repeat))
    )


def _values(found: Mapping[str, Any], run: str) -> Mapping[str, float]:
    return found[run].selected.values if run in found else {}


def _finished(records: Sequence[RunRecord]) -> list[RunRecord]:
    return [record for record in records if record.state is RunState.FINISHED]


def _disagreement(records: Sequence[RunRecord]) -> NestedDisagreement | None:
    found = [(record.cell.seed, predicted_and_labels(record, None)) for record in records]
    answers = [(seed, pair[0]) for seed, pair in found if pair is not None]
    if len({len(rows) for _, rows in answers}) != 1:
        return None
    return nested_disagreement(np.array([rows for _, rows in answers]), [seed for seed, _ in answers])


def _convergence(records: Sequence[RunRecord]) -> Convergence:
    names = ("val_loss", "val_accuracy", METRIC)
    series = [[record.series[name].values for record in records if name in record.series] for name in names]
    shortest = min((len(values) for found in series for values in found), default=0)
    means = [
        tuple(float(np.mean([values[epoch] for values in found])) for epoch in range(shortest)) for found in series
    ]
    return Convergence(*means)


def _level_json(found: SeedRuns) -> dict[str, Any]:
    components = {rule: found.components(rule) for rule in RULES}
    between = {rule: found.between(rule) for rule in RULES}
    return {
        "seeds": len(found.by_seed),
        "runs": len(found.runs),
        "different_final_weights": found.different_weights,
        "components": {rule: item and item.to_json() for rule, item in components.items()},
        "seed_means": {
            rule: {"mean": item.mean, "sd": item.sd, "sd_ci90": item.sd_interval} for rule, item in between.items()
        },
        "values": [
            {
                "seed": run.seed,
                "repeat": run.repeat,
                **{rule: {"test_accuracy": run.accuracy[rule], "epoch": run.epoch[rule]} for rule in run.accuracy},
                "per_class": dict(run.per_class),
                "weights": run.weights[:16],
            }
            for run in found.runs
        ],
    }
