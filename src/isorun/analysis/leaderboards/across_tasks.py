"""Approaches over many tasks: performance profiles, who beats whom, and the best of k runs.

Performance profiles: the share of runs that score above each threshold, tasks weighing the same.

Profiles of two approaches that do not cross show a stochastic order that no single aggregate can (Dolan and Moré 2002;
Agarwal et al., NeurIPS 2021). Their limits are score intervals of shares of runs, task by task, which keep a width
where no run or every run lies above a threshold.

The probability that one approach beats another on a task drawn at random.

Ties count as one half (Agarwal et al., NeurIPS 2021). The default interval is the score interval of
`pairwise.improvement`, for few runs; "percentile" is rliable's stratified bootstrap, which has no width where one side
won every pair. The probability is linear in how often each run was drawn, for either side: the wins between the runs
of a task are found once, and a repetition only weighs them.

The best of k runs: what to expect from reporting the best of several trainings.

Dodge et al. (EMNLP 2019) draw the k runs with replacement, which is biased downwards (Tang et al., ACL 2020); drawing
them without replacement is unbiased, and is the default.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, ndtri

from isorun.analysis.leaderboards.aggregate import DEFAULT_REPETITIONS, Aggregate, require_interval
from isorun.analysis.leaderboards.resampling import Counts, count_replicates, percentile_interval
from isorun.analysis.leaderboards.task_scores import ScoresLike, TaskScores, same_tasks, task_scores
from isorun.analysis.pairwise.effects import mean_rate_limits, win_rate, win_rate_interval
from isorun.analysis.samples import FloatArray, finite_sample, oriented
from isorun.errors import InputError

__all__ = [
    "PerformanceProfile",
    "expected_best_curve",
    "expected_best_of_k",
    "improvement_across_tasks",
    "performance_profile",
]


@dataclass(frozen=True, slots=True)
class PerformanceProfile:
    """thresholds, the share of runs strictly above each, and pointwise 95 % limits (None from single runs)."""

    thresholds: tuple[float, ...]
    shares: tuple[float, ...]
    lower: tuple[float, ...] | None
    upper: tuple[float, ...] | None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "thresholds": list(self.thresholds),
            "shares": list(self.shares),
            "lower": None if self.lower is None else list(self.lower),
            "upper": None if self.upper is None else list(self.upper),
        }


def performance_profile(
    scores: ScoresLike, thresholds: Sequence[float] | npt.ArrayLike, *, confidence: float = 0.95
) -> PerformanceProfile:
    """The profile at the given thresholds."""
    data = task_scores(scores)
    limits = finite_sample(np.asarray(thresholds), "the thresholds")
    sizes = np.array(data.sizes, dtype=np.float64)
    above = np.add.reduceat(data.values[:, None] > limits[None, :], data.starts, axis=0).T / sizes
    bands = _bands(above, sizes, confidence) if min(data.sizes) > 1 else None
    return PerformanceProfile(
        thresholds=tuple(limits.tolist()),
        shares=tuple(above.mean(axis=1).tolist()),
        lower=None if bands is None else tuple(bands[0].tolist()),
        upper=None if bands is None else tuple(bands[1].tolist()),
    )


def _bands(above: FloatArray, sizes: FloatArray, confidence: float) -> tuple[FloatArray, FloatArray]:
    critical = np.full(len(above), float(ndtri(0.5 + confidence / 2.0)))
    return mean_rate_limits(above, sizes, np.broadcast_to(1.0 / sizes, above.shape), critical)


Wins = npt.NDArray[np.float32]

_NAME = "probability-of-improvement"


def improvement_across_tasks(
    first: ScoresLike,
    second: ScoresLike,
    generator: np.random.Generator,
    *,
    direction: str = "higher",
    interval: str = "few-runs",
    repetitions: int = DEFAULT_REPETITIONS,
    confidence: float = 0.95,
) -> Aggregate:
    """How often a run of the first approach is better than one of the second; tasks weigh the same.

    interval: one of `aggregate.INTERVALS`; generator and repetitions are for percentile intervals.
    """
    require_interval(interval)
    a, b = same_tasks(task_scores(first, "the first scores"), task_scores(second, "the second scores"))
    rates = [win_rate(*(oriented(side.of(task), direction) for side in (a, b))) for task in a.tasks]
    estimate = math.fsum(rate.estimate for rate in rates) / len(rates)
    sizes = len(a.tasks), a.values.size + b.values.size
    if interval == "few-runs":
        return Aggregate(_NAME, estimate, win_rate_interval(rates, confidence), *sizes)
    wins = [_wins(a.of(task), b.of(task), direction) for task in a.tasks]
    drawn = count_replicates([*a.sizes, *b.sizes], lambda counts: _weighed(wins, counts, a, b), repetitions, generator)
    limits = percentile_interval(drawn, confidence) if min(*a.sizes, *b.sizes) > 1 else None
    return Aggregate(_NAME, estimate, limits, *sizes, repetitions, drawn)


def _wins(first: FloatArray, second: FloatArray, direction: str) -> Wins:
    """1, 0 or one half for each pair of runs."""
    gain = np.subtract.outer(oriented(first, direction), oriented(second, direction))
    return ((np.sign(gain) + 1.0) / 2.0).astype(np.float32)


def _weighed(wins: list[Wins], counts: Counts, a: TaskScores, b: TaskScores) -> FloatArray:
    """The mean over tasks of the share of wins in each repetition."""
    total = np.zeros(len(counts))
    starts_b = b.starts + a.values.size
    for win, start_a, start_b in zip(wins, a.starts, starts_b, strict=True):
        drawn_a = counts[:, start_a : start_a + win.shape[0]]
        drawn_b = counts[:, start_b : start_b + win.shape[1]]
        total += ((drawn_a @ win) * drawn_b).sum(axis=1) / win.size
    return total / len(wins)


def expected_best_of_k(values: npt.ArrayLike, k: int, *, direction: str = "higher", replacement: bool = False) -> float:
    """The mean of the best of k runs over all ways to draw k of the given runs."""
    sample = finite_sample(values, "the runs")
    limit = "1 or more" if replacement else f"1 to {sample.size}, the number of runs"
    if k < 1 or (k > sample.size and not replacement):
        raise InputError("cannot draw that many runs", found=f"k = {k}", allowed=limit)
    ordered = np.sort(oriented(sample, direction))
    weights = _with_replacement(sample.size, k) if replacement else _without_replacement(sample.size, k)
    best = float(weights @ ordered)
    return best if direction == "higher" else -best


def expected_best_curve(values: npt.ArrayLike, *, direction: str = "higher") -> tuple[float, ...]:
    """The expected best of 1, 2, … up to all runs, drawn without replacement."""
    sample = finite_sample(values, "the runs")
    return tuple(expected_best_of_k(sample, k, direction=direction) for k in range(1, sample.size + 1))


def _with_replacement(n: int, k: int) -> FloatArray:
    """The chance that the i-th smallest is the best: (i / n)^k - ((i - 1) / n)^k."""
    return np.diff((np.arange(n + 1) / n) ** float(k))


def _without_replacement(n: int, k: int) -> FloatArray:
    """The chance that the i-th smallest is the best: (i - 1 choose k - 1) / (n choose k)."""
    below = np.arange(n, dtype=np.float64)
    possible = below >= k - 1
    log_ways = gammaln(below + 1.0) - gammaln(k) - gammaln(np.where(possible, below - k + 2.0, 1.0))
    log_all = gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)
    return np.where(possible, np.exp(log_ways - log_all), 0.0)
