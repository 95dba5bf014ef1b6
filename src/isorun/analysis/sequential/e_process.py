"""The t e-process: evidence that stays valid however often one looks, without a maximum number of runs.

The e-value is the Bayes factor of an effect size drawn from N(0, 1) against none, with the right Haar prior on mean
and standard deviation. For normal runs of equal spread it is a nonnegative martingale under the null, so the chance
that it ever reaches 1/alpha is at most alpha (Ville 1939; Lai 1976, Annals of Statistics 4; Wang and Ramdas 2024,
"Anytime-valid t-tests and confidence sequences for Gaussian means with unknown variance"). Inverting it gives a
confidence sequence: mean difference ± `critical_t` standard errors, right at all looks together.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from isorun.analysis.inputs.samples import FloatArray
from isorun.analysis.sequential.looks import Look

__all__ = ["critical_t", "e_value"]


def e_value(t: ArrayLike, look: Look, *, paired: bool = False) -> FloatArray:
    """The evidence against equality in Student's t at this look; above 1 speaks for a difference.

    t is that of two samples, or of the differences of pairs, whose effect size is then in units of their own spread.
    """
    squared = np.square(np.asarray(t, dtype=np.float64))
    degrees, growth = _degrees_and_growth(look, paired=paired)
    log_ratio = np.log(growth) - np.log1p((growth - 1) / (1 + squared / degrees))  # finite for an infinite t, too
    return np.asarray(np.exp((degrees + 1) / 2 * log_ratio - np.log(growth) / 2))


def critical_t(look: Look, alpha: float, *, paired: bool = False) -> float:
    """The t from which the e-value is at least 1/alpha; inf where so few runs cannot reach it."""
    degrees, growth = _degrees_and_growth(look, paired=paired)
    ratio = (np.sqrt(growth) / alpha) ** (2 / (degrees + 1))
    if ratio >= growth:
        return float("inf")
    return float(np.sqrt(degrees * (ratio - 1) / (1 - ratio / growth)))


def _degrees_and_growth(look: Look, *, paired: bool) -> tuple[int, float]:
    if paired:
        return look.n_a - 1, 1.0 + look.n_a
    return look.n_a + look.n_b - 2, 1.0 + look.information
