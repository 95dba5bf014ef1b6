"""The probability that one approach beats another on a task drawn at random, with a stratified bootstrap interval.

Ties count as one half (Agarwal et al., NeurIPS 2021). The probability is linear in how often each run was drawn, for
either side: the wins between the runs of a task are found once, and a repetition only weighs them.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from isorun.analysis.inputs.samples import FloatArray, oriented
from isorun.analysis.leaderboards.aggregate import DEFAULT_REPETITIONS, Aggregate
from isorun.analysis.leaderboards.bootstrap import percentile_interval
from isorun.analysis.leaderboards.resampling import Counts, count_replicates
from isorun.analysis.leaderboards.task_scores import ScoresLike, TaskScores, same_tasks, task_scores

__all__ = ["improvement_across_tasks"]

Wins = npt.NDArray[np.float32]


def improvement_across_tasks(
    first: ScoresLike,
    second: ScoresLike,
    generator: np.random.Generator,
    *,
    direction: str = "higher",
    repetitions: int = DEFAULT_REPETITIONS,
    confidence: float = 0.95,
) -> Aggregate:
    """How often a run of the first approach is better than one of the second; tasks weigh the same."""
    a, b = same_tasks(task_scores(first, "the first scores"), task_scores(second, "the second scores"))
    wins = [_wins(a.of(task), b.of(task), direction) for task in a.tasks]
    sizes = [*a.sizes, *b.sizes]
    drawn = count_replicates(sizes, lambda counts: _weighed(wins, counts, a, b), repetitions, generator)
    return Aggregate(
        statistic="probability-of-improvement",
        estimate=math.fsum(float(win.mean()) for win in wins) / len(wins),
        ci95=percentile_interval(drawn, confidence) if min(*a.sizes, *b.sizes) > 1 else None,
        tasks=len(a.tasks),
        runs=a.values.size + b.values.size,
        repetitions=repetitions,
        replicates=drawn,
    )


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
