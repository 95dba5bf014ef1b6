"""One row per group of runs: how many, mean, standard deviation, smallest and largest value of a metric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isorun.errors import InputError, known_names
from isorun.store.frame import gather
from isorun.study.records import RunRecord

__all__ = ["GROUPABLE", "POINTS", "GroupStatistics", "RunValue", "check_request", "group_statistics", "run_value"]

RunValue = tuple[tuple[str, ...], int | None, int, bytes | None]
"""A finished run: approach, config, environment and level; seed; repeat; the metric's values as packed float64.

A plain tuple, because statistics read tens of thousands of them; None for a run that did not record the metric.
"""

POINTS = ("last", "first", "highest", "lowest", "result")
GROUPABLE = ("approach", "config", "environment", "level", "seed", "repeat")


@dataclass(frozen=True, slots=True)
class GroupStatistics:
    """The finished runs of one group.

    n: the runs whose value is finite; the statistics are over these. not_finite: runs left out because their value is
    NaN or infinite. missing: runs that have no value. sd: the sample standard deviation, NaN under two runs.
    """

    group: Mapping[str, Any]
    n: int
    mean: float
    sd: float
    minimum: float
    maximum: float
    not_finite: int
    missing: int


def check_request(by: Sequence[str], point: str) -> None:
    """InputError when a column or the point is not known."""
    for name in by:
        if name not in GROUPABLE:
            raise InputError(
                "runs cannot be grouped by that column", found=repr(name), allowed=known_names(name, GROUPABLE)
            )
    if point not in POINTS:
        raise InputError("unknown point of a series", found=repr(point), allowed=known_names(point, POINTS))


def run_value(record: RunRecord, metric: str, point: str) -> RunValue:
    """A record's values of the metric: its series, or its final value when that is asked for."""
    if point == "result":
        values: Sequence[float] = [record.results[metric]] if metric in record.results else ()
    else:
        values = record.series[metric].values if metric in record.series else ()
    cell = record.cell
    return (cell.group, cell.seed, cell.repeat, np.array(values, dtype="<f8").tobytes() or None)


def group_statistics(runs: Sequence[RunValue], by: Sequence[str], point: str) -> list[GroupStatistics]:
    """Statistics of one metric for each group of finished runs, ordered by group."""
    value, present = _value_of_each_run(runs, point)
    found = [
        _statistics(dict(zip(by, group, strict=True)), value[members], present[members])
        for group, members in _members(runs, by).items()
    ]
    return sorted(found, key=lambda item: [(part is not None, part) for part in item.group.values()])


def _members(runs: Sequence[RunValue], by: Sequence[str]) -> dict[tuple[Any, ...], list[int]]:
    """The positions of each group's runs. Names that groups of cells share are looked up once for each such group."""
    with_seed, with_repeat = "seed" in by, "repeat" in by
    raw: dict[tuple[Any, ...], list[int]] = {}
    for number, run in enumerate(runs):
        key = (run[0], run[1] if with_seed else None, run[2] if with_repeat else None)
        raw.setdefault(key, []).append(number)
    members: dict[tuple[Any, ...], list[int]] = {}
    for (group, seed, repeat), numbers in raw.items():
        named = dict(zip(GROUPABLE, (*group, seed, repeat), strict=True))
        members.setdefault(tuple(named[name] for name in by), []).extend(numbers)
    return members


def _value_of_each_run(runs: Sequence[RunValue], point: str) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The value of each run at the point asked for, and whether it has one."""
    contents = [run[3] for run in runs]
    present = np.array([bool(content) for content in contents], dtype=bool)
    value = np.full(len(runs), np.nan)
    if present.any():
        offsets, values = gather([content for content in contents if content])
        value[present] = _at(values, offsets, point)
    return value, present


def _at(values: NDArray[np.float64], offsets: NDArray[np.int64], point: str) -> NDArray[np.float64]:
    if point == "highest":
        return np.fmax.reduceat(values, offsets[:-1])
    if point == "lowest":
        return np.fmin.reduceat(values, offsets[:-1])
    return values[offsets[:-1]] if point == "first" else values[offsets[1:] - 1]


def _statistics(group: Mapping[str, Any], value: NDArray[np.float64], present: NDArray[np.bool_]) -> GroupStatistics:
    finite = value[present & np.isfinite(value)]
    n = len(finite)
    return GroupStatistics(
        group=group,
        n=n,
        mean=float(finite.mean()) if n else float("nan"),
        sd=float(finite.std(ddof=1)) if n > 1 else float("nan"),
        minimum=float(finite.min()) if n else float("nan"),
        maximum=float(finite.max()) if n else float("nan"),
        not_finite=int(present.sum()) - n,
        missing=int((~present).sum()),
    )
