"""Tests of two approaches: ranks (Mann-Whitney, Brunner-Munzel, Wilcoxon), means and spreads, with their null laws.

The Mann-Whitney test of two approaches, exact for small samples, with ties too.

U counts the pairs of runs in which the first approach has the larger value, a tied pair as one half. Its exact law is
the permutation law of the mid-ranks (Streitberg and Röhmel 1986; R's `coin::wilcox_test(distribution = "exact")`),
which without ties is the textbook law. From 50 runs a side on, the normal law is used, corrected for ties and for
continuity, as in R's `wilcox.test`.

The Brunner-Munzel test: does a new run of one side beat a new run of the other as often as not?

Its null is P(A > B) + P(A = B) / 2 = 1/2, whatever the spreads and shapes; the Mann-Whitney test's is that both sides
have the same law. A placement is the share of the other side that a run beats. Their mean is the estimate of P, and
their variances are those of its error (Brunner and Munzel 2000, Biometrical Journal 42, with Satterthwaite's degrees
of freedom). Two changes make it hold for few runs:

- Each side gets a quarter of a placement at 0 and one at 1. The variance of a side that wins every time, or whose
  runs are tied, is then not estimated as none; complete separation needs no rule of its own.
- t is turned into a normal score (Wallace 1959, Annals of Mathematical Statistics 30). On that scale the law under the
  null hardly depends on the ratio of the spreads, so that a critical value for the worst ratio costs little power.

Below 16 runs of either side p is the largest over normal runs with spreads of 1:1, 1:2, 1:4 and 1:10, simulated; from
there on it is the normal one. Plain Brunner-Munzel tests claim up to .085 at 5 runs, its permutation (Neubert and
Brunner 2007, Computational Statistics and Data Analysis 51) up to .078 when 5 widely spread runs meet 25 (simulated).

The Wilcoxon signed rank test of paired runs, exact for fewer than 50 pairs, with ties too.

Pairs without a difference say nothing about its sign and are left out, as Wilcoxon did and R's `wilcox.test` does.
The exact law is that of the mid-ranks with signs drawn by coin tosses; `coin::wilcoxsign_test` with
`zero.method = "Wilcoxon"` computes the same. Its null is that differences are symmetric about 0.

Tests and intervals of means: Welch for two independent samples, Student for paired differences.

Tests of equal spread: Levene (median- or mean-centred), Fligner-Killeen, and the F test of two variances. Levene's
median-centred form (Brown and Forsythe 1974) is the default: it holds its error rate for skewed results. The F test is
for normal values only and is given for comparison with the literature.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray
from scipy.special import chdtrc, fdtr, fdtrc, ndtr, ndtri, stdtr, stdtrit

from isorun.analysis.samples import (
    FloatArray,
    Interval,
    Significance,
    finite_sample,
    midranks,
    recentred,
    several_samples,
    snapped,
    tie_term,
    two_samples,
)
from isorun.errors import InputError

__all__ = [
    "SPREAD_RATIOS",
    "MeanDifference",
    "NullLaw",
    "RankSum",
    "SignedRankLaw",
    "Superiority",
    "SuperiorityLaw",
    "brunner_munzel",
    "continuous_law",
    "f_test",
    "fligner",
    "law_given_ties",
    "levene",
    "mann_whitney",
    "normal_score",
    "paired_t",
    "rank_sum_law",
    "superiority_law",
    "superiority_score",
    "u_law",
    "u_statistic",
    "welch",
    "wilcoxon_signed_rank",
]

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


def mann_whitney(first: npt.ArrayLike, second: npt.ArrayLike) -> RankSum:
    """The test; any two samples of at least one value."""
    first, second = two_samples(first, second)
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


SPREAD_RATIOS = (1.0, 2.0, 4.0, 10.0)
"""Of the standard deviations of the two sides: what critical values are made for."""

_END_WEIGHT = 0.25  # of a placement added at 0 and at 1
_NORMAL_FROM = 16  # runs of the smaller side; with as many the normal law errs in at most .051
_SEED = 40_961
_PAIRS_SIMULATED = 4_000_000
_FEWEST_SIMULATED = 16_000
_MOST_SIMULATED = 50_000
_LARGER_SIDE_AT_MOST = 100  # beyond it the law for fewer than 16 runs of the other side does not change


@dataclass(frozen=True, slots=True)
class Superiority:
    """superiority: the share of pairs in which the first side's run is larger, a tie as one half.

    z: the distance of that from one half as a normal score. p: two-sided. Both None for fewer than 2 runs a side.
    """

    superiority: float
    z: float | None
    p: float | None

    def to_json(self) -> dict[str, float | None]:
        """Plain JSON."""
        return {"superiority": self.superiority, "z": self.z, "p": self.p}


def brunner_munzel(first: npt.ArrayLike, second: npt.ArrayLike) -> Superiority:
    """The test of two samples; takes n log n steps."""
    first, second = two_samples(first, second)
    if min(first.size, second.size) < 2:
        return Superiority(float(_doubled_wins(first, second).mean()) / (2 * second.size), None, None)
    superiority, z = superiority_score(first, second)
    return Superiority(superiority, z, superiority_law(first.size, second.size).p_value(abs(z)))


def superiority_score(first: FloatArray, second: FloatArray) -> tuple[float, float]:
    """The share of pairs that the first wins, and how far that is from one half as a normal score."""
    n, m = first.size, second.size
    wins, losses = _doubled_wins(first, second), _doubled_wins(second, first)
    excess = (int(wins.sum()) - n * m) / (2 * n * m)  # whole numbers, so that an even score is exactly 0
    spreads = (wins / (2 * m)).var(ddof=1), (losses / (2 * n)).var(ddof=1)
    return excess + 0.5, float(normal_score(excess, *spreads, n, m))


def normal_score(excess: Any, spread_a: Any, spread_b: Any, n_a: Any, n_b: Any) -> FloatArray:
    """Brunner and Munzel's t as a normal score, of numbers or of arrays alike.

    excess: the mean placement less one half. spread_a, spread_b: the variances of the placements of either side.
    """
    part_a, part_b = _with_ends(spread_a, excess, n_a) / n_a, _with_ends(spread_b, excess, n_b) / n_b
    squared_error = part_a + part_b
    freedom = squared_error**2 / (part_a**2 / (n_a - 1) + part_b**2 / (n_b - 1))
    size = np.sqrt(freedom * np.log1p(excess**2 / squared_error / freedom)) * (8 * freedom + 1) / (8 * freedom + 3)
    return np.asarray(np.copysign(size, excess))


def _with_ends(spread: Any, excess: Any, runs: Any) -> Any:
    """The variance of the placements with a quarter of one added at 0 and at 1."""
    added = 2 * _END_WEIGHT
    squares = (runs - 1) * spread + added / 4 + runs * added / (runs + added) * excess**2
    return squares / (runs + added - 1)


def _doubled_wins(sample: FloatArray, others: FloatArray) -> NDArray[np.intp]:
    """Twice the number of others that each value beats, plus those it ties with; in order of size."""
    wanted, ordered = np.sort(sample), np.sort(others)
    return np.searchsorted(ordered, wanted, side="left") + np.searchsorted(ordered, wanted, side="right")


@dataclass(frozen=True, slots=True, eq=False)
class SuperiorityLaw:
    """The law of |z| when a new run of either side wins as often as not: the worst over the spread ratios.

    draws: |z| of simulated comparisons, ascending, (ratios, comparisons); empty where the normal law is used.
    """

    draws: FloatArray

    @classmethod
    def normal(cls) -> SuperiorityLaw:
        """The normal law, which any score of many runs has."""
        return cls(np.empty((0, 0)))

    def p_value(self, distance: float) -> float:
        """The two-sided p of a z this far from 0."""
        if not self.draws.size:
            return 2.0 * float(ndtr(-distance))
        reached: list[int] = [row.size - int(np.searchsorted(row, distance * (1 - 1e-9))) for row in self.draws]
        return (max(reached) + 1.0) / (int(self.draws.shape[1]) + 1)

    def critical(self, level: float) -> float:
        """The |z| from which on p is at or below `level`; inf when there is none."""
        if not self.draws.size:
            return -float(ndtri(level / 2))
        allowed = math.floor(level * (self.draws.shape[1] + 1) * (1 + 1e-12)) - 1
        if allowed < 0:
            return math.inf
        too_common = float(self.draws[:, -allowed - 1].max())
        return math.inf if too_common >= self.draws.max() else too_common * (1 + 2e-9)


@functools.lru_cache(maxsize=256)
def superiority_law(n_a: int, n_b: int) -> SuperiorityLaw:
    """The law for so many runs of either side; simulated in a tenth of a second or so."""
    fewer, more = min(n_a, n_b), min(max(n_a, n_b), _LARGER_SIDE_AT_MOST)
    if fewer >= _NORMAL_FROM:
        return SuperiorityLaw.normal()
    count = int(np.clip(_PAIRS_SIMULATED // (fewer * more), _FEWEST_SIMULATED, _MOST_SIMULATED))
    rng = np.random.default_rng(_SEED)  # the same for everyone, so that everyone gets the same p
    a, b = (rng.standard_normal((runs, count), dtype=np.float32) for runs in (fewer, more))
    ratios = SPREAD_RATIOS if fewer == more else (*SPREAD_RATIOS, *(1 / ratio for ratio in SPREAD_RATIOS[1:]))
    draws = np.array([np.abs(_scores(np.float32(ratio) * a, b)) for ratio in ratios])
    draws.sort(axis=1)
    return SuperiorityLaw(draws)


def _scores(a: NDArray[np.float32], b: NDArray[np.float32]) -> FloatArray:
    """The normal scores of many comparisons without ties; a and b are (runs, comparisons)."""
    n_a, n_b = len(a), len(b)
    won_a = np.zeros(a.shape, dtype=np.uint8)
    won_b = np.empty(b.shape, dtype=np.uint8)
    for j, run in enumerate(b):
        beaten = np.greater(a, run).view(np.uint8)
        won_a += beaten
        np.add.reduce(beaten, axis=0, out=won_b[j])
    excess = won_a.mean(axis=0, dtype=np.float64) / n_b - 0.5
    spread_a = won_a.var(axis=0, ddof=1, dtype=np.float64) / n_b**2
    spread_b = won_b.var(axis=0, ddof=1, dtype=np.float64) / n_a**2
    return normal_score(excess, spread_a, spread_b, n_a, n_b)


def wilcoxon_signed_rank(differences: npt.ArrayLike) -> Significance:
    """The sum of the ranks of positive differences, and its two-sided p; None when every difference is zero."""
    differences = finite_sample(differences, "the differences")
    moved = differences[differences != 0.0]
    if not moved.size:
        return Significance(None, None)
    law = SignedRankLaw.of(differences)
    positive = float(midranks(np.abs(moved))[moved > 0.0].sum())
    return Significance(positive, law.p_value(float(np.abs(law.scores(differences[:, None]))[0, 0])))


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


@dataclass(frozen=True, slots=True)
class MeanDifference:
    """A difference of means with its standard error; t, p and interval are None where the values do not vary."""

    difference: float
    standard_error: float | None = None
    df: float | None = None
    t: float | None = None
    p: float | None = None
    ci95: Interval | None = None


def welch(first: npt.ArrayLike, second: npt.ArrayLike, confidence: float = 0.95) -> MeanDifference:
    """Welch's test (1947), which lets the two spreads differ."""
    first, second = two_samples(first, second)
    size = max(abs(float(first.mean())), abs(float(second.mean())))
    first, second = recentred(first, second)
    difference = float(first.mean() - second.mean())
    if min(first.size, second.size) < 2:
        return MeanDifference(difference)
    parts = [float(sample.var(ddof=1)) / sample.size for sample in (first, second)]
    if not _varies(sum(parts), size):
        return MeanDifference(difference)
    shares = [part / sum(parts) for part in parts]
    freedom = 1.0 / (shares[0] ** 2 / (first.size - 1) + shares[1] ** 2 / (second.size - 1))
    return _judged(difference, math.sqrt(sum(parts)), freedom, confidence)


