"""How large a difference is: effect sizes, the shift, the probability of improvement, and what pairing gained.

Effect sizes: the difference of two means in units of their common standard deviation.

Cohen's d divides by the pooled sd; its interval inverts the noncentral t law (Steiger and Fouladi 1997) and is exact
for normal values with equal spread. Hedges' g takes the small-sample bias out of d with the exact gamma factor (Hedges
1981); its interval is that of d times the same factor, as in R's `effectsize::hedges_g`.

The Hodges-Lehmann shift: the median of all differences between a run of A and a run of B.

Its interval inverts the Mann-Whitney test (Hodges and Lehmann 1963; R's `wilcox.test(conf.int = TRUE)`): it reaches
from one pairwise difference to another, which are found without forming all pairs.

The interval of a rate, or of the mean of rates on several tasks, that few runs allow.

Wilson's score interval (1927) asks which values of a rate the observed one is compatible with, and takes the variance
at each of these values rather than at the observed one: it keeps its width where every run of one side won, and stays
inside [0, 1]. Over several tasks the values asked about are those that a common shift of all log odds leads to.

Probability of improvement: how often a run of A is better than a run of B, on one task or on several.

The share of pairs of runs that A wins varies because A's runs do and because B's do. How much each side adds is read
from the placements, the share of the other side's runs that each run beats, as in Brunner and Munzel's test (2000),
which lets spreads and numbers of runs differ. Few runs that hardly overlap say little about it; there it is drawn to
what normal runs with the observed ratio of spreads would give. The interval is a score interval (`rate_interval`) with
that variance and a t quantile: it keeps its width when one side wins every pair. docs/statistics.md has its coverage.

What pairing gained or cost: the same runs, judged as pairs and as two sides.

The mean of n differences has the variance s_d² / n; of two sides that are not paired it would be (s_a² + s_b²) / n.
Their ratio says how many unpaired runs a side would be worth as much: runs that move together make it large, runs that
move against each other make it less than one.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit, gammaln, logit, nctdtrinc, ndtri, stdtrit

from isorun.analysis.evidence import Condition
from isorun.analysis.pairwise import EXACT_BELOW, u_law
from isorun.analysis.samples import FloatArray, Interval, oriented, recentred, snapped, two_samples

__all__ = [
    "EffectSize",
    "Improvement",
    "PairingEffect",
    "Shift",
    "WinRate",
    "effect_size",
    "hodges_lehmann",
    "mean_rate_limits",
    "pairing_effect",
    "probability_of_improvement",
    "single_run_reversal",
    "win_rate",
    "win_rate_interval",
]

_NO_UNCERTAINTY = 1e4
"""Beyond this t the runs are so far apart that the noncentral law cannot be inverted, and need not be."""


@dataclass(frozen=True, slots=True)
class EffectSize:
    """d and g, each with its 95 % interval; all None where there is no spread to compare with.

    g is None with three runs: the factor that takes the bias out needs two degrees of freedom.
    """

    cohens_d: float | None = None
    cohens_d_ci95: Interval | None = None
    hedges_g: float | None = None
    hedges_g_ci95: Interval | None = None


def effect_size(first: npt.ArrayLike, second: npt.ArrayLike, confidence: float = 0.95) -> EffectSize:
    """The effect size of the first sample against the second; positive when the first has the larger mean."""
    first, second = two_samples(first, second)
    n, m = first.size, second.size
    freedom = n + m - 2
    if freedom < 1:
        return EffectSize()
    largest = max(abs(float(first.mean())), abs(float(second.mean())))
    first, second = recentred(first, second)
    within = float(((first - first.mean()) ** 2).sum() + ((second - second.mean()) ** 2).sum())
    pooled = math.sqrt(within / freedom)
    if pooled <= 1e-14 * largest or pooled == 0.0:
        return EffectSize()
    d = float(first.mean() - second.mean()) / pooled
    limits = _interval(d, n, m, confidence)
    if freedom < 2:
        return EffectSize(d, limits)
    factor = _bias_factor(freedom)
    return EffectSize(d, limits, d * factor, None if limits is None else (limits[0] * factor, limits[1] * factor))


def _bias_factor(freedom: int) -> float:
    log_ratio = float(gammaln(freedom / 2.0) - gammaln((freedom - 1) / 2.0))
    return math.exp(log_ratio) / math.sqrt(freedom / 2.0)


def _interval(d: float, n: int, m: int, confidence: float) -> Interval | None:
    root = math.sqrt(n * m / (n + m))
    t, freedom, tail = d * root, n + m - 2, (1.0 - confidence) / 2.0
    if abs(t) > _NO_UNCERTAINTY:
        return None
    lower = float(nctdtrinc(freedom, 1.0 - tail, t)) / root
    upper = float(nctdtrinc(freedom, tail, t)) / root
    return (lower, upper) if math.isfinite(lower) and math.isfinite(upper) and lower < upper else None


_ALL_PAIRS = 1_000_000


@dataclass(frozen=True, slots=True)
class Shift:
    """The estimate and its 95 % interval; None where so few runs allow no such interval."""

    estimate: float
    ci95: Interval | None

    def to_json(self) -> dict[str, object]:
        """Plain JSON."""
        return {"estimate": self.estimate, "ci95": None if self.ci95 is None else list(self.ci95)}


def hodges_lehmann(first: npt.ArrayLike, second: npt.ArrayLike, confidence: float = 0.95) -> Shift:
    """The shift of the first sample against the second."""
    first, second = two_samples(first, second)
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


_PSEUDO = 0.5
"""Added to wins and to losses where tasks start from, so that a task that was always won can be shifted, too."""
_FARTHEST = 40.0
"""A shift of log odds beyond which a rate is 0 or 1."""
_STEPS = 50


def mean_rate_limits(
    rates: FloatArray, trials: npt.ArrayLike, spread: FloatArray, critical: npt.ArrayLike, *, fading: float = 0.0
) -> tuple[FloatArray, FloatArray]:
    """The lower and upper limits of the mean over the last axis, the tasks.

    trials: how many comparisons each rate was counted in. spread: the variance of each observed rate over
    rate x (1 - rate), 1 / runs for a share of runs. critical: how many standard errors the limits are away. fading: the
    part of the spread that is lost where a rate comes to 0 or 1.
    """
    tasks = rates.shape[-1]
    counts = np.asarray(trials, dtype=np.float64)
    start = logit((rates * counts + _PSEUDO) / (counts + 2.0 * _PSEUDO))
    # Rates of tasks scatter around what they would be at the shift; their own rate x (1 - rate) is too small by that.
    unbiased = spread / (1.0 - np.minimum(spread * (1.0 - 1.0 / tasks), 0.5))
    observed = rates.mean(axis=-1)
    beyond = np.asarray(critical, dtype=np.float64)
    lower, upper = _limits(start, unbiased, observed, np.stack([-beyond, beyond]), fading)
    lower, upper = np.minimum(lower, observed), np.maximum(upper, observed)
    return np.where(observed <= 0.0, 0.0, lower), np.where(observed >= 1.0, 1.0, upper)


def _limits(
    start: FloatArray, spread: FloatArray, observed: FloatArray, critical: FloatArray, fading: float
) -> FloatArray:
    """The mean rates at the shifts that put them `critical` standard errors away from the observed one, by bisection.

    The first axis of `critical` and of the result: the lower and the upper limit, which are found together.
    """
    low = np.full((2, *observed.shape), -_FARTHEST)
    high = -low
    for _ in range(_STEPS):
        shift = (low + high) / 2.0
        mean, error = _at(start, spread, shift, fading)
        above = mean - observed > (critical.T * error.T).T
        low, high = np.where(above, low, shift), np.where(above, shift, high)
    return _at(start, spread, (low + high) / 2.0, fading)[0]


def _at(start: FloatArray, spread: FloatArray, shift: FloatArray, fading: float) -> tuple[FloatArray, FloatArray]:
    """The mean rate and its standard error when all log odds are shifted."""
    rates = expit(start + shift[..., None])
    of_each = rates * (1.0 - rates) * (1.0 - fading * (2.0 * rates - 1.0) ** 2) * spread
    error = np.sqrt(of_each.sum(axis=-1)) / rates.shape[-1]
    return np.asarray(rates.mean(axis=-1)), np.asarray(error)


_PRIOR_RUNS = 1.0
"""How many runs the normal shares weigh, and the ratio of spreads 1 to 1 in them."""
_FREEDOM = 1.5
"""Placements vary within [0, 1]: their variance is known better than Satterthwaite's degrees of freedom say, and the
more so when both sides carry it. Chosen by simulation, as the prior's weight was."""
_FADING = 0.1
"""The nearer a rate is to 0 or 1, the less of a pair's variance goes with its runs (in Hanley and McNeil's model of
exponential runs, 1982, up to a quarter less)."""


