"""Which of a row of versions changed the result: a search by halves, whose verdicts are tests.

The row begins with the good end and ends with the bad one; a position counts from there. A search says how many runs of
which positions it wants next, hears their values in the order they were drawn, and so on until it is over: it makes no
run itself, so that the same values always lead to the same answer.

Scores. A version is held against both ends of what is left of the row, and each comparison asks one thing: can these be
runs of one law? That is what "nothing changed" means, so that the Mann-Whitney test is exact for it whatever the law is
(Lehmann 1975; ties only make it err less often); of pairs, the signed rank test. Where a version differs from the low
end, something changed between them, and the row ends there from now on; likewise with the high end. So every step rests
on a difference that was shown, the last one on a difference between neighbours, and neither one change nor a history
that goes one way is taken for granted. A version that differs from both ends shows two changes.

Error rate. Looks follow a schedule of runs a side, and use the first so many runs of each version: how many runs an end
got for another comparison does not matter. In a row whose ends do not differ the only way to err is the comparison of
the ends, which has the whole error rate. Otherwise only probes can err, and those that a row of n versions is planned
to take, log2 n, share 80 % of it; whatever comes beyond them has 20 % times 1/2, 1/4, … of it. So however long that is,
no more than the error rate is spent (Bonferroni). Which versions are probed depends on earlier verdicts, which share
runs with later ones; while all verdicts are right it does not depend on chance unless a probe stays undecided, and for
those histories the rate was simulated (`docs/bisect.md`).
"""

from __future__ import annotations

import abc
import enum
import math
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar, Final

import numpy as np

from isorun.analysis.samples import FloatArray, Interval, snapped
from isorun.analysis.sequential import Plan, looks_within
from isorun.analysis.sequential.rules import Rule, planned_rule
from isorun.analysis.sequential.trace import DecisionTrace, estimate_under, trace
from isorun.errors import InputError

__all__ = ["AbstractChangeSearch", "BitSearch", "ErrorShares", "Likeness", "Probe", "ScoreSearch", "Wanted"]

Wanted = dict[int, int]
"""A position to how many draws of it are needed."""
Values = Mapping[int, Sequence[Any]]
"""A position to what its runs gave, in the order they were drawn."""
Requests = Generator[Wanted, Values, None]

_MOST_UNDECIDED: Final = 2
"""Each cost its whole budget: where two versions cannot be told from the ends, their neighbours hardly can."""
_MOST_FAILURES: Final = 1
"""By so many failed runs may a version lead those that finished; one more, and it counts as one that does not run."""
_OF_THE_REST: Final = 1.5
"""A second change as large as the first would show in as many runs in half of the searches only."""
_PLANNED_SHARE: Final = 0.8
_DRAWN_AGAIN: Final = 4
_SPENDING: Final = "pocock"
"""Changes worth a search are most often large, and it claims those with the fewest runs."""


class Likeness(enum.StrEnum):
    """What is said of a version that was probed."""

    GOOD = "like good"
    BAD = "like bad"
    NEITHER = "neither"
    UNDECIDED = "undecided"
    FAILED = "does not run"


@dataclass(frozen=True, slots=True)
class Probe:
    """A version that was looked at. runs: how many of its runs it took. level: the error rate of its tests."""

    position: int
    likeness: Likeness
    runs: int
    level: float | None = None


@dataclass(slots=True)
class ErrorShares:
    """The error rate, divided over as many tests as there will be. versions: how many the whole search is about."""

    alpha: float
    versions: int
    used: int = 0

    @property
    def planned(self) -> int:
        """How many probes halving takes."""
        return max(1, math.ceil(math.log2(max(self.versions, 1))))

    def level(self, number: int) -> float:
        """That of the probe with this number, from 0 on."""
        if number < self.planned:
            return self.alpha * _PLANNED_SHARE / self.planned
        return float(self.alpha * (1 - _PLANNED_SHARE) * 0.5 ** (number - self.planned + 1))

    def next(self) -> float:
        """The level of the next probe, which is used up."""
        self.used += 1
        return self.level(self.used - 1)


