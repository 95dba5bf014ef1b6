"""Agreement: do two metrics, devices or environments put the same seeds in the same order?

Kendall's tau-b and Spearman's rho over paired results, with exact p for small n: Kendall's from the law of inversions
(n < 50), Spearman's from all permutations (n <= 9), from the Edgeworth series of algorithm AS 89 (Best and Roberts
1975) up to n = 1290, and from the t law beyond or where values are tied, all as in R's `cor.test`.

Intervals of Kendall's tau, and of the difference between two taus over the same seeds.

Tau is an average over pairs (a U statistic), so that leaving out one seed at a time gives its standard error (Arvesen,
Annals of Mathematical Statistics 40, 1969), also with ties and for two taus that share their seeds. The interval of one
tau is made on the scale of Fisher's z, that of a difference on its own; both with Student's t.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, permutations
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, stdtr, stdtrit

from isorun.analysis.samples import FloatArray, finite_sample, has_ties, is_constant, midranks, snapped
from isorun.errors import InputError

__all__ = [
    "FEWEST_SEEDS",
    "TAU_CONFIDENCE",
    "Agreement",
    "RankCorrelation",
    "agreement",
    "agreements",
    "kendall",
    "spearman",
    "tau_difference_interval",
    "tau_interval",
]


@dataclass(frozen=True, slots=True)
class RankCorrelation:
    """A rank correlation and its two-sided p; None when one side is constant. exact: whether p is the exact one."""

    estimate: float | None
    p: float | None
    exact: bool

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {"estimate": self.estimate, "p": self.p, "exact": self.exact}


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far two sets of results over the same seeds agree in their order."""

    a: str
    b: str
    n: int
    kendall: RankCorrelation
    spearman: RankCorrelation

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "a": self.a,
            "b": self.b,
            "n": self.n,
            "kendall": self.kendall.to_json(),
            "spearman": self.spearman.to_json(),
        }


def agreement(first: npt.ArrayLike, second: npt.ArrayLike, *, a: str = "A", b: str = "B") -> Agreement:
    """The agreement of two equally long lists; the i-th entries belong to the same seed."""
    x, y = finite_sample(first, f"the results of {a}", minimum=3), finite_sample(second, f"the results of {b}")
    if x.size != y.size:
        raise InputError("agreement needs the same seeds on both sides", found=f"{x.size} and {y.size} results")
    x, y = snapped(x), snapped(y)
    return Agreement(a, b, x.size, kendall(x, y), spearman(x, y))


def agreements(results: Mapping[str, npt.ArrayLike]) -> tuple[Agreement, ...]:
    """All pairs of two or more lists over the same seeds: the table of Crane (TACL 2018)."""
    return tuple(agreement(first, second, a=a, b=b) for (a, first), (b, second) in combinations(results.items(), 2))


def kendall(x: FloatArray, y: FloatArray) -> RankCorrelation:
    """Kendall's tau-b; p exact without ties for n < 50, else normal with the variance corrected for ties."""
    if is_constant(x) or is_constant(y):
        return RankCorrelation(None, None, exact=False)
    concordance = _concordance(x, y)
    n = x.size
    all_pairs = n * (n - 1) / 2.0
    free_x, free_y = (all_pairs - _tied_pairs(side) for side in (x, y))
    estimate = max(-1.0, min(1.0, concordance / math.sqrt(free_x * free_y)))
    if n < 50 and not has_ties(x) and not has_ties(y):
        return RankCorrelation(estimate, _kendall_exact(n, round(concordance)), exact=True)
    return RankCorrelation(estimate, 2.0 * float(ndtr(-abs(concordance) / _kendall_sd(x, y))), exact=False)


def _concordance(x: FloatArray, y: FloatArray) -> float:
    """Concordant minus discordant pairs, row by row to keep memory small."""
    return float(sum(np.sign(x[i + 1 :] - x[i]) @ np.sign(y[i + 1 :] - y[i]) for i in range(x.size - 1)))


def _tie_sizes(values: FloatArray) -> FloatArray:
    return np.unique(values, return_counts=True)[1].astype(np.float64)


def _tied_pairs(values: FloatArray) -> float:
    sizes = _tie_sizes(values)
    return float((sizes * (sizes - 1.0)).sum() / 2.0)


