"""The interval of a rate, or of the mean of rates on several tasks, that few runs allow.

Wilson's score interval (1927) asks which values of a rate the observed one is compatible with, and takes the variance
at each of these values rather than at the observed one: it keeps its width where every run of one side won, and stays
inside [0, 1]. Over several tasks the values asked about are those that a common shift of all log odds leads to.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit

from isorun.analysis.inputs.samples import FloatArray

__all__ = ["mean_rate_limits"]

_PSEUDO = 0.5
"""Added to wins and to losses where tasks start from, so that a task that was always won can be shifted, too."""
_FARTHEST = 40.0
"""A shift of log odds beyond which a rate is 0 or 1."""
_STEPS = 50


def mean_rate_limits(
    rates: FloatArray, trials: npt.ArrayLike, spread: FloatArray, critical: npt.ArrayLike, *, fading: float = 0.0
) -> tuple[FloatArray, FloatArray]:
    """The lower and upper limits of the mean over the last axis, the tasks.

    trials: how many comparisons each rate was counted in. spread: the variance of each observed rate over
    rate x (1 - rate), 1 / runs for a share of runs. critical: how many standard errors the limits are away. fading: the
    part of the spread that is lost where a rate comes to 0 or 1.
    """
    tasks = rates.shape[-1]
    counts = np.asarray(trials, dtype=np.float64)
    start = logit((rates * counts + _PSEUDO) / (counts + 2.0 * _PSEUDO))
    # Rates of tasks scatter around what they would be at the shift; their own rate x (1 - rate) is too small by that.
    unbiased = spread / (1.0 - np.minimum(spread * (1.0 - 1.0 / tasks), 0.5))
    observed = rates.mean(axis=-1)
    beyond = np.asarray(critical, dtype=np.float64)
    lower, upper = _limits(start, unbiased, observed, np.stack([-beyond, beyond]), fading)
    lower, upper = np.minimum(lower, observed), np.maximum(upper, observed)
    return np.where(observed <= 0.0, 0.0, lower), np.where(observed >= 1.0, 1.0, upper)


def _limits(
    start: FloatArray, spread: FloatArray, observed: FloatArray, critical: FloatArray, fading: float
) -> FloatArray:
    """The mean rates at the shifts that put them `critical` standard errors away from the observed one, by bisection.

    The first axis of `critical` and of the result: the lower and the upper limit, which are found together.
    """
    low = np.full((2, *observed.shape), -_FARTHEST)
    high = -low
    for _ in range(_STEPS):
        shift = (low + high) / 2.0
        mean, error = _at(start, spread, shift, fading)
        above = mean - observed > (critical.T * error.T).T
        low, high = np.where(above, low, shift), np.where(above, shift, high)
    return _at(start, spread, (low + high) / 2.0, fading)[0]


def _at(start: FloatArray, spread: FloatArray, shift: FloatArray, fading: float) -> tuple[FloatArray, FloatArray]:
    """The mean rate and its standard error when all log odds are shifted."""
    rates = expit(start + shift[..., None])
    of_each = rates * (1.0 - rates) * (1.0 - fading * (2.0 * rates - 1.0) ** 2) * spread
    error = np.sqrt(of_each.sum(axis=-1)) / rates.shape[-1]
    return np.asarray(rates.mean(axis=-1)), np.asarray(error)