@dataclass(frozen=True, slots=True)
class Improvement:
    """P(A better than B) + P(tie) / 2 with its 95 % interval; no interval from one run a side."""

    estimate: float
    ci95: Interval | None

    def to_json(self) -> dict[str, object]:
        """Plain JSON."""
        return {"estimate": self.estimate, "ci95": None if self.ci95 is None else list(self.ci95)}


def probability_of_improvement(
    first: npt.ArrayLike, second: npt.ArrayLike, *, direction: str = "higher", confidence: float = 0.95
) -> Improvement:
    """The probability that the first approach is better in one run of each."""
    first, second = two_samples(first, second)
    rate = win_rate(oriented(first, direction), oriented(second, direction))
    return Improvement(rate.estimate, win_rate_interval([rate], confidence))


@dataclass(frozen=True, slots=True)
class WinRate:
    """The share of pairs that the first side wins, ties as one half.

    n, m: runs of either side. first_share, second_share: what part of rate x (1 - rate), the variance of one pair, goes
    with the run of that side; 1/3 each for equally spread normal runs, nearly 1 for the side that varies far more.
    """

    estimate: float
    n: int
    m: int
    first_share: float
    second_share: float

    @property
    def spread(self) -> float:
        """The variance of the estimate over rate x (1 - rate)."""
        pairs = self.n * self.m
        return (1.0 + (self.m - 1) * self.first_share + (self.n - 1) * self.second_share) / pairs


