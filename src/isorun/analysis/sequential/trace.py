"""Traces: what a rule says at every look, for one comparison or for many simulated ones."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isorun.analysis.inputs.samples import FloatArray
from isorun.analysis.sequential.equivalence import EquivalenceRule
from isorun.analysis.sequential.looks import Schedule
from isorun.analysis.sequential.paths import RunArray, moments
from isorun.analysis.sequential.rules import Rule

__all__ = ["Ends", "Trace", "ends", "trace"]

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
