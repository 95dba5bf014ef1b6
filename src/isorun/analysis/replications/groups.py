"""Groups of a package, and what of them is run again: which seeds have bits to hold against, and what counts as a unit.

A group has an approach, config, environment and level. Where a seed is fixed every seed is one unit, as everywhere; of
a group that has one seed alone its runs are, and what is said is about that seed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from isorun.analysis.checks import CheckedSide, SameBits
from isorun.analysis.checks.sides import GroupName, group_name
from isorun.analysis.evidence import Condition, first_of, some
from isorun.analysis.evidence.run_units import FINAL_WEIGHTS
from isorun.analysis.replications.replays import partings
from isorun.analysis.samples import mean_of
from isorun.analysis.studies.group_result import GroupResult, JudgedRun
from isorun.analysis.studies.study_result import StudyResult, StudySides
from isorun.study.cells import Cell
from isorun.study.records import RunRecord, RunState

__all__ = [
    "NO_RUNS",
    "Place",
    "StoredGroup",
    "by_place",
    "conditions_of",
    "same_bits",
    "side_of",
    "stored_groups",
    "without_result",
]

Place = tuple[tuple[str, ...], int | None, int]
"""A cell within a package: its group, seed and repeat. Its id is another one where its environment is made again."""
NO_RUNS = CheckedSide(np.empty(0), (), 0)
_COUNTED = frozenset(
    ("runs-failed", "not-finite", "runs-missing", "unjudged", "direction-guessed", "direction-unknown", "few-runs")
)


@dataclass(frozen=True, slots=True)
class StoredGroup:
    """The finished runs of one group. seeds: in order; none where none is fixed. largest: of all in the package."""

    name: GroupName
    group: tuple[str, ...]
    records: tuple[RunRecord, ...]
    seeds: tuple[int, ...]
    largest: int

    @property
    def one_seed(self) -> bool:
        """Whether it has one seed alone, so that its runs are what counts."""
        return len(self.seeds) == 1

    def same_seeds(self, count: int) -> list[Place]:
        """The cells whose bits are asked for: the first stored seeds, once each."""
        return [(self.group, seed, 0) for seed in self.seeds[:count]]

    def new_draws(self, count: int) -> list[Place]:
        """The cells that are drawn anew, for statistics."""
        if not self.seeds:
            return [(self.group, None, repeat) for repeat in range(count)]
        if self.one_seed:
            return [(self.group, self.seeds[0], repeat) for repeat in range(count)]
        return [(self.group, self.largest + number, 0) for number in range(1, count + 1)]

    def first_cell(self) -> Cell:
        """A cell that says what all of the group have in common."""
        return self.records[0].cell


def stored_groups(records: Iterable[RunRecord]) -> tuple[StoredGroup, ...]:
    """The groups that have a finished run."""
    by_group: defaultdict[tuple[str, ...], list[RunRecord]] = defaultdict(list)
    for record in records:
        if record.state is RunState.FINISHED:
            by_group[record.cell.group].append(record)
    largest = max((one.cell.seed or 0 for group in by_group.values() for one in group), default=0)
    return tuple(
        StoredGroup(
            GroupName(*group),
            group,
            tuple(found),
            tuple(sorted({r.cell.seed for r in found if r.cell.seed is not None})),
            largest,
        )
        for group, found in by_group.items()
    )


def same_bits(stored: Sequence[RunRecord], new: Sequence[RunRecord], metric: str = "") -> SameBits:
    """Seeds of one group that were run again, and how many of them ended with the same bits as all stored runs of them.

    By the digest of the weights and the numbers of the metric that is judged: the same weights have another result on
    other test data. Where one side has no weights, by all numbers that were logged.
    """
    by_seed: defaultdict[int | None, list[RunRecord]] = defaultdict(list)
    for record in stored:
        by_seed[record.cell.seed].append(record)
    again = [record for record in new if record.state is RunState.FINISHED and record.cell.seed in by_seed]
    compared = [record for record in again if _has_numbers(record)]
    same = [record for record in compared if all(_same(one, record, metric) for one in by_seed[record.cell.seed])]
    blind = [record for record in compared if not all(_weights(one, record) for one in by_seed[record.cell.seed])]
    return SameBits(len(compared), len(same), len(blind))


def _has_numbers(record: RunRecord) -> bool:
    return bool(record.digests or record.series or record.results)


def _same(stored: RunRecord, new: RunRecord, metric: str) -> bool:
    weights = _weights(stored, new)
    if len(set(weights)) > 1:
        return False
    return not any(parting.what == metric or not weights for parting in partings(stored, new))


def _weights(stored: RunRecord, new: RunRecord) -> tuple[str, ...]:
    """The digests of both runs' weights; nothing where one has none."""
    digests = tuple(record.digests.get(FINAL_WEIGHTS, "") for record in (stored, new))
    return digests if all(digests) else ()


