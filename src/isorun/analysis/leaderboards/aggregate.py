"""Aggregates over many tasks, with intervals that hold from few runs or as rliable draws them.

The default interval is that of `precision`: by formula, for few runs. "percentile" is the stratified bootstrap of
Agarwal et al. (NeurIPS 2021; rliable), which is too short for few runs: drawing n runs again from n leaves out 1 / n of
their variance. Runs are drawn again within each task. Means are linear in how often each run was drawn; the
interquartile mean needs the order of the drawn runs. The estimate itself is the statistic of the draw that takes each
run once. Tasks weigh the same, whatever their number of runs; with equal numbers the values are rliable's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from isorun.analysis.inputs.samples import FloatArray, Interval
from isorun.analysis.leaderboards.bootstrap import percentile_interval
from isorun.analysis.leaderboards.precision import LINEAR, Precision, kept_weights
from isorun.analysis.leaderboards.resampling import Counts, Draws, count_replicates, label_type, replicates
from isorun.analysis.leaderboards.task_scores import ScoresLike, TaskScores, task_scores
from isorun.errors import InputError, known_names

__all__ = ["INTERVALS", "STATISTICS", "Aggregate", "aggregate", "aggregate_precision", "require_interval"]

DEFAULT_REPETITIONS: Final = 50_000
INTERVALS: Final = ("few-runs", "percentile")


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An estimate over all tasks with its 95 % interval.

    No interval when any task has one run only, or when no run differs from the others of its task: nothing then says
    how far the estimate could move. repetitions and replicates: of the bootstrap, 0 and none where a formula was used.
    """

    statistic: str
    estimate: float
    ci95: Interval | None
    tasks: int
    runs: int
    repetitions: int = 0
    replicates: FloatArray = field(default_factory=lambda: np.empty(0), repr=False, compare=False)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON, without the replicates."""
        return {
            "statistic": self.statistic,
            "estimate": self.estimate,
            "ci95": None if self.ci95 is None else list(self.ci95),
            "tasks": self.tasks,
            "runs": self.runs,
            "repetitions": self.repetitions,
        }


def aggregate(
    scores: ScoresLike,
    generator: np.random.Generator,
    *,
    statistic: str = "iqm",
    interval: str = "few-runs",
    repetitions: int = DEFAULT_REPETITIONS,
    target: float = 1.0,
    confidence: float = 0.95,
) -> Aggregate:
    """One of `STATISTICS` over all runs and tasks; `target` is the score beyond which the optimality gap is zero.

    interval: one of `INTERVALS`. generator and repetitions are for the bootstrap, which percentile intervals need and
    the median over tasks.
    """
    require_interval(interval)
    _require_statistic(statistic)
    data = task_scores(scores)
    sizes = len(data.tasks), data.values.size
    if interval == "percentile":
        drawn = STATISTICS[statistic](data, target, repetitions, generator)
        limits = percentile_interval(drawn[1:], confidence) if min(data.sizes) > 1 else None
        return Aggregate(statistic, float(drawn[0]), limits, *sizes, repetitions, drawn[1:])
    found = aggregate_precision(data, generator, statistic=statistic, repetitions=repetitions, target=target)
    return Aggregate(statistic, found.estimate, found.interval(confidence), *sizes)


def require_interval(interval: str) -> None:
    """An error for an unknown kind of interval."""
    if interval not in INTERVALS:
        raise InputError("unknown interval", found=repr(interval), allowed=known_names(interval, INTERVALS))


def aggregate_precision(
    data: TaskScores,
    generator: np.random.Generator,
    *,
    statistic: str = "iqm",
    repetitions: int = DEFAULT_REPETITIONS,
    target: float = 1.0,
) -> Precision:
    """The statistic of the runs with its variance: by formula, or for the median over several tasks by bootstrap."""
    _require_statistic(statistic)
    if statistic in LINEAR:
        return LINEAR[statistic](data, target)
    means = LINEAR["mean"](data, target)
    if len(data.tasks) == 1 or not means.variance:
        return means
    return _median_precision(data, repetitions, generator)


def _median_precision(data: TaskScores, repetitions: int, generator: np.random.Generator) -> Precision:
    """By bootstrap: a median over tasks follows the few tasks in the middle, and which these are may change.

    The degrees of freedom count the tasks by their share of its variance, their squared correlation with it.
    """
    drawn = _of_task_means(data, data.values, _medians_and_means, repetitions, generator)
    sizes = np.array(data.sizes, dtype=np.float64)
    spread = drawn[1:] - drawn[1:].mean(axis=0)
    variances = (spread**2).mean(axis=0)
    if variances[0] == 0.0:
        return Precision(float(drawn[0, 0]), 0.0, 1.0)
    shares = (spread[:, :1] * spread[:, 1:]).mean(axis=0) ** 2 / np.maximum(variances[0] * variances[1:], 1e-300)
    freedom = float(shares.sum()) ** 2 / float((shares**2 / (sizes - 1.0)).sum())
    # A bootstrap of n runs has (n - 1) / n of their variance.
    missing = float((shares * (sizes - 1.0) / sizes).sum() / shares.sum())
    return Precision(float(drawn[0, 0]), float(variances[0]) / missing, freedom)


def _require_statistic(statistic: str) -> None:
    if statistic not in STATISTICS:
        raise InputError("unknown aggregate", found=repr(statistic), allowed=known_names(statistic, STATISTICS))


def _iqm(data: TaskScores, _: float, repetitions: int, generator: np.random.Generator) -> FloatArray:
    """The mean of the middle half.

    Runs are labelled by their rank among all runs: sorting small integers is several times faster than sorting values.
    """
    order = np.argsort(data.values, kind="stable")
    ranks = np.empty(order.size, dtype=label_type(order.size))
    ranks[order] = np.arange(order.size)
    values, weights = data.values[order], data.weights[order]
    cut = order.size // 4

    def balanced(draws: Draws) -> FloatArray:
        draws.sort(axis=1)
        return np.asarray(values.take(draws[:, cut : order.size - cut]).mean(axis=1))

    def weighted(draws: Draws) -> FloatArray:
        draws.sort(axis=1)
        kept = kept_weights(weights[draws])
        return np.asarray((kept * values[draws]).sum(axis=1) / kept.sum(axis=1))

    of_draws = balanced if data.balanced else weighted
    drawn = replicates(np.split(ranks, data.starts[1:]), of_draws, repetitions, generator)
    return np.concatenate([of_draws(ranks[None, :].copy()), drawn])


def _of_task_means(
    data: TaskScores,
    values: FloatArray,
    of_means: Callable[[FloatArray], FloatArray],
    repetitions: int,
    generator: np.random.Generator,
) -> FloatArray:
    """of_means takes the tasks' means, tasks as columns."""

    def of_counts(counts: Counts) -> FloatArray:
        sums = np.add.reduceat(counts * values, data.starts, axis=1)
        return of_means(sums / np.array(data.sizes, dtype=np.float64))

    each_once = np.ones((1, values.size), dtype=np.float32)
    return np.concatenate([of_counts(each_once), count_replicates(data.sizes, of_counts, repetitions, generator)])


