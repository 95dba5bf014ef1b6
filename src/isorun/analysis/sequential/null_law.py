"""The law of the Mann-Whitney distance |U - mn/2| when there is nothing to find: p-values and critical distances.

It is exact below 50 runs a side and normal from there on, as in `analysis.mann_whitney`, so that a fixed verdict and
the p printed beside it always agree.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import ndtr, ndtri

from isorun.analysis.inputs.ranks import midranks
from isorun.analysis.inputs.samples import FloatArray
from isorun.analysis.pairwise.mann_whitney import EXACT_BELOW, rank_sum_law

__all__ = ["NullLaw", "continuous_law", "law_given_ties"]


class NullLaw(Protocol):
    """The law of a statistic's distance from its middle at one look."""

    def p_value(self, distance: float) -> float:
        """The two-sided p of a statistic this far from the middle; 0 for an infinite distance."""

    def critical(self, level: float) -> float:
        """The smallest distance with p at or below `level`; inf when there is none."""


@dataclass(frozen=True, slots=True, eq=False)
class _ExactLaw:
    """The distances that can occur, ascending, and the chance of at least that much."""

    distances: FloatArray
    tail: FloatArray

    def p_value(self, distance: float) -> float:
        place = int(np.searchsorted(self.distances, distance - 1e-9))
        return float(self.tail[place]) if place < self.tail.size else 0.0

    def critical(self, level: float) -> float:
        significant = np.flatnonzero(self.tail <= level * (1 + 1e-12))
        return float(self.distances[significant[0]]) if significant.size else math.inf


@dataclass(frozen=True, slots=True)
class _NormalLaw:
    """The normal law of standard deviation `sd`, corrected for continuity; sd is 0 when all runs are tied."""

    sd: float

    def p_value(self, distance: float) -> float:
        if self.sd == 0:
            return 1.0 if distance < math.inf else 0.0
        return 2.0 * float(ndtr(-max(distance - 0.5, 0.0) / self.sd))

    def critical(self, level: float) -> float:
        if self.sd == 0:
            return math.inf
        return math.ceil(2 * (0.5 - self.sd * float(ndtri(level / 2)))) / 2


@functools.lru_cache(maxsize=512)
def continuous_law(n_a: int, n_b: int) -> NullLaw:
    """The law without ties."""
    return _law(np.arange(1.0, n_a + n_b + 1), n_a)


def law_given_ties(a: FloatArray, b: FloatArray) -> NullLaw:
    """The law given the ties among the pooled runs."""
    return _law(midranks(np.concatenate([a, b])), a.size)


def _law(ranks: FloatArray, n_a: int) -> NullLaw:
    exact = max(n_a, ranks.size - n_a) < EXACT_BELOW
    return _exact_law(ranks, n_a) if exact else _normal_law(ranks, n_a)


def _exact_law(ranks: FloatArray, n_a: int) -> NullLaw:
    doubled = np.sort(np.rint(2 * ranks)).astype(np.int64)
    sums, weights = rank_sum_law(tuple(doubled.tolist()), n_a)
    possible = weights > 0
    distances, place = np.unique(np.abs(sums[possible] / 2 - n_a * (ranks.size + 1) / 2), return_inverse=True)
    masses = np.bincount(place, weights=weights[possible])
    return _ExactLaw(distances, np.minimum(1.0, np.cumsum(masses[::-1])[::-1]))


def _normal_law(ranks: FloatArray, n_a: int) -> NullLaw:
    total = ranks.size
    return _NormalLaw(math.sqrt(n_a * (total - n_a) * float(ranks.var()) / (total - 1)))
