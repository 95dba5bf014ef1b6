"""The Wilcoxon signed rank test of paired runs, exact for fewer than 50 pairs, with ties too.

Pairs without a difference say nothing about its sign and are left out, as Wilcoxon did and R's `wilcox.test` does.
The exact law is that of the mid-ranks with signs drawn by coin tosses; `coin::wilcoxsign_test` with
`zero.method = "Wilcoxon"` computes the same.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr

from isorun.analysis.inputs.ranks import midranks, tie_term
from isorun.analysis.inputs.samples import FloatArray, Outcome

__all__ = ["wilcoxon_signed_rank"]

EXACT_BELOW = 50


def wilcoxon_signed_rank(differences: FloatArray) -> Outcome:
    """The sum of the ranks of positive differences, and its two-sided p; None when every difference is zero."""
    moved = differences[differences != 0.0]
    if not moved.size:
        return Outcome(None, None)
    ranks = midranks(np.abs(moved))
    positive = float(ranks[moved > 0.0].sum())
    p = _exact_p(ranks, positive) if moved.size < EXACT_BELOW else _approximate_p(moved, positive)
    return Outcome(positive, p)


def _exact_p(ranks: FloatArray, positive: float) -> float:
    doubled = np.rint(2.0 * ranks).astype(np.int64)
    total = int(doubled.sum())
    law = np.zeros(total + 1)
    law[0] = 1.0
    for rank in doubled:
        law[rank:] += law[: total + 1 - rank].copy()
        law /= 2.0
    sums = np.arange(total + 1)
    far = np.abs(2 * sums - total) >= abs(round(4.0 * positive) - total)
    return min(1.0, math.fsum(law[far]))


def _approximate_p(moved: FloatArray, positive: float) -> float:
    n = moved.size
    variance = n * (n + 1.0) * (2.0 * n + 1.0) / 24.0 - tie_term(np.abs(moved)) / 48.0
    distance = max(abs(positive - n * (n + 1.0) / 4.0) - 0.5, 0.0)
    return min(1.0, 2.0 * float(ndtr(-distance / math.sqrt(variance))))
