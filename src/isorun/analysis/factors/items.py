"""Test questions: what every run gave for each of them, so that a factor can be judged over questions.

The value of a question is whether it was answered rightly, from predictions and labels that a run kept; or, of other
metrics, the final values by class where these are questions: where their mean is the metric itself, as that of average
precision is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from typing import Final

import numpy as np

from isorun.analysis.evidence.judged import JudgedMetric, MetricKind, kind_of
from isorun.analysis.factors.contrasts import QuestionValues
from isorun.analysis.samples import FloatArray
from isorun.analysis.spreads.noise import correctness
from isorun.analysis.studies.class_values import predicted_and_labels
from isorun.errors import InputError
from isorun.study.records import RunRecord

__all__ = ["question_values"]

_SAME: Final = 1e-6
_FEWEST: Final = 2


def question_values(
    records: Mapping[str, Sequence[RunRecord]], metric: JudgedMetric, steps: Mapping[str, float | None]
) -> QuestionValues:
    """The values of all questions by point and seed, repeats averaged. steps: run id to the epoch it is judged at."""
    found: defaultdict[str, defaultdict[str, list[FloatArray]]] = defaultdict(lambda: defaultdict(list))
    asked: set[Hashable] = set()
    for point, runs in records.items():
        for record in runs:
            values = _of_run(record, metric, steps.get(record.run_id))
            if values is None:
                raise InputError(
                    f"run {record.run_id} left no value of {metric.name} for each test question",
                    allowed="predictions with labels of an accuracy, or values by question whose mean is the metric",
                    hint=f"isorun.result({metric.name}=…, predictions=predicted, labels=truth) in the training; or "
                    "leave --unit question out, and seeds are counted",
                )
            found[point][str(record.cell.seed)].append(values[1])
            asked.add(values[0])
    if len(asked) > 1:
        raise InputError(
            "the runs did not answer the same test questions",
            found=f"{len(asked)} different sets of them",
            hint="leave --unit question out, and seeds are counted",
        )
    return QuestionValues(
        {point: {seed: np.mean(runs, axis=0) for seed, runs in by_seed.items()} for point, by_seed in found.items()}
    )


def _of_run(record: RunRecord, metric: JudgedMetric, step: float | None) -> tuple[Hashable, FloatArray] | None:
    """What tells the questions of a run (the labels, or names), and its value for each; None where it left none."""
    if kind_of(metric.name) is MetricKind.ACCURACY:
        kept = predicted_and_labels(record, step, metric.name) or predicted_and_labels(record, None, metric.name)
        if kept is not None and kept[0].ndim == 1:
            return kept[1].tobytes(), correctness(kept[0][None, :], kept[1])[0] * (metric.perfect or 1.0)
    by_class = record.per_class.get(metric.name, {})
    values = np.array([by_class[name] for name in sorted(by_class)], dtype=np.float64)
    if values.size < _FEWEST or metric.name not in record.results:
        return None
    mean, result = float(values.mean()), record.results[metric.name]
    return (tuple(sorted(by_class)), values) if abs(mean - result) <= _SAME * max(1.0, abs(result)) else None
