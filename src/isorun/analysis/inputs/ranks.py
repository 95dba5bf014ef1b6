"""Ranks: tied values share the mean of the ranks they stand on."""

from __future__ import annotations

import numpy as np

from isorun.analysis.inputs.samples import FloatArray

__all__ = ["has_ties", "midranks", "snapped", "tie_term"]

_NOISE = 64.0 * 2.0**-52


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


def snapped(values: FloatArray, largest: float | None = None) -> FloatArray:
    """Values without the noise of floating point; `largest`: they are differences of values up to this size.

    0.85 - 0.80 and 0.80 - 0.75 are not the same double, but are the same difference, and have to share a rank; so have
    two means of the same numbers added in another order. Magnitudes less than 64 units in the last place apart, of
    their own size or of `largest`, are taken for one, the smallest of them; differences next to zero are zero. A fixed
    number of decimals would draw a line somewhere, and the same metric in percent would fall on the other side of it.
    """
    magnitudes = np.abs(values)
    order = np.argsort(magnitudes)
    ordered = magnitudes[order]
    begins = np.diff(ordered, prepend=0.0) > _NOISE * (ordered if largest is None else largest)
    settled = np.empty_like(values)
    settled[order] = np.concatenate([[0.0], ordered[begins]])[np.cumsum(begins)]
    return np.copysign(settled, values) + 0.0
