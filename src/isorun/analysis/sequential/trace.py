"""Traces: what a rule says at every look, for one comparison or for many simulated ones.

Observed paths: a traced comparison as points that can be printed, drawn and kept.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from isorun.analysis.samples import FloatArray
from isorun.analysis.sequential.decision import PathPoint
from isorun.analysis.sequential.paths import RunArray, centred_u, centred_u_of_all, moments
from isorun.analysis.sequential.plan import Schedule
from isorun.analysis.sequential.rules import Rule

if TYPE_CHECKING:
    from isorun.analysis.sequential.equivalence import EquivalenceRule

__all__ = ["Ends", "Trace", "ends", "observed_path", "planned_path", "trace"]

Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Trace:
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

    def since(self, look: int) -> Trace:
        """The same from that look on."""
        return Trace(
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


def trace(rule: Rule, a: RunArray, b: RunArray, looks: int | None = None) -> Trace:
    """What the rule says at its first `looks` looks (all by default); a and b are (runs, comparisons)."""
    schedule = rule.schedule[:looks]
    statistic = rule.statistic(a, b, schedule)
    distance = np.abs(statistic)
    claimed = _reached(distance, _column(rule.critical, schedule))
    hopeless = distance < _column(rule.futility, schedule)
    equivalence, critical = _equivalence(rule.equivalence, a, b, schedule)
    if rule.equivalence is not None and rule.equivalence.critical is not None:
        hopeless &= ~_still_in_reach(rule.schedule, equivalence, rule.equivalence.critical[-1])
    return Trace(
        statistic=statistic,
        favours=np.where(claimed, np.sign(statistic), 0).astype(np.int8),
        equivalent=_reached(equivalence, critical) if rule.equivalence is not None else np.zeros_like(claimed),
        hopeless=hopeless,
        equivalence=equivalence,
        equivalence_critical=critical,
    )


def ends(traced: Trace) -> Ends:
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
    at = moments(a, b, schedule)
    statistic = rule.statistic(at)
    return statistic, np.broadcast_to(rule.critical_values(at), statistic.shape)


def _still_in_reach(schedule: Schedule, equivalence: FloatArray, needed: float) -> Bools:
    """Whether equivalence would be claimed at the last look if the spreads stayed and the means closed up a little.

    The little is one standard error at the last look.
    """
    most = schedule[-1].information
    growth = [math.sqrt(most / look.information) for look in schedule[: len(equivalence)]]
    return np.asarray(equivalence * np.array(growth)[:, None] + 1 >= needed)


def observed_path(rule: Rule, traced: Trace, a: FloatArray, b: FloatArray) -> tuple[PathPoint, ...]:
    """The looks that were made, of a trace of one comparison."""
    statistics = [float(value) for value in traced.statistic[:, 0]]
    p_values = _p_values(rule, statistics)
    wins = _wins(rule, a, b, len(statistics))
    return tuple(_point(rule, k, traced, p_values[k], wins[k]) for k in range(len(statistics)))


def planned_path(rule: Rule, seen: int) -> tuple[PathPoint, ...]:
    """The looks that lie ahead, boundaries without statistics; of an open-ended rule only the next."""
    last = seen + 1 if rule.open_ended else len(rule.schedule)
    return tuple(_point(rule, k, None, None, None) for k in range(seen, last))


def _point(rule: Rule, k: int, traced: Trace | None, p_value: float | None, wins: float | None) -> PathPoint:
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


def _equivalence_boundary(rule: Rule, k: int, traced: Trace | None) -> float | None:
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
