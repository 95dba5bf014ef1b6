"""Which pairs of approaches differ, after a test of all of them.

Independent runs: Brunner-Munzel (spreads may differ), Dunn (1964) or Mann-Whitney. Blocks (the same tasks or seeds):
Nemenyi (1963), Conover (1979) or the Wilcoxon signed rank test. Nemenyi's p already holds for all pairs; the others are
corrected afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from itertools import combinations
from typing import Final

import numpy as np
from scipy.special import ndtr, stdtr

from isorun.analysis.inputs.pairing import Pairs
from isorun.analysis.inputs.ranks import midranks, tie_term
from isorun.analysis.inputs.samples import FloatArray
from isorun.analysis.leaderboards.omnibus import block_ranks
from isorun.analysis.pairwise.brunner_munzel import brunner_munzel
from isorun.analysis.pairwise.mann_whitney import mann_whitney
from isorun.analysis.pairwise.signed_rank import wilcoxon_signed_rank

__all__ = ["INDEPENDENT", "PAIRED", "critical_difference", "studentized_range_tail"]

PairValues = list[float]
"""One p for each pair of columns, in the order of itertools.combinations."""


def dunn(samples: Sequence[FloatArray]) -> PairValues:
    """Differences of mean ranks among all runs, as normal deviates."""
    pooled = np.concatenate(list(samples))
    n = pooled.size
    parts = np.split(midranks(pooled), np.cumsum([sample.size for sample in samples])[:-1])
    variance = n * (n + 1.0) / 12.0 - tie_term(pooled) / (12.0 * (n - 1.0))
    if variance <= 0.0:
        return [1.0 for _ in combinations(parts, 2)]
    return [
        2.0 * float(ndtr(-abs(a.mean() - b.mean()) / math.sqrt(variance * (1.0 / a.size + 1.0 / b.size))))
        for a, b in combinations(parts, 2)
    ]


def pairwise_brunner_munzel(samples: Sequence[FloatArray]) -> PairValues:
    """Each pair by itself, whatever the spreads: does a run of one beat a run of the other as often as not?"""
    found = [brunner_munzel(a, b).p for a, b in combinations(samples, 2)]
    return [math.nan if p is None else p for p in found]


def pairwise_mann_whitney(samples: Sequence[FloatArray]) -> PairValues:
    """Each pair by itself."""
    return [mann_whitney(a, b).p for a, b in combinations(samples, 2)]


def nemenyi(samples: Sequence[FloatArray]) -> PairValues:
    """Differences of mean ranks within blocks, against the range of as many normal values as there are approaches."""
    matrix = np.column_stack(list(samples))
    blocks, treatments = matrix.shape
    means = block_ranks(matrix).mean(axis=0)
    unit = math.sqrt(treatments * (treatments + 1.0) / (6.0 * blocks))
    return [studentized_range_tail(math.sqrt(2.0) * abs(a - b) / unit, treatments) for a, b in combinations(means, 2)]


def conover(samples: Sequence[FloatArray]) -> PairValues:
    """Differences of rank sums within blocks, against what is left within blocks; more powerful than Nemenyi."""
    ranks = block_ranks(np.column_stack(list(samples)))
    blocks, treatments = ranks.shape
    sums = ranks.sum(axis=0)
    freedom = (blocks - 1) * (treatments - 1)
    left = 2.0 * (blocks * float((ranks**2).sum()) - float((sums**2).sum()))
    if left <= 1e-9 or freedom < 1:
        return [float(a == b) for a, b in combinations(sums, 2)]
    return [2.0 * float(stdtr(freedom, -abs(a - b) / math.sqrt(left / freedom))) for a, b in combinations(sums, 2)]


def pairwise_wilcoxon(samples: Sequence[FloatArray]) -> PairValues:
    """Each pair by itself; approaches that are equal in every block do not differ."""
    outcomes = [wilcoxon_signed_rank(Pairs(a, b).differences) for a, b in combinations(samples, 2)]
    return [1.0 if outcome.p is None else outcome.p for outcome in outcomes]


INDEPENDENT: Final[dict[str, Callable[[Sequence[FloatArray]], PairValues]]] = {
    "brunner-munzel": pairwise_brunner_munzel,
    "dunn": dunn,
    "mann-whitney": pairwise_mann_whitney,
}
PAIRED: Final[dict[str, Callable[[Sequence[FloatArray]], PairValues]]] = {
    "nemenyi": nemenyi,
    "conover": conover,
    "wilcoxon": pairwise_wilcoxon,
}


def critical_difference(treatments: int, blocks: int, alpha: float = 0.05) -> float:
    """The difference of mean ranks that Nemenyi's test calls significant (Demšar 2006)."""
    low, high = 0.0, 20.0
    for _ in range(80):
        middle = (low + high) / 2.0
        low, high = (middle, high) if studentized_range_tail(middle, treatments) > alpha else (low, middle)
    return high / math.sqrt(2.0) * math.sqrt(treatments * (treatments + 1.0) / (6.0 * blocks))


def studentized_range_tail(q: float, groups: int) -> float:
    """P(range of `groups` standard normal values >= q): R's `ptukey(q, groups, Inf, lower.tail = FALSE)`.

    The largest value is z; all others lie within q below it. Gauss-Legendre over z, 256 nodes.
    """
    z, density = _normal_nodes()
    inside = groups * float((density * (ndtr(z) - ndtr(z - q)) ** (groups - 1)).sum())
    return min(1.0, max(0.0, 1.0 - inside))


@cache
def _normal_nodes() -> tuple[FloatArray, FloatArray]:
    """Where the integral is evaluated, with the normal density times the weight of each place."""
    nodes, weights = np.polynomial.legendre.leggauss(256)
    z = 9.0 * nodes
    return z, 9.0 * weights * np.exp(-(z**2) / 2.0) / math.sqrt(2.0 * math.pi)
