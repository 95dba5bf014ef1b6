"""Effect sizes: the difference of two means in units of their common standard deviation.

Cohen's d divides by the pooled sd; its interval inverts the noncentral t law (Steiger and Fouladi 1997) and is exact
for normal values with equal spread. Hedges' g takes the small-sample bias out of d with the exact gamma factor (Hedges
1981); its interval is that of d times the same factor, as in R's `effectsize::hedges_g`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.special import gammaln, nctdtrinc

from isorun.analysis.inputs.samples import FloatArray, Interval, recentred

__all__ = ["EffectSize", "effect_size"]

_NO_UNCERTAINTY = 1e4
"""Beyond this t the runs are so far apart that the noncentral law cannot be inverted, and need not be."""


@dataclass(frozen=True, slots=True)
class EffectSize:
    """d and g, each with its 95 % interval; all None where there is no spread to compare with."""

    cohens_d: float | None = None
    cohens_d_ci95: Interval | None = None
    hedges_g: float | None = None
    hedges_g_ci95: Interval | None = None


def effect_size(first: FloatArray, second: FloatArray, confidence: float = 0.95) -> EffectSize:
    """The effect size of the first sample against the second; positive when the first has the larger mean."""
    n, m = first.size, second.size
    freedom = n + m - 2
    if freedom < 1:
        return EffectSize()
    largest = max(abs(float(first.mean())), abs(float(second.mean())))
    first, second = recentred(first, second)
    within = float(((first - first.mean()) ** 2).sum() + ((second - second.mean()) ** 2).sum())
    pooled = math.sqrt(within / freedom)
    if pooled <= 1e-14 * largest or pooled == 0.0:
        return EffectSize()
    d = float(first.mean() - second.mean()) / pooled
    factor, limits = _bias_factor(freedom), _interval(d, n, m, confidence)
    return EffectSize(d, limits, d * factor, None if limits is None else (limits[0] * factor, limits[1] * factor))


def _bias_factor(freedom: int) -> float:
    if freedom < 2:
        return 0.0
    log_ratio = float(gammaln(freedom / 2.0) - gammaln((freedom - 1) / 2.0))
    return math.exp(log_ratio) / math.sqrt(freedom / 2.0)


def _interval(d: float, n: int, m: int, confidence: float) -> Interval | None:
    root = math.sqrt(n * m / (n + m))
    t, freedom, tail = d * root, n + m - 2, (1.0 - confidence) / 2.0
    if abs(t) > _NO_UNCERTAINTY:
        return None
    lower = float(nctdtrinc(freedom, 1.0 - tail, t)) / root
    upper = float(nctdtrinc(freedom, tail, t)) / root
    return (lower, upper) if math.isfinite(lower) and math.isfinite(upper) and lower < upper else None
