"""Recorded runs as evidence: which of them are identical, and which were drawn independently.

Identical runs: how many different weights came out of runs that had everything in common.

At the levels that fix a seed, runs of one group with the same seed are identical; at level `default` all runs of a
group are, and their weights are expected to differ.

Bits: what tells the end of one run from that of another. All who ask whether runs are bit-identical ask it here.

Units among recorded runs: which runs of a group were drawn independently, and which are copies of one draw.

At level `default` every run is meant to be a draw of its own, at the fixed levels every seed. Whether that came true is
in the records: a training that sets a seed by itself draws the same whatever it is given, and two runs that ended with
the same weights, or went through the same numbers, are one draw written down twice.
"""

from __future__ import annotations

import enum
import hashlib
import itertools
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from isorun.analysis.evidence.judged import (
    MetricKind,
    is_bookkeeping,
    is_class_series,
    is_of_the_machine,
    kind_of,
)
from isorun.analysis.evidence.units import BOUNDS, distinct_among, significant_digits
from isorun.analysis.samples import FloatArray
from isorun.study.records import Predictions, RunRecord, Seeded, Series

__all__ = [
    "BY_DIGESTS",
    "BY_NUMBERS",
    "BY_WEIGHTS",
    "FINAL_WEIGHTS",
    "INITIAL_WEIGHTS",
    "Bits",
    "DigestCount",
    "IdenticalRuns",
    "Merge",
    "RunUnits",
    "bits_of",
    "identical_runs",
    "own_seeds",
    "run_units",
]

INITIAL_WEIGHTS: Final = "weights.initial"
FINAL_WEIGHTS: Final = "weights.final"

BY_WEIGHTS: Final = "weights"
BY_DIGESTS: Final = "digests"
BY_NUMBERS: Final = "numbers"


