"""Observed paths: a traced comparison as points that can be printed, drawn and kept."""

from __future__ import annotations

import math

from isorun.analysis.sequential.decision import PathPoint
from isorun.analysis.sequential.e_process import e_value
from isorun.analysis.sequential.rules import Rule
from isorun.analysis.sequential.trace import Trace

__all__ = ["observed_path", "planned_path"]


def observed_path(rule: Rule, traced: Trace) -> tuple[PathPoint, ...]:
    """The looks that were made, of a trace of one comparison."""
    statistics = [float(value) for value in traced.statistic[:, 0]]
    p_values = _p_values(rule, statistics)
    return tuple(_point(rule, k, traced, p_values[k]) for k in range(len(statistics)))


def planned_path(rule: Rule, seen: int) -> tuple[PathPoint, ...]:
    """The looks that lie ahead, boundaries without statistics; of an open-ended rule only the next."""
    last = seen + 1 if rule.open_ended else len(rule.schedule)
    return tuple(_point(rule, k, None, None) for k in range(seen, last))


def _point(rule: Rule, k: int, traced: Trace | None, p_value: float | None) -> PathPoint:
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
    )


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
        largest = max(largest, float(e_value(statistic, look)))
        evidence.append(1 / largest)
    return evidence


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
