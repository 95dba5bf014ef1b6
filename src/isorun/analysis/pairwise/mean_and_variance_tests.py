"""Tests of means and of spreads: Welch and paired t; Levene, Fligner-Killeen and F.

Tests and intervals of means: Welch for two independent samples, Student for paired differences.

Tests of equal spread: Levene (median- or mean-centred), Fligner-Killeen, and the F test of two variances.

Levene's median-centred form (Brown and Forsythe 1974) is the default: it holds its error rate for skewed results. The
F test is for normal values only and is given for comparison with the literature.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import chdtrc, fdtr, fdtrc, ndtri, stdtr, stdtrit

from isorun.analysis.samples import (
    FloatArray,
    Interval,
    Significance,
    finite_sample,
    midranks,
    recentred,
    several_samples,
    snapped,
    two_samples,
)
from isorun.errors import InputError

__all__ = ["MeanDifference", "f_test", "fligner", "levene", "paired_t", "welch"]


@dataclass(frozen=True, slots=True)
class MeanDifference:
    """A difference of means with its standard error; t, p and interval are None where the values do not vary."""

    difference: float
    standard_error: float | None = None
    df: float | None = None
    t: float | None = None
    p: float | None = None
    ci95: Interval | None = None


def welch(first: npt.ArrayLike, second: npt.ArrayLike, confidence: float = 0.95) -> MeanDifference:
    """Welch's test (1947), which lets the two spreads differ."""
    first, second = two_samples(first, second)
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


def paired_t(differences: npt.ArrayLike, confidence: float = 0.95) -> MeanDifference:
    """Student's test of paired differences."""
    differences = finite_sample(differences, "the differences")
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


def _median(sample: FloatArray) -> float:
    return float(np.median(sample))


def _mean(sample: FloatArray) -> float:
    return float(sample.mean())


_CENTRES: Final = {"median": _median, "mean": _mean}
_UNTESTABLE: Final = Significance(None, None)


def levene(samples: Sequence[npt.ArrayLike], *, centre: str = "median") -> Significance:
    """The analysis of variance of the distances to the centre; None where those do not vary within any sample."""
    samples = several_samples(samples)
    if centre not in _CENTRES:
        raise InputError("unknown centre of Levene's test", found=repr(centre), allowed=", ".join(_CENTRES))
    distances = [np.abs(sample - _CENTRES[centre](sample)) for sample in samples]
    return _one_way_anova(distances, _rounding(samples))


def _one_way_anova(samples: Sequence[FloatArray], rounding: float) -> Significance:
    """The F test of equal means of two or more samples; None where they vary within by no more than `rounding`."""
    pooled = np.concatenate(list(samples))
    between_df, within_df = len(samples) - 1, pooled.size - len(samples)
    if between_df < 1 or within_df < 1:
        return _UNTESTABLE
    within = sum(float(((sample - sample.mean()) ** 2).sum()) for sample in samples)
    if within <= rounding:
        return _UNTESTABLE
    grand = pooled.mean()
    between = sum(sample.size * float(sample.mean() - grand) ** 2 for sample in samples)
    statistic = (between / between_df) / (within / within_df)
    return Significance(statistic, float(fdtrc(between_df, within_df, statistic)))


def _rounding(samples: Sequence[FloatArray]) -> float:
    """The sum of squares that rounding alone leaves of equal distances between numbers of this size."""
    return sum(sample.size for sample in samples) * (4.0 * sys.float_info.epsilon * _largest(samples)) ** 2


def _largest(samples: Sequence[FloatArray]) -> float:
    return max((float(np.abs(sample).max()) for sample in samples if sample.size), default=0.0)


def fligner(samples: Sequence[npt.ArrayLike]) -> Significance:
    """Fligner and Killeen's rank test (1976), median-centred as in R's `fligner.test`.

    Distances that are equal but for rounding share a rank: of accuracies with two decimals most are, and R's ranks of
    them change with the unit the accuracies are written in.
    """
    samples = several_samples(samples)
    distances = np.concatenate([np.abs(sample - _median(sample)) for sample in samples])
    if len(samples) < 2 or distances.size < 3:
        return _UNTESTABLE
    pooled = snapped(distances, _largest(samples))
    scores = ndtri(0.5 + midranks(pooled) / (2.0 * (pooled.size + 1)))
    variance = float(scores.var(ddof=1))
    if variance == 0.0:
        return _UNTESTABLE
    parts = np.split(scores, np.cumsum([sample.size for sample in samples])[:-1])
    statistic = sum(part.size * float(part.mean() - scores.mean()) ** 2 for part in parts) / variance
    return Significance(statistic, float(chdtrc(len(samples) - 1, statistic)))


def f_test(first: npt.ArrayLike, second: npt.ArrayLike) -> Significance:
    """The ratio of the two variances and its two-sided p, for normal values (R's `var.test`)."""
    first, second = two_samples(first, second)
    if min(first.size, second.size) < 2:
        return _UNTESTABLE
    above, below = float(first.var(ddof=1)), float(second.var(ddof=1))
    if any(v * (s.size - 1) <= _rounding([s]) for v, s in ((above, first), (below, second))):
        return _UNTESTABLE
    ratio, freedom = above / below, (first.size - 1, second.size - 1)
    if not np.isfinite(ratio):
        return _UNTESTABLE
    tail = min(float(fdtr(*freedom, ratio)), float(fdtrc(*freedom, ratio)))
    return Significance(ratio, min(1.0, 2.0 * tail))
