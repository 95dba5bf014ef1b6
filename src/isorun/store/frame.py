"""Frames: the points of many runs as columns, quick to read and to hand to pandas or Polars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isorun.errors import MissingExtra
from isorun.store.axes import PackedAxis, pack_axis, unpack_axes
from isorun.study.records import RunRecord

__all__ = [
    "RUN_COLUMNS",
    "Frame",
    "FrameParts",
    "RunRow",
    "SeriesColumns",
    "assemble",
    "gather",
    "row_of",
]


class RunRow(NamedTuple):
    """What a table of runs says about one of them."""

    run_id: str
    cell_id: str
    approach: str
    config: str
    environment: str
    level: str
    seed: int | None
    repeat: int
    attempt: int
    state: str
    started_at: str
    wall_seconds: float
    cpu_seconds: float
    peak_memory_bytes: int


RUN_COLUMNS = RunRow._fields


@dataclass(slots=True)
class SeriesColumns:
    """Packed series as columns, since there may be a hundred thousand of them.

    runs, axes: positions in the lists of the frame's parts; contents: little-endian float64.
    """

    runs: list[int] = field(default_factory=list)
    metrics: list[str] = field(default_factory=list)
    axes: list[int] = field(default_factory=list)
    contents: list[bytes] = field(default_factory=list)


@dataclass(slots=True)
class FrameParts:
    """What a store hands over to have a frame made of it: rows, packed axes and packed series."""

    runs: list[RunRow] = field(default_factory=list)
    axes: list[PackedAxis] = field(default_factory=list)
    series: SeriesColumns = field(default_factory=SeriesColumns)

    def add(self, record: RunRecord, metrics: frozenset[str] | None) -> None:
        """Add a record with its series of the given metrics, or of all."""
        run = len(self.runs)
        self.runs.append(row_of(record))
        for metric, series in record.series.items():
            if metrics is None or metric in metrics:
                self.series.runs.append(run)
                self.series.metrics.append(metric)
                self.series.axes.append(len(self.axes))
                self.series.contents.append(np.array(series.values, dtype="<f8").tobytes())
                self.axes.append(pack_axis(series.steps, series.seconds))


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """The points of many runs, one array a column; all arrays are equally long.

    run and metric are positions in `runs` and `metrics`. Runs of every state are in it; `runs` has their states.
    """

    runs: tuple[RunRow, ...]
    metrics: tuple[str, ...]
    run: NDArray[np.int32]
    metric: NDArray[np.int32]
    step: NDArray[np.float64]
    seconds: NDArray[np.float64]
    value: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.value)

    def run_column(self, name: str) -> list[Any]:
        """One column of the table of runs."""
        position = RUN_COLUMNS.index(name)
        return [row[position] for row in self.runs]

    def to_pandas(self) -> Any:
        """A pandas frame, one row a point; text columns are categories."""
        try:
            import pandas as pd  # noqa: PLC0415  # an optional part
        except ImportError as error:
            raise MissingExtra("pandas", "tables", "a pandas frame") from error
        columns: dict[str, Any] = {}
        for name in RUN_COLUMNS:
            values = pd.Series(self.run_column(name), dtype=_PANDAS_TYPES.get(name, "category"))
            columns[name] = values.take(self.run).array
        columns["metric"] = pd.Categorical.from_codes(self.metric, categories=list(self.metrics))
        return pd.DataFrame({**columns, **self._points()}, copy=False)

    def to_polars(self) -> Any:
        """A Polars frame, one row a point; text columns are categories."""
        try:
            import polars as pl  # noqa: PLC0415  # an optional part
        except ImportError as error:
            raise MissingExtra("polars", "tables", "a Polars frame") from error
        columns: dict[str, Any] = {}
        for name in RUN_COLUMNS:
            dtype = {"float64": pl.Float64, "int64": pl.Int64, "object": pl.Int128}.get(_PANDAS_TYPES.get(name, ""))
            columns[name] = pl.Series(name, self.run_column(name), dtype=dtype or pl.Categorical).gather(self.run)
        columns["metric"] = pl.Series("metric", self.metrics, dtype=pl.Categorical).gather(self.metric)
        return pl.DataFrame({**columns, **self._points()})

    def _points(self) -> dict[str, NDArray[np.float64]]:
        return {"step": self.step, "seconds": self.seconds, "value": self.value}


_PANDAS_TYPES: Mapping[str, str] = {
    "seed": "object",
    "repeat": "int64",
    "attempt": "int64",
    "wall_seconds": "float64",
    "cpu_seconds": "float64",
    "peak_memory_bytes": "int64",
}


def row_of(record: RunRecord) -> RunRow:
    """The record's line in a table of runs."""
    cell = record.cell
    return RunRow(
        record.run_id,
        cell.id,
        *cell.group,
        cell.seed,
        cell.repeat,
        record.attempt,
        str(record.state),
        record.started_at,
        record.wall_seconds,
        record.cpu_seconds,
        record.peak_memory_bytes,
    )


def gather(contents: Sequence[bytes]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The values of packed series one after another, and where each begins, with the end last."""
    points = np.array([len(content) // 8 for content in contents], dtype=np.int64)
    values = np.frombuffer(b"".join(contents), dtype="<f8").astype(np.float64, copy=False)
    return np.concatenate([[0], np.cumsum(points)]).astype(np.int64), values


def assemble(parts: FrameParts) -> Frame:
    """Unpack everything at once."""
    series = parts.series
    offsets, values = gather(series.contents)
    points = np.diff(offsets)
    axes = unpack_axes(parts.axes)
    axis = np.array(series.axes, dtype=np.int64)
    place = np.arange(offsets[-1]) + np.repeat(axes.offsets[axis] - offsets[:-1], points)
    metrics = tuple(sorted(set(series.metrics)))
    codes = {metric: code for code, metric in enumerate(metrics)}
    return Frame(
        runs=tuple(parts.runs),
        metrics=metrics,
        run=np.repeat(np.array(series.runs, dtype=np.int32), points),
        metric=np.repeat(np.array([codes[metric] for metric in series.metrics], dtype=np.int32), points),
        step=axes.steps[place],
        seconds=axes.seconds[place],
        value=values,
    )
