"""Spread: how much one number varies between runs.

Standard deviations have n - 1 in the denominator. Their interval assumes normal values: (n - 1) s² / sigma² follows a
chi-square law with n - 1 degrees of freedom (Sheskin, Handbook of Parametric and Nonparametric Statistical Procedures,
test 3). It is the interval of Table 2 of Pham et al. (ASE 2020).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri

__all__ = ["SD_CONFIDENCE", "Spread", "pooled_sd", "sd_interval", "spread"]

SD_CONFIDENCE = 0.90


@dataclass(frozen=True, slots=True)
class Spread:
    """What n finite values look like; None wherever there are too few values to say.

    excluded: how many values were NaN or infinite and therefore left out of everything else.
    sd_interval: the 90 % chi-square interval of the standard deviation.
    whiskers: the most extreme values within 1.5 interquartile ranges of the box (Tukey).
    """

    n: int
    excluded: int
    mean: float | None
    sd: float | None
    sd_interval: tuple[float, float] | None
    minimum: float | None
    quartile_low: float | None
    median: float | None
    quartile_high: float | None
    maximum: float | None
    whiskers: tuple[float, float] | None

    @property
    def max_difference(self) -> float | None:
        """The largest minus the smallest value; None for fewer than two."""
        if self.n < 2 or self.minimum is None or self.maximum is None:
            return None
        return self.maximum - self.minimum

    @property
    def relative_difference(self) -> float | None:
        """The largest difference over the smallest value (RelDiff of the paper); None where that is zero."""
        if self.max_difference is None or not self.minimum:
            return None
        return self.max_difference / abs(self.minimum)

    @property
    def relative_sd(self) -> float | None:
        """The standard deviation over the mean (coefficient of variation); None where the mean is zero."""
        return None if self.sd is None or not self.mean else self.sd / abs(self.mean)


def spread(values: Iterable[float]) -> Spread:
    """The spread of the finite ones among `values`."""
    every = np.asarray(list(values), dtype=np.float64)
    finite = every[np.isfinite(every)]
    excluded = int(every.size - finite.size)
    if not finite.size:
        return Spread(0, excluded, None, None, None, None, None, None, None, None, None)
    # Powers of two scale exactly, and keep sums and squares of huge values (a diverged training) within range.
    exponent = math.frexp(float(np.abs(finite).max()))[1]
    return _rescaled(_spread_of(np.ldexp(finite, -exponent), excluded), exponent)


def _spread_of(finite: NDArray[np.float64], excluded: int) -> Spread:
    low, middle, high = (float(quartile) for quartile in np.percentile(finite, (25, 50, 75)))
    mean, sd = _mean_and_sd(finite)
    return Spread(
        n=int(finite.size),
        excluded=excluded,
        mean=mean,
        sd=sd,
        sd_interval=None if sd is None else sd_interval(sd, int(finite.size)),
        minimum=float(finite.min()),
        quartile_low=low,
        median=middle,
        quartile_high=high,
        maximum=float(finite.max()),
        whiskers=_whiskers(finite, low, high),
    )


def _rescaled(seen: Spread, exponent: int) -> Spread:
    def back(value: float | None) -> float | None:
        return None if value is None else _times_power_of_two(value, exponent)

    def pair(values: tuple[float, float] | None) -> tuple[float, float] | None:
        return values and (_times_power_of_two(values[0], exponent), _times_power_of_two(values[1], exponent))

    return replace(
        seen,
        mean=back(seen.mean),
        sd=back(seen.sd),
        sd_interval=pair(seen.sd_interval),
        minimum=back(seen.minimum),
        quartile_low=back(seen.quartile_low),
        median=back(seen.median),
        quartile_high=back(seen.quartile_high),
        maximum=back(seen.maximum),
        whiskers=pair(seen.whiskers),
    )


def _times_power_of_two(value: float, exponent: int) -> float:
    try:
        return math.ldexp(value, exponent)
    except OverflowError:
        return math.copysign(math.inf, value)


def sd_interval(sd: float, n: int, confidence: float = SD_CONFIDENCE) -> tuple[float, float]:
    """The chi-square interval of a standard deviation that was estimated from n >= 2 normal values."""
    tail = (1.0 - confidence) / 2.0
    freedom = n - 1
    lower = sd * math.sqrt(freedom / float(chdtri(freedom, tail)))
    upper = sd * math.sqrt(freedom / float(chdtri(freedom, 1.0 - tail)))
    return lower, upper


def pooled_sd(groups: Iterable[Spread]) -> float | None:
    """The standard deviation within groups, weighted by their degrees of freedom; None when no group has two values."""
    usable = [(group.n - 1, group.sd) for group in groups if group.sd is not None]
    freedom = sum(weight for weight, _ in usable)
    return math.sqrt(sum(weight * sd**2 for weight, sd in usable) / freedom) if freedom else None


def _mean_and_sd(finite: NDArray[np.float64]) -> tuple[float, float | None]:
    """Equal values have exactly their value as mean and 0 as sd, whatever rounding would make of them."""
    if float(finite.min()) == float(finite.max()):
        return float(finite[0]), (0.0 if finite.size > 1 else None)
    return float(finite.mean()), float(finite.std(ddof=1))


def _whiskers(finite: NDArray[np.float64], low: float, high: float) -> tuple[float, float]:
    reach = 1.5 * (high - low)
    inside = finite[(finite >= low - reach) & (finite <= high + reach)]
    return float(inside.min()), float(inside.max())
