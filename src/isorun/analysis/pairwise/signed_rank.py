"""The Wilcoxon signed rank test of paired runs, exact for fewer than 50 pairs, with ties too.

Pairs without a difference say nothing about its sign and are left out, as Wilcoxon did and R's `wilcox.test` does.
The exact law is that of the mid-ranks with signs drawn by coin tosses; `coin::wilcoxsign_test` with
`zero.method = "Wilcoxon"` computes the same. Its null is that differences are symmetric about 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from isorun.analysis.inputs.ranks import midranks
from isorun.analysis.inputs.samples import FloatArray, Outcome

__all__ = ["SignedRankLaw", "wilcoxon_signed_rank"]

EXACT_BELOW = 50


def wilcoxon_signed_rank(differences: FloatArray) -> Outcome:
    """The sum of the ranks of positive differences, and its two-sided p; None when every difference is zero."""
    moved = differences[differences != 0.0]
    if not moved.size:
        return Outcome(None, None)
    law = SignedRankLaw.of(differences)
    positive = float(midranks(np.abs(moved))[moved > 0.0].sum())
    return Outcome(positive, law.p_value(float(np.abs(law.scores(differences[:, None]))[0, 0])))


@dataclass(frozen=True, slots=True, eq=False)
class SignedRankLaw:
    """The law of the sum of signed ranks in its standard deviations, given the ties among the differences.

    sd: of the sum of positive ranks; 0 when every difference is zero. tail: the chance that the sum is at least so many
    quarter ranks from its middle, exactly; empty where the normal law is used.
    """

    sd: float
    tail: FloatArray

    @classmethod
    def of(cls, differences: FloatArray) -> SignedRankLaw:
        """The law given the sizes of these differences."""
        ranks = midranks(np.abs(differences[differences != 0.0]))
        sd = math.sqrt(float((ranks**2).sum())) / 2.0
        return cls(sd, _exact_tail(ranks) if ranks.size < EXACT_BELOW else np.empty(0))

    def scores(self, differences: NDArray[Any]) -> FloatArray:
        """The sum of positive ranks less its middle, in standard deviations, of each column; (1, columns)."""
        return np.array([[_balance(column) / self.sd if self.sd else 0.0 for column in differences.T]])

    def p_value(self, distance: float) -> float:
        """The two-sided p of a sum so many standard deviations from its middle; 0 for an infinite distance."""
        if self.sd == 0.0:
            return 1.0 if distance < math.inf else 0.0
        if not self.tail.size:
            return min(1.0, 2.0 * float(ndtr(-max(distance * self.sd - 0.5, 0.0) / self.sd)))
        if math.isinf(distance):
            return 0.0
        place = max(0, math.ceil(4.0 * distance * self.sd - 1e-6))
        return float(self.tail[place]) if place < self.tail.size else 0.0

    def critical(self, level: float) -> float:
        """The smallest distance with p at or below `level`; inf when there is none."""
        if self.sd == 0.0:
            return math.inf
        if not self.tail.size:
            return 0.5 / self.sd - float(ndtri(level / 2))
        significant = np.flatnonzero(self.tail <= level * (1 + 1e-12))
        return (float(significant[0]) / 4.0 - 1e-9) / self.sd if significant.size else math.inf


def _balance(differences: NDArray[Any]) -> float:
    """The sum of the ranks of positive differences less its middle."""
    moved = differences[differences != 0.0]
    return float((np.sign(moved) * midranks(np.abs(moved))).sum()) / 2.0 if moved.size else 0.0


def _exact_tail(ranks: FloatArray) -> FloatArray:
    """The chance of a sum of positive ranks at least k quarters from its middle, for k = 0, 1, …"""
    doubled = np.rint(2.0 * ranks).astype(np.int64)
    total = int(doubled.sum())
    law = np.zeros(total + 1)
    law[0] = 1.0
    for rank in doubled:
        law[rank:] += law[: total + 1 - rank].copy()
        law /= 2.0
    quarters = np.abs(2 * np.arange(total + 1) - total)
    return np.minimum(1.0, np.cumsum(np.bincount(quarters, weights=law)[::-1])[::-1])