def paired_t(differences: npt.ArrayLike, confidence: float = 0.95) -> MeanDifference:
    """Student's test of paired differences."""
    differences = finite_sample(differences, "the differences")
    mean = float(differences.mean())
    if differences.size < 2:
        return MeanDifference(mean)
    variance = float(differences.var(ddof=1)) / differences.size
    if not _varies(variance, abs(mean)):
        return MeanDifference(mean)
    return _judged(mean, math.sqrt(variance), differences.size - 1.0, confidence)


def _varies(variance_of_mean: float, size: float) -> bool:
    """Whether the standard error is more than what rounding leaves of a constant (R's rule in `t.test`)."""
    return variance_of_mean > 0.0 and math.sqrt(variance_of_mean) > 10.0 * sys.float_info.epsilon * size


def _judged(difference: float, standard_error: float, freedom: float, confidence: float) -> MeanDifference:
    t = difference / standard_error
    reach = float(stdtrit(freedom, 0.5 + confidence / 2.0)) * standard_error
    p = 2.0 * float(stdtr(freedom, -abs(t)))
    return MeanDifference(difference, standard_error, freedom, t, p, (difference - reach, difference + reach))


def _median(sample: FloatArray) -> float:
    return float(np.median(sample))


def _mean(sample: FloatArray) -> float:
    return float(sample.mean())


