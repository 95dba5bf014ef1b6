"""Do two levels differ in spread? Levene's test with medians as centres (Brown and Forsythe 1974).

The paper uses it to ask whether fixing the seed makes the spread smaller (section 5.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import fdtrc

__all__ = ["LevelComparison", "LeveneTest", "compare_levels", "levene"]


@dataclass(frozen=True, slots=True)
class LeveneTest:
    """The statistic with its degrees of freedom and p-value."""

    statistic: float
    freedom: tuple[int, int]
    p: float


@dataclass(frozen=True, slots=True)
class LevelComparison:
    """Two levels of one approach, config and environment, judged by one rule.

    test: None when no test could be made; why_not says why.
    """

    approach: str
    config: str
    environment: str
    rule: str
    metric: str
    level_a: str
    level_b: str
    sd_a: float | None
    sd_b: float | None
    test: LeveneTest | None
    why_not: str = ""


def levene(a: Sequence[float], b: Sequence[float]) -> LeveneTest | None:
    """Levene's test of equal spread; None for fewer than two values a side, or when nothing varies on either side.

    Where every deviation within each side is equal but the sides differ, the statistic is infinite and p is 0.
    """
    if min(len(a), len(b)) < 2:
        return None
    sides = [np.abs(np.asarray(side) - np.median(side)) for side in (a, b)]
    pooled = np.concatenate(sides)
    between = sum(side.size * (side.mean() - pooled.mean()) ** 2 for side in sides)
    within = sum(float(((side - side.mean()) ** 2).sum()) for side in sides)
    freedom = (1, pooled.size - 2)
    if within == 0.0:
        return LeveneTest(float("inf"), freedom, 0.0) if between > 0.0 else None
    statistic = float(between) * freedom[1] / within
    return LeveneTest(statistic, freedom, float(fdtrc(*freedom, statistic)))


def compare_levels(a: Sequence[float], b: Sequence[float], *, several_seeds: bool) -> tuple[LeveneTest | None, str]:
    """The test, or None and the reason: with several seeds the spread also holds what the seeds do."""
    if several_seeds:
        return None, "several seeds: their spread also holds what the seed does"
    if min(len(a), len(b)) < 2:
        return None, "fewer than two runs on a side"
    test = levene(a, b)
    return test, "" if test is not None else "no run differs from another at either level"
