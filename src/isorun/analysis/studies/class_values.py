"""Classes and examples of a group's runs: their values, their gaps, and the noise of the test set.

Per-class values of one run at one epoch, from wherever the run left them.

Per-class gaps of a group beside what chance alone gives, where the runs kept their labels.

Test-set noise of a group: how much of the spread between its runs comes from the finite test set; and its churn: on
which examples its runs disagree.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from isorun.analysis.evidence.judged import MetricKind, Split, kind_of, split_of
from isorun.analysis.spreads.churn import Churn, churn
from isorun.analysis.spreads.class_gaps import ClassGap, class_gaps
from isorun.analysis.spreads.noise import NoiseShares, correctness, noise_shares
from isorun.study.records import Predictions, RunRecord, Series

__all__ = [
    "PickedRow",
    "Votes",
    "answers_of_the_end",
    "churn_of_votes",
    "class_names",
    "class_values",
    "classes_picked",
    "group_gaps",
    "group_votes",
    "noise_of_votes",
    "predicted_and_labels",
]


@dataclass(frozen=True, slots=True)
class PickedRow:
    """The row of a series that a run is judged at.

    A step number alone does not say where that is: epochs begin again with every fold, stage or fit of a run.
    """

    series: Series
    row: int

    @property
    def step(self) -> float:
        """The number of the step, which other rows may have too."""
        return self.series.steps[self.row]

    @property
    def epochs(self) -> float:
        """How much training led here, this row included, by its numbers: of every stage up to here its last step.

        One more of epochs that count from 0: a number of epochs, and not the number of one.
        """
        steps = np.asarray(self.series.steps[: self.row + 1], dtype=np.float64)
        stages = np.split(steps, np.flatnonzero(np.diff(steps) < 0.0) + 1)
        led = math.fsum(_length(stage, is_first=not place) for place, stage in enumerate(stages) if stage.size)
        return int(led) if led.is_integer() else led

    def value_in(self, other: Series) -> float | None:
        """The value that another metric has there; None when it was not logged there, or nothing says which it is.

        Metrics that were logged together share rows. Else it is the one of the same step and stage, the last on ties;
        where the other has not as many stages, of the rows between the one before and the one after the nearest.
        """
        if other.steps is self.series.steps or other.steps == self.series.steps:
            return other.values[self.row]
        rows = np.flatnonzero(np.asarray(other.steps, dtype=np.float64) == self.step)
        mine, others = _stages(self.series.steps), _stages(other.steps)
        if not rows.size:
            return None
        if mine[-1] != others[-1]:
            return self._nearest(other, rows)
        rows = rows[others[rows] == mine[self.row]]
        return other.values[int(rows[-1])] if rows.size else None

    def _nearest(self, other: Series, rows: NDArray[np.intp]) -> float | None:
        seconds = np.asarray(other.seconds, dtype=np.float64)[rows]
        around = self.series.seconds[max(self.row - 1, 0) : self.row + 2]
        first = around[0] if self.row else -math.inf
        last = around[-1] if self.row + 1 < len(self.series.seconds) else math.inf
        between = (first <= seconds) & (seconds <= last)
        if not between.any():
            return None
        distance = np.abs(seconds[between] - self.series.seconds[self.row])
        found = {other.values[int(row)] for row in rows[between][distance == distance.min()]}
        return found.pop() if len(found) == 1 else None


def _length(steps: NDArray[np.float64], *, is_first: bool) -> float:
    """The epochs of one stage up to its last step: every 1,000th of 5,000 may be told, and 0, 1, 2 are three.

    A later stage whose steps go on from a checkpoint has trained those alone that it tells.
    """
    different = np.unique(steps)
    by_one = bool(np.all(np.diff(different) == 1.0))
    from_zero = by_one and different[0] == 0.0
    goes_on = by_one and different.size > 1 and not is_first
    last = float(different[-1])
    return float(different.size) if from_zero or goes_on or not 0.0 < last < math.inf else last


def _stages(steps: Sequence[float]) -> NDArray[np.int64]:
    """The stage of every row: a new one begins where the steps go back."""
    numbers = np.asarray(steps, dtype=np.float64)
    return np.cumsum(np.diff(numbers, prepend=numbers[:1]) < 0.0, dtype=np.int64)


def classes_picked(
    record: RunRecord, metric: str, picked: PickedRow, names: frozenset[str] | None = None
) -> tuple[Mapping[str, float], bool]:
    """Class to value at the row picked, or at the end where the run left none there; and whether that is another epoch.

    It is none where the row picked is the run's last.
    """
    there = class_values(record, metric, picked, names)
    found = there or class_values(record, metric, None, names)
    return found, bool(found) and not there and picked.row < len(picked.series.steps) - 1


def class_values(
    record: RunRecord, metric: str, picked: PickedRow | None, names: frozenset[str] | None = None
) -> Mapping[str, float]:
    """Class to value at the row picked (None: the end of the run); empty where the run left none there.

    Taken from the series "metric[class]", at the end from the final per-class values; else, for an accuracy, counted
    from the predictions and labels of that epoch. A run that kept its classes under another accuracy's name
    (`accuracy` beside `test_acc`) has those taken when there is only one such name, and it is none of another split.
    names: `class_names` of the record, for whoever asks of many metrics.
    """
    name = _class_metric(class_names(record) if names is None else names, metric)
    if name is not None:
        return dict(record.per_class.get(name, {})) if picked is None else _from_series(record, name, picked)
    if kind_of(metric) is not MetricKind.ACCURACY:
        return {}
    found = predicted_and_labels(record, None if picked is None else picked.step, metric)
    return {} if found is None else _class_accuracies(*found)


def class_names(record: RunRecord) -> frozenset[str]:
    """The metrics that the run kept by class."""
    in_series = {name[: name.index("[")] for name in record.series if name.endswith("]") and "[" in name}
    return frozenset(in_series | {name for name, values in record.per_class.items() if values})


def _class_metric(names: frozenset[str], metric: str) -> str | None:
    if metric in names:
        return metric
    alike = [name for name in names if kind_of(name) is MetricKind.ACCURACY]
    is_one = len(alike) == 1 and kind_of(metric) is MetricKind.ACCURACY and _distance(metric, alike[0]) is not None
    return alike[0] if is_one else None


def _from_series(record: RunRecord, metric: str, picked: PickedRow) -> dict[str, float]:
    start = f"{metric}["
    found = {
        name[len(start) : -1]: picked.value_in(series)
        for name, series in record.series.items()
        if name.startswith(start) and name.endswith("]")
    }
    return {name: value for name, value in found.items() if value is not None}


def predicted_and_labels(
    record: RunRecord, step: float | None, metric: str = ""
) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """The predicted and the true class of every example at `step` (None: the end of the run), if both were logged.

    metric: what they are to be of. What names another split is not taken, nor any where several would do: they are
    other examples. At the end the last of a name counts, as the last value does; of an epoch that has several of one
    name none does: epochs began again, and a number names none of them.
    """
    at_step = [item for item in record.predictions if item.kind == "class" and item.step == step]
    times = Counter(item.name for item in at_step)
    found = {item.name: item for item in at_step if step is None or times[item.name] == 1}
    pairs = {
        name: (item, labels)
        for name, item in found.items()
        if not name.endswith(_LABELS) and (labels := _labels(record, item)) is not None
    }
    name = _of_metric(metric, pairs)
    return None if name is None else (_unpacked(pairs[name][0]), _unpacked(pairs[name][1]))


_LABELS: Final = ".labels"


def _of_metric(metric: str, names: Iterable[str]) -> str | None:
    """The name that predictions of this metric have: the nearest, the longest that is in it on ties, else the only."""
    near = {name: distance for name in names if (distance := _distance(metric, name)) is not None}
    nearest = [name for name, distance in near.items() if distance == min(near.values())]
    if len(nearest) == 1:
        return nearest[0]
    return max((name for name in nearest if name in metric), key=len, default=None)


def _distance(metric: str, name: str) -> int | None:
    """How sure a name of predictions or classes and a metric are of one split; None where they are not.

    What a job of a sweep told is called NAME@JOB, and belongs to the metrics of that job alone.
    """
    _, _, job = name.partition("@")
    if job and not metric.endswith(f"@{job}"):
        return None
    both = {split_of(metric), split_of(name)}
    return 0 if len(both) == 1 else 1 if Split.UNNAMED in both else None


def _labels(record: RunRecord, predicted: Predictions) -> Predictions | None:
    """The last labels logged with these predictions, else those logged for the run."""
    named = [item for item in record.predictions if item.name == f"{predicted.name}{_LABELS}"]
    fitting = [item for item in named if item.shape == predicted.shape]
    return max(reversed(fitting), key=lambda item: item.step == predicted.step, default=None)


def _unpacked(packed: Predictions) -> NDArray[np.int64]:
    little_endian = np.dtype(packed.dtype).newbyteorder("<")
    return np.frombuffer(packed.unpacked(), dtype=little_endian).astype(np.int64).reshape(packed.shape)


def _class_accuracies(predicted: NDArray[np.int64], labels: NDArray[np.int64]) -> dict[str, float]:
    return {str(name): float((predicted[labels == name] == name).mean()) for name in np.unique(labels)}


_MOST_EXAMPLES: Final = 3000
"""Beyond this many examples a class hardly moves by chance, while the exact law takes long to compute."""


def group_gaps(
    per_class: Sequence[Mapping[str, float]], records: Sequence[RunRecord], metric: str, perfect: float | None
) -> tuple[ClassGap, ...]:
    """The gaps of all classes. per_class: every run's values of the metric; perfect: 1 or 100, the scale they are on.

    Nothing where class sizes are not known (no labels, or labels under other names than the classes), where a class
    is larger than 3,000 examples, or where a run lacks a class.
    """
    sizes = _class_sizes(records, metric)
    names = sorted({name for values in per_class for name in values})
    if perfect is None or len(per_class) < 2 or not names or not set(names) <= set(sizes):
        return ()
    accuracies = {name: [values.get(name, math.nan) / perfect for values in per_class] for name in names}
    complete = all(0.0 <= value <= 1.0 for values in accuracies.values() for value in values)
    if not complete or max(sizes[name] for name in names) > _MOST_EXAMPLES:
        return ()
    return class_gaps(accuracies, sizes)


def _class_sizes(records: Sequence[RunRecord], metric: str) -> dict[str, int]:
    """How many test examples each class has, by the first run that says so."""
    found = (predicted_and_labels(record, None, metric) for record in records)
    labels = next((pair[1] for pair in found if pair is not None), None)
    if labels is None:
        return {}
    names, counts = np.unique(labels, return_counts=True)
    return {str(name): int(number) for name, number in zip(names, counts, strict=True)}


Votes = tuple[NDArray[np.int64], NDArray[np.int64]]
_MOST_RUNS: Final = 500
"""Enough to know the shares well; more would only cost memory. The result says how many were used."""


def noise_of_votes(voted: Votes | None) -> NoiseShares | None:
    """The shares from predictions that are unpacked already."""
    return None if voted is None or voted[1].size < 2 else noise_shares(correctness(*voted))


def churn_of_votes(voted: Votes | None) -> Churn | None:
    """On how many examples the runs disagree, from the same predictions, and None where that has none."""
    return None if voted is None else churn(*voted)


def group_votes(records: Sequence[RunRecord], judged_at: Mapping[str, float | None], metric: str) -> Votes | None:
    """The predicted classes, a row a run, and the labels that all of them have.

    From the predictions of the metric's split at the epoch that runs are judged at (judged_at: run id to epoch), else
    at their end. None when fewer than two runs left such with labels, when some left them only at their end and others
    did not, or when the labels are not the same in all of them.
    """
    some = records[:_MOST_RUNS]
    found = _predictions(some, judged_at, metric) or _predictions(some, {}, metric)
    if len(found) < 2:
        return None
    labels = found[0][1]
    same = all(np.array_equal(other, labels) for _, other in found)
    if not same or labels.ndim != 1 or not labels.size:
        return None
    return np.stack([predicted for predicted, _ in found]), labels


def answers_of_the_end(records: Sequence[RunRecord], judged_at: Mapping[str, float | None]) -> bool:
    """Whether the votes are those of the end, because a run left none at the epoch that it is judged at."""
    return any(
        (step := judged_at.get(record.run_id)) is not None and all(item.step != step for item in record.predictions)
        for record in records[:_MOST_RUNS]
    )


def _predictions(
    records: Sequence[RunRecord], steps: Mapping[str, float | None], metric: str
) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Predictions and labels of all runs at these epochs; nothing unless every run has them."""
    found = [predicted_and_labels(record, steps.get(record.run_id), metric) for record in records]
    complete = [pair for pair in found if pair is not None]
    return complete if len(complete) == len(records) else []
