"""Judged metrics: what the runs are compared by, declared in the study or chosen by a stated order."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from isorun.analysis.evidence.metric_names import Kind, Split, direction_of, is_bookkeeping, kind_of, split_of
from isorun.analysis.studies.class_values import class_values
from isorun.study.design import Metric
from isorun.study.records import RunRecord

__all__ = ["DECLARED", "ORDER", "JudgedMetric", "judged_column", "judged_metrics", "logged_metrics"]

ORDER: Final = (
    "accuracies before other scores before losses; of each, test before eval before val before unnamed; "
    "training values last, and after them names that do not tell which direction is better"
)
DECLARED: Final = "declared"


@dataclass(frozen=True, slots=True)
class JudgedMetric:
    """A metric the runs are compared by.

    direction: "higher" or "lower" is better; "" when it is not declared and the name does not tell.
    direction_from: how the direction became known ("declared", "guessed from 'err'"), "" when it is not.
    scale: "fraction" for accuracies in [0, 1], "percent" for accuracies in [0, 100], "" for any other number.
    chance_from: how chance became known ("declared", "10 classes"), "" when it is not.
    chosen_because: why this metric was taken, "" when the study declares it.
    """

    name: str
    direction: str
    scale: str
    chance: float | None = None
    chance_from: str = ""
    chosen_because: str = ""
    direction_from: str = DECLARED

    @property
    def declared(self) -> bool:
        """Whether the study names this metric."""
        return not self.chosen_because

    @property
    def perfect(self) -> float | None:
        """The best possible value, where the scale tells it."""
        return {"fraction": 1.0, "percent": 100.0}.get(self.scale) if self.direction == "higher" else None


def judged_column(name: str, direction: str = "") -> JudgedMetric:
    """A column of a table as a metric: its direction as given, else as far as the name tells."""
    return _directed(Metric(name, direction))


def judged_metrics(declared: Mapping[str, Metric], records: Sequence[RunRecord]) -> tuple[JudgedMetric, ...]:
    """The declared metrics in their order; without any, the one that comes first in ORDER; none if none was logged."""
    if declared:
        return tuple(_judged(metric, records, "") for metric in declared.values())
    chosen = _first_choice(logged_metrics(records))
    if chosen is None:
        return ()
    because = f"the study declares no metric, and {chosen} comes first in the order: {ORDER}"
    return (_judged(Metric(chosen), records, because),)


def logged_metrics(records: Iterable[RunRecord]) -> tuple[str, ...]:
    """All metrics that any run has a value of, per-class series left aside, sorted by name."""
    names = {name for record in records for name in (*record.results, *record.series)}
    return tuple(sorted(name for name in names if not _is_class_series(name)))


def _is_class_series(name: str) -> bool:
    return name.endswith("]") and "[" in name


def _first_choice(names: Iterable[str]) -> str | None:
    candidates = [name for name in names if not is_bookkeeping(name)]
    return min(candidates, key=_rank, default=None)


def _rank(name: str) -> tuple[bool, bool, Kind, Split, int, str]:
    split, kind = split_of(name), kind_of(name)
    return (kind is Kind.OTHER, split is Split.TRAINING, kind, split, len(name), name)


def _judged(metric: Metric, records: Sequence[RunRecord], because: str) -> JudgedMetric:
    scale = _scale(metric.name, records)
    chance, chance_from = _chance(metric, scale, records)
    directed = _directed(metric)
    return replace(directed, scale=scale, chance=chance, chance_from=chance_from, chosen_because=because)


def _directed(metric: Metric) -> JudgedMetric:
    """A declared direction always wins over what the name says."""
    if metric.direction:
        return JudgedMetric(metric.name, metric.direction, "")
    told = direction_of(metric.name)
    source = f"guessed from {told.word!r}" if told.known else ""
    return JudgedMetric(metric.name, told.better, "", direction_from=source)


def _scale(name: str, records: Iterable[RunRecord]) -> str:
    finite = [value for record in records for value in _values(record, name) if math.isfinite(value)]
    if kind_of(name) is not Kind.ACCURACY or not finite or min(finite) < 0:
        return ""
    largest = max(finite)
    return "fraction" if largest <= 1.0 else ("percent" if largest <= 100.0 else "")


def _values(record: RunRecord, name: str) -> Iterable[float]:
    if name in record.results:
        yield record.results[name]
    if name in record.series:
        yield from record.series[name].values


def _chance(metric: Metric, scale: str, records: Iterable[RunRecord]) -> tuple[float | None, str]:
    if metric.chance is not None:
        return metric.chance, "declared"
    classes = {name for record in records for name in _classes(record, metric.name)}
    if not scale or len(classes) < 2:
        return None, ""
    return (1.0 if scale == "fraction" else 100.0) / len(classes), f"{len(classes)} classes"


def _classes(record: RunRecord, metric: str) -> Iterable[str]:
    yield from (name[name.index("[") + 1 : -1] for name in record.series if _is_class_series(name))
    yield from class_values(record, metric, None)
