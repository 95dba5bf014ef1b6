"""Model selection after the fact: the epoch a finished run is judged at, and its values there.

Two are common (Pham et al., ASE 2020, section 3.3): the epoch with the best validation loss, and the one with the
best validation accuracy. Seconds to that epoch are the paper's Time_loss and Time_acc.

Learning curves of a group: every run, and the median with a band at each step.

What a failed run said in the end.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from isorun.analysis.evidence.judged import JudgedMetric, MetricKind, Split, direction_of, kind_of, split_of
from isorun.analysis.samples import FloatArray
from isorun.analysis.studies.class_values import PickedRow, class_names, class_values, classes_picked
from isorun.study.design import Selection
from isorun.study.records import Numbers, RunRecord, Series

__all__ = [
    "BAND",
    "DEFAULT_SELECTIONS",
    "FINAL",
    "LearningCurves",
    "Selected",
    "best_place",
    "final_value",
    "last_words",
    "learning_curves",
    "select",
    "selections_of",
    "training_seconds",
]

FINAL: Final = Selection("final", "", "higher")
_TRACEBACK: Final = "Traceback (most recent call last)"
_BEST: Final = {"best-loss": MetricKind.LOSS, "best-accuracy": MetricKind.ACCURACY}
DEFAULT_SELECTIONS: Final = (*_BEST, FINAL.name)
"""Those a study can have that declares none; which of them it has, its runs say."""
_VALIDATION: Final = (Split.VALIDATION, Split.EVALUATION)


@dataclass(frozen=True, slots=True)
class Selected:
    """The point one run is judged at.

    step: the epoch (or step) picked; None for the end of the run. epochs / seconds: how much training led there,
    in epochs where the training numbers those, else in its steps.
    values: metric to value. at_end: metrics that were not logged at that epoch, so that the run's final value
    stands for them. classes_at_end: the same of per-class values. problem: why nothing could be picked, "" when
    something was.
    """

    step: float | None
    epochs: float | None
    seconds: float | None
    values: Mapping[str, float] = field(default_factory=dict)
    per_class: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    at_end: frozenset[str] = frozenset()
    classes_at_end: frozenset[str] = frozenset()
    problem: str = ""


def selections_of(
    declared: Mapping[str, Selection], records: Sequence[RunRecord], metrics: Sequence[JudgedMetric] = ()
) -> tuple[Selection, ...]:
    """The declared selections; without any, best-loss and best-accuracy where validation series allow; else `final`.

    metrics: the judged ones, whose declared directions win over what names tell. A series whose name tells no direction
    picks no epoch.
    """
    if declared:
        return tuple(declared.values())
    series = [(name, _validation_series(kind, records)) for name, kind in _BEST.items()]
    judged = {metric.name: metric.direction for metric in metrics}
    found = tuple(
        Selection(name, metric, judged.get(metric) or direction_of(metric).better) for name, metric in series if metric
    )
    return found or (FINAL,)


def select(record: RunRecord, selection: Selection, metrics: Sequence[str]) -> Selected:
    """Where the selection judges this run, with the values of `metrics` there."""
    if selection == FINAL:
        return _at_end(record, metrics)
    series = record.series.get(selection.metric)
    if series is None or not series.values:
        return Selected(None, None, None, problem=f"{selection.metric} was not logged")
    place = best_place(series.values, higher_is_better=selection.higher_is_better)
    if place is None:
        return Selected(None, None, None, problem=f"all {len(series.values)} values of {selection.metric} are NaN")
    return _at_row(record, PickedRow(series, place), metrics)


def best_place(values: Sequence[float], *, higher_is_better: bool) -> int | None:
    """The place of the best value, the first on ties; NaN is never best; None when there is nothing but NaN."""
    numbers = np.asarray(values, dtype=np.float64)
    best = np.argmax if higher_is_better else np.argmin
    if numbers.size and not math.isnan(numbers[place := int(best(numbers))]):  # NaN, where there is any, is found first
        return place
    usable = np.flatnonzero(~np.isnan(numbers))
    return int(usable[best(numbers[usable])]) if usable.size else None


def _validation_series(kind: MetricKind, records: Sequence[RunRecord]) -> str:
    """The validation series of this kind that most runs have; on ties one that is called a loss, the shortest name."""
    counts = Counter(
        name
        for record in records
        for name in record.series
        if kind_of(name) is kind and split_of(name) in _VALIDATION and not name.endswith("]")
    )

    def rank(name: str) -> tuple[int, bool, bool, int, str]:
        other_error = kind is MetricKind.LOSS and not direction_of(name).word.endswith("loss")
        return (-counts[name], split_of(name) is not Split.VALIDATION, other_error, len(name), name)

    return min(counts, key=rank, default="")


def _at_row(record: RunRecord, picked: PickedRow, metrics: Sequence[str]) -> Selected:
    logged = {name: picked.value_in(record.series[name]) for name in metrics if name in record.series}
    values = {name: value for name, value in logged.items() if value is not None}
    final = {name: final_value(record, name) for name in metrics if name not in values}
    at_end = {name: value for name, value in final.items() if value is not None}
    names = class_names(record)
    classes = {name: classes_picked(record, name, picked, names) for name in metrics}
    return Selected(
        step=picked.step,
        epochs=picked.epochs,
        seconds=picked.series.seconds[picked.row],
        values={name: {**values, **at_end}[name] for name in metrics if name in values or name in at_end},
        per_class={name: found for name, (found, _) in classes.items()},
        at_end=frozenset(at_end),
        classes_at_end=frozenset(name for name, (_, of_the_end) in classes.items() if of_the_end),
    )


def _at_end(record: RunRecord, metrics: Sequence[str]) -> Selected:
    found = {name: final_value(record, name) for name in metrics}
    lengths = [_last_row(record.series[name]).epochs for name in metrics if name in record.series]
    last, names = _last_logged(record), class_names(record)
    return Selected(
        step=None,
        epochs=max(lengths, default=None),
        seconds=training_seconds(record),
        values={name: value for name, value in found.items() if value is not None},
        per_class={name: _final_classes(record, name, last, names) for name in metrics},
        at_end=frozenset(name for name, value in found.items() if value is not None),
    )


def training_seconds(record: RunRecord) -> float:
    """The wall time from the end of start-up on, so that a warm run compares with a fresh one."""
    return max(record.wall_seconds - (record.startup_seconds or 0.0), 0.0)


def final_value(record: RunRecord, metric: str) -> float | None:
    """What the run told at its end, else the last value that it logged; None where it left neither."""
    if metric in record.results:
        return record.results[metric]
    series = record.series.get(metric)
    return series.values[-1] if series is not None and series.values else None


def _final_classes(
    record: RunRecord, metric: str, last: PickedRow | None, names: frozenset[str]
) -> Mapping[str, float]:
    """The classes at the end: the run's own final ones, else those of the last epoch that was logged."""
    final = class_values(record, metric, None, names)
    return final or (class_values(record, metric, last, names) if last else {})


