"""Observed paths: a traced comparison as points that can be printed, drawn and kept."""

from __future__ import annotations

import math

import numpy as np

from isorun.analysis.inputs.samples import FloatArray
from isorun.analysis.sequential.decision import PathPoint
from isorun.analysis.sequential.e_process import e_value
from isorun.analysis.sequential.paths import centred_u, centred_u_of_all
from isorun.analysis.sequential.rules import Rule
from isorun.analysis.sequential.trace import Trace

__all__ = ["observed_path", "planned_path"]


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
    evidence, largest = [], 1.0
    for look, statistic in zip(rule.schedule, statistics, strict=False):
        largest = max(largest, float(e_value(statistic, look, paired=rule.paired)))
        evidence.append(1 / largest)
    return evidence


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
