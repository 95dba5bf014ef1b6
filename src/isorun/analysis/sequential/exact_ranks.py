"""The exact law of the Mann-Whitney statistic given the ties, by counting subsets.

Under the null every choice of which pooled runs belong to A is equally likely, so the law of A's rank sum is the
number of subsets of each size and sum (Streitberg and Röhmel 1986, Statistical Software Newsletter 12: the shift
algorithm). Doubled mid-ranks keep it in whole numbers with ties. Beyond 10,000 pairs the normal law with the tie
correction and a continuity correction takes over; there it is right to three digits.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

__all__ = ["NullLaw", "continuous_law", "law_given_ties"]

_EXACT_UP_TO_PAIRS = 10_000


@dataclass(frozen=True, slots=True)
class NullLaw:
    """The null law of |U - mn/2|: the values it can take, ascending, and the chance of at least that much."""

    distances: NDArray[np.float64]
    tail: NDArray[np.float64]

    def p_value(self, distance: float) -> float:
        """The two-sided p of a statistic this far from the middle."""
        place = int(np.searchsorted(self.distances, distance - 1e-9))
        return float(self.tail[place]) if place < self.tail.size else 0.0

    def critical(self, level: float) -> float:
        """The smallest distance with p at or below `level`; inf when there is none."""
        significant = np.flatnonzero(self.tail <= level * (1 + 1e-12))
        return float(self.distances[significant[0]]) if significant.size else float("inf")


@functools.lru_cache(maxsize=512)
def continuous_law(n_a: int, n_b: int) -> NullLaw:
    """The law without ties."""
    ranks = 2 * np.arange(1, n_a + n_b + 1)
    return _law(ranks, n_a)


def law_given_ties(a: NDArray[np.float64], b: NDArray[np.float64]) -> NullLaw:
    """The law given the ties among the pooled runs."""
    ranks = np.rint(2 * stats.rankdata(np.concatenate([a, b]))).astype(np.int64)
    return _law(ranks, len(a))


def _law(doubled_ranks: NDArray[np.int64], n_a: int) -> NullLaw:
    if n_a * (doubled_ranks.size - n_a) > _EXACT_UP_TO_PAIRS:
        return _normal_law(doubled_ranks, n_a)
    counts = _subset_counts(doubled_ranks, n_a)
    middle = n_a * (doubled_ranks.size + 1)
    sums = np.flatnonzero(counts)
    distances = np.abs(sums - middle) / 2
    return _from_masses(distances, counts[sums] / counts.sum())


def _subset_counts(doubled_ranks: NDArray[np.int64], size: int) -> NDArray[np.float64]:
    """How many subsets of `size` ranks have each sum."""
    largest = int(np.sort(doubled_ranks)[-size:].sum())
    counts = np.zeros((size + 1, largest + 1))
    counts[0, 0] = 1
    for rank in doubled_ranks:
        counts[1:, rank:] += counts[:-1, : largest + 1 - rank].copy()
    return np.asarray(counts[size])


def _from_masses(distances: NDArray[np.float64], masses: NDArray[np.float64]) -> NullLaw:
    values, place = np.unique(distances, return_inverse=True)
    mass = np.bincount(place, weights=masses)
    return NullLaw(values, np.cumsum(mass[::-1])[::-1])


def _normal_law(doubled_ranks: NDArray[np.int64], n_a: int) -> NullLaw:
    total = doubled_ranks.size
    variance = n_a * (total - n_a) * float(np.var(doubled_ranks / 2)) / (total - 1)
    distances = np.arange(0, n_a * (total - n_a) / 2 + 0.5, 0.5)
    scale = math.sqrt(variance) if variance > 0 else math.inf
    tail = np.minimum(1.0, 2 * special.ndtr((0.5 - distances) / scale))
    return NullLaw(distances, np.asarray(tail, dtype=np.float64))
