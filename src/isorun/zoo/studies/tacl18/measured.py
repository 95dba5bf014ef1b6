"""What the records say, in the words of the paper's tables: data set, side, environment, seed, AP and RR."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from isorun.analysis.evidence.run_units import FINAL_WEIGHTS, INITIAL_WEIGHTS
from isorun.study.records import Predictions, RunRecord, RunState
from isorun.zoo.studies.tacl18.environments import CPU_PATHS

__all__ = ["METRICS", "Condition", "Run", "conditions", "last_attempts", "lost_runs", "runs_of", "used_made_data"]

METRICS: Final[Mapping[str, str]] = {"AP": "map", "RR": "mrr"}
"""The paper's names and the training's: means over questions of average precision and reciprocal rank."""
_ENVIRONMENT_ORDER: Final = tuple(path.name for path in CPU_PATHS)


@dataclass(frozen=True, slots=True)
class Run:
    """A finished run. side: the config's name, with what was used where that is something else.

    hardware: the processor or GPU that the run saw. threads: what torch used, None where it does not say.
    test_set: as the training command names the data, empty for made data. predictions: the score of every test pair.
    """

    data: str
    side: str
    environment: str
    seed: int
    ap: float
    rr: float
    hardware: str
    threads: int | None
    initial: str
    final: str
    test_set: str
    predictions: Predictions | None

    def value(self, metric: str) -> float:
        """The value behind "AP" or "RR"."""
        return self.ap if metric == "AP" else self.rr


@dataclass(frozen=True, slots=True)
class Condition:
    """The identical runs of one data set, side and environment with one seed."""

    data: str
    side: str
    environment: str
    runs: tuple[Run, ...]

    def values(self, metric: str) -> tuple[float, ...]:
        """The metric of every run."""
        return tuple(run.value(metric) for run in self.runs)

    def mean(self, metric: str) -> float:
        """The mean of identical runs: their common value, where they are identical in fact."""
        values = self.values(metric)
        return values[0] if min(values) == max(values) else math.fsum(values) / len(values)

    @property
    def weights(self) -> frozenset[str]:
        """The different digests of the final weights."""
        return frozenset(run.final for run in self.runs if run.final)


def runs_of(records: Iterable[RunRecord]) -> tuple[Run, ...]:
    """The finished runs with both scores, in the order of the paper's tables: data set, side, environment, seed."""
    return tuple(sorted((_run(record) for record in records if _is_scored(record)), key=_order))


def lost_runs(records: Iterable[RunRecord]) -> tuple[RunRecord, ...]:
    """The runs that gave no result: failed, stopped, or without finite scores."""
    return tuple(record for record in records if not _is_scored(record))


def last_attempts(records: Iterable[RunRecord]) -> tuple[RunRecord, ...]:
    """One record a cell: a failed run that was made again is no loss."""
    last: dict[str, RunRecord] = {}
    for record in records:
        known = last.get(record.cell.id)
        if known is None or record.attempt > known.attempt:
            last[record.cell.id] = record
    return tuple(last.values())


def used_made_data(records: Iterable[RunRecord]) -> bool:
    """Whether any run read data made on the spot, so that its scores stand beside no published one."""
    return any("--made-data" in record.cell.command for record in records)


def conditions(runs: Sequence[Run]) -> tuple[Condition, ...]:
    """The runs by data set, side and environment, in the order in which they first come."""
    grouped: dict[tuple[str, str, str], list[Run]] = {}
    for run in runs:
        grouped.setdefault((run.data, run.side, run.environment), []).append(run)
    return tuple(Condition(*key, tuple(group)) for key, group in grouped.items())


def _order(run: Run) -> tuple[str, str, int, str, int]:
    """CPU before GPU and TrecQA before WikiQA, as the alphabet has it; environments as they are declared."""
    known = run.environment in _ENVIRONMENT_ORDER
    return (run.data, run.side, _ENVIRONMENT_ORDER.index(run.environment) if known else 0, run.environment, run.seed)


def _is_scored(record: RunRecord) -> bool:
    scores = [record.results.get(name, math.nan) for name in METRICS.values()]
    return record.state is RunState.FINISHED and all(math.isfinite(score) for score in scores)


def _run(record: RunRecord) -> Run:
    cell, effective = record.cell, record.environment.get("effective", {})
    return Run(
        data=cell.approach,
        side=_side(cell.config, cell.config_values, effective),
        environment=cell.environment,
        seed=cell.seed if cell.seed is not None else (record.seed_used or 0),
        ap=record.results[METRICS["AP"]],
        rr=record.results[METRICS["RR"]],
        hardware=_hardware(effective),
        threads=_part(effective, "torch").get("threads"),
        initial=record.digests.get(INITIAL_WEIGHTS, ""),
        final=record.digests.get(FINAL_WEIGHTS, ""),
        test_set="" if used_made_data([record]) else _word_after("--data", cell.command),
        predictions=next((item for item in record.predictions if item.step is None), None),
    )


def _word_after(option: str, command: Sequence[str]) -> str:
    return command[command.index(option) + 1] if option in command[:-1] else ""


def _side(name: str, values: Mapping[str, Any], effective: Mapping[str, Any]) -> str:
    """A request for a GPU that ended on the CPU must not be taken for a GPU run."""
    asked_for_gpu = values.get("device") == "cuda"
    return f"{name}, run on the CPU" if asked_for_gpu and not _gpus(effective) else name


def _hardware(effective: Mapping[str, Any]) -> str:
    gpus = _gpus(effective)
    return str(gpus[0]) if gpus else str(_part(effective, "cpu").get("model", ""))


def _gpus(effective: Mapping[str, Any]) -> Sequence[Any]:
    """The GPUs that torch had started when the run ended; none for a run that used the CPU alone."""
    return _part(effective, "gpu").get("devices") or ()


def _part(effective: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = effective.get(name)
    return part if isinstance(part, Mapping) else {}
