"""Our runs, sorted the way the paper's tables need them: network by network, level by level.

Where runs had to share a GPU, their times say how long they waited for each other, too. Runs on CPUs have CPUs of their
own, so that only runs that used a GPU are counted.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from isorun.analysis.evidence.run_units import FINAL_WEIGHTS
from isorun.analysis.spreads import Spread
from isorun.analysis.studies.conditions import FEWEST_RUNS
from isorun.analysis.studies.group_result import GroupResult, SelectionResult, SelectionSpread
from isorun.analysis.studies.study_result import LevelComparison, StudyResult, analyse_study
from isorun.study.cells import Level
from isorun.study.design import Study
from isorun.study.records import RunRecord, RunState
from isorun.zoo.studies.ase20.design import METRIC, PlannedPart
from isorun.zoo.studies.ase20.scales import TrainedNetwork
from isorun.zoo.studies.ase20.training.options import COUNTS

__all__ = [
    "Extreme",
    "GroupName",
    "ImageCounts",
    "Measured",
    "PartResult",
    "analysed",
    "by_level",
    "class_extreme",
    "default_against_fixed_seed",
    "distinct_weights",
    "gpu_runs_at_once",
    "images_used",
    "measured_groups",
    "of_papers_data",
    "overall_extreme",
    "time_extreme",
]

GroupName = tuple[str, str, Level]
"""The study, the approach and the level of a group of runs."""

_HANDOVER: Final = 0.1
"""Seconds by which a run may seem to begin before the last one ended, where clocks and rounding are to blame."""


def gpu_runs_at_once(records: Mapping[str, Sequence[RunRecord]]) -> dict[GroupName, int]:
    """The most runs that used a GPU at a time while a finished run of the group did; no entry where none used one."""
    used = [(study, record, _span(record)) for study, found in records.items() for record in found if _has_gpu(record)]
    begins = sorted(begin for _, _, (begin, _) in used)
    ends = sorted(end for _, _, (_, end) in used)
    going_on = [bisect_right(begins, begin) - bisect_right(ends, begin) for begin in begins]
    most: dict[GroupName, int] = {}
    for study, record, (begin, end) in used:
        if record.state is RunState.FINISHED:
            name = (study, record.cell.approach, record.cell.level)
            during = going_on[bisect_left(begins, begin) : bisect_left(begins, end)]
            most[name] = max(most.get(name, 1), *during)
    return most


def _has_gpu(record: RunRecord) -> bool:
    gpu = record.environment.get("effective", {}).get("gpu") or {}
    return bool(gpu.get("devices"))


def _span(record: RunRecord) -> tuple[float, float]:
    """Begin and end, at least a moment apart."""
    begin = datetime.fromisoformat(record.started_at).timestamp()
    return begin, begin + max(record.wall_seconds - _HANDOVER, 0.001)


ImageCounts = tuple[int, int, int]
"""Images for training, validation and test."""


def images_used(records: Sequence[RunRecord]) -> tuple[ImageCounts, ...]:
    """The different counts of the finished runs, smallest first; none where no run recorded them."""
    results = [record.results for record in records if record.state is RunState.FINISHED]
    counted = [[found.get(name, math.nan) for name in COUNTS] for found in results]
    known = [tuple(map(int, counts)) for counts in counted if all(map(math.isfinite, counts))]
    return tuple(sorted({(train, validation, test) for train, validation, test in known}))


@dataclass(frozen=True, slots=True)
class PartResult:
    """A part of the paper and what its runs say. result: None where there is no record at all.

    images: how many the runs had for training, validation and test; several where runs differ, none where unrecorded.
    """

    planned: PlannedPart
    study: Study
    result: StudyResult | None
    images: tuple[ImageCounts, ...] = ()


@dataclass(frozen=True, slots=True)
class Measured:
    """Identical runs of one network on one data set at one level.

    group: None where nothing was recorded for the whole part. at_once: the most runs that shared a GPU; 1 on CPUs.
    epochs: how many each run was trained for.
    """

    network: TrainedNetwork
    data: str
    level: Level
    planned: int
    group: GroupResult | None
    at_once: int = 1
    epochs: int = 0

    @property
    def is_judged(self) -> bool:
        """Whether there are runs enough for a finding."""
        return self.finished >= FEWEST_RUNS

    @property
    def is_cut_short(self) -> bool:
        """Whether half of the runs or more had their best validation loss in the last epoch: they still improved."""
        middle = self.group.selections[0].every.epochs.median if self.group and self.group.selections else None
        return middle is not None and self.epochs > 0 and middle >= self.epochs

    @property
    def mean(self) -> float | None:
        """The mean accuracy under the first selection."""
        return (
            self.group.selections[0].every.metrics[METRIC].overall.mean
            if self.group and self.group.selections
            else None
        )

    @property
    def finished(self) -> int:
        """How many runs finished."""
        return self.group.finished if self.group else 0

    @property
    def is_papers_own(self) -> bool:
        """Whether the paper trained this network on this data."""
        return self.data == self.network.data

    @property
    def label(self) -> str:
        """A name for sentences."""
        data = "" if self.is_papers_own else f" on {self.data}"
        return f"{self.network.name}{data} at level {self.level}"


@dataclass(frozen=True, slots=True)
class Extreme:
    """The spread under the selection, and for classes in the class, where two runs differ most."""

    selection: str
    spread: Spread
    class_name: str = ""

    @property
    def difference(self) -> float:
        """How far the two runs are apart."""
        return self.spread.max_difference or 0.0


def analysed(planned: PlannedPart, study: Study, records: Sequence[RunRecord]) -> PartResult:
    """The part with its result."""
    return PartResult(planned, study, analyse_study(study, records) if records else None, images_used(records))


def measured_groups(parts: Sequence[PartResult], at_once: Mapping[GroupName, int]) -> tuple[Measured, ...]:
    """All groups that were planned, those of varied factors left aside, whether or not anything came of them.

    at_once: how many runs shared a GPU, by group.
    """
    return tuple(
        _measured(part, network, level, at_once.get((part.planned.name, network.name, level), 1))
        for part in parts
        if not part.planned.is_apart
        for network in part.planned.networks
        for level in part.planned.size.levels
    )


def _measured(part: PartResult, network: TrainedNetwork, level: Level, at_once: int) -> Measured:
    group = _group(part.result, network.name, level)
    size = part.planned.size
    return Measured(network, part.planned.data, level, size.runs, group, at_once, size.epochs)


def of_papers_data(groups: Sequence[Measured]) -> tuple[Measured, ...]:
    """The groups that the paper has, too."""
    return tuple(group for group in groups if group.is_papers_own)


def by_level(groups: Sequence[Measured]) -> list[Measured]:
    """The groups in the order of the levels."""
    levels = list(Level)
    return sorted(groups, key=lambda group: levels.index(group.level))


def overall_extreme(group: GroupResult | None, *, without_weak: bool = False) -> Extreme | None:
    """Overall accuracy under the selection that gives the larger difference, as in Table 2; None below two runs."""

    def candidates(judged: SelectionResult) -> Iterator[Extreme]:
        yield Extreme(judged.selection.name, _view(judged, without_weak).metrics[METRIC].overall)

    return _largest(group, candidates)


def class_extreme(group: GroupResult | None, *, without_weak: bool = False) -> Extreme | None:
    """Accuracy in the class, and under the selection, that give the largest difference."""

    def candidates(judged: SelectionResult) -> Iterator[Extreme]:
        classes: Mapping[str, Spread] = _view(judged, without_weak).metrics[METRIC].classes
        yield from (Extreme(judged.selection.name, spread, name) for name, spread in classes.items())

    return _largest(group, candidates)


def time_extreme(group: GroupResult | None) -> Extreme | None:
    """Time to the epoch picked, under the selection that gives the larger relative difference."""
    found = [Extreme(judged.selection.name, judged.every.seconds) for judged in (group.selections if group else ())]
    usable = [item for item in found if item.spread.relative_difference is not None]
    return max(usable, key=lambda item: item.spread.relative_difference or 0.0, default=None)


def _largest(group: GroupResult | None, candidates: Callable[[SelectionResult], Iterator[Extreme]]) -> Extreme | None:
    found = [item for judged in (group.selections if group else ()) for item in candidates(judged)]
    return max((item for item in found if item.spread.n > 1), key=lambda item: item.difference, default=None)


def default_against_fixed_seed(parts: Sequence[PartResult]) -> Iterator[tuple[PartResult, LevelComparison]]:
    """Levene's test between the two levels of the paper, under every selection."""
    pair = {str(Level.DEFAULT), str(Level.FIXED_SEED)}
    for part in parts:
        for item in part.result.levels if part.result and not part.planned.is_apart else ():
            if {item.level_a, item.level_b} == pair:
                yield part, item


def distinct_weights(group: GroupResult, digest: str = FINAL_WEIGHTS) -> tuple[int, int] | None:
    """How many different weights came out of how many runs; None where no run left the digest."""
    counts = [count for same in group.identical if (count := same.digest(digest)) is not None]
    return (sum(count.distinct for count in counts), sum(count.runs for count in counts)) if counts else None


def _view(judged: SelectionResult, without_weak: bool) -> SelectionSpread:
    return judged.without_weak if without_weak and judged.without_weak is not None else judged.every


def _group(result: StudyResult | None, approach: str, level: Level) -> GroupResult | None:
    groups = result.groups if result else ()
    return next((group for group in groups if (group.key.approach, group.key.level) == (approach, level)), None)
