"""What differs beside a factor, what it did to single seeds, and what is missing: facts that records tell.

A value of a factor may have changed nothing but bits, or other packages as well; seeds may lack a partner. None of this
is a test: it is told beside the effects.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import asdict, dataclass
from typing import Any, Final

from isorun.analysis.evidence import Condition, first_of, some
from isorun.analysis.evidence.provenance import effective
from isorun.analysis.evidence.run_units import FINAL_WEIGHTS
from isorun.analysis.factors.contrasts import UnitDifference
from isorun.analysis.studies.group_result import GroupKey
from isorun.study.factors import StudyFactor
from isorun.study.records import RunRecord

__all__ = ["SeedChanges", "ValueDigests", "missing_cells", "packages_beside", "seed_changes", "value_digests"]

_TOLD: Final = 5
_NAME: Final = re.compile(r"[A-Za-z0-9._-]+")

ByPoint = Mapping[str, Sequence[RunRecord]]


@dataclass(frozen=True, slots=True)
class SeedChanges:
    """What a value of a factor did to single seeds, against the baseline's.

    pairs: of a seed under both, each with its repeats (in a factorial design at every value of the other factors);
    values: how many of them differ in value; largest: the largest change, without its sign. weights: pairs whose final
    weights are known; weights_changed: those whose weights differ.
    alone: whether identical runs ended with different weights by themselves; None where no seed ran twice.
    identical: seeds that ran more than once in one environment; identical_changed: those whose runs ended with
    different weights all the same.
    """

    pairs: int
    values: int
    largest: float
    weights: int
    weights_changed: int
    alone: bool | None
    identical: int = 0
    identical_changed: int = 0

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class ValueDigests:
    """How many different final weights came out at a value of a factor, and at most from identical runs of one seed."""

    factor: str
    value: str
    runs: int
    seeds: int
    distinct: int
    most_of_one_seed: int

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return asdict(self)


def seed_changes(
    records: ByPoint, values: Mapping[str, Mapping[str, float]], between: Sequence[tuple[str, str]], seeds: Set[str]
) -> SeedChanges:
    """The changes between neighbouring points (the baseline's first). values: point to seed to value.

    seeds: those that count; one that took no effect is another one's copy.
    """
    changes = [
        abs(values[high][seed] - values[low][seed])
        for low, high in between
        for seed in values.get(low, {})
        if seed in seeds and seed in values.get(high, {})
    ]
    digests = {point: _final_weights(records.get(point, ())) for pair in between for point in pair}
    both = [
        (digests[low][seed], digests[high][seed])
        for low, high in between
        for seed in digests[low]
        if str(seed) in seeds and seed in digests[high]
    ]
    repeated = [found for of_point in digests.values() for found in of_point.values() if len(found) > 1]
    differing = sum(len(set(found)) > 1 for found in repeated)
    return SeedChanges(
        pairs=len(changes),
        values=sum(change > 0.0 for change in changes),
        largest=max(changes, default=0.0),
        weights=len(both),
        weights_changed=sum(not set(first) & set(second) for first, second in both),
        alone=differing > 0 if repeated else None,
        identical=len(repeated),
        identical_changed=differing,
    )


def _final_weights(records: Iterable[RunRecord]) -> dict[int, list[str]]:
    """The digests of the final weights by seed, one a run; runs without a seed are no partners of any."""
    found: defaultdict[int, list[str]] = defaultdict(list)
    for record in records:
        if record.cell.seed is not None and record.digests.get(FINAL_WEIGHTS):
            found[record.cell.seed].append(record.digests[FINAL_WEIGHTS])
    return found


def value_digests(records: ByPoint, points: Sequence[str], factor: str, value: str) -> ValueDigests | None:
    """The digests of all runs at these points; None where none left any."""
    runs = [record for point in points for record in records.get(point, ()) if record.digests.get(FINAL_WEIGHTS)]
    if not runs:
        return None
    identical: defaultdict[tuple[GroupKey, int], set[str]] = defaultdict(set)
    for record in runs:
        if record.cell.seed is not None:
            identical[GroupKey.of(record), record.cell.seed].add(record.digests[FINAL_WEIGHTS])
    return ValueDigests(
        factor,
        value,
        runs=len(runs),
        seeds=len({record.cell.seed for record in runs if record.cell.seed is not None}),
        distinct=len({record.digests[FINAL_WEIGHTS] for record in runs}),
        most_of_one_seed=max(map(len, identical.values()), default=0),
    )


def packages_beside(
    records: ByPoint, between: Sequence[tuple[str, str]], factor: StudyFactor, value: str
) -> Iterator[Condition]:
    """Packages that had other versions at this value, and that the factor does not name."""
    named = {_plain(name) for setting in factor.values.values() for name in _required(setting)}
    changed: dict[str, None] = {}
    for low, high in between:
        first, second = (_versions(records.get(point, ())) for point in (low, high))
        for name in sorted(set(first) & set(second)):
            if _plain(name) not in named and first[name] != second[name]:
                changed[f"{name} {' and '.join(sorted(first[name]))} became {' and '.join(sorted(second[name]))}"] = (
                    None
                )
    if changed:
        yield Condition(
            "packages-beside-factor",
            f"with {factor.name}={value} other packages changed as well ({first_of(changed, _TOLD, ', ')}), so that a "
            "difference may be theirs",
            "make images that differ in one of them alone, to say which it was"
            if factor.kind == "image"
            else f"name the same versions of them in every value of factors.{factor.name}, and run again",
        )


def _required(setting: Any) -> Iterator[str]:
    for text in setting.get("requirements", ()) if isinstance(setting, Mapping) else ():
        if found := _NAME.match(str(text).strip()):
            yield found[0]


def _plain(name: str) -> str:
    """A package's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _versions(records: Iterable[RunRecord]) -> dict[str, set[str]]:
    found: defaultdict[str, set[str]] = defaultdict(set)
    for record in records:
        packages = effective(record).get("packages")
        for name, version in (packages if isinstance(packages, Mapping) else {}).items():
            found[str(name)].add(str(version))
    return found


def missing_cells(name: str, held: str, tested: UnitDifference, absent: Sequence[str]) -> Iterator[Condition]:
    """Seeds that not all sides of an effect have. held: what the runs have in common.

    absent: points of the design without runs; told in the same words with every effect, so that it is one warning.
    """
    next_step = "isorun run STUDY makes what is missing; isorun report STUDY says what failed"
    if absent:
        points = first_of([f"({point})" for point in absent], _TOLD, ", ")
        message = f"{held}: no finished run in {some(len(absent), 'environment')}: {points}; effects rest on the others"
        yield Condition("cells-missing", message, next_step)
    if tested.unmatched and (tested.units or not absent):
        seeds = first_of(tested.unmatched, _TOLD, ", ")
        rests = f"it rests on {some(tested.units, 'seed')}" if tested.units else "nothing is known of it"
        message = f"{name} ({held}): not both sides have a finished run of seed {seeds}; {rests}"
        yield Condition("cells-missing", message, next_step)
