"""Learning curves of a group: every run, and the median with a band at each step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from isorun.study.records import RunRecord, Series

__all__ = ["BAND", "LearningCurves", "learning_curves"]

BAND = (10.0, 90.0)


@dataclass(frozen=True, slots=True)
class LearningCurves:
    """One metric over the steps, for the finished runs of one group.

    steps / median / low / high: equally long; low and high are the 10th and 90th percentile. A step counts when at
    least half of the runs logged it, so that one long run does not pose as the group.
    """

    metric: str
    steps: tuple[float, ...]
    median: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    runs: tuple[Series, ...]


def learning_curves(metric: str, records: Sequence[RunRecord]) -> LearningCurves | None:
    """The curves; None when no run logged the metric at two steps or more."""
    runs = tuple(record.series[metric] for record in records if len(_steps(record, metric)) > 1)
    if not runs:
        return None
    by_step: dict[float, list[float]] = {}
    for run in runs:
        for step, value in zip(run.steps, run.values, strict=True):
            if np.isfinite(value):
                by_step.setdefault(step, []).append(value)
    steps = tuple(sorted(step for step, values in by_step.items() if 2 * len(values) >= len(runs)))
    with np.errstate(over="ignore"):
        bands = [np.percentile(by_step[step], (BAND[0], 50.0, BAND[1])) for step in steps]
    low, median, high = (tuple(float(band[place]) for band in bands) for place in range(3))
    return LearningCurves(metric, steps, median, low, high, runs)


def _steps(record: RunRecord, metric: str) -> set[float]:
    return set(record.series[metric].steps) if metric in record.series else set()