class Bits(NamedTuple):
    """What tells the end of one run from that of another to the last bit. judged_by: what of it there was to go by.

    parts: by name, digests, or the numbers of a series and its result.
    """

    judged_by: str
    parts: tuple[tuple[str, Hashable], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """What was looked at."""
        return tuple(name for name, _ in self.parts)

    def differing(self, other: Bits) -> tuple[str, ...]:
        """The names under which the two are not the same."""
        mine, theirs = dict(self.parts), dict(other.parts)
        return tuple(name for name in dict.fromkeys((*mine, *theirs)) if mine.get(name) != theirs.get(name))


def bits_of(record: RunRecord) -> Bits | None:
    """The digests that a run left, but for that of its beginning; else all its numbers, but for those of the machine.

    None where it left nothing that runs could be told apart by.
    """
    digests = {name: value for name, value in sorted(record.digests.items()) if value and name != INITIAL_WEIGHTS}
    if digests:
        return Bits(BY_WEIGHTS if FINAL_WEIGHTS in digests else BY_DIGESTS, tuple(digests.items()))
    names = sorted(name for name in {*record.results, *record.series} if not is_of_the_machine(name))
    parts = tuple((name, _written(record, name)) for name in names)
    return Bits(BY_NUMBERS, parts) if parts else None


def _written(record: RunRecord, name: str) -> Hashable:
    """The numbers under a name, so that NaN is equal to itself and -0 is not 0."""
    series, result = record.series.get(name), record.results.get(name)
    values = () if series is None else tuple(float(value).hex() for value in series.values)
    return values, None if result is None else float(result).hex()


@dataclass(frozen=True, slots=True)
class DigestCount:
    """How many different digests of one name came out. runs: how many of them left this digest."""

    name: str
    runs: int
    distinct: int
    largest_set: int


@dataclass(frozen=True, slots=True)
class IdenticalRuns:
    """The finished runs of one group and one seed (None at level `default`).

    differing: the metrics whose numbers, to the last bit, are not the same in all runs; times are none of them.
    """

    seed: int | None
    runs: int
    digests: tuple[DigestCount, ...]
    differing: tuple[str, ...] = ()

    def digest(self, name: str) -> DigestCount | None:
        """The count for one digest name; None when no run left it."""
        return next((count for count in self.digests if count.name == name), None)


def identical_runs(records: Sequence[RunRecord]) -> tuple[IdenticalRuns, ...]:
    """One entry a seed, in the order of seeds, for the finished runs of one group."""
    runs: defaultdict[int | None, list[RunRecord]] = defaultdict(list)
    for record in records:
        runs[record.cell.seed].append(record)
    seeds = sorted(runs, key=lambda seed: (seed is not None, seed or 0))
    return tuple(_of_seed(seed, runs[seed]) for seed in seeds)


def _of_seed(seed: int | None, records: Sequence[RunRecord]) -> IdenticalRuns:
    names = sorted({name for record in records for name in record.digests}, key=_digest_order)
    counts = tuple(_count(name, (record.digests.get(name) for record in records)) for name in names)
    return IdenticalRuns(seed, len(records), counts, _differing_metrics(records))


def _differing_metrics(records: Sequence[RunRecord]) -> tuple[str, ...]:
    """Of what at least two runs told, and no class of a metric, which is told under it."""
    told = Counter(name for record in records for name in {*record.results, *record.series})
    asked = sorted(name for name, runs in told.items() if runs > 1 and not is_class_series(name))
    telling = [name for name in asked if not is_of_the_machine(name) and not is_bookkeeping(name)]
    return tuple(name for name in telling if len(_endings(records, name)) > 1)


def _endings(records: Sequence[RunRecord], name: str) -> set[str]:
    """The last values of a metric, NaN equal to itself: a curve may be told at other times of the clock."""
    found = (record.results.get(name, _last(record.series.get(name))) for record in records)
    return {float(value).hex() for value in found if value is not None}


def _last(series: Series | None) -> float | None:
    return float(series.values[-1]) if series is not None and len(series.values) else None


def _digest_order(name: str) -> tuple[bool, bool, str]:
    return (name != INITIAL_WEIGHTS, name != FINAL_WEIGHTS, name)


def _count(name: str, digests: Iterable[str | None]) -> DigestCount:
    sets = Counter(digest for digest in digests if digest)
    return DigestCount(name, sum(sets.values()), len(sets), max(sets.values(), default=0))


_LIBRARY_PARTS: Final = ("/site-packages/", "/dist-packages/")
_TELLING_NUMBER: Final = 4
_FEW_RUNS: Final = 5
_TELLING_DIGITS: Final = 12
"""Runs that agree in this many digits of different numbers did not do so by chance."""


class Merge(enum.StrEnum):
    """Why runs that were meant to be independent are one unit."""

    WEIGHTS = "ended with the same weights"
    NUMBERS = "went through the very same numbers"
    OWN_SEED = "fixed the same seed themselves"


@dataclass(frozen=True, slots=True)
class RunUnits:
    """What the finished runs of one group count as.

    unit: run id to the unit it belongs to. distinct: run id to the first run that it is a copy of, itself where it is
    none; of use to those who ask about the runs of one seed. merges: why units became one, the strongest reason first.
    planned: how many units there would be had every draw been one of its own.
    """

    unit: Mapping[str, str]
    distinct: Mapping[str, str]
    merges: tuple[Merge, ...]
    planned: int

    @property
    def count(self) -> int:
        """How many units there are."""
        return len(set(self.unit.values()))


def run_units(records: Sequence[RunRecord]) -> RunUnits:
    """The units among the finished runs of one group (same approach, config, environment and level)."""
    ids = [record.run_id for record in records]
    drawn = dict(zip(ids, (_as_planned(record) for record in records), strict=True))
    copies = _Classes(ids)
    found = [
        merge
        for merge, keys in ((Merge.WEIGHTS, _final_weights(records)), (Merge.NUMBERS, _numbers(records)))
        if copies.join(keys, drawn)
    ]
    units = copies.copy()
    units.join(drawn, drawn)
    if units.join(_own_seed_keys(records), drawn):
        found.insert(0, Merge.OWN_SEED)
    return RunUnits(
        unit={run: drawn[first] for run, first in units.firsts().items()},
        distinct=copies.firsts(),
        merges=tuple(found),
        planned=len(set(drawn.values())),
    )


def own_seeds(record: RunRecord) -> tuple[Seeded, ...]:
    """The global generators that the training itself gave a seed, and that were left to it."""
    return tuple(
        seeded
        for seeded in record.seeded
        if seeded.sets_global and not seeded.replaced and not any(part in seeded.where for part in _LIBRARY_PARTS)
    )


def _as_planned(record: RunRecord) -> str:
    seed = record.cell.seed
    return f"run {record.run_id}" if seed is None else str(seed)


def _final_weights(records: Iterable[RunRecord]) -> dict[str, Hashable | None]:
    return {record.run_id: record.digests.get(FINAL_WEIGHTS) or None for record in records}


def _own_seed_keys(records: Sequence[RunRecord]) -> dict[str, Hashable | None]:
    """What the training fixed itself; nothing where the initial weights show that more was drawn than that."""
    fixed = {record.run_id: tuple((one.call, one.value) for one in own_seeds(record)) for record in records}
    started = {record.run_id: record.digests.get(INITIAL_WEIGHTS, "") for record in records}
    return {run: (seeds, started[run]) if seeds else None for run, seeds in fixed.items()}


def _numbers(records: Sequence[RunRecord]) -> dict[str, Hashable | None]:
    """All numbers a run went through, where they tell runs apart; weights, where there are any, tell better.

    Runs that tie in them and left something else that differs are no copies: accuracies on few examples tie all along.
    """
    if any(record.digests.get(FINAL_WEIGHTS) for record in records):
        return {}
    keys = _told_numbers(records)
    often = Counter(key for key in keys.values() if key is not None)
    tied = [record for record in records if (key := keys.get(record.run_id)) is not None and often[key] > 1]
    left = _left_besides(tied)
    return {run: None if key is None else (key, left.get(run)) for run, key in keys.items()}


def _left_besides(records: Sequence[RunRecord]) -> dict[str, Hashable]:
    """What each run left besides numbers: digests, values of classes, answers. What not all left tells nothing."""
    found = {record.run_id: dict(_marks(record)) for record in records}
    shared = [name for name in next(iter(found.values()), {}) if all(name in marks for marks in found.values())]
    return {run: tuple((name, marks[name]) for name in shared) for run, marks in found.items()}


def _marks(record: RunRecord) -> Iterator[tuple[Hashable, Hashable]]:
    yield from ((("digest", name), digest) for name, digest in record.digests.items() if digest)
    for metric, classes in record.per_class.items():
        yield ("classes", metric), tuple(sorted((name, float(value).hex()) for name, value in classes.items()))
    answers: defaultdict[Hashable, list[Hashable]] = defaultdict(list)
    for item in record.predictions:
        answers["answers", item.name, item.step].append((item.dtype, item.shape, _content(item)))
    yield from ((name, tuple(several)) for name, several in answers.items())


def _content(answers: Predictions) -> bytes:
    """What was answered, however it was packed; what cannot be unpacked is told by its packed form."""
    try:
        return hashlib.sha256(answers.unpacked()).digest()
    except ValueError:
        return hashlib.sha256(answers.data.encode()).digest()


def _told_numbers(records: Sequence[RunRecord]) -> dict[str, Hashable | None]:
    traces = {record.run_id: _trace(record) for record in records}
    if all(trace.values.size == 1 for trace in traces.values()) and len(traces) > 1:
        return dict(_single_numbers({run: float(trace.values[0]) for run, trace in traces.items()}))
    return {run: trace.key if trace.is_telling else None for run, trace in traces.items()}


def _single_numbers(values: Mapping[str, float]) -> dict[str, Hashable | None]:
    """Runs that left one number each: equal ones are copies where ties cannot be chance, or where all are equal."""
    array = np.array(list(values.values()), dtype=np.float64)
    if not np.isfinite(array).all():
        return {}
    # A coarse number may come twice by chance; five times in a row it is no evidence of five draws.
    proves = significant_digits(float(array[0])) >= _TELLING_NUMBER or array.size >= _FEW_RUNS
    constant = array.min() == array.max() and array[0] not in BOUNDS and proves
    tied = distinct_among(array).size < array.size if array.min() < array.max() else False
    return dict(values) if constant or tied else {}


@dataclass(frozen=True, slots=True, eq=False)
class _Trace:
    """All numbers that say how well a training went. key: what they are called, at which steps, and the numbers."""

    key: Hashable
    values: FloatArray

    @property
    def is_telling(self) -> bool:
        """Whether no other run would go through the same by chance; what holds NaN is equal to nothing."""
        distinct = np.unique(self.values)
        if distinct.size < 2 or np.isnan(distinct[-1]):
            return False
        digits = itertools.accumulate(significant_digits(value) for value in distinct.tolist())
        return any(total >= _TELLING_DIGITS for total in digits)


def _trace(record: RunRecord) -> _Trace:
    """Every result and every point of every series that says how well the training went."""
    names = sorted({*record.results, *record.series})
    judging = [name for name in names if kind_of(name) is not MetricKind.OTHER]
    wanted = judging or [name for name in names if not is_bookkeeping(name)]
    series = [(name, *_points(record.series[name])) for name in wanted if name in record.series]
    logged = {name: values for name, _, values in series}
    finals = [(name, record.results[name]) for name in wanted if name in record.results]
    # A final value that its series went through is told once.
    kept = [(name, value) for name, value in finals if name not in logged or not (logged[name] == value).any()]
    key = (*((name, steps.tobytes(), values.tobytes()) for name, steps, values in series), *kept)
    return _Trace(key, np.concatenate([*logged.values(), [value for _, value in kept]]))


def _points(series: Series) -> tuple[FloatArray, FloatArray]:
    """Steps and values, zero always written in the same way."""
    return np.asarray(series.steps, dtype=np.float64) + 0.0, np.asarray(series.values, dtype=np.float64) + 0.0


class _Classes:
    """Runs that belong together: joined by keys, each class known by its first run."""

    def __init__(self, members: Sequence[str]) -> None:
        self._first = {member: member for member in members}
        self._order = {member: place for place, member in enumerate(members)}

    def copy(self) -> _Classes:
        """The same classes, to be joined further."""
        twin = _Classes(list(self._first))
        twin._first = dict(self._first)
        return twin

    def join(self, keys: Mapping[str, Hashable | None], drawn: Mapping[str, str]) -> bool:
        """Join runs of the same key; whether runs came together that were to be drawn apart. None joins nothing."""
        seen: dict[Hashable, str] = {}
        apart = False
        for member, key in keys.items():
            if key is None:
                continue
            other = seen.setdefault(key, member)
            apart |= drawn[other] != drawn[member]
            self._merge(other, member)
        return apart

    def firsts(self) -> dict[str, str]:
        """Each run's class, by the run that comes first in it."""
        return {member: self._root(member) for member in self._first}

    def _merge(self, one: str, other: str) -> None:
        first, second = sorted((self._root(one), self._root(other)), key=self._order.__getitem__)
        self._first[second] = first

    def _root(self, member: str) -> str:
        while self._first[member] != member:
            member = self._first[member]
        return member
