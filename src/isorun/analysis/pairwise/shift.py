"""The Hodges-Lehmann shift: the median of all differences between a run of A and a run of B.

Its interval inverts the Mann-Whitney test (Hodges and Lehmann 1963; R's `wilcox.test(conf.int = TRUE)`): it reaches
from one pairwise difference to another, which are found without forming all pairs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from isorun.analysis.inputs.samples import FloatArray, Interval
from isorun.analysis.pairwise.mann_whitney import EXACT_BELOW, u_law

__all__ = ["Shift", "hodges_lehmann"]

_ALL_PAIRS = 1_000_000


@dataclass(frozen=True, slots=True)
class Shift:
    """The estimate and its 95 % interval; None where so few runs allow no such interval."""

    estimate: float
    ci95: Interval | None

    def to_json(self) -> dict[str, object]:
        """Plain JSON."""
        return {"estimate": self.estimate, "ci95": None if self.ci95 is None else list(self.ci95)}


def hodges_lehmann(first: FloatArray, second: FloatArray, confidence: float = 0.95) -> Shift:
    """The shift of the first sample against the second."""
    pairs = _PairwiseDifferences(first, second)
    middle = pairs.count // 2
    wanted = (middle, middle + 1) if pairs.count % 2 == 0 else (middle + 1,)
    estimate = sum(pairs.smallest(order) for order in wanted) / len(wanted)
    order = _critical_order(first.size, second.size, (1.0 - confidence) / 2.0)
    if order < 1:
        return Shift(estimate, None)
    return Shift(estimate, (pairs.smallest(order), pairs.smallest(pairs.count + 1 - order)))


def _critical_order(n: int, m: int, tail: float) -> int:
    """Which smallest difference ends the interval: P(U < order) is at most `tail`; 0 when none does."""
    if max(n, m) < EXACT_BELOW:
        cumulated = np.cumsum(u_law(n, m))
        return int(np.searchsorted(cumulated, tail * (1.0 + 1e-12), side="right"))
    sd = math.sqrt(n * m * (n + m + 1.0) / 12.0)
    return math.floor(n * m / 2.0 + float(ndtri(tail)) * sd)


class _PairwiseDifferences:
    """All differences of two samples, which are counted rather than formed when there are many."""

    def __init__(self, first: FloatArray, second: FloatArray) -> None:
        self.count = first.size * second.size
        self._first = np.sort(first)
        self._second = np.sort(second)
        few = self.count <= _ALL_PAIRS
        self._all = np.sort(np.subtract.outer(first, second), axis=None) if few else None

    def smallest(self, order: int) -> float:
        """The order-th smallest difference, counted from 1."""
        if self._all is not None:
            return float(self._all[order - 1])
        low = float(self._first[0] - self._second[-1])
        high = float(self._first[-1] - self._second[0])
        while low < (middle := low + (high - low) / 2.0) < high:
            if self._not_above(middle) >= order:
                high = middle
            else:
                low = middle
        return high

    def _not_above(self, limit: float) -> int:
        reached = np.searchsorted(self._second, self._first - limit, side="left")
        return self.count - int(reached.sum())