def _last_logged(record: RunRecord) -> PickedRow | None:
    rows = [_last_row(series) for series in record.series.values() if series.steps]
    return max(rows, key=lambda picked: (picked.series.seconds[-1], picked.step), default=None)


def _last_row(series: Series) -> PickedRow:
    return PickedRow(series, len(series.steps) - 1)


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
    runs = tuple(_at_finite_steps(record.series[metric]) for record in records if metric in record.series)
    runs = tuple(run for run in runs if _has_steps(run))
    if not runs:
        return None
    steps, bands = _bands(runs)
    low, median, high = (tuple(band.tolist()) for band in bands)
    return LearningCurves(metric, tuple(steps.tolist()), median, low, high, runs)


def _at_finite_steps(run: Series) -> Series:
    """The points that have a place on an axis: an older isorun kept steps that are not finite."""
    finite = np.isfinite(np.asarray(run.steps, dtype=np.float64))
    if finite.all():
        return run
    kept = (np.asarray(part, dtype=np.float64)[finite] for part in (run.steps, run.seconds, run.values))
    return Series(*map(Numbers, kept))


def _bands(runs: Sequence[Series]) -> tuple[FloatArray, Sequence[FloatArray]]:
    """The steps that count, and the three quantiles at each."""
    levels = (BAND[0], 50.0, BAND[1])
    parts = [np.asarray(run.values, dtype=np.float64) for run in runs]
    values = np.concatenate(parts)
    finite = np.isfinite(values)
    if finite.all() and all(run.steps == runs[0].steps for run in runs) and _ascends(runs[0]):
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(runs[0].steps, dtype=np.float64), list(np.percentile(np.stack(parts), levels, axis=0))
    steps = np.concatenate([np.asarray(run.steps, dtype=np.float64) for run in runs])
    order = np.lexsort((values[finite], steps[finite]))  # by step, and by value within a step
    ordered = values[finite][order]
    distinct, first, counts = np.unique(steps[finite][order], return_index=True, return_counts=True)
    kept = 2 * counts >= len(runs)
    return distinct[kept], [_quantiles(ordered, first[kept], counts[kept], level / 100.0) for level in levels]


def _ascends(run: Series) -> bool:
    return bool((np.diff(np.asarray(run.steps, dtype=np.float64)) > 0.0).all())


def _has_steps(run: Series) -> bool:
    """Whether the run logged at two steps or more."""
    if len(run.steps) > 1 and run.steps[0] != run.steps[-1]:
        return True
    steps = np.asarray(run.steps, dtype=np.float64)
    return bool((steps[1:] != steps[:1]).any())


def _quantiles(ordered: FloatArray, first: NDArray[np.intp], counts: NDArray[np.intp], level: float) -> FloatArray:
    """The quantile of each stretch of ordered values, as `numpy.percentile` has it, for all stretches at once."""
    place = level * (counts - 1)
    whole = np.floor(place).astype(np.intp)
    share = place - whole
    below, above = ordered[first + whole], ordered[first + np.minimum(whole + 1, counts - 1)]
    with np.errstate(over="ignore", invalid="ignore"):
        width = above - below
        return np.asarray(np.where(share >= 0.5, above - width * (1.0 - share), below + width * share))


def last_words(log: str) -> str:
    """What a log says of its end: its last line that is not indented, and before it the error of its last traceback.

    A message of several lines goes on behind the error ("Stack trace:", "Compile with …") and says less than it; yet
    what stands there may also be the word of a program that caught the error.
    """
    lines = [line for line in log.splitlines() if line.strip()]
    leading = [line.strip() for line in lines if not line[0].isspace()]
    if not leading:
        return lines[-1].strip() if lines else ""
    traced = [number for number, line in enumerate(leading) if line.startswith(_TRACEBACK)]
    error = leading[traced[-1] + 1 : traced[-1] + 2] if traced else []
    return " … ".join(dict.fromkeys([*error, leading[-1]]))
