"""Our runs, sorted the way the paper's tables need them: network by network, level by level."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from isorun.analysis.spreads.spread import Spread
from isorun.analysis.studies.conditions import FEWEST_RUNS
from isorun.analysis.studies.group_result import GroupResult, SelectionResult, SelectionSpread
from isorun.analysis.studies.study_result import StudyResult, analyse_study
from isorun.study.design import Study
from isorun.study.levels import Level
from isorun.study.records import RunRecord
from isorun.zoo.studies.ase20.design import METRIC, PlannedPart
from isorun.zoo.studies.ase20.images_used import ImageCounts, images_used
from isorun.zoo.studies.ase20.networks import TrainedNetwork
from isorun.zoo.studies.ase20.sharing import GroupName

__all__ = [
    "Extreme",
    "Measured",
    "PartResult",
    "analysed",
    "by_level",
    "class_extreme",
    "measured_groups",
    "of_papers_data",
    "overall_extreme",
    "time_extreme",
]


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
        """The mean accuracy under the first rule."""
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
    """The spread under the selection rule, and for classes in the class, where two runs differ most."""

    rule: str
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
        if not part.planned.is_ours
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
    """Overall accuracy under the rule that gives the larger difference, as in Table 2; None below two runs."""

    def candidates(rule: SelectionResult) -> Iterator[Extreme]:
        yield Extreme(rule.selection.name, _view(rule, without_weak).metrics[METRIC].overall)

    return _largest(group, candidates)


def class_extreme(group: GroupResult | None, *, without_weak: bool = False) -> Extreme | None:
    """Accuracy in the class, and under the rule, that give the largest difference."""

    def candidates(rule: SelectionResult) -> Iterator[Extreme]:
        classes: Mapping[str, Spread] = _view(rule, without_weak).metrics[METRIC].classes
        yield from (Extreme(rule.selection.name, spread, name) for name, spread in classes.items())

    return _largest(group, candidates)


def time_extreme(group: GroupResult | None) -> Extreme | None:
    """Time to the epoch picked, under the rule that gives the larger relative difference."""
    found = [Extreme(rule.selection.name, rule.every.seconds) for rule in (group.selections if group else ())]
    usable = [item for item in found if item.spread.relative_difference is not None]
    return max(usable, key=lambda item: item.spread.relative_difference or 0.0, default=None)


def _largest(group: GroupResult | None, candidates: Callable[[SelectionResult], Iterator[Extreme]]) -> Extreme | None:
    found = [item for rule in (group.selections if group else ()) for item in candidates(rule)]
    return max((item for item in found if item.spread.n > 1), key=lambda item: item.difference, default=None)


def _view(rule: SelectionResult, without_weak: bool) -> SelectionSpread:
    return rule.without_weak if without_weak and rule.without_weak is not None else rule.every


def _group(result: StudyResult | None, approach: str, level: Level) -> GroupResult | None:
    groups = result.groups if result else ()
    return next((group for group in groups if (group.key.approach, group.key.level) == (approach, level)), None)
