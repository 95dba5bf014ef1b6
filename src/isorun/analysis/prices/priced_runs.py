"""The runs of a price: what is known of each, which should be the same, and how their times compare."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
from scipy import special

from isorun.analysis.evidence.judged import first_choice
from isorun.analysis.evidence.provenance import effective
from isorun.analysis.evidence.run_units import bits_of
from isorun.analysis.prices import AS_IT_IS, Names
from isorun.study.records import RunRecord

__all__ = [
    "FEWEST_RUNS",
    "MadeRun",
    "PlannedRun",
    "PricedRuns",
    "made_run",
    "mean_ratio",
    "metric_of",
    "ratio_interval",
]

FEWEST_RUNS: Final = 4
"""Two pairs of equal seeds: with fewer nothing is said about a set."""


class PlannedRun(NamedTuple):
    """The run of a set in a block: the runs of a block are made one after the other, in random order."""

    names: Names
    block: int


@dataclass(frozen=True, slots=True)
class MadeRun:
    """What is known of one run. seconds, cpu_seconds: of the training's own work; wall_seconds: of all of it.

    step_seconds: of the work behind its first optimizer step, None where no step was seen. seed: None where none was
    fixed. bits: what it ended with, None where that is not known. value: of the metric, None where there is none.
    """

    seconds: float
    cpu_seconds: float | None = None
    wall_seconds: float = 0.0
    seed: int | None = None
    bits: Hashable | None = None
    value: float | None = None
    step_seconds: float | None = None
    run_id: str = ""


def made_run(record: RunRecord, metric: str) -> MadeRun:
    """What a record says. A training that was cut is timed from the end of its first step on."""
    work = effective(record).get("work") or {}
    seconds, cpu = _worked(work)
    if seconds is None:
        seconds = max(record.wall_seconds - (record.startup_seconds or 0.0), 1e-6)
    seed = record.cell.seed if record.cell.level.fixes_seed else None
    value, first = _value(record, metric), work.get("first_step")
    steps = max(float(work["seconds"]) - float(first["seconds"]), 1e-6) if first else None
    return MadeRun(seconds, cpu, record.wall_seconds, seed, bits_of(record), value, steps, record.run_id)


def _worked(work: Mapping[str, Any]) -> tuple[float | None, float | None]:
    if "seconds" not in work:
        return None, None
    first = work.get("first_step") if work.get("cut") and work.get("steps", 0) > 1 else None
    before = first or {"seconds": 0.0, "cpu_seconds": 0.0}
    seconds = float(work["seconds"]) - float(before["seconds"])
    cpu = float(work["cpu_seconds"]) - float(before["cpu_seconds"])
    return max(seconds, 1e-6), cpu if cpu > 0 else None


def _value(record: RunRecord, metric: str) -> float | None:
    if metric in record.results:
        return record.results[metric]
    series = record.series.get(metric)
    return float(series.values[-1]) if series is not None and len(series.values) else None


def metric_of(records: Iterable[RunRecord], asked: str = "") -> str:
    """The metric whose spread is told: as asked, else the first choice among what the runs have."""
    return asked or first_choice({name for record in records for name in (*record.results, *record.series)}) or ""


@dataclass(slots=True)
class PricedRuns:
    """The runs made so far, by set and block. failed: why a set could not be run.

    needed: steps that no set with identical runs is thought to do without.
    """

    made: dict[PlannedRun, MadeRun] = field(default_factory=dict)
    failed: dict[Names, str] = field(default_factory=dict)
    needed: Names = ()

    def of(self, names: Names) -> dict[int, MadeRun]:
        """The measured runs of a set by block; block 0 is the first of all, which is not measured."""
        return {run.block: made for run, made in self.made.items() if run.names == names and run.block}

    @property
    def spent(self) -> float:
        """Seconds that all runs took."""
        return sum(made.wall_seconds for made in self.made.values())

    def wall(self, names: Names) -> float:
        """How long a run of the set takes, start and end included; as one of the training as it is where none is.

        The very first run reads all files for the first time, and counts only where there is no other.
        """
        own = [made.wall_seconds for run, made in self.made.items() if run.names == names and run.block]
        own = own or [made.wall_seconds for run, made in self.made.items() if run.names == AS_IT_IS]
        return sum(own) / len(own) if own else 0.0

    def by_seed(self, names: Names) -> list[list[MadeRun]]:
        """The runs of a set that should be the same: those of one seed, or all where no seed was fixed."""
        found: dict[int | None, list[MadeRun]] = {}
        for made in self.of(names).values():
            found.setdefault(made.seed, []).append(made)
        return list(found.values())

    def distinct(self, names: Names) -> int | None:
        """How many different ends the runs of one seed came to, at most; None where some end is not known."""
        groups = self.by_seed(names)
        if not groups or any(made.bits is None for group in groups for made in group):
            return None
        return max(len({made.bits for made in group}) for group in groups)

    def unlike(self, names: Names) -> tuple[str, ...]:
        """The ids of two runs that should be the same and are not; none where there are no such."""
        for group in self.by_seed(names):
            other = next((made for made in group if made.bits != group[0].bits), None)
            if other is not None:
                return group[0].run_id, other.run_id
        return ()

    def pairs(self, names: Names) -> float:
        """So many independent pairs of runs that should be the same: half of the runs that are not alone."""
        return sum(len(group) for group in self.by_seed(names) if len(group) > 1) / 2

    def identical(self, names: Names) -> bool | None:
        """Whether all runs that should be the same were; None where that is not known."""
        distinct = self.distinct(names)
        if distinct is None or (distinct == 1 and self.pairs(names) < FEWEST_RUNS / 2):
            return None
        return distinct == 1

    @property
    def indispensable(self) -> Names:
        """The steps without which no set is tried: none where the training as it is does without."""
        return () if self.stands(AS_IT_IS) else self.needed

    @property
    def sets(self) -> tuple[Names, ...]:
        """All sets that were measured."""
        return tuple(dict.fromkeys(run.names for run in self.made if run.block))

    def stands(self, names: Names) -> bool | None:
        """Whether its runs are the same, as are those of all sets with more steps: what differs there differs here.

        A step takes a cause away and adds none, so that a set with more steps whose runs differ speaks against it.
        """
        above = (item for item in self.sets if set(names) < set(item))
        return False if any(self.identical(item) is False for item in above) else self.identical(names)

    def odd(self, names: Names) -> int:
        """So many runs did not end as most of those did that should be the same."""
        groups = [Counter(made.bits for made in group) for group in self.by_seed(names)]
        return sum(ends.total() - max(ends.values()) for ends in groups)

    def log_ratios(self, names: Names, other: Names, what: Callable[[MadeRun], float | None]) -> np.ndarray[Any, Any]:
        """Logarithms of the ratio of times, one for each block that has a run of both."""
        ours, theirs = self.of(names), self.of(other)
        pairs = [(what(ours[block]), what(theirs[block])) for block in sorted(ours.keys() & theirs.keys())]
        return np.array([math.log(a / b) for a, b in pairs if a and b])

    def clearly_faster(self, names: Names, other: Names, among: int = 1) -> bool:
        """Whether the interval of the ratio lies below 1: in pairs where both ran in the same blocks.

        among: so many sets are asked, of which one is to be taken.
        """
        logs = self.log_ratios(names, other, lambda made: made.seconds)
        if logs.size >= FEWEST_RUNS:
            interval = ratio_interval(logs, among)
            return interval is not None and interval[1] < 1
        a, b = (self.log_ratios(item, AS_IT_IS, lambda made: made.seconds) for item in (names, other))
        if min(a.size, b.size) < FEWEST_RUNS:
            return False
        spread = math.sqrt(a.var(ddof=1) / a.size + b.var(ddof=1) / b.size)
        return bool(a.mean() - b.mean() + _t(min(a.size, b.size) - 1, among) * spread < 0)


def mean_ratio(logs: np.ndarray[Any, Any]) -> float | None:
    """Geometric mean of ratios; None where there is none."""
    return float(np.exp(logs.mean())) if logs.size else None


def ratio_interval(logs: np.ndarray[Any, Any], among: int = 1) -> tuple[float, float] | None:
    """95 % interval of the geometric mean of ratios: Student's, of their logarithms. among: for so many at once."""
    if logs.size < 2:
        return None
    half = _t(logs.size - 1, among) * float(logs.std(ddof=1)) / math.sqrt(logs.size)
    return math.exp(logs.mean() - half), math.exp(logs.mean() + half)


def _t(freedom: int, among: int) -> float:
    return float(special.stdtrit(freedom, 1 - 0.025 / among))
