"""Tests and intervals of means: Welch for two independent samples, Student for paired differences."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass

from scipy.special import stdtr, stdtrit

from isorun.analysis.inputs.samples import FloatArray, Interval, recentred

__all__ = ["MeanDifference", "paired_t", "welch"]


@dataclass(frozen=True, slots=True)
class MeanDifference:
    """A difference of means with its standard error; t, p and interval are None where the values do not vary."""

    difference: float
    standard_error: float | None = None
    df: float | None = None
    t: float | None = None
    p: float | None = None
    ci95: Interval | None = None


def welch(first: FloatArray, second: FloatArray, confidence: float = 0.95) -> MeanDifference:
    """Welch's test (1947), which lets the two spreads differ."""
    size = max(abs(float(first.mean())), abs(float(second.mean())))
    first, second = recentred(first, second)
    difference = float(first.mean() - second.mean())
    if min(first.size, second.size) < 2:
        return MeanDifference(difference)
    parts = [float(sample.var(ddof=1)) / sample.size for sample in (first, second)]
    if not _varies(sum(parts), size):
        return MeanDifference(difference)
    shares = [part / sum(parts) for part in parts]
    freedom = 1.0 / (shares[0] ** 2 / (first.size - 1) + shares[1] ** 2 / (second.size - 1))
    return _judged(difference, math.sqrt(sum(parts)), freedom, confidence)


def paired_t(differences: FloatArray, confidence: float = 0.95) -> MeanDifference:
    """Student's test of paired differences."""
    mean = float(differences.mean())
    if differences.size < 2:
        return MeanDifference(mean)
    variance = float(differences.var(ddof=1)) / differences.size
    if not _varies(variance, abs(mean)):
        return MeanDifference(mean)
    return _judged(mean, math.sqrt(variance), differences.size - 1.0, confidence)


def _varies(variance_of_mean: float, size: float) -> bool:
    """Whether the standard error is more than what rounding leaves of a constant (R's rule in `t.test`)."""
    return variance_of_mean > 0.0 and math.sqrt(variance_of_mean) > 10.0 * sys.float_info.epsilon * size


def _judged(difference: float, standard_error: float, freedom: float, confidence: float) -> MeanDifference:
    t = difference / standard_error
    reach = float(stdtrit(freedom, 0.5 + confidence / 2.0)) * standard_error
    p = 2.0 * float(stdtr(freedom, -abs(t)))
    return MeanDifference(difference, standard_error, freedom, t, p, (difference - reach, difference + reach))
