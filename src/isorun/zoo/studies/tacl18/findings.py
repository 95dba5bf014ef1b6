"""Everything that the records say, computed once, before any of it is shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from isorun.analysis.agreements.agreement import Agreement
from isorun.analysis.agreements.shared_runs import SupportedDigits
from isorun.study.records import RunRecord
from isorun.zoo.studies.tacl18 import rounding, seeds_study
from isorun.zoo.studies.tacl18.baseline_tables import Baseline, baselines
from isorun.zoo.studies.tacl18.data_versions import Version, version_rows
from isorun.zoo.studies.tacl18.design import PARTS, study_names
from isorun.zoo.studies.tacl18.effects import Effect, condition_effects
from isorun.zoo.studies.tacl18.masks import MaskEffect, mask_effects
from isorun.zoo.studies.tacl18.measured import Condition, conditions, last_attempts, lost_runs, runs_of, used_made_data
from isorun.zoo.studies.tacl18.published import DEVICES, MATH_LIBRARIES, THREADS, Score
from isorun.zoo.studies.tacl18.question_tests import QuestionTest, question_tests

__all__ = ["Findings", "find"]

_PUBLISHED: Final[Mapping[str, Mapping[Any, Mapping[str, Score]]]] = {
    "threads": THREADS,
    "cpu-paths": MATH_LIBRARIES,
    "devices": DEVICES,
}
_FACTORS: Final = {"threads": "threads", "cpu-paths": "CPU path", "devices": "device"}


@dataclass(frozen=True, slots=True)
class Findings:
    """begun: the parts that have any run. lost: runs without scores; finished: how many have them.

    conditions and tests: by part, those with one seed.
    changes: for each data set of the seeds, the change of AP and RR from side to side; empty where there is one side.
    """

    begun: tuple[str, ...]
    made_data: bool
    finished: int
    lost: tuple[RunRecord, ...]
    baselines: tuple[Baseline, ...]
    versions: tuple[Version, ...]
    conditions: Mapping[str, tuple[Condition, ...]]
    tests: Mapping[str, Mapping[Condition, QuestionTest]]
    seeds: tuple[seeds_study.SeedRuns, ...]
    agreements: Mapping[str, tuple[Agreement, ...]]
    changes: tuple[tuple[seeds_study.Change, ...], ...]
    effects: tuple[Effect, ...]
    roundings: tuple[rounding.Rounding, ...]
    digits: Mapping[tuple[str, str, str], SupportedDigits]
    masks: tuple[MaskEffect, ...] = ()

    @property
    def sides(self) -> tuple[str, str | None]:
        """The sides of the seeds; the second is None where there is none."""
        pairs = [item.pair_of_sides for item in self.seeds]
        both = next((pair for pair in pairs if pair is not None), None)
        return both if both is not None else ("CPU", None)

    @property
    def seeds_everywhere(self) -> int:
        """How many seeds the data set and side with the fewest has."""
        return min((len(runs) for item in self.seeds for runs in item.sides.values()), default=0)

    @property
    def side_names(self) -> frozenset[str]:
        """All sides on which anything was run with the model."""
        named = {item.side for items in self.conditions.values() for item in items}
        return frozenset(named | {side for item in self.seeds for side in item.sides})


def find(records: Mapping[str, Sequence[RunRecord]], scale: str) -> Findings:
    """What the records of all studies of a scale say, by study name."""
    names = {part: study_names(part, scale) for part in PARTS}
    parts = {part: last_attempts(item for name in names[part] for item in records.get(name, ())) for part in PARTS}
    every = [record for found in parts.values() for record in found]
    lost = lost_runs(every)
    settings = {part: conditions(runs_of(parts[part])) for part in _PUBLISHED}
    seeds = seeds_study.seed_runs(runs_of(parts["seeds"]))
    return Findings(
        begun=tuple(part for part in PARTS if parts[part]),
        made_data=used_made_data(every),
        finished=len(every) - len(lost),
        lost=lost,
        baselines=baselines(parts["baseline"]),
        versions=version_rows(runs_of(parts["data"])),
        conditions=settings,
        tests={part: question_tests(items) for part, items in settings.items()},
        seeds=seeds,
        agreements={item.data: seeds_study.seed_agreements(item) for item in seeds},
        changes=tuple(seeds_study.changes(item) for item in seeds),
        effects=(*_setting_effects(settings), *seeds_study.seed_effects(seeds)),
        roundings=(*rounding.published_roundings(), *rounding.seed_roundings(seeds)),
        digits=rounding.seed_digits(seeds),
        masks=mask_effects(seeds_study.seed_runs(runs_of(parts["masks"]))),
    )


def _setting_effects(found: Mapping[str, Sequence[Condition]]) -> Iterator[Effect]:
    for part, items in found.items():
        yield from condition_effects(_FACTORS[part], items, _PUBLISHED[part].values())
