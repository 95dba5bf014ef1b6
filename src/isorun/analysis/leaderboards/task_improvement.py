"""The probability that one approach beats another on a task drawn at random.

Ties count as one half (Agarwal et al., NeurIPS 2021). The default interval is the score interval of
`pairwise.improvement`, for few runs; "percentile" is rliable's stratified bootstrap, which has no width where one side
won every pair. The probability is linear in how often each run was drawn, for either side: the wins between the runs
of a task are found once, and a repetition only weighs them.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from isorun.analysis.inputs.samples import FloatArray, oriented
from isorun.analysis.leaderboards.aggregate import DEFAULT_REPETITIONS, Aggregate, require_interval
from isorun.analysis.leaderboards.bootstrap import percentile_interval
from isorun.analysis.leaderboards.resampling import Counts, count_replicates
from isorun.analysis.leaderboards.task_scores import ScoresLike, TaskScores, same_tasks, task_scores
from isorun.analysis.pairwise.improvement import win_rate, win_rate_interval

__all__ = ["improvement_across_tasks"]

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
