"""Ranks: tied values share the mean of the ranks they stand on."""

from __future__ import annotations

import math

import numpy as np

from isorun.analysis.inputs.samples import FloatArray

__all__ = ["has_ties", "midranks", "snapped", "tie_term"]


def midranks(values: FloatArray) -> FloatArray:
    """The rank of each value, 1 for the smallest; multiples of one half."""
    _, group, sizes = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(sizes)
    shared: FloatArray = (last - (sizes - 1) / 2.0)[group]
    return shared


def tie_term(values: FloatArray) -> float:
    """The sum of t³ - t over groups of t equal values; the variances of rank statistics shrink with it."""
    sizes = np.unique(values, return_counts=True)[1].astype(np.float64)
    return float((sizes**3 - sizes).sum())


def has_ties(values: FloatArray) -> bool:
    """Whether any two values are equal."""
    return bool(np.unique(values).size < values.size)


def snapped(differences: FloatArray, largest: float) -> FloatArray:
    """Differences of values up to `largest`, without the noise of floating point.

    0.85 - 0.80 and 0.80 - 0.75 are not the same double, but are the same difference, and have to share a rank. Fourteen
    digits of the largest value are kept: beyond what writing numbers as doubles costs, and little else.
    """
    if largest == 0.0 or not differences.size:
        return differences
    decimals = 14 - math.ceil(math.log10(largest))
    return np.round(differences, decimals) if decimals < 300 else differences