def win_rate(first: FloatArray, second: FloatArray) -> WinRate:
    """How often a value of the first sample is larger, in n log n steps."""
    n, m = first.size, second.size
    pooled = snapped(np.concatenate([first, second]))
    a, b = np.sort(pooled[:n]), np.sort(pooled[n:])
    beaten = np.searchsorted(b, a, side="left") + np.searchsorted(b, a, side="right")
    estimate = float(beaten.sum()) / (2.0 * n * m)
    if min(n, m) < 2:
        return WinRate(estimate, n, m, 0.0, 0.0)
    ahead = np.searchsorted(a, b, side="left") + np.searchsorted(a, b, side="right")
    seen = _seen_shares(estimate, beaten / (2.0 * m), ahead / (2.0 * n))
    weight = 4.0 * min(n, m) * estimate * (1.0 - estimate)
    first_share, second_share = (weight * seen + _PRIOR_RUNS * _normal_shares(a, b)) / (weight + _PRIOR_RUNS)
    return WinRate(estimate, n, m, float(first_share), float(second_share))


def _seen_shares(estimate: float, first: FloatArray, second: FloatArray) -> FloatArray:
    """The shares of both sides by their placements, less what the other side's runs add to these."""
    n, m = first.size, second.size
    placed = np.array([first.var(ddof=1), second.var(ddof=1)])
    total = max(estimate * (1.0 - estimate), 1e-12) + placed[0] / n + placed[1] / m
    of_pairs = max(total - placed.sum(), 0.0) / max(1.0 - 1.0 / n - 1.0 / m, 0.5)
    shares = np.clip((placed - of_pairs / np.array([m, n])) / total, 0.0, 1.0)
    return np.asarray(shares / max(1.0, shares.sum()))


def _normal_shares(first: FloatArray, second: FloatArray) -> FloatArray:
    """The shares of normal samples at even odds, by the ratio of their variances (drawn to 1 by the prior's runs).

    P(A > B and A > B') of normal values is 1/4 + arcsin(r) / 2 pi, with A's part r of the variance of A - B.
    """
    variances = np.array([first.var(ddof=1), second.var(ddof=1)])
    part = variances[0] / variances.sum() if variances.sum() > 0.0 else 0.5
    freedom = 2.0 / (1.0 / (first.size - 1) + 1.0 / (second.size - 1))
    part = (freedom * part + _PRIOR_RUNS * 0.5) / (freedom + _PRIOR_RUNS)
    return np.asarray(2.0 / np.pi * np.arcsin([part, 1.0 - part]))


