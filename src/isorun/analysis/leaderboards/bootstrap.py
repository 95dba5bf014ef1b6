"""Bootstrap: what the result would have been with other runs of the same kind.

`bca_interval` is Efron's bias-corrected and accelerated interval (1987), `percentile_interval` the plain one.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import ndtr, ndtri

from isorun.analysis.inputs.samples import FloatArray, Interval
from isorun.analysis.leaderboards.resampling import positions, replicates

__all__ = ["bca_interval", "percentile_interval", "sd_bootstrap_interval"]

Statistic = Callable[[FloatArray], FloatArray]
"""Takes samples along the last axis and gives one number for each."""


def percentile_interval(drawn: FloatArray, confidence: float = 0.95) -> Interval:
    """The middle `confidence` of the replicates."""
    tail = (1.0 - confidence) / 2.0
    lower, upper = np.quantile(drawn, (tail, 1.0 - tail))
    return float(lower), float(upper)


def bca_interval(
    sample: FloatArray,
    statistic: Statistic,
    generator: np.random.Generator,
    *,
    repetitions: int = 10_000,
    confidence: float = 0.95,
) -> Interval | None:
    """The BCa interval of a statistic of one sample; None where the replicates do not vary."""
    drawn = replicates(positions([sample.size]), lambda draws: statistic(sample[draws]), repetitions, generator)
    estimate = float(statistic(sample))
    if drawn.min() == drawn.max():
        return None
    below = (np.count_nonzero(drawn < estimate) + 0.5 * np.count_nonzero(drawn == estimate)) / repetitions
    bias = float(ndtri(min(max(below, 0.5 / repetitions), 1.0 - 0.5 / repetitions)))
    acceleration = _acceleration(sample, statistic)
    tail = float(ndtri((1.0 - confidence) / 2.0))
    levels = [_bca_level(bias, acceleration, z) for z in (tail, -tail)]
    lower, upper = np.quantile(drawn, levels)
    return float(lower), float(upper)


def _bca_level(bias: float, acceleration: float, z: float) -> float:
    shifted = bias + z
    return float(ndtr(bias + shifted / (1.0 - acceleration * shifted)))


def _acceleration(sample: FloatArray, statistic: Statistic) -> float:
    """A sixth of the skewness of the statistic when each value is left out in turn."""
    left_out = np.broadcast_to(sample, (sample.size, sample.size))[~np.eye(sample.size, dtype=bool)]
    jackknife = statistic(left_out.reshape(sample.size, sample.size - 1))
    distances = jackknife.mean() - jackknife
    spread = float((distances**2).sum())
    return float((distances**3).sum()) / (6.0 * spread**1.5) if spread > 0.0 else 0.0


def sd_bootstrap_interval(
    sample: FloatArray, generator: np.random.Generator, *, repetitions: int = 10_000, confidence: float = 0.90
) -> Interval | None:
    """The BCa interval of a standard deviation, which assumes no normal values.

    It is too short for few runs: asked for 90 % it covers about 60, 76, 80 and 85 % at 5, 10, 16 and 30 normal runs,
    where the chi-square interval of `spread.sd_interval` covers 90 %. None for fewer than three runs.
    """
    if sample.size < 3:
        return None
    return bca_interval(sample, _sd, generator, repetitions=repetitions, confidence=confidence)


def _sd(samples: FloatArray) -> FloatArray:
    return np.asarray(samples.std(axis=-1, ddof=1))
