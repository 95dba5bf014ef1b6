"""What the records say, in the words of the paper's tables: data set, side, environment, seed, AP and RR.

And how far a factor moves the scores, beside what published systems claim to have gained.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from isorun.analysis.evidence.run_units import FINAL_WEIGHTS, INITIAL_WEIGHTS
from isorun.analysis.studies.conditions import FEWEST_RUNS
from isorun.study.records import Predictions, RunRecord, RunState
from isorun.zoo.studies.tacl18.published import SYSTEMS, Score, gains
from isorun.zoo.studies.tacl18.scales import CPU_PATHS

__all__ = [
    "METRICS",
    "SYSTEMS_OF",
    "Effect",
    "ScoredRun",
    "Setting",
    "chance_difference",
    "claimed_gains",
    "effect",
    "largest_difference",
    "lost_runs",
    "runs_of",
    "setting_effects",
    "settings",
    "used_made_data",
]

METRICS: Final[Mapping[str, str]] = {"AP": "map", "RR": "mrr"}
"""The paper's names and the training's: means over questions of average precision and reciprocal rank."""
_ENVIRONMENT_ORDER: Final = tuple(path.name for path in CPU_PATHS)


@dataclass(frozen=True, slots=True)
class ScoredRun:
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
class Setting:
    """The identical runs of one data set, side and environment with one seed."""

    data: str
    side: str
    environment: str
    runs: tuple[ScoredRun, ...]

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


def runs_of(records: Iterable[RunRecord]) -> tuple[ScoredRun, ...]:
    """The finished runs with both scores, in the order of the paper's tables: data set, side, environment, seed."""
    return tuple(sorted((_run(record) for record in records if _is_scored(record)), key=_order))


def lost_runs(records: Iterable[RunRecord]) -> tuple[RunRecord, ...]:
    """The runs that gave no result: failed, stopped, or without finite scores."""
    return tuple(record for record in records if not _is_scored(record))


def used_made_data(records: Iterable[RunRecord]) -> bool:
    """Whether any run read data made on the spot, so that its scores stand beside no published one."""
    return any("--made-data" in record.cell.command for record in records)


def settings(runs: Sequence[ScoredRun]) -> tuple[Setting, ...]:
    """The runs by data set, side and environment, in the order in which they first come."""
    grouped: dict[tuple[str, str, str], list[ScoredRun]] = {}
    for run in runs:
        grouped.setdefault((run.data, run.side, run.environment), []).append(run)
    return tuple(Setting(*key, tuple(group)) for key, group in grouped.items())


def _order(run: ScoredRun) -> tuple[str, str, int, str, int]:
    """CPU before GPU and TrecQA before WikiQA, as the alphabet has it; environments as they are declared."""
    known = run.environment in _ENVIRONMENT_ORDER
    return (run.data, run.side, _ENVIRONMENT_ORDER.index(run.environment) if known else 0, run.environment, run.seed)


def _is_scored(record: RunRecord) -> bool:
    scores = [record.results.get(name, math.nan) for name in METRICS.values()]
    return record.state is RunState.FINISHED and all(math.isfinite(score) for score in scores)


def _run(record: RunRecord) -> ScoredRun:
    cell, effective = record.cell, record.environment.get("effective", {})
    return ScoredRun(
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


SYSTEMS_OF: Final[Mapping[str, str]] = {"TrecQA": "TrecQA raw", "WikiQA": "WikiQA"}
"""Which list of published systems stands beside a column of the paper's tables."""


_TWO_RUNS: Final = 1.96 * math.sqrt(2.0)


@dataclass(frozen=True, slots=True)
class Effect:
    """A factor's largest difference in one metric of one data set. of: how many values it is the range of.

    published: the same in the paper, None where it has none. gains: published ones over the best system before.
    bar: what they are held against. Of settings that is our difference; of seeds, whose range grows with their number,
    the difference that two single runs exceed by chance in 5 % of cases, 1.96 sqrt(2) sd; None where seeds are too few.
    smaller: how many gains are below the bar.
    """

    factor: str
    data: str
    metric: str
    difference: float
    of: int
    published: float | None
    gains: int
    bar: float | None
    smaller: int | None

    @property
    def is_of_seeds(self) -> bool:
        """Whether the values are draws (seeds) and not settings."""
        return self.factor.startswith("seed")

    @property
    def exceeds_most_gains(self) -> bool:
        """Whether chance under this factor could pass for more than half of the published gains."""
        return self.smaller is not None and 2 * self.smaller > self.gains

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "factor": self.factor,
            "data": self.data,
            "metric": self.metric,
            "difference": self.difference,
            "of": self.of,
            "published": self.published,
            "gains": self.gains,
            "bar": self.bar,
            "smaller_gains": self.smaller,
        }


def effect(
    factor: str, data: str, metric: str, values: Sequence[float], published: float | None, *, seeds: bool = False
) -> Effect | None:
    """The effect over two or more values; None over fewer. seeds: the values are draws, not settings."""
    difference = largest_difference(values)
    if difference is None:
        return None
    claimed = claimed_gains(data, metric)
    bar = chance_difference(values) if seeds else difference
    smaller = None if bar is None else sum(gain < bar for gain in claimed)
    return Effect(factor, data, metric, difference, len(values), published, len(claimed), bar, smaller)


def chance_difference(values: Sequence[float]) -> float | None:
    """What two single runs differ by at most in 95 % of cases, for normal values; None below five of them."""
    return _TWO_RUNS * statistics.stdev(values) if len(values) >= FEWEST_RUNS else None


def setting_effects(
    factor: str, found: Sequence[Setting], published: Iterable[Mapping[str, Score]]
) -> tuple[Effect, ...]:
    """The effects of a factor with these settings, for every data set and metric."""
    theirs = list(published)
    effects = []
    for data in dict.fromkeys(setting.data for setting in found):
        for metric in METRICS:
            values = [setting.mean(metric) for setting in found if setting.data == data]
            printed = [row[data].value(metric) for row in theirs if data in row]
            effects.append(effect(factor, data, metric, values, largest_difference(printed)))
    return tuple(item for item in effects if item is not None)


def largest_difference(values: Sequence[float]) -> float | None:
    """The largest minus the smallest of two or more values."""
    return round(max(values) - min(values), 12) if len(values) > 1 else None


def claimed_gains(data: str, metric: str) -> tuple[float, ...]:
    """The published gains over the best system before; systems that came out no better claim none."""
    added = gains(SYSTEMS[SYSTEMS_OF[data]], metric) if data in SYSTEMS_OF else ()
    return tuple(gain for gain in added if gain is not None and gain > 0)