def side_of(result: StudyResult, group: tuple[str, ...], selection: str, metric: str, *, by_run: bool) -> CheckedSide:
    """The units of a group, in the order of the plan. by_run: each run that is no copy of another is one."""
    found = next((one for one in result.groups if _tuple(one) == group), None)
    if found is None:
        return NO_RUNS
    judged = found.selection(selection)
    by_unit: defaultdict[str, list[float]] = defaultdict(list)
    for run in sorted(judged.runs, key=lambda run: (-1 if run.seed is None else run.seed, run.repeat)):
        by_unit[_unit(run, by_run=by_run)].append(run.selected.values.get(metric, np.nan))
    for run_id in judged.unjudged:
        by_unit[run_id if by_run else found.units.unit[run_id]].append(np.nan)
    values = np.array([_mean(values) for values in by_unit.values()], dtype=np.float64)
    noun = "run" if by_run or not found.key.level.fixes_seed else "seed"
    return CheckedSide(values, tuple(by_unit), sum(map(len, by_unit.values())), noun)


def _tuple(group: GroupResult) -> tuple[str, ...]:
    name = group_name(group)
    return (name.approach, name.config, name.environment, name.level)


def _unit(run: JudgedRun, *, by_run: bool) -> str:
    return run.distinct if by_run else run.unit


def _mean(values: Sequence[float]) -> float:
    """That of equal runs is exactly their value; NaN where one of them has none."""
    return mean_of(values) if np.isfinite(values).all() else float("nan")


def conditions_of(results: Iterable[StudyResult], group: tuple[str, ...]) -> Iterator[Condition]:
    """What is known against the runs of a group, each once; what the replication counts by itself is left out."""
    seen: dict[str, Condition] = {}
    for result in results:
        groups = tuple(one for one in result.groups if _tuple(one) == group)
        for condition in StudySides(result, "approach", groups).conditions() if groups else ():
            if condition.code not in _COUNTED:
                seen.setdefault(condition.code, condition)
    yield from seen.values()


def without_result(records: Iterable[RunRecord]) -> Iterator[Condition]:
    """Stored runs that did not end well, and groups of which none did: they are in no mean, and were not made again."""
    by_group: defaultdict[tuple[str, ...], list[RunRecord]] = defaultdict(list)
    for record in by_place(records).values():
        by_group[record.cell.group].append(record)
    for group, found in by_group.items():
        failed = [record for record in found if record.state is not RunState.FINISHED]
        if not failed:
            continue
        name = GroupName(*group).label
        reasons = first_of(dict.fromkeys(record.reason or str(record.state) for record in failed), 2, ", ")
        message = f"{len(failed)} of {some(len(found), 'stored run')} of {name} left no result ({reasons})"
        became = "it was not made again" if len(failed) == len(found) else "they are in no mean"
        yield Condition("stored-runs-failed", f"{message}: {became}", "isorun verify says what is in it", (name,))


def by_place(records: Iterable[RunRecord]) -> Mapping[Place, RunRecord]:
    """The last record of each cell, a finished one before all others."""
    found: dict[Place, RunRecord] = {}
    for record in records:
        place = (record.cell.group, record.cell.seed, record.cell.repeat)
        if place not in found or found[place].state is not RunState.FINISHED:
            found[place] = record
    return found