@dataclass(kw_only=True)
class AbstractChangeSearch(abc.ABC):
    """A search by halves in a row of positions from 0 (good) to `count` (bad).

    low, high: a change lies behind the one and not behind the other. differs: whether the ends do; None as long as that
    is not known. others: further stretches in which a change was seen. broken: an end that does not run.
    """

    count: int
    low: int = 0
    high: int = field(init=False)
    differs: bool | None = None
    probes: list[Probe] = field(default_factory=list)
    others: list[tuple[int, int]] = field(default_factory=list)
    broken: int | None = None
    drawn: dict[int, Sequence[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.high = self.count

    def requests(self) -> Requests:
        """What is wanted, until it is over; to be sent the values of what was wanted so far."""
        yield from self._compare_ends()
        while self.differs and (position := self._next_position()) is not None:
            probe = yield from self._judge(position)
            self.probes.append(probe)
            self._narrow(probe)
        if self.differs:
            yield from self._compare_rest()

    @abc.abstractmethod
    def _compare_ends(self) -> Requests:
        """Say whether the ends differ."""

    @abc.abstractmethod
    def _judge(self, position: int) -> Generator[Wanted, Values, Probe]:
        """Say what a position is like."""

    @abc.abstractmethod
    def _lower_half(self, position: int) -> bool:
        """Whether to go on below a position that is like neither end."""

    def _compare_rest(self) -> Requests:
        """Look whether what was found is all; by default nothing more can be said."""
        yield from ()

    def _narrow(self, probe: Probe) -> None:
        position, likeness = probe.position, probe.likeness
        if likeness is Likeness.NEITHER:
            below = self._lower_half(position)
            self.others.append((position, self.high) if below else (self.low, position))
            likeness = Likeness.BAD if below else Likeness.GOOD
        if likeness is Likeness.BAD:
            self.high = position
        elif likeness is Likeness.GOOD:
            self.low = position

    def _next_position(self) -> int | None:
        """The middle of the widest stretch without a position that could not be judged; None where none is left."""
        passed = [probe for probe in self.probes if self.low < probe.position < self.high]
        if sum(probe.likeness is Likeness.UNDECIDED for probe in passed) >= _MOST_UNDECIDED:
            return None
        marks = [self.low, *sorted(probe.position for probe in passed), self.high]
        first, last = max(pairwise(marks), key=lambda stretch: stretch[1] - stretch[0])
        return (first + last) // 2 if last - first > 1 else None

    def _gather(self, positions: Iterable[int], needed: int) -> Generator[Wanted, Values, int | None]:
        """Go on until each position has so many values; a position that does not run, where there is one."""
        positions = tuple(positions)
        while True:
            wanted = {position: needed + self._failures(position) for position in positions}
            if all(len(self.drawn.get(position, ())) >= draws for position, draws in wanted.items()):
                return None
            self.drawn.update((yield wanted))
            for position in positions:
                failures = self._failures(position)
                if failures > len(self.drawn[position]) - failures + _MOST_FAILURES:
                    return position

    def _failures(self, position: int) -> int:
        return sum(map(self._is_missing, self.drawn.get(position, ())))

    @staticmethod
    @abc.abstractmethod
    def _is_missing(value: Any) -> bool:
        """Whether a draw gave no value."""

    def _runs(self, position: int) -> int:
        return len(self.drawn.get(position, ()))


@dataclass(kw_only=True)
class ScoreSearch(AbstractChangeSearch):
    """Scores: a draw is a number, NaN where the run failed.

    shares: the error rate. paired: the i-th draws of all positions belong together. margin: ends that differ by less
    count as equal. at_once: how many more draws are wanted at a time; looks are after each one all the same. inner:
    whether the row is a part of a larger one, whose ends share its error rate.
    """

    shares: ErrorShares
    max_runs: int = 30
    paired: bool = False
    margin: float | None = None
    at_once: int = 1
    inner: bool = False
    ended: str = ""

    def rule(self, level: float, *, ends: bool = False) -> Rule:
        """The looks of one comparison, and what a claim takes at each."""
        test = None if self.paired else "mann-whitney"
        plan = Plan(
            alpha=level,
            max_runs=self.max_runs,
            test=test,
            paired=self.paired,
            spending=_SPENDING,
            futility=ends,
            margin=self.margin if ends else None,
        )
        rule = planned_rule(plan, np.empty(0), np.empty(0))
        if not any(map(math.isfinite, rule.critical)):
            raise InputError(
                f"{self.max_runs} runs of each commit are too few for any claim",
                found=f"an error rate of {self.shares.alpha:g} over all commits, {level:.2g} for this one",
                hint="more runs (--max-runs), or a larger error rate (--alpha)",
            )
        return rule

    def check(self) -> None:
        """Refuse a plan under which nothing could be claimed, before any run is made."""
        self.rule(self.shares.alpha, ends=True)
        self.rule(self.shares.level(0))

    def _compare_ends(self) -> Requests:
        rule = self.rule(self.shares.next() if self.inner else self.shares.alpha, ends=True)
        ends = (0, self.count)
        for size in self._sizes(rule):
            self.broken = yield from self._gather(ends, size)
            if self.broken is not None:
                return
            traced = self._traced(rule, *ends)
            if traced is None:
                continue
            if traced.equivalent.any() or (traced.favours != 0).any():
                self.differs = not traced.equivalent.any()
                self.ended = "" if self.differs else "equivalent"
                return
            if traced.hopeless[-1, 0]:
                self.ended = "hopeless"
                break
        self.differs, self.ended = False, self.ended or "exhausted"

    def _judge(self, position: int) -> Generator[Wanted, Values, Probe]:
        if (yield from self._gather((position,), 1)) is not None:
            return Probe(position, Likeness.FAILED, self._runs(position))
        level = self.shares.next()
        rule = self.rule(level)
        for size in self._sizes(rule):
            failed = yield from self._gather((self.low, position, self.high), size)
            if failed is not None:
                likeness = Likeness.FAILED if failed == position else Likeness.UNDECIDED
                return Probe(position, likeness, self._runs(position), level)
            like = {
                (True, True): Likeness.NEITHER,
                (True, False): Likeness.BAD,
                (False, True): Likeness.GOOD,
            }.get((self._differ(rule, self.low, position), self._differ(rule, position, self.high)))
            if like is not None:
                return Probe(position, like, self._runs(position), level)
        return Probe(position, Likeness.UNDECIDED, self._runs(position), level)

    def _lower_half(self, position: int) -> bool:
        """Where the larger part of the difference is."""
        low, here, high = (float(np.nanmean(self.drawn[at])) for at in (self.low, position, self.high))
        return abs(here - low) >= abs(high - here)

    def _compare_rest(self) -> Requests:
        """Hold the ends against what was found to be like them, with half as many runs again as showed the change."""
        shown = max(self._runs(self.low), self._runs(self.high))
        for first, last in ((0, self.low), (self.high, self.count)):
            if first == last or any(first <= begin and end <= last for begin, end in self.others):
                continue
            rule = self.rule(self.shares.next())
            sizes = self._sizes(rule)
            most = min(sizes[-1], max(sizes[0], math.ceil(_OF_THE_REST * shown)))
            for size in (*(size for size in sizes if size < most), most):
                if (yield from self._gather((first, last), size)) is not None:
                    break
                if self._differ(rule, first, last):
                    self.others.append((first, last))
                    break

    def difference(self, first: int, second: int) -> tuple[float, Interval | None] | None:
        """How much higher the second position is, with a 95 % interval; None before there are runs of both."""
        rule = self.rule(self.shares.level(0))
        traced = self._traced(rule, second, first)
        if first == second or traced is None:
            return None
        # At the look that made a claim, where one did: the interval allows for having stopped there.
        claims = traced.favours[:, 0] != 0
        at = int(claims.argmax()) if claims.any() else len(claims) - 1
        found = estimate_under(rule, *self._sides(second, first), at)
        return found.difference, found.ci95

    def _sizes(self, rule: Rule) -> list[int]:
        """How many runs are there when it is looked at: as soon as a claim is possible, then so many more at a time."""
        sizes = [look.n_a for look in rule.schedule]
        first = next(number for number, value in enumerate(rule.critical) if math.isfinite(value))
        return sorted({*sizes[first :: self.at_once], sizes[-1]})

    def _differ(self, rule: Rule, first: int, second: int) -> bool:
        traced = self._traced(rule, first, second)
        return traced is not None and bool((traced.favours != 0).any())

    def _traced(self, rule: Rule, first: int, second: int) -> DecisionTrace | None:
        """What the rule says at all looks that the runs allow."""
        a, b = self._sides(first, second)
        looks = looks_within(rule.schedule, len(a), len(b))
        return trace(rule, a[:, None], b[:, None], looks) if looks else None

    def _sides(self, first: int, second: int) -> tuple[FloatArray, FloatArray]:
        """The values of two positions; of pairs the differences, and zeros."""
        a, b = (np.asarray(self.drawn.get(position, ()), dtype=np.float64) for position in (first, second))
        if not self.paired:
            return a[np.isfinite(a)], b[np.isfinite(b)]
        pairs = min(a.size, b.size)
        a, b = a[:pairs], b[:pairs]
        both = np.isfinite(a) & np.isfinite(b)
        largest = float(max(np.abs(a[both]).max(initial=0.0), np.abs(b[both]).max(initial=0.0)))
        return snapped(a[both] - b[both], largest), np.zeros(int(both.sum()))

    @staticmethod
    def _is_missing(value: Any) -> bool:
        return not math.isfinite(value)


@dataclass(kw_only=True)
class BitSearch(AbstractChangeSearch):
    """Bits: a draw is what tells one result from another to the last bit, None where the run failed.

    Draws of a position repeat one another: the first two of either end show whether they do, and so do those of a
    position that is like neither. Before a step is named, both sides of it are drawn again: two positions alike, whose
    draws are one or the other by chance, would have to give the one four times and the other four times. unsteady: a
    position whose draws differ.
    """

    chance: ClassVar[float] = 0.25**_DRAWN_AGAIN
    """At most so often would these draws part two positions of one law, whatever led to them."""
    drawn_again: ClassVar[int] = 2 * _DRAWN_AGAIN
    """How many draws that takes; one more where one side had one draw and the other two."""

    unsteady: int | None = None

    def _compare_ends(self) -> Requests:
        self.broken = yield from self._gather((0, self.count), 2)
        if self.broken is not None:
            return
        self.unsteady = next((position for position in (0, self.count) if len(self._bits(position)) > 1), None)
        if self.unsteady is None:
            self.differs = self._bits(0) != self._bits(self.count)

    def _judge(self, position: int) -> Generator[Wanted, Values, Probe]:
        if (yield from self._gather((position,), 1)) is not None:
            return Probe(position, Likeness.FAILED, self._runs(position))
        for end, likeness in ((self.low, Likeness.GOOD), (self.high, Likeness.BAD)):
            if self._bits(position) == self._bits(end):
                return Probe(position, likeness, self._runs(position))
        failed = yield from self._gather((position,), 2)
        if failed is None and len(self._bits(position)) > 1:
            self.unsteady = position
        return Probe(position, Likeness.NEITHER, self._runs(position))

    def _lower_half(self, position: int) -> bool:
        """What is asked for is the first change of all."""
        del position
        return True

    def _compare_rest(self) -> Requests:
        needed = (
            max(len(self.drawn[position]) - self._failures(position) for position in (self.low, self.high))
            + _DRAWN_AGAIN
        )
        yield from self._gather((self.low, self.high), needed)
        unsteady = (position for position in (self.low, self.high) if len(self._bits(position)) > 1)
        self.unsteady = next(unsteady, self.unsteady)

    def _bits(self, position: int) -> frozenset[Any]:
        return frozenset(bits for bits in self.drawn[position] if bits is not None)

    @staticmethod
    def _is_missing(value: Any) -> bool:
        return value is None
