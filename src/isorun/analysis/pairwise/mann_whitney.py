"""The Mann-Whitney test of two approaches, exact for small samples, with ties too.

U counts the pairs of runs in which the first approach has the larger value, a tied pair as one half. Its exact law is
the permutation law of the mid-ranks (Streitberg and Röhmel 1986; R's `coin::wilcox_test(distribution = "exact")`),
which without ties is the textbook law. From 50 runs a side on, the normal law is used, corrected for ties and for
continuity, as in R's `wilcox.test`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import ndtr

from isorun.analysis.inputs.ranks import midranks, tie_term
from isorun.analysis.inputs.samples import FloatArray

__all__ = ["RankSum", "mann_whitney", "rank_sum_law", "u_law", "u_statistic"]

EXACT_BELOW = 50


@dataclass(frozen=True, slots=True)
class RankSum:
    """U of the first sample with its two-sided p, and the p of "the first is larger" and "the first is smaller"."""

    u: float
    p: float
    p_larger: float
    p_smaller: float
    exact: bool

    def to_json(self) -> dict[str, float | bool]:
        """Plain JSON."""
        return {"u": self.u, "p": self.p, "exact": self.exact}


def u_statistic(first: FloatArray, second: FloatArray) -> float:
    """The pairs in which the first is larger, ties as one half; takes n log n steps.

    Both are sorted: values that are looked up in their order are found twice as fast.
    """
    wanted, ordered = np.sort(first), np.sort(second)
    below = np.searchsorted(ordered, wanted, side="left").sum()
    not_above = np.searchsorted(ordered, wanted, side="right").sum()
    return float(below + not_above) / 2.0


def mann_whitney(first: FloatArray, second: FloatArray) -> RankSum:
    """The test; any two samples of at least one value."""
    if max(first.size, second.size) < EXACT_BELOW:
        return _exact(first, second)
    return _approximate(first, second)


def _exact(first: FloatArray, second: FloatArray) -> RankSum:
    doubled = np.rint(2.0 * midranks(np.concatenate([first, second]))).astype(np.int64)
    sums, weights = rank_sum_law(tuple(sorted(doubled.tolist())), first.size)
    observed = int(doubled[: first.size].sum())
    centre = first.size * (doubled.size + 1)
    far = np.abs(sums - centre) >= abs(observed - centre)
    return RankSum(
        u=(observed - first.size * (first.size + 1)) / 2.0,
        p=_probability(weights[far]),
        p_larger=_probability(weights[sums >= observed]),
        p_smaller=_probability(weights[sums <= observed]),
        exact=True,
    )


def _probability(weights: FloatArray) -> float:
    return min(1.0, math.fsum(weights))


@lru_cache(maxsize=64)
def rank_sum_law(doubled_ranks: tuple[int, ...], drawn: int) -> tuple[FloatArray, FloatArray]:
    """The sums of `drawn` of the ranks taken without replacement, and their probabilities.

    ways[k, s] counts the ways to reach sum s with k ranks; each rank is added once, so that a sum grows by it or not.
    Ranks are counted from the smallest one, which keeps the table small.
    """
    smallest = doubled_ranks[0]
    step = math.gcd(*(rank - smallest for rank in doubled_ranks)) or 1
    excess = [(rank - smallest) // step for rank in doubled_ranks]
    largest = sum(excess[-drawn:])
    ways = np.zeros((drawn + 1, largest + 1))
    ways[0, 0] = 1.0
    for rank in excess:
        ways[1:, rank:] += ways[:-1, : largest + 1 - rank].copy()
    weights = ways[drawn] / ways[drawn].sum()
    sums = step * np.arange(largest + 1, dtype=np.float64) + drawn * smallest
    return sums, weights


def u_law(n_first: int, n_second: int) -> FloatArray:
    """The probabilities of U = 0, 1, 2, … when there are no ties."""
    ranks = tuple(range(2, 2 * (n_first + n_second) + 1, 2))
    return rank_sum_law(ranks, n_first)[1][n_first * (n_first - 1) // 2 :]


def _approximate(first: FloatArray, second: FloatArray) -> RankSum:
    u = u_statistic(first, second)
    n, m = first.size, second.size
    total = n + m
    variance = n * m / 12.0 * (total + 1.0 - tie_term(np.concatenate([first, second])) / (total * (total - 1.0)))
    if variance <= 0.0:
        return RankSum(u, 1.0, 1.0, 1.0, exact=False)
    deviation, sd = u - n * m / 2.0, math.sqrt(variance)
    return RankSum(
        u=u,
        p=min(1.0, 2.0 * float(ndtr(-max(abs(deviation) - 0.5, 0.0) / sd))),
        p_larger=float(ndtr(-(deviation - 0.5) / sd)),
        p_smaller=float(ndtr((deviation + 0.5) / sd)),
        exact=False,
    )
