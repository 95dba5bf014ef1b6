"""Scores of one approach on many tasks: runs by task, as many runs on each as there are.

Precision: how well few runs on each task know an aggregate over all tasks.

A mean, an interquartile mean and an optimality gap are, nearly, sums of what each run adds. Their variance is the sum
over tasks of the variance of these parts within the task, with n - 1 in the denominator, which a bootstrap within tasks
leaves out; its degrees of freedom are Satterthwaite's (1946), and the interval is Student's, bent for skewness as Hall
proposed (1992). For the interquartile mean of one task this is nearly Tukey and McLaughlin's interval (1963), whose
parts are the values drawn in to the smallest and largest that the mean keeps. Of few runs the middle values alone say
too little about the spread (and nothing where they are tied): the plain variance is mixed in, with the weight of ten
runs. docs/statistics.md has the simulated coverage.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.special import stdtr, stdtrit

from isorun.analysis.samples import FloatArray, Interval, finite_sample
from isorun.errors import InputError

__all__ = ["LINEAR", "Precision", "ScoresLike", "TaskScores", "apart", "kept_weights", "same_tasks", "task_scores"]


@dataclass(frozen=True, slots=True)
class TaskScores:
    """values: the runs of all tasks, task after task; sizes: how many runs each task has."""

    tasks: tuple[str, ...]
    sizes: tuple[int, ...]
    values: FloatArray

    @property
    def starts(self) -> npt.NDArray[np.intp]:
        """Where each task begins in `values`."""
        return np.concatenate([[0], np.cumsum(self.sizes)[:-1]]).astype(np.intp)

    @property
    def weights(self) -> FloatArray:
        """The weight of each run: tasks count the same, and the runs of a task share its weight equally."""
        return np.repeat(1.0 / (len(self.sizes) * np.array(self.sizes, dtype=np.float64)), self.sizes)

    @property
    def balanced(self) -> bool:
        """Whether every task has the same number of runs."""
        return len(set(self.sizes)) == 1

    def of(self, task: str) -> FloatArray:
        """The runs on one task."""
        index = self.tasks.index(task)
        start = int(self.starts[index])
        return self.values[start : start + self.sizes[index]]


ScoresLike = TaskScores | Mapping[str, Any] | npt.ArrayLike


def task_scores(scores: ScoresLike, name: str = "the scores") -> TaskScores:
    """From a mapping of tasks to runs, or from an array with a row for each run and a column for each task."""
    if isinstance(scores, TaskScores):
        return scores
    by_task = scores if isinstance(scores, Mapping) else _by_column(scores, name)
    samples = [finite_sample(runs, f"{name}, task {task!r}") for task, runs in by_task.items()]
    if not samples:
        raise InputError(f"{name} have no tasks", allowed="at least one task with at least one run")
    return TaskScores(tuple(map(str, by_task)), tuple(runs.size for runs in samples), np.concatenate(samples))


def _by_column(scores: npt.ArrayLike, name: str) -> dict[str, FloatArray]:
    array = np.asarray(scores, dtype=np.float64)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2:
        raise InputError(f"{name} must be runs x tasks", found=f"an array of shape {array.shape}")
    return {str(task): column for task, column in enumerate(array.T)}


def same_tasks(first: TaskScores, second: TaskScores) -> tuple[TaskScores, TaskScores]:
    """Both with their tasks in the same order; an error when one lacks a task of the other."""
    lacking: Sequence[str] = sorted(set(first.tasks) ^ set(second.tasks))
    if lacking:
        raise InputError(
            "the two approaches were not run on the same tasks",
            found=f"only one of them has {', '.join(map(repr, lacking))}",
            hint="leave these tasks out for both, or run the missing ones",
        )
    return first, task_scores({task: second.of(task) for task in first.tasks})


_PLAIN_RUNS: Final = 10.0
_MOST_SKEWED: Final = 0.9
"""Hall's cubic bends too far where the skewness of an estimate is not small."""


@dataclass(frozen=True, slots=True)
class Precision:
    """An estimate, its variance with the degrees of freedom that is known with, and its skewness.

    variance is None where some task has one run only, and 0 where no run differs from the others of its task.
    """

    estimate: float
    variance: float | None
    freedom: float
    skewness: float = 0.0

    def interval(self, confidence: float) -> Interval | None:
        """The interval; None where single runs or equal ones say nothing about how far the estimate could move."""
        if not self.variance:
            return None
        error = math.sqrt(self.variance)
        reach = float(stdtrit(self.freedom, 0.5 + confidence / 2.0))
        lower, upper = (self.estimate - error * _bent(side, self.skewness) for side in (reach, -reach))
        return lower, upper


def _bent(t: float, skewness: float) -> float:
    """Hall's inverse of t + s t² / 3 + s² t³ / 27 + s / 6, under which a skewed t is nearly Student's."""
    s = min(max(skewness, -_MOST_SKEWED), _MOST_SKEWED)
    return t if abs(s) < 1e-6 else 3.0 / s * (math.cbrt(1.0 + s * (t - s / 6.0)) - 1.0)