def _mean(data: TaskScores, _: float, repetitions: int, generator: np.random.Generator) -> FloatArray:
    return _of_task_means(data, data.values, _row_means, repetitions, generator)


def _median(data: TaskScores, _: float, repetitions: int, generator: np.random.Generator) -> FloatArray:
    """The median over tasks of the tasks' means."""
    return _of_task_means(data, data.values, _row_medians, repetitions, generator)


def _optimality_gap(data: TaskScores, target: float, repetitions: int, generator: np.random.Generator) -> FloatArray:
    """How far the scores fall short of the target on average; what goes beyond it earns nothing."""
    return target - _of_task_means(data, np.minimum(data.values, target), _row_means, repetitions, generator)


def _row_means(means: FloatArray) -> FloatArray:
    return np.asarray(means.mean(axis=1))


def _row_medians(means: FloatArray) -> FloatArray:
    return np.asarray(np.median(means, axis=1))


def _medians_and_means(means: FloatArray) -> FloatArray:
    return np.column_stack([_row_medians(means), means])


STATISTICS: Final[dict[str, Callable[[TaskScores, float, int, np.random.Generator], FloatArray]]] = {
    "iqm": _iqm,
    "mean": _mean,
    "median": _median,
    "optimality-gap": _optimality_gap,
}
