"""Aggregates over many tasks, with intervals that hold from few runs or as rliable draws them.

The default interval is `aggregate_precision`: by formula, for few runs. "percentile" is the stratified bootstrap of
Agarwal et al. (NeurIPS 2021; rliable), which is too short for few runs: drawing n runs again from n leaves out 1 / n of
their variance. Runs are drawn again within each task. Means are linear in how often each run was drawn; the
interquartile mean needs the order of the drawn runs. The estimate itself is the statistic of the draw that takes each
run once. Tasks weigh the same, whatever their number of runs; with equal numbers the values are rliable's.

Rank intervals for leaderboards: the ranks that the runs leave open for an approach.

An approach is told apart from those that Welch's test (Yuen's for interquartile means) says are better or worse; all
its comparisons together err in at most 5 % of cases (Holm). Its rank lies beyond all that are better and before all
that are worse (Mogstad, Romano, Shaikh and Wilhelm, Review of Economic Studies 2024). A bootstrap of ranks is shorter,
but does not hold the true rank often enough where approaches are close. An approach with a single run on some task
cannot be ranked: nothing says how far its result would move.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from isorun.analysis.leaderboards.resampling import (
    Counts,
    Draws,
    count_replicates,
    label_type,
    percentile_interval,
    replicates,
)
from isorun.analysis.leaderboards.task_scores import (
    LINEAR,
    Precision,
    ScoresLike,
    TaskScores,
    apart,
    kept_weights,
    same_tasks,
    task_scores,
)
from isorun.analysis.samples import FloatArray, Interval, adjusted, higher_is_better, snapped
from isorun.errors import InputError, known_names

__all__ = [
    "INTERVALS",
    "STATISTICS",
    "Aggregate",
    "Ranked",
    "aggregate",
    "aggregate_precision",
    "rank_intervals",
    "require_interval",
]

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


@dataclass(frozen=True, slots=True)
class Ranked:
    """An approach's place: rank among those that can be ranked, and the 95 % interval of that rank.

    rank and interval are None for an approach that cannot be ranked; why says so.
    """

    approach: str
    estimate: float
    rank: int | None
    interval: tuple[int, int] | None
    why: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "approach": self.approach,
            "estimate": self.estimate,
            "rank": self.rank,
            "interval": None if self.interval is None else list(self.interval),
            "why": self.why,
        }


def rank_intervals(
    scores: Mapping[str, ScoresLike],
    generator: np.random.Generator,
    *,
    statistic: str = "mean",
    direction: str = "higher",
    repetitions: int = 10_000,
    confidence: float = 0.95,
) -> tuple[Ranked, ...]:
    """The approaches by rank, those that cannot be ranked last; approaches that tie share the better rank.

    generator and repetitions are for the bootstrap that the median over several tasks needs.
    """
    data = _on_the_same_tasks(scores)
    sign = _sign(statistic, direction)
    known = {
        name: aggregate_precision(runs, generator, statistic=statistic, repetitions=repetitions)
        for name, runs in data.items()
    }
    names = [name for name, precision in known.items() if precision.variance is not None]
    estimates = snapped(np.array([known[name].estimate for name in names]))
    rankable = {name: replace(known[name], estimate=float(one)) for name, one in zip(names, estimates, strict=True)}
    ranked = [_ranked(name, rankable, data, sign, 1.0 - confidence) for name in names]
    ranked.sort(key=lambda one: (one.rank or 0, one.approach))
    why = "a single run on a task: how far its result would move is unknown"
    unranked = (Ranked(name, known[name].estimate, None, None, why) for name in data if name not in names)
    return (*ranked, *unranked)


def _ranked(
    name: str, known: Mapping[str, Precision], data: Mapping[str, TaskScores], sign: float, error: float
) -> Ranked:
    """The place of one approach among all that are known."""
    own = known[name]
    others = [other for other in known if other != name]
    lead = [sign * (known[other].estimate - own.estimate) for other in others]
    p = [_p_apart(own, known[other], data[name], data[other]) for other in others]
    told = adjusted(p, "holm") < error
    behind = sum(bool(sure) and gap < 0.0 for sure, gap in zip(told, lead, strict=True))
    ahead = sum(bool(sure) and gap > 0.0 for sure, gap in zip(told, lead, strict=True))
    place = 1 + sum(gap < 0.0 for gap in lead)
    return Ranked(name, own.estimate, place, (1 + behind, len(known) - ahead))


_FEWEST_DEGREES: Final = 3


def _p_apart(own: Precision, other: Precision, runs: TaskScores, others: TaskScores) -> float:
    """Two or three runs of one task tell nothing apart: of two against twenty, equal ones were told apart in 12 %."""
    degrees = [sum(data.sizes) - len(data.sizes) for data in (runs, others)]
    return apart(own, other, _smallest_p(runs, others)) if min(degrees) >= _FEWEST_DEGREES else 1.0


def _smallest_p(first: TaskScores, second: TaskScores) -> float:
    """The smallest p that a test of relabelled runs can have."""
    ways = math.prod(math.comb(n + m, n) for n, m in zip(first.sizes, second.sizes, strict=True))
    return min(1.0, 2.0 / ways)


def _sign(statistic: str, direction: str) -> float:
    """What turns the statistic so that less is better: the gap of a good approach is small, its score is high."""
    higher = higher_is_better(direction)
    if statistic != "optimality-gap":
        return -1.0 if higher else 1.0
    if not higher:
        raise InputError("an optimality gap is only known for scores of which higher is better", found=direction)
    return 1.0


def _on_the_same_tasks(scores: Mapping[str, ScoresLike]) -> dict[str, TaskScores]:
    if not scores:
        raise InputError("there is nothing to rank", allowed="at least one approach")
    data = {name: task_scores(runs, f"the scores of {name!r}") for name, runs in scores.items()}
    first = next(iter(data.values()))
    return {name: same_tasks(first, runs)[1] for name, runs in data.items()}
