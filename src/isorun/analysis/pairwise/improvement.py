"""Probability of improvement: how often a run of A is better than a run of B, on one task or on several.

The share of pairs of runs that A wins varies because A's runs do and because B's do. How much each side adds is read
from the placements, the share of the other side's runs that each run beats, as in Brunner and Munzel's test (2000),
which lets spreads and numbers of runs differ. Few runs that hardly overlap say little about it; there it is drawn to
what normal runs with the observed ratio of spreads would give. The interval is a score interval (`rate_interval`) with
that variance and a t quantile: it keeps its width when one side wins every pair. docs/statistics.md has its coverage.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from isorun.analysis.inputs.ranks import snapped
from isorun.analysis.inputs.samples import FloatArray, Interval, oriented
from isorun.analysis.pairwise.rate_interval import mean_rate_limits

__all__ = [
    "Improvement",
    "WinRate",
    "probability_of_improvement",
    "single_run_reversal",
    "win_rate",
    "win_rate_interval",
]

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
    first: FloatArray, second: FloatArray, *, direction: str = "higher", confidence: float = 0.95
) -> Improvement:
    """The probability that the first approach is better in one run of each."""
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


def single_run_reversal(first: FloatArray, second: FloatArray) -> float | None:
    """The share of pairs of single runs that say the opposite of what the means say.

    A tied pair says nothing and counts as no reversal. None when the means are equal, but for
    rounding: there is nothing to reverse.
    """
    means = float(first.mean()), float(second.mean())
    difference = means[0] - means[1]
    if abs(difference) <= 8.0 * sys.float_info.epsilon * max(map(abs, means)):
        return None
    ahead, behind = (first, second) if difference > 0.0 else (second, first)
    overtaken = np.searchsorted(np.sort(ahead), behind, side="left").sum()
    return float(overtaken) / (first.size * second.size)
