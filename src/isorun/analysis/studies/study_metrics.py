"""The metrics a study is judged by, declared in it or chosen by a stated order; and which runs are weak by them.

A weak run is a training that learned next to nothing. The paper calls a model weak below 20 % accuracy with 10 classes,
twice what guessing gives. Twice chance would call every model of a two-class task weak, so the bound is also kept
within a ninth of the way from chance to a perfect score; for 10 classes the two agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from isorun.analysis.evidence.judged import (
    OF_A_CRITIC,
    ORDER,
    JudgedMetric,
    MetricKind,
    critics_among,
    direction_unknown,
    first_choice,
    is_class_series,
    judged_column,
    kind_of,
)
from isorun.analysis.samples import FloatArray
from isorun.analysis.studies.class_values import class_values
from isorun.study.design import Metric
from isorun.study.records import RunRecord

__all__ = [
    "WeakRule",
    "judged_metrics",
    "logged_metrics",
    "weak_rule",
]

_BEST: Final = "best"
_BY_BEST: Final = "seen from what the training calls best"


def judged_metrics(declared: Mapping[str, Metric], records: Sequence[RunRecord]) -> tuple[JudgedMetric, ...]:
    """The declared metrics in their order; without any, the one that comes first in ORDER; none if none was logged."""
    if declared:
        return tuple(_judged(metric, records, "") for metric in declared.values())
    logged = logged_metrics(records)
    chosen = first_choice(logged)
    if chosen is None:
        return ()
    critics = critics_among(logged)
    is_a_critics = chosen in critics
    order = f"{ORDER}; a policy's critic is left to the end" if critics and not is_a_critics else ORDER
    because = f"the study declares no metric, and {chosen} comes first in the order: {order}"
    judged = _judged(Metric(chosen), records, because)
    return (replace(judged, direction="", direction_from=OF_A_CRITIC) if is_a_critics else judged,)


def logged_metrics(records: Iterable[RunRecord]) -> tuple[str, ...]:
    """All metrics that any run has a value of, per-class series left aside, sorted by name."""
    names = {name for record in records for name in (*record.results, *record.series)}
    return tuple(sorted(name for name in names if not is_class_series(name)))


def _judged(metric: Metric, records: Sequence[RunRecord], because: str) -> JudgedMetric:
    scale = _scale(metric.name, records)
    chance, chance_from = _chance(metric, scale, records)
    directed = judged_column(metric.name, metric.direction)
    if not directed.direction and (better := _told_by_best(metric.name, records)):
        directed = replace(directed, direction=better, direction_from=_BY_BEST)
    return replace(directed, scale=scale, chance=chance, chance_from=chance_from, chosen_because=because)


def _told_by_best(name: str, records: Iterable[RunRecord]) -> str:
    """The direction that the training itself takes, where it tells what its best value is so far beside each value.

    CatBoost's `test` has no other name, and its `best` is the least or the greatest until then, of rounds that it does
    not print, too; "" where both fit, or neither.
    """
    fitting = {"lower", "higher"}
    for record in records:
        series, best = record.series.get(name), record.series.get(_BEST)
        if series is None or best is None or tuple(series.steps) != tuple(best.steps):
            continue
        values, told = np.asarray(series.values), np.asarray(best.values)
        signs = {"lower": 1, "higher": -1}
        fitting &= {better for better, sign in signs.items() if _never_worse(sign * told, sign * values)}
    return fitting.pop() if len(fitting) == 1 else ""


def _never_worse(best: FloatArray, values: FloatArray) -> bool:
    """Whether the best is at most each value until then, and never rises; not where one is not a number."""
    return bool(np.all(best <= np.minimum.accumulate(values)) and np.all(np.diff(best) <= 0))


def _scale(name: str, records: Iterable[RunRecord]) -> str:
    if kind_of(name) is not MetricKind.ACCURACY:
        return ""
    logged = np.concatenate([*(_values(record, name) for record in records), np.empty(0)])
    finite = logged[np.isfinite(logged)]
    if not finite.size or finite.min() < 0:
        return ""
    largest = float(finite.max())
    return "fraction" if largest <= 1.0 else ("percent" if largest <= 100.0 else "")


def _values(record: RunRecord, name: str) -> FloatArray:
    series = record.series.get(name)
    logged = np.empty(0) if series is None else np.asarray(series.values, dtype=np.float64)
    return np.append(logged, record.results[name]) if name in record.results else logged


def _chance(metric: Metric, scale: str, records: Iterable[RunRecord]) -> tuple[float | None, str]:
    if metric.chance is not None:
        return metric.chance, "declared"
    if not scale:  # before the classes are looked for in all that every run logged
        return None, ""
    classes = {name for record in records for name in _classes(record, metric.name)}
    if len(classes) < 2:
        return None, ""
    return (1.0 if scale == "fraction" else 100.0) / len(classes), f"{len(classes)} classes"


def _classes(record: RunRecord, metric: str) -> Iterable[str]:
    yield from (name[name.index("[") + 1 : -1] for name in record.series if is_class_series(name))
    yield from class_values(record, metric, None)


@dataclass(frozen=True, slots=True)
class WeakRule:
    """When a run counts as weak. below: the bound, None where chance is unknown and no run is flagged."""

    metric: str
    below: float | None
    reason: str

    def is_weak(self, value: float) -> bool:
        """Whether a run with this value is weak; NaN is not weak but missing."""
        return self.below is not None and value < self.below


def weak_rule(metric: JudgedMetric) -> WeakRule:
    """The rule for one metric, with the words that explain it."""
    if not metric.direction:
        return WeakRule(metric.name, None, f"no run is flagged as weak: {direction_unknown(metric.name)}")
    if metric.direction == "lower":
        reason = f"no run is flagged as weak: of {metric.name} less is better, so it has no chance level"
        return WeakRule(metric.name, None, reason)
    if metric.chance is None or metric.chance <= 0:
        declare = f"declare it as metrics.{metric.name}.chance"
        return WeakRule(metric.name, None, f"no run is flagged as weak: chance of {metric.name} is unknown ({declare})")
    twice = 2.0 * metric.chance
    if metric.perfect is None or metric.chance + (metric.perfect - metric.chance) / 9.0 >= twice:
        return WeakRule(metric.name, twice, f"twice chance ({metric.chance_from})")
    below = metric.chance + (metric.perfect - metric.chance) / 9.0
    return WeakRule(metric.name, below, f"a ninth of the way from chance ({metric.chance_from}) to a perfect score")
