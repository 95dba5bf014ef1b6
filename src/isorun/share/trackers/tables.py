"""Tables of runs, as CSV and Parquet: for anyone, and from anyone.

An export is a folder with `runs` (a row a run: run_id, experiment, run_name, status, start_time, end_time, then
`params.X`, `tags.X`, and `metrics.X` with final values, which are the column names of `mlflow.search_runs`) and
`metrics` (a row a value: run_id, metric, step, time, value). Either that folder is read, or any table of one row a run.
"""

from __future__ import annotations

import csv
import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from isorun.analysis.evidence import some
from isorun.errors import InputError, MissingExtra, known_names
from isorun.share.trackers import (
    AbstractTracker,
    Chosen,
    GrowingSeries,
    TrackedRun,
    TrackedSeries,
    WrittenRuns,
    number_of,
    plain_json,
    shown_where,
    unix_microseconds,
)
from isorun.share.trackers.foreign_files import refuse_missing
from isorun.study.records import RunState

__all__ = ["CsvTables", "ParquetTables"]

_RUNS, _METRICS = "runs", "metrics"
_PREFIXES: Final = {
    "params.": "params",
    "config.": "params",
    "config/": "params",
    "tags.": "tags",
    "metrics.": "metrics",
    "summary.": "metrics",
    "summary/": "metrics",
}
_TEXTS: Final = "isorun.texts"
"""Which parameters are texts although they read like a number: a table cannot say it otherwise."""
_OWN: Final = {
    "run": ("run_id", "run", "id", "ID"),
    "experiment": ("experiment", "project", "experiment_id"),
    "name": ("run_name", "name", "Name", "tags.mlflow.runName"),
    "status": ("status", "state", "State"),
    "start": ("start_time", "created", "Created", "created_at"),
    "end": ("end_time",),
    "host": ("host",),
    "commit": ("commit",),
    "reason": ("reason",),
    "left_out": ("left_out",),
}
_STATES: Final = {
    "finished": RunState.FINISHED,
    "complete": RunState.FINISHED,
    "completed": RunState.FINISHED,
    "failed": RunState.FAILED,
    "fail": RunState.FAILED,
    "crashed": RunState.FAILED,
    "killed": RunState.INTERRUPTED,
    "pruned": RunState.INTERRUPTED,
    "interrupted": RunState.INTERRUPTED,
    "timed-out": RunState.TIMED_OUT,
    "success": RunState.FINISHED,
    "succeeded": RunState.FINISHED,
    "done": RunState.FINISHED,
    "error": RunState.FAILED,
}
_GOING: Final = ("running", "scheduled", "pending", "waiting", "queued")
"""Words for runs that have not ended."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_Row = Mapping[str, Any]


class _Tables(AbstractTracker):
    """What both kinds of tables do."""

    writes = True

    def read(self, chosen: Chosen) -> Iterator[TrackedRun]:
        """A run a row, in the order of rows."""
        path = Path(self.where)
        refuse_missing(path, "the table")
        values = None
        if path.is_dir():
            table, values = path / f"{_RUNS}.{self.name}", path / f"{_METRICS}.{self.name}"
            if not table.is_file():
                raise InputError(
                    f"there is no {table.name} in {shown_where(str(path))}",
                    allowed=f"a folder that isorun export {self.name} wrote, or a table of one row a run",
                )
            path = table
        rows = list(self._rows(path))
        points = _points(self._rows(values), shown_where(str(values))) if values and values.is_file() else {}
        if values and not values.is_file():
            self.notes.append(f"there is no {values.name}, so that no run has a series: final values alone are there")
        reading = _Reading(rows, chosen, shown_where(str(path)), {name for run in points.values() for name in run})
        runs = [reading.run(row, points) for row in rows]
        self._tell_of(reading, points)
        wanted = chosen.only({run.experiment: run.experiment for run in runs}, "experiment", self.place)
        doubled = [key for key, count in Counter(run.key for run in runs).items() if count > 1]
        if doubled:
            raise InputError(
                f"two rows of {shown_where(str(path))} are of the same run",
                found=" ".join(doubled[0]),
                allowed="one row a run",
                hint=f"isorun compare, summarize and mixed ask any table as it is: isorun summarize {path.name}",
            )
        yield from (run for run in runs if run.experiment in wanted)

    def _tell_of(self, reading: _Reading, points: Mapping[str, Mapping[str, TrackedSeries]]) -> None:
        """What the tables hold that is in no run, and what was not understood."""
        alone = [run for run in points if run not in reading.known]
        values = sum(len(series.values) for run in alone for series in points[run].values())
        self.pass_over(f"values of runs that {_RUNS}.{self.name} has no row of", values)
        for word, count in reading.unknown_states.items():
            self.notes.append(
                f"the state {word!r} of {some(count, 'run')} is none that is known, and counts as not ended; "
                f"known are {', '.join(sorted((*_STATES, *_GOING)))}"
            )

    def _rows(self, path: Path) -> Iterator[_Row]:
        raise NotImplementedError

    def _save(self, path: Path, names: Sequence[str], rows: Iterable[_Row]) -> None:
        raise NotImplementedError

    def write(self, runs: Iterable[TrackedRun], chosen: Chosen) -> WrittenRuns:  # noqa: ARG002 - it needs no package
        """A folder with the two tables; one that is there is left alone."""
        folder = Path(self.where)
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise InputError(f"{shown_where(str(folder))} is there already", hint="name another folder: --to FOLDER")
        kept = list(runs)
        rows = [_row_of(run) for run in kept]
        folder.mkdir(parents=True, exist_ok=True)
        self._save(folder / f"{_RUNS}.{self.name}", list(dict.fromkeys(name for row in rows for name in row)), rows)
        self._save(folder / f"{_METRICS}.{self.name}", ("run_id", "metric", "step", "time", "value"), _values(kept))
        return WrittenRuns(self.place, len(kept), sum(run.points for run in kept))


class CsvTables(_Tables):
    """Runs in CSV files."""

    name = "csv"
    where_hint = "csv:FILE.csv, or csv:FOLDER that isorun export csv wrote"

    def _rows(self, path: Path) -> Iterator[_Row]:
        csv.field_size_limit(1 << 24)
        short, unnamed = 0, False
        try:
            with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
                for number, row in enumerate(csv.DictReader(file, strict=True), start=2):
                    if None in row:
                        raise InputError(f"line {number} of {shown_where(str(path))} has more cells than the header")
                    short += None in row.values()
                    unnamed = unnamed or "" in row
                    yield {name: cell for name, cell in row.items() if name and cell not in (None, "")}
        except (OSError, csv.Error) as error:
            raise InputError(f"{shown_where(str(path))} cannot be read", found=str(error)) from None
        if short:
            self.notes.append(
                f"lines of {path.name} with fewer cells than the header: {short:,}; these cells are empty"
            )
        if unnamed:
            self.notes.append(f"{path.name} has a column without a name, such as the index of a frame: it is left out")

    def _save(self, path: Path, names: Sequence[str], rows: Iterable[_Row]) -> None:
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, names)
            writer.writeheader()
            writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows)


class ParquetTables(_Tables):
    """Runs in Parquet files."""

    name = "parquet"
    where_hint = "parquet:FILE.parquet, or parquet:FOLDER that isorun export parquet wrote"

    def _rows(self, path: Path) -> Iterator[_Row]:
        pa, pq = _arrow()
        try:
            for row in pq.read_table(path).to_pylist():
                yield {name: cell for name, cell in row.items() if cell is not None}
        except (pa.ArrowException, OSError) as error:
            raise InputError(f"{shown_where(str(path))} cannot be read", found=str(error)[:200]) from None

    def _save(self, path: Path, names: Sequence[str], rows: Iterable[_Row]) -> None:
        pa, pq = _arrow()
        columns: dict[str, list[Any]] = {name: [] for name in names}
        for row in rows:
            for name, column in columns.items():
                column.append(_of_column(name, row.get(name)))
        kinds = {
            "time": pa.timestamp("us", tz="UTC"),
            "start_time": pa.timestamp("us", tz="UTC"),
            "end_time": pa.timestamp("us", tz="UTC"),
            "step": pa.float64(),
            "value": pa.float64(),
        }
        arrays = {
            name: pa.array(column, kinds.get(name, pa.float64() if name.startswith("metrics.") else pa.string()))
            for name, column in columns.items()
        }
        pq.write_table(pa.table(arrays), path)


def _arrow() -> tuple[Any, Any]:
    try:
        import pyarrow as pa  # noqa: PLC0415  an extra
        import pyarrow.parquet as pq  # noqa: PLC0415
    except ImportError:
        raise MissingExtra("pyarrow", "tables", "Parquet") from None
    return pa, pq


def _of_column(name: str, value: Any) -> Any:
    if value is None or name in ("time", "start_time", "end_time", "step", "value") or name.startswith("metrics."):
        return value
    return _cell(value)


def _cell(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat(timespec="microseconds")
    if isinstance(value, str):
        return value
    return repr(value) if isinstance(value, float) else json.dumps(value, ensure_ascii=False)


def _moment(microseconds: int | None) -> datetime | None:
    return None if microseconds is None else _EPOCH + timedelta(microseconds=microseconds)


def _row_of(run: TrackedRun) -> dict[str, Any]:
    """A run as a row; a value that is no text, number or truth value is JSON."""
    texts = [name for name, value in run.params.items() if isinstance(value, str) and not isinstance(_read(value), str)]
    row = {
        "run_id": json.dumps(run.key) if len(run.key) > 1 else run.key[0],
        "experiment": run.experiment,
        "run_name": run.name,
        "status": "running" if run.state is None else str(run.state),
        "reason": run.reason,
        "start_time": _moment(run.started),
        "end_time": _moment(run.ended),
        "host": run.host,
        "commit": run.commit,
        "left_out": json.dumps(run.left_out) if run.left_out else "",
        _TEXTS: json.dumps(texts) if texts else "",
        **{f"params.{name}": _cell(plain_json(value)) for name, value in run.params.items()},
        **{f"tags.{name}": value for name, value in run.tags.items()},
        **{f"metrics.{name}": value for name, value in run.results.items()},
    }
    kept = {name: value for name, value in row.items() if value not in (None, "")}
    return {**kept, **{f"tags.{name}": "''" for name, value in run.tags.items() if value == ""}}


def _values(runs: Iterable[TrackedRun]) -> Iterator[_Row]:
    for run in runs:
        run_id = json.dumps(run.key) if len(run.key) > 1 else run.key[0]
        for name, series in run.series.items():
            for place, value in enumerate(series.values):
                time = _moment(series.times[place]) if series.times else None
                row = {"run_id": run_id, "metric": name, "step": series.steps[place], "value": value}
                yield {**row, "time": time} if time else row


def _points(rows: Iterable[_Row], shown: str) -> dict[str, dict[str, TrackedSeries]]:
    axes: dict[str, dict[str, GrowingSeries]] = {}
    for number, row in enumerate(rows, start=2):
        try:
            axis = axes.setdefault(str(row["run_id"]), {}).setdefault(str(row["metric"]), GrowingSeries())
            axis.add(float(row["step"]), _time(row.get("time")), float(row["value"]))
        except (KeyError, ValueError) as error:
            raise InputError(f"row {number} of {shown} is no value of a run", found=str(error)) from None
    return {run: {name: axis.series() for name, axis in own.items()} for run, own in axes.items()}


def _time(cell: Any) -> int | None:
    """A moment: ISO 8601, or seconds or milliseconds since 1970."""
    if isinstance(cell, datetime):
        return unix_microseconds(cell)
    if cell is None:
        return None
    try:
        return unix_microseconds(datetime.fromisoformat(str(cell)))
    except ValueError:
        pass
    try:
        number = float(cell)
    except (TypeError, ValueError):
        return None
    if not math.isfinite(number) or number <= 0:
        return None
    return round(number * (1_000 if number > 1e11 else 1_000_000))


def _read(text: Any) -> Any:
    """What a cell says: JSON where it is some, else the text."""
    if not isinstance(text, str):
        return text
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {"True": True, "False": False}.get(text, text)
    return text if isinstance(found, float) and not math.isfinite(found) else found


class _Reading:
    """What the columns of a table of runs are: told by their names, or by whoever asks."""

    def __init__(self, rows: Sequence[_Row], chosen: Chosen, shown: str, series: Iterable[str] = ()) -> None:
        if not rows:
            raise InputError(f"{shown} has no rows")
        self._shown = shown
        self.known: set[str] = set()
        self.unknown_states: Counter[str] = Counter()
        columns = list(dict.fromkeys(name for row in rows for name in row))
        self._own = {kind: next((name for name in names if name in columns), "") for kind, names in _OWN.items()}
        self._kinds = {name: self._kind(name, chosen) for name in columns if name not in self._own.values()}
        self._refuse_missing(chosen, columns, series)
        if "metrics" not in self._kinds.values() and not (chosen.metrics or _TEXTS in columns or self._own["run"]):
            numbers = [name for name in self._kinds if all(number_of(_read(row.get(name))) is not None for row in rows)]
            raise InputError(
                f"which columns of {shown} are results is not said",
                found=f"columns: {', '.join(columns)}",
                allowed="columns named metrics.X, or --metric NAME for each result; all others are parameters",
                hint=f"isorun import {Path(shown).suffix[1:] or 'csv'}:{shown} --metric {(numbers or columns)[-1]}",
            )

    def _refuse_missing(self, chosen: Chosen, columns: Sequence[str], series: Iterable[str]) -> None:
        """What is asked for and no column is called. A metric may be in a column metrics.X, or in a table of series."""
        named = [name for name in columns if self._kinds.get(name) == "metrics"]
        metrics = {*named, *map(_called, named), *series}
        for name in (*chosen.metrics, *chosen.params):
            if name not in (metrics if name in chosen.metrics else columns):
                what = "is no result" if name in columns else "is no column"
                raise InputError(f"{name!r} {what} of {self._shown}", allowed=known_names(name, columns))

    @staticmethod
    def _kind(name: str, chosen: Chosen) -> str:
        if name in chosen.metrics:
            return "metrics"
        return next((kind for start, kind in _PREFIXES.items() if name.startswith(start)), "params")

    def run(self, row: _Row, points: Mapping[str, Mapping[str, TrackedSeries]]) -> TrackedRun:
        """The run of a row."""
        parts: dict[str, dict[str, Any]] = {"params": {}, "tags": {}, "metrics": {}}
        left_out = _read(row.get(self._own["left_out"], "[]"))
        dropped = [str(item) for item in left_out] if isinstance(left_out, list) else []
        for name, kind in self._kinds.items():
            if name not in row or name == _TEXTS:
                continue
            self._put(parts, kind, _called(name), row[name], dropped)
        texts = _read(row.get(_TEXTS, "[]"))
        for name in texts if isinstance(texts, list) else []:
            parts["params"][name] = str(row[f"params.{name}"])
        run_id = str(row.get(self._own["run"], "")) or hashlib.sha256(_canonical(row)).hexdigest()[:16]
        self.known.add(run_id)
        status = str(row.get(self._own["status"], "finished")).strip().lower()
        if status not in _STATES and status not in _GOING:
            self.unknown_states[status] += 1
        started, ended = (self._moment(row, kind, dropped) for kind in ("start", "end"))
        return TrackedRun(
            key=_key(run_id),
            experiment=str(row.get(self._own["experiment"]) or Path(self._shown).stem),
            name=str(row.get(self._own["name"], "")),
            state=_STATES.get(status),
            reason=str(row.get(self._own["reason"], "")),
            started=started,
            ended=ended,
            params=parts["params"],
            tags={name: "" if value == "''" else str(value) for name, value in parts["tags"].items()},
            series=points.get(run_id, {}),
            results=parts["metrics"],
            host=str(row.get(self._own["host"], "")),
            commit=str(row.get(self._own["commit"], "")),
            left_out=tuple(dropped),
        )

    def _moment(self, row: _Row, kind: str, dropped: list[str]) -> int | None:
        """A time of the run; what is there and is none is named."""
        cell = row.get(self._own[kind])
        found = _time(cell)
        if cell is not None and found is None:
            dropped.append(f"what {self._own[kind]} holds, which is no time")
        return found

    @staticmethod
    def _put(parts: dict[str, dict[str, Any]], kind: str, name: str, cell: Any, dropped: list[str]) -> None:
        if kind == "metrics":
            try:
                parts[kind][name] = float(cell)
            except (TypeError, ValueError):
                dropped.append(f"what {name} holds, which is no number")
        else:
            parts[kind][name] = cell if kind == "tags" else _read(cell)


def _called(column: str) -> str:
    """What a column is about: metrics.acc is acc."""
    start = next((start for start in _PREFIXES if column.startswith(start)), "")
    return column.removeprefix(start)


def _key(run_id: str) -> tuple[str, ...]:
    found = _read(run_id)
    whole = isinstance(found, list) and found and all(isinstance(part, str) for part in found)
    return tuple(found) if whole else (run_id,)


def _canonical(row: _Row) -> bytes:
    return json.dumps({name: str(cell) for name, cell in row.items()}, sort_keys=True).encode()
