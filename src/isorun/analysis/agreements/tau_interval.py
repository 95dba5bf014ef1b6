"""Intervals of Kendall's tau, and of the difference between two taus over the same seeds.

Tau is an average over pairs (a U statistic), so that leaving out one seed at a time gives its standard error (Arvesen,
Annals of Mathematical Statistics 40, 1969), also with ties and for two taus that share their seeds. The interval of one
tau is made on the scale of Fisher's z, that of a difference on its own; both with Student's t.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from isorun.analysis.inputs.samples import FloatArray, finite_sample

__all__ = ["FEWEST_SEEDS", "TAU_CONFIDENCE", "tau_difference_interval", "tau_interval"]

TAU_CONFIDENCE = 0.95
FEWEST_SEEDS = 8
"""Below, the standard error of a tau is itself hardly known."""


def tau_interval(
    first: npt.ArrayLike, second: npt.ArrayLike, confidence: float = TAU_CONFIDENCE
) -> tuple[float, float] | None:
    """The interval of tau between two lists over the same seeds; None below 8 seeds and where tau is unknown or ±1."""
    x, y = finite_sample(first, "the first results"), finite_sample(second, "the second results")
    tau, left_out = _taus(x, y)
    if x.size < FEWEST_SEEDS or not np.isfinite(left_out).all() or abs(tau) >= 1.0:
        return None
    reach = _reach(left_out, confidence) / (1.0 - tau**2)
    centre = math.atanh(tau)
    return math.tanh(centre - reach), math.tanh(centre + reach)


def tau_difference_interval(
    one: tuple[npt.ArrayLike, npt.ArrayLike],
    other: tuple[npt.ArrayLike, npt.ArrayLike],
    confidence: float = TAU_CONFIDENCE,
) -> tuple[float, float] | None:
    """The interval of tau of one pair of lists minus tau of another; all four lists are over the same seeds."""
    (x, y), (u, v) = (tuple(finite_sample(side, "the results") for side in pair) for pair in (one, other))
    (first, first_out), (second, second_out) = _taus(x, y), _taus(u, v)
    differences = first_out - second_out
    if x.size < FEWEST_SEEDS or not np.isfinite(differences).all():
        return None
    reach = _reach(differences, confidence)
    return first - second - reach, first - second + reach


def _taus(x: FloatArray, y: FloatArray) -> tuple[float, FloatArray]:
    """Tau-b of all, and of all but each; NaN where one side would be constant."""
    by_x, by_y = (np.sign(side[:, None] - side[None, :]) for side in (x, y))
    sums = [(by_x * by_y).sum(1), (by_x**2).sum(1), (by_y**2).sum(1)]
    totals = [each.sum() / 2.0 for each in sums]
    with np.errstate(invalid="ignore", divide="ignore"):
        whole = totals[0] / np.sqrt(totals[1] * totals[2])
        left = [total - each for total, each in zip(totals, sums, strict=True)]
        return float(whole), left[0] / np.sqrt(left[1] * left[2])


def _reach(left_out: FloatArray, confidence: float) -> float:
    """How far the interval reaches to either side: t times the jackknife standard error."""
    n = left_out.size
    error = math.sqrt((n - 1) / n * float(((left_out - left_out.mean()) ** 2).sum()))
    return float(stdtrit(n - 1, (1.0 + confidence) / 2.0)) * error