_CENTRES: Final = {"median": _median, "mean": _mean}
_UNTESTABLE: Final = Significance(None, None)


def levene(samples: Sequence[npt.ArrayLike], *, centre: str = "median") -> Significance:
    """The analysis of variance of the distances to the centre; None where those do not vary within any sample."""
    samples = several_samples(samples)
    if centre not in _CENTRES:
        raise InputError("unknown centre of Levene's test", found=repr(centre), allowed=", ".join(_CENTRES))
    distances = [np.abs(sample - _CENTRES[centre](sample)) for sample in samples]
    return _one_way_anova(distances, _rounding(samples))


def _one_way_anova(samples: Sequence[FloatArray], rounding: float) -> Significance:
    """The F test of equal means of two or more samples; None where they vary within by no more than `rounding`."""
    pooled = np.concatenate(list(samples))
    between_df, within_df = len(samples) - 1, pooled.size - len(samples)
    if between_df < 1 or within_df < 1:
        return _UNTESTABLE
    within = sum(float(((sample - sample.mean()) ** 2).sum()) for sample in samples)
    if within <= rounding:
        return _UNTESTABLE
    grand = pooled.mean()
    between = sum(sample.size * float(sample.mean() - grand) ** 2 for sample in samples)
    statistic = (between / between_df) / (within / within_df)
    return Significance(statistic, float(fdtrc(between_df, within_df, statistic)))


