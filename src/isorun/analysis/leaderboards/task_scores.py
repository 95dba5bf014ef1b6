"""Scores of one approach on many tasks: runs by task, as many runs on each as there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from isorun.analysis.inputs.samples import FloatArray, finite_sample
from isorun.errors import InputError

__all__ = ["ScoresLike", "TaskScores", "same_tasks", "task_scores"]


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