def apart(first: Precision, second: Precision, smallest: float) -> float:
    """The two-sided p of two estimates being equal: Welch's test (1947), for trimmed means Yuen's (1974).

    smallest: the p of runs that differ between the two but not within them; no spread is known to judge them by.
    """
    if first.variance is None or second.variance is None:
        return 1.0
    variance = first.variance + second.variance
    if variance == 0.0:
        return 1.0 if first.estimate == second.estimate else smallest
    freedom = variance**2 / (first.variance**2 / first.freedom + second.variance**2 / second.freedom)
    return 2.0 * float(stdtr(freedom, -abs(first.estimate - second.estimate) / math.sqrt(variance)))


def _mean(data: TaskScores, _: float) -> Precision:
    return _linear(data, float(_task_means(data, data.values).mean()), data.values)


def _optimality_gap(data: TaskScores, target: float) -> Precision:
    short = target - np.minimum(data.values, target)
    return _linear(data, float(_task_means(data, short).mean()), short)


def _interquartile_mean(data: TaskScores, _: float) -> Precision:
    order = np.argsort(data.values, kind="stable")
    values, kept = data.values[order], kept_weights(data.weights[order])
    estimate = float((kept * values).sum() / kept.sum())
    inside = np.flatnonzero(kept > 1e-9 / kept.size)  # sums of weights end next to the cut, not on it
    drawn_in = data.values.clip(values[inside[0]], values[inside[-1]])
    runs = np.add.reduceat(_kept_shares(data.values, data.weights, order, kept), data.starts)
    freedom = np.maximum((np.array(data.sizes) + runs) / 2.0 - 1.0, 1.0)
    return _linear(data, estimate, drawn_in, share=float(kept.sum()), freedom=freedom)


def kept_weights(weights: FloatArray) -> FloatArray:
    """What the interquartile mean keeps of the weights of runs in their order, along the last axis; all sum to 1.

    As much is cut off at either end as floor(runs / 4) equal runs weigh.
    """
    runs = weights.shape[-1]
    cut = (runs // 4) / runs
    reached = np.cumsum(weights, axis=-1).clip(cut, 1.0 - cut)
    return np.asarray(np.diff(reached, axis=-1, prepend=cut))


def _kept_shares(values: FloatArray, weights: FloatArray, order: npt.NDArray[np.intp], kept: FloatArray) -> FloatArray:
    """How much of each run is kept; equal values share it, so that the order of runs plays no part."""
    group = np.unique(values, return_inverse=True)[1]
    return np.asarray((np.bincount(group[order], kept) / np.bincount(group, weights))[group])


def _linear(
    data: TaskScores, estimate: float, parts: FloatArray, *, share: float = 1.0, freedom: FloatArray | None = None
) -> Precision:
    """The precision of what is the mean over tasks of the means of `parts`, over `share`, but for a constant."""
    if min(data.sizes) < 2:
        return Precision(estimate, None, 1.0)
    sizes, tasks = np.array(data.sizes, dtype=np.float64), len(data.sizes)
    variances, cumulants = _task_cumulants(data, parts)
    by_task = variances / sizes / (tasks * share) ** 2
    weight = 1.0
    if share < 1.0:
        weight = data.values.size / (data.values.size + _PLAIN_RUNS)
        by_task = weight * by_task + (1.0 - weight) * _task_cumulants(data, data.values)[0] / sizes / tasks**2
    variance = float(by_task.sum())
    if variance == 0.0:
        return Precision(estimate, 0.0, 1.0)
    known = variance**2 / float((by_task**2 / (sizes - 1.0 if freedom is None else freedom)).sum())
    third = weight * float((cumulants / sizes**2).sum()) / (tasks * share) ** 3
    return Precision(estimate, variance, known, third / variance**1.5)


def _task_means(data: TaskScores, values: FloatArray) -> FloatArray:
    return np.asarray(np.add.reduceat(values, data.starts) / np.array(data.sizes))


def _task_cumulants(data: TaskScores, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The unbiased variance and third cumulant of each task's runs; what rounding makes of equal runs is 0."""
    sizes = np.array(data.sizes, dtype=np.float64)
    deviations = values - np.repeat(_task_means(data, values), data.sizes)
    deviations[np.abs(deviations) <= 16.0 * np.finfo(np.float64).eps * np.abs(values).max()] = 0.0
    squares, cubes = (np.add.reduceat(deviations**power, data.starts) for power in (2, 3))
    return squares / (sizes - 1.0), cubes * sizes / ((sizes - 1.0) * np.maximum(sizes - 2.0, 1.0))


LINEAR: Final[dict[str, Callable[[TaskScores, float], Precision]]] = {
    "iqm": _interquartile_mean,
    "mean": _mean,
    "optimality-gap": _optimality_gap,
}
"""The precision of each aggregate that has a formula; the second argument is the optimality gap's target."""