def win_rate_interval(rates: Sequence[WinRate], confidence: float = 0.95) -> Interval | None:
    """The interval of the mean of rates on one or several tasks; None where a side has a single run on some task."""
    if min(min(rate.n, rate.m) for rate in rates) < 2:
        return None
    estimates = np.array([rate.estimate for rate in rates])
    pairs = np.array([rate.n * rate.m for rate in rates])
    spread = np.array([rate.spread for rate in rates])
    critical = float(stdtrit(_freedom(rates), 0.5 + confidence / 2.0))
    lower, upper = mean_rate_limits(estimates, pairs, spread, critical, fading=_FADING)
    return float(lower), float(upper)


def _freedom(rates: Sequence[WinRate]) -> float:
    """Of the sum of all sides' parts of the variance: Satterthwaite's, raised for placements."""
    parts, squares = 0.0, 0.0
    for rate in rates:
        smoothed = (rate.estimate * rate.n * rate.m + 0.5) / (rate.n * rate.m + 1.0)
        for share, size in ((rate.first_share, rate.n), (rate.second_share, rate.m)):
            part = smoothed * (1.0 - smoothed) * share / size
            parts += part
            squares += part**2 / (size - 1)
    satterthwaite = parts**2 / squares
    of_one_side = len(rates) * (min(min(rate.n, rate.m) for rate in rates) - 1)
    return _FREEDOM * satterthwaite**2 / of_one_side


def single_run_reversal(first: npt.ArrayLike, second: npt.ArrayLike) -> float | None:
    """The share of pairs of single runs that say the opposite of what the means say.

    A tied pair says nothing and counts as no reversal. None when the means are equal, but for
    rounding: there is nothing to reverse.
    """
    first, second = two_samples(first, second)
    means = float(first.mean()), float(second.mean())
    difference = means[0] - means[1]
    if abs(difference) <= 8.0 * sys.float_info.epsilon * max(map(abs, means)):
        return None
    ahead, behind = (first, second) if difference > 0.0 else (second, first)
    overtaken = np.searchsorted(np.sort(ahead), behind, side="left").sum()
    return float(overtaken) / (first.size * second.size)


_COSTS_BELOW = 0.9  # of the runs: what chance does to uncorrelated pairs is not worth a warning


@dataclass(frozen=True, slots=True)
class PairingEffect:
    """correlation: of the two runs of a pair. worth: how many unpaired runs a side say as much.

    Both None where runs do not vary; worth is None for differences that do not.
    """

    pairs: int
    correlation: float | None
    worth: float | None

    @property
    def sentence(self) -> str:
        """In one sentence."""
        if self.worth is None or self.correlation is None:
            return "what pairing gained cannot be told: the runs of a side, or their differences, do not vary"
        verb = "gained" if self.worth >= self.pairs else "cost"
        return (
            f"pairing {verb}: with a correlation of {self.correlation:.2f}, {self.pairs} pairs are worth about "
            f"{self.worth:.3g} unpaired runs a side"
        )

    def conditions(self) -> tuple[Condition, ...]:
        """A warning where pairing cost."""
        if self.worth is None or self.worth >= _COSTS_BELOW * self.pairs:
            return ()
        next_step = "leave the pairing out in the next comparison, or pair by what moves both runs alike"
        return (Condition("pairing-cost", f"{self.sentence}: the runs of a pair go against each other", next_step),)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        values = {"pairs": self.pairs, "correlation": self.correlation, "worth": self.worth}
        return values | {"sentence": self.sentence}


def pairing_effect(first: FloatArray, second: FloatArray) -> PairingEffect:
    """The effect of pairing; both samples in the order of their pairs."""
    pairs = first.size
    if pairs < 2:
        return PairingEffect(pairs, None, None)
    first, second = first - first.mean(), second - second.mean()
    var_a, var_b = float(first @ first) / (pairs - 1), float(second @ second) / (pairs - 1)
    if var_a == 0.0 or var_b == 0.0:
        return PairingEffect(pairs, None, None)
    together = float(first @ second) / (pairs - 1)
    correlation = max(-1.0, min(1.0, together / math.sqrt(var_a * var_b)))
    of_differences = var_a + var_b - 2.0 * together
    varies = of_differences > 1e-12 * (var_a + var_b)
    return PairingEffect(pairs, correlation, pairs * (var_a + var_b) / of_differences if varies else None)