def _kendall_exact(n: int, concordance: int) -> float:
    inversions = (n * (n - 1) // 2 - abs(concordance)) // 2
    return min(1.0, 2.0 * math.fsum(_inversion_law(n)[: inversions + 1]))


@lru_cache(maxsize=64)
def _inversion_law(n: int) -> FloatArray:
    """The probabilities of 0, 1, 2, … inversions in a random permutation: the i-th value adds 0 to i of them."""
    law = np.ones(1)
    for size in range(2, n + 1):
        law = np.convolve(law, np.full(size, 1.0 / size))
    return law


def _kendall_sd(x: FloatArray, y: FloatArray) -> float:
    n = float(x.size)
    t, u = _tie_sizes(x), _tie_sizes(y)
    weighted = [float((s * (s - 1.0) * (2.0 * s + 5.0)).sum()) for s in (t, u)]
    pairs = [float((s * (s - 1.0)).sum()) for s in (t, u)]
    triples = [float((s * (s - 1.0) * (s - 2.0)).sum()) for s in (t, u)]
    variance = (n * (n - 1.0) * (2.0 * n + 5.0) - sum(weighted)) / 18.0
    variance += pairs[0] * pairs[1] / (2.0 * n * (n - 1.0))
    variance += triples[0] * triples[1] / (9.0 * n * (n - 1.0) * (n - 2.0))
    return math.sqrt(variance)


def spearman(x: FloatArray, y: FloatArray) -> RankCorrelation:
    """Spearman's rho: the correlation of the mid-ranks."""
    if is_constant(x) or is_constant(y):
        return RankCorrelation(None, None, exact=False)
    rank_x, rank_y = midranks(x), midranks(y)
    centred = [ranks - ranks.mean() for ranks in (rank_x, rank_y)]
    rho = float(centred[0] @ centred[1]) / math.sqrt(float(centred[0] @ centred[0]) * float(centred[1] @ centred[1]))
    rho = max(-1.0, min(1.0, rho))
    n = x.size
    if n <= 9:
        return RankCorrelation(rho, _spearman_permuted(rank_x, rank_y), exact=True)
    if n <= 1290 and not has_ties(x) and not has_ties(y):
        return RankCorrelation(rho, _spearman_series(n, float(((rank_x - rank_y) ** 2).sum())), exact=False)
    return RankCorrelation(rho, _t_p(rho, n), exact=False)


def _spearman_permuted(rank_x: FloatArray, rank_y: FloatArray) -> float:
    """The share of all orders of one side that give a correlation at least as far from zero; with ties too.

    Doubled ranks keep the sums of products in whole numbers.
    """
    x, y = (np.rint(2.0 * ranks).astype(np.int64) for ranks in (rank_x, rank_y))
    products = x[_all_orders(x.size)] @ y
    centre = int(x.sum()) * int(y.sum())
    distance = np.abs(x.size * products - centre)
    return float(np.mean(distance >= abs(x.size * int(x @ y) - centre)))


@lru_cache(maxsize=8)
def _all_orders(n: int) -> npt.NDArray[np.int8]:
    return np.array(list(permutations(range(n))), dtype=np.int8)


_EDGEWORTH = (0.2274, 0.2531, 0.1745, 0.0758, 0.1033, 0.3932, 0.0879, 0.0151, 0.0072, 0.0831, 0.0131, 4.6e-4)


def _spearman_series(n: int, squares: float) -> float:
    """Twice the smaller tail of the sum of squared rank differences."""
    middle = n * (n * n - 1.0) / 6.0
    upper = squares > middle
    tail = _as_89(n, squares if upper else squares + 2.0)
    return min(1.0, 2.0 * (tail if upper else 1.0 - tail))


def _as_89(n: int, squares: float) -> float:
    """P(sum of squares >= squares) by AS 89; sums of squares are even, hence the correction by one."""
    c = _EDGEWORTH
    b = 1.0 / n
    x = (6.0 * (squares - 1.0) * b / (n * n - 1.0) - 1.0) * math.sqrt(1.0 / b - 1.0)
    y = x * x
    u = (
        x
        * b
        * (
            c[0]
            + b * (c[1] + c[2] * b)
            + y
            * (
                -c[3]
                + b * (c[4] + c[5] * b)
                - y * b * (c[6] + c[7] * b - y * (c[8] - c[9] * b + y * b * (c[10] - c[11] * y)))
            )
        )
    )
    return min(1.0, max(0.0, u / math.exp(y / 2.0) + float(ndtr(-x))))


def _t_p(rho: float, n: int) -> float:
    if abs(rho) == 1.0:
        return 0.0
    return 2.0 * float(stdtr(n - 2, -abs(rho) * math.sqrt((n - 2) / (1.0 - rho * rho))))


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
