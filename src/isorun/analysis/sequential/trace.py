"""Traces: what a rule says at every look, for one comparison or many; and an interval that holds although it stopped.

Outcomes of a sequential comparison are put in order by stages: a claim for A at an early look is stronger than one at a
later look, and within a look the larger estimate is (Armitage 1957, Biometrika 44; Tsiatis, Rosner and Mehta 1984,
Biometrics 40). The interval holds the differences under which the outcome is extreme in neither direction; the
estimate is the difference under which it is in the middle (median-unbiased). The score of the runs so far is taken to
move like a Brownian motion with the difference as its drift. That is near enough, but for sides of very unequal spread,
whose rank test and mean go apart; so the interval is stretched to hold the plain one, too. With a single look it is
Welch's, of pairs Student's, exactly. How often it holds is simulated in `docs/statistics.md`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri, stdtr

from isorun.analysis.pairwise import MeanDifference, welch
from isorun.analysis.samples import FloatArray, Interval
from isorun.analysis.sequential import PathPoint, Schedule
from isorun.analysis.sequential.paths import RunArray, centred_u, centred_u_of_all
from isorun.analysis.sequential.rules import Rule

if TYPE_CHECKING:
    from isorun.analysis.sequential.equivalence import EquivalenceRule

__all__ = [
    "DecisionTrace",
    "Ends",
    "Estimate",
    "ends",
    "estimate_after_looks",
    "estimate_under",
    "observed_path",
    "planned_path",
    "trace",
]

Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class DecisionTrace:
    """All arrays are (looks, comparisons).

    favours: +1 where A is claimed to be higher, -1 where B is, else 0. hopeless: where the comparison may be given up.
    equivalence / equivalence_critical: the statistic of the two one-sided tests and what it must reach; empty
    without a margin.
    """

    statistic: FloatArray
    favours: NDArray[np.int8]
    equivalent: Bools
    hopeless: Bools
    equivalence: FloatArray
    equivalence_critical: FloatArray

    def since(self, look: int) -> DecisionTrace:
        """The same from that look on."""
        return DecisionTrace(
            statistic=self.statistic[look:],
            favours=self.favours[look:],
            equivalent=self.equivalent[look:],
            hopeless=self.hopeless[look:],
            equivalence=self.equivalence[look:],
            equivalence_critical=self.equivalence_critical[look:],
        )


@dataclass(frozen=True, slots=True)
class Ends:
    """Where simulated comparisons end, (comparisons,) each.

    look: the index of the look at which they stop, the last one for those that never do. favours: +1, -1 or 0.
    equivalent: whether they end as equivalent. decided: whether they end with any claim.
    """

    look: NDArray[np.intp]
    favours: NDArray[np.int8]
    equivalent: Bools

    @property
    def decided(self) -> Bools:
        """Which comparisons end with a claim."""
        return np.asarray((self.favours != 0) | self.equivalent)


def trace(rule: Rule, a: RunArray, b: RunArray, looks: int | None = None) -> DecisionTrace:
    """What the rule says at its first `looks` looks (all by default); a and b are (runs, comparisons)."""
    schedule = rule.schedule[:looks]
    statistic = rule.statistic(a, b, schedule)
    distance = np.abs(statistic)
    claimed = _reached(distance, _column(rule.critical, schedule))
    hopeless = distance < _column(rule.futility, schedule)
    equivalence, critical = _equivalence(rule.equivalence, a, b, schedule)
    if rule.equivalence is not None and rule.equivalence.critical is not None:
        hopeless &= ~_still_in_reach(rule.schedule, equivalence, rule.equivalence.critical[-1])
    return DecisionTrace(
        statistic=statistic,
        favours=np.where(claimed, np.sign(statistic), 0).astype(np.int8),
        equivalent=_reached(equivalence, critical) if rule.equivalence is not None else np.zeros_like(claimed),
        hopeless=hopeless,
        equivalence=equivalence,
        equivalence_critical=critical,
    )


def ends(traced: DecisionTrace) -> Ends:
    """Where each comparison stops: its first claim or hopeless look. Equivalence goes before a claimed difference."""
    stops = (traced.favours != 0) | traced.equivalent | traced.hopeless
    last = len(stops) - 1
    look = np.where(stops.any(axis=0), stops.argmax(axis=0), last)
    columns = np.arange(stops.shape[1])
    equivalent = traced.equivalent[look, columns]
    return Ends(look, np.where(equivalent, 0, traced.favours[look, columns]).astype(np.int8), equivalent)


def _reached(statistic: FloatArray, critical: FloatArray) -> Bools:
    """Whether a claim is made; an infinite critical value allows none, even to runs that do not vary at all."""
    return np.asarray((statistic >= critical) & np.isfinite(critical))


def _column(values: tuple[float, ...], schedule: Schedule) -> FloatArray:
    return np.array(values[: len(schedule)])[:, None]


def _equivalence(
    rule: EquivalenceRule | None, a: RunArray, b: RunArray, schedule: Schedule
) -> tuple[FloatArray, FloatArray]:
    if rule is None:
        return np.empty((0, a.shape[1])), np.empty((0, a.shape[1]))
    from isorun.analysis.sequential.nearly_normal import moments_of

    at = moments_of(a, b, schedule)
    statistic = rule.statistic(at)
    return statistic, np.broadcast_to(rule.critical_values(at), statistic.shape)


def _still_in_reach(schedule: Schedule, equivalence: FloatArray, needed: float) -> Bools:
    """Whether equivalence would be claimed at the last look if the spreads stayed and the means closed up a little.

    The little is one standard error at the last look.
    """
    most = schedule[-1].information
    growth = [math.sqrt(most / look.information) for look in schedule[: len(equivalence)]]
    return np.asarray(equivalence * np.array(growth)[:, None] + 1 >= needed)


def observed_path(rule: Rule, traced: DecisionTrace, a: FloatArray, b: FloatArray) -> tuple[PathPoint, ...]:
    """The looks that were made, of a trace of one comparison."""
    statistics = [float(value) for value in traced.statistic[:, 0]]
    p_values = _p_values(rule, statistics)
    wins = _wins(rule, a, b, len(statistics))
    return tuple(_point(rule, k, traced, p_values[k], wins[k]) for k in range(len(statistics)))


def planned_path(rule: Rule, seen: int) -> tuple[PathPoint, ...]:
    """The looks that lie ahead, boundaries without statistics; of an open-ended rule only the next."""
    last = seen + 1 if rule.open_ended else len(rule.schedule)
    return tuple(_point(rule, k, None, None, None) for k in range(seen, last))


def _point(rule: Rule, k: int, traced: DecisionTrace | None, p_value: float | None, wins: float | None) -> PathPoint:
    look, critical = rule.schedule[k], _finite(rule.critical[k])
    return PathPoint(
        n_a=look.n_a,
        n_b=look.n_b,
        statistic=None if traced is None else float(traced.statistic[k, 0]),
        lower=None if critical is None else -critical,
        upper=critical,
        futility=rule.futility[k] or None,
        p_value=p_value,
        level=rule.levels[k],
        equivalence=float(traced.equivalence[k, 0]) if traced is not None and rule.equivalence else None,
        equivalence_boundary=_equivalence_boundary(rule, k, traced),
        planned=traced is None,
        wins=wins,
    )


def _wins(rule: Rule, a: FloatArray, b: FloatArray, looks: int) -> list[float]:
    """The share of pairs that A wins at each look; a pair is of its own runs, or any run of A with any of B."""
    schedule = rule.schedule[:looks]
    if rule.paired:
        ahead = np.cumsum((np.sign(a - b) + 1) / 2)
        return [float(ahead[look.n_a - 1]) / look.n_a for look in schedule]
    count = centred_u_of_all if looks == 1 else centred_u
    balances = count(a[:, None], b[:, None], schedule)[:, 0]
    return [float(at) / (look.n_a * look.n_b) + 0.5 for at, look in zip(balances, schedule, strict=True)]


def _equivalence_boundary(rule: Rule, k: int, traced: DecisionTrace | None) -> float | None:
    if rule.equivalence is None:
        return None
    if traced is not None:
        return _finite(float(traced.equivalence_critical[k, 0]))
    return None if rule.equivalence.critical is None else _finite(rule.equivalence.critical[k])


def _p_values(rule: Rule, statistics: list[float]) -> list[float]:
    if rule.method == "e-process":
        return _anytime_p_values(rule, statistics)
    return [law.p_value(abs(statistic)) for law, statistic in zip(rule.laws, statistics, strict=False)]


def _anytime_p_values(rule: Rule, statistics: list[float]) -> list[float]:
    """One over the largest evidence so far, which may be read as a p-value at any look."""
    from isorun.analysis.sequential.equivalence import e_value

    evidence, largest = [], 1.0
    for look, statistic in zip(rule.schedule, statistics, strict=False):
        largest = max(largest, float(e_value(statistic, look, paired=rule.paired)))
        evidence.append(1 / largest)
    return evidence


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


_GRID = 64  # points of a look between its boundaries, by Gauss and Legendre
_FAR = 9.0  # standard deviations, where a boundary is no bound


@dataclass(frozen=True, slots=True)
class Estimate:
    """The mean difference and its 95 % interval; None where runs that do not vary allow none."""

    difference: float
    ci95: Interval | None


def estimate_under(rule: Rule, a: FloatArray, b: FloatArray, at: int | None) -> Estimate:
    """The estimate at the look at which the rule stopped, or that was the last; of all runs where there was none.

    Of pairs, a holds the differences and b zeros.
    """
    if at is None:
        plain = welch(a, b)
        return Estimate(plain.difference, plain.ci95)
    look = rule.schedule[at]
    a, b = a[: look.n_a], b[: look.n_b]
    if rule.method == "e-process":
        return _confidence_sequence(rule, a, b, at)
    return estimate_after_looks(welch(a, b), rule.schedule[: at + 1], rule.scores[: at + 1])


def _confidence_sequence(rule: Rule, a: FloatArray, b: FloatArray, at: int) -> Estimate:
    """All differences that the e-process does not speak against at this look: right at all looks together."""
    difference = float(a.mean() - b.mean())
    if rule.paired:
        squared_error = float(a.var(ddof=1)) / a.size
    else:
        squares = float(((a - a.mean()) ** 2).sum() + ((b - b.mean()) ** 2).sum())
        squared_error = squares / (a.size + b.size - 2) * (1 / a.size + 1 / b.size)
    reach = rule.critical[at] * math.sqrt(squared_error)
    known = squared_error > 0 and math.isfinite(reach)
    return Estimate(difference, (difference - reach, difference + reach) if known else None)


def estimate_after_looks(
    observed: MeanDifference, schedule: Schedule, scores: tuple[float, ...], confidence: float = 0.95
) -> Estimate:
    """The estimate at the last look of the schedule.

    observed: the plain difference of the runs in that look. scores: the boundaries of the looks in standard deviations;
    the last one does not matter.
    """
    error, degrees = observed.standard_error, observed.df
    if error is None or degrees is None:
        return Estimate(observed.difference, None)
    if not any(map(math.isfinite, scores[:-1])):
        return Estimate(observed.difference, observed.ci95)
    outcome = _Outcome(observed.difference / error, degrees, _Walk.of(schedule, _as_t(scores, schedule, degrees)))
    tail = (1 - confidence) / 2
    low, middle, high = (outcome.drift_with_chance(chance) * error for chance in (tail, 0.5, 1 - tail))
    plain_low, plain_high = observed.ci95 or (low, high)
    return Estimate(middle, (min(low, plain_low), max(high, plain_high)))


def _as_t(scores: tuple[float, ...], schedule: Schedule, degrees: float) -> tuple[float, ...]:
    """Normal scores as the t that they stand for, with degrees of freedom as at the last look but for fewer runs.

    A t of few runs that is as improbable as a normal score is larger, and takes a larger difference to be reached.
    """
    last = sum(schedule[-1])
    freedoms = (max(1.0, degrees * (sum(look) - 2) / (last - 2)) for look in schedule)
    stretched = (
        math.sqrt(freedom * math.expm1((score * (8 * freedom + 3) / (8 * freedom + 1)) ** 2 / freedom))
        for score, freedom in zip(scores, freedoms, strict=True)
    )
    return tuple(stretched)


@dataclass(frozen=True, slots=True, eq=False)
class _Walk:
    """The Brownian motion between boundaries, up to the look before the last. Time ends at 1, the last look.

    places, masses: where the walk without drift is at each look, if no boundary was reached before, (looks, grid).
    Looks that allow no claim are passed over.
    """

    times: FloatArray
    upper: FloatArray
    places: FloatArray
    masses: FloatArray

    @classmethod
    def of(cls, schedule: Schedule, boundaries: tuple[float, ...]) -> _Walk:
        """The walk under these boundaries."""
        bounded = np.isfinite(boundaries[:-1])
        times = np.array([look.information for look in schedule[:-1]])[bounded] / schedule[-1].information
        upper = np.array(boundaries[:-1])[bounded] * np.sqrt(times)
        nodes, weights = np.polynomial.legendre.leggauss(_GRID)
        reach = np.minimum(upper, _FAR * np.sqrt(times))[:, None]
        places, masses = reach * nodes, np.empty((len(times), _GRID))
        spreads = np.sqrt(np.diff(times, prepend=0.0))
        for k, spread in enumerate(spreads):
            here = places[k]
            density = _arrived(here, places[k - 1], masses[k - 1], spread) if k else _normal_density(here, spread)
            masses[k] = density * weights * reach[k]
        return cls(times, upper, places, masses)

    def chance_above(self, drift: float, last: float) -> float:
        """The chance, under the drift, of a claim for A before the last look, or of at least `last` at it."""
        at_first = float(ndtr((drift * self.times[0] - self.upper[0]) / math.sqrt(self.times[0])))
        levels, ahead = np.append(self.upper[1:], last), np.diff(self.times, append=1.0)
        tilted = self.masses * np.exp(drift * self.places - drift * drift * self.times[:, None] / 2)
        above = ndtr((self.places + (drift * ahead - levels)[:, None]) / np.sqrt(ahead)[:, None])
        return at_first + float(np.vdot(tilted, above))


@dataclass(frozen=True, slots=True, eq=False)
class _Outcome:
    """What was observed at the last look: t of the plain difference, its degrees of freedom, and the walk before."""

    t: float
    degrees: float
    walk: _Walk

    def chance_of_more(self, drift: float) -> float:
        """The chance, were the difference `drift` standard errors, of an outcome at least as far in favour of A."""
        score = float(ndtri(np.clip(stdtr(self.degrees, self.t - drift), 1e-300, 1 - 1e-16)))
        return self.walk.chance_above(drift, score + drift)

    def drift_with_chance(self, chance: float) -> float:
        """The drift under which the chance is this; it grows with the drift."""
        return _root(lambda drift: self.chance_of_more(drift) - chance, self.t)


def _root(function: Callable[[float], float], start: float) -> float:
    """Where a growing function is 0, by false position (Illinois) around a starting place."""
    low, high = start - 2.0, start + 2.0
    at_low, at_high = function(low), function(high)
    while at_low > 0 and low > start - _FAR:
        low, high, at_high = low - 1.0, low, at_low
        at_low = function(low)
    while at_high < 0 and high < start + _FAR:
        low, at_low, high = high, at_high, high + 1.0
        at_high = function(high)
    for _ in range(60):
        middle = (low * at_high - high * at_low) / (at_high - at_low) if at_high > at_low else (low + high) / 2
        at_middle = function(middle)
        if abs(at_middle) < 1e-9 or high - low < 1e-9:
            return middle
        if at_middle < 0:
            low, at_low, at_high = middle, at_middle, at_high / 2
        else:
            high, at_high, at_low = middle, at_middle, at_low / 2
    return (low + high) / 2


def _arrived(place: FloatArray, before: FloatArray, mass: FloatArray, spread: float) -> FloatArray:
    """The density at each place of those that were between the boundaries at the look before."""
    return np.asarray(_normal_density(place[:, None] - before[None, :], spread) @ mass)


def _normal_density(distance: FloatArray, spread: float) -> FloatArray:
    return np.asarray(np.exp(-((distance / spread) ** 2) / 2) / (spread * math.sqrt(2 * math.pi)))