def _rounding(samples: Sequence[FloatArray]) -> float:
    """The sum of squares that rounding alone leaves of equal distances between numbers of this size."""
    return sum(sample.size for sample in samples) * (4.0 * sys.float_info.epsilon * _largest(samples)) ** 2


def _largest(samples: Sequence[FloatArray]) -> float:
    return max((float(np.abs(sample).max()) for sample in samples if sample.size), default=0.0)


def fligner(samples: Sequence[npt.ArrayLike]) -> Significance:
    """Fligner and Killeen's rank test (1976), median-centred as in R's `fligner.test`.

    Distances that are equal but for rounding share a rank: of accuracies with two decimals most are, and R's ranks of
    them change with the unit the accuracies are written in.
    """
    samples = several_samples(samples)
    distances = np.concatenate([np.abs(sample - _median(sample)) for sample in samples])
    if len(samples) < 2 or distances.size < 3:
        return _UNTESTABLE
    pooled = snapped(distances, _largest(samples))
    scores = ndtri(0.5 + midranks(pooled) / (2.0 * (pooled.size + 1)))
    variance = float(scores.var(ddof=1))
    if variance == 0.0:
        return _UNTESTABLE
    parts = np.split(scores, np.cumsum([sample.size for sample in samples])[:-1])
    statistic = sum(part.size * float(part.mean() - scores.mean()) ** 2 for part in parts) / variance
    return Significance(statistic, float(chdtrc(len(samples) - 1, statistic)))


def f_test(first: npt.ArrayLike, second: npt.ArrayLike) -> Significance:
    """The ratio of the two variances and its two-sided p, for normal values (R's `var.test`)."""
    first, second = two_samples(first, second)
    if min(first.size, second.size) < 2:
        return _UNTESTABLE
    above, below = float(first.var(ddof=1)), float(second.var(ddof=1))
    if any(v * (s.size - 1) <= _rounding([s]) for v, s in ((above, first), (below, second))):
        return _UNTESTABLE
    ratio, freedom = above / below, (first.size - 1, second.size - 1)
    if not np.isfinite(ratio):
        return _UNTESTABLE
    tail = min(float(fdtr(*freedom, ratio)), float(fdtrc(*freedom, ratio)))
    return Significance(ratio, min(1.0, 2.0 * tail))
