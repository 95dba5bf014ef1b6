"""MLflow: its SQLite database, its folder of files (`mlruns`), or a running server; written by MLflow's own client.

mlflow:sqlite:///mlflow.db, mlflow:mlruns, mlflow:http://host:5000. Files are read without MLflow. Where infinities were
logged its database holds the largest numbers there are in their place, as its documentation says; they are read back.
"""

from __future__ import annotations

import math
import sqlite3
import sys
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from isorun.errors import InputError
from isorun.share.trackers import (
    AbstractTracker,
    Chosen,
    GrowingSeries,
    TrackedRun,
    WrittenRuns,
    shown_where,
)
from isorun.share.trackers.foreign_files import asked_database, has_tables
from isorun.share.trackers.mlflow_writing import ADDED_TAGS, fine_again, restored, write_by_client
from isorun.study.records import RunState

__all__ = ["Mlflow", "artifacts_elsewhere", "as_logged", "named_artifacts", "states_of_mlflow", "tracked_run"]

_MILLI: Final = 1_000
_LARGEST: Final = sys.float_info.max
_TABLES: Final = ("experiments", "runs", "metrics", "params", "tags")
_AT_ONCE: Final = 200
_ARTIFACTS_TOLD: Final = 20
DELETED: Final = "mlflow.lifecycleStage"
"""The tag of runs that were deleted, and were asked for all the same; MLflow has no tag of that name."""
_SERVED: Final = ("postgresql", "postgres", "mysql", "mssql", "databricks")


class Mlflow(AbstractTracker):
    """Runs of MLflow. An experiment is named by its name or its number."""

    name = "mlflow"
    where_hint = "mlflow:sqlite:///mlflow.db, mlflow:mlruns or mlflow:http://HOST:5000"
    writes = True
    keeps_deleted = True

    def read(self, chosen: Chosen) -> Iterator[TrackedRun]:
        """The runs, by experiment and in the order in which they began; those that were deleted where it is asked."""
        scheme = self.where.partition(":")[0].lower()
        if scheme in ("http", "https"):
            from isorun.share.trackers.mlflow_server import read_server  # noqa: PLC0415  only of a server

            yield from read_server(self, chosen)
            return
        if scheme.partition("+")[0] in _SERVED:
            raise InputError(
                f"{self.place} is no file that can be read",
                allowed=self.where_hint,
                hint="mlflow server --backend-store-uri URL, then isorun import mlflow:http://127.0.0.1:5000",
            )
        path = _path_of(self.where)
        if path.is_dir() and not (path / "mlflow.db").is_file():
            from isorun.share.trackers.mlflow_folder import read_folder  # noqa: PLC0415  only of a folder

            yield from read_folder(path, self, chosen)
            return
        yield from _read_database(path / "mlflow.db" if path.is_dir() else path, self, chosen)

    def count_deleted(self, deleted: int, chosen: Chosen) -> None:
        """Tell how many runs are deleted, and what became of them."""
        if not chosen.deleted:
            self.pass_over("runs that were deleted in MLflow", deleted, "left out; --deleted takes them, too")
        elif deleted:
            self.notes.append(f"runs that were deleted in MLflow: {deleted:,} among these, as --deleted says")

    def write(self, runs: Iterable[TrackedRun], chosen: Chosen) -> WrittenRuns:
        """New runs in the database, folder or server there, made by MLflow's client."""
        return write_by_client(self, runs, chosen)


def _path_of(where: str) -> Path:
    """The file or folder that MLflow's own way to write a place names."""
    if where.startswith("sqlite:///"):
        return Path(where.removeprefix("sqlite:///").partition("?")[0])
    if where.startswith("file:"):
        return Path(unquote(urlsplit(where).path or where.removeprefix("file:")))
    return Path(where)


def states_of_mlflow(status: object) -> tuple[RunState | None, str]:
    """How a run ended by MLflow's word or number, and its reason."""
    match status:
        case "FINISHED" | 3:
            return RunState.FINISHED, ""
        case "FAILED" | 4:
            return RunState.FAILED, "MLflow says that it failed"
        case "KILLED" | 5:
            return RunState.INTERRUPTED, "MLflow says that it was killed"
        case _:
            return None, ""


def tracked_run(
    *,
    run_id: str,
    experiment: str,
    name: str,
    status: object,
    times: tuple[object, object],
    params: Mapping[str, str],
    tags: Mapping[str, str],
    points: Mapping[str, GrowingSeries],
    left_out: Iterable[str] = (),
    uri: object = "",
    is_deleted: bool = False,
) -> TrackedRun:
    """A run of MLflow from what its database, files and server all know. times: its begin and end in milliseconds.

    uri: where its artifacts are.
    """
    state, reason = states_of_mlflow(status)
    own, kept = restored(tags)
    own = {**own, **({DELETED: "deleted"} if is_deleted else {})}
    started, ended = (time * _MILLI if isinstance(time, int) and time > 0 else None for time in times)
    found = TrackedRun(
        key=(run_id,),
        experiment=experiment,
        name=name or own.get("mlflow.runName", ""),
        state=state,
        reason=reason,
        started=started,
        ended=ended if state is not None else None,
        params=params,
        tags=own,
        series={key: axis.series() for key, axis in points.items()},
        commit=own.get("mlflow.source.git.commit", ""),
        left_out=tuple(left_out),
        artifacts_at=shown_where(str(uri or "")),
    )
    try:
        return _as_exported(found, kept) if kept else found
    except (
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        zlib.error,
    ):  # whoever may write tags may write this one
        return replace(found, left_out=(*found.left_out, "what an export of isorun kept in tags, which is damaged"))


def _as_exported(run: TrackedRun, kept: Mapping[str, Any]) -> TrackedRun:
    """The run as isorun exported it: with what MLflow has no place for. The id is MLflow's own."""
    names, untimed = kept.get("names", {}), kept.get("untimed", ())
    results = {name: float(value) for name, value in kept.get("results", {}).items()}
    series = {names.get(key, key): one for key, one in run.series.items()}
    series = {name: replace(one, times=one.times[:0]) if name in untimed else one for name, one in series.items()}
    final = {name for name, one in series.items() if name in results and len(one.values) == 1}
    state, has = kept.get("state"), kept.get("has", ())
    fine = kept.get("fine") or {"axes": [], "metrics": {}, "ends": [0, 0]}
    for name, axis in fine["metrics"].items():
        series[name] = replace(series[name], times=fine_again(series[name].times, fine["axes"][axis]))
    began, ended = (
        None if t is None else t + part for t, part in zip((run.started, run.ended), fine["ends"], strict=True)
    )
    return replace(
        run,
        started=began,
        state=RunState(state) if state in list(RunState) and run.state is not None else run.state,
        reason=str(kept.get("reason", "")),
        ended=None if kept.get("ended") else ended,
        params={**run.params, **kept.get("params", {})},
        tags={name: text for name, text in run.tags.items() if name not in ADDED_TAGS or name in has},
        series={name: one for name, one in series.items() if name not in final},
        results=results,
        host=str(kept.get("host", "")),
        commit=str(kept.get("commit") or run.commit),
    )


def _read_database(path: Path, tracker: Mlflow, chosen: Chosen) -> Iterator[TrackedRun]:
    shown = shown_where(str(path))
    with asked_database(path, "MLflow's database") as database:
        has_tables(database, _TABLES, shown, "MLflow", tracker.where_hint)
        experiments = _rows(database, "experiment_id, name, lifecycle_stage", "experiments")
        names = {str(number): str(name) for number, name, _ in experiments}
        gone = {str(number) for number, _, stage in experiments if stage == "deleted"}
        wanted = chosen.only(names, "experiment", shown)
        deleted = 0
        found = []
        columns = "run_uuid, name, user_id, status, start_time, end_time, lifecycle_stage, artifact_uri, experiment_id"
        for row in _rows(database, columns, "runs"):
            if str(row[-1]) in wanted:
                is_deleted = row[6] == "deleted" or str(row[-1]) in gone
                deleted += is_deleted
                found += [(*row[:6], is_deleted, *row[7:])] if chosen.deleted or not is_deleted else []
        tracker.count_deleted(deleted, chosen)
        tracker.pass_over("traces of MLflow's", _traces(database, wanted), "left out, which are no part of a run")
        found.sort(key=lambda row: (row[-1] or 0, row[4] or 0, str(row[0])))
        for place in range(0, len(found), _AT_ONCE):
            yield from _runs_of(database, found[place : place + _AT_ONCE], names)


def _rows(database: sqlite3.Connection, columns: str, table: str) -> list[tuple[Any, ...]]:
    return database.execute(f"SELECT {columns} FROM {table}").fetchall()  # noqa: S608 - names of ours


def _runs_of(
    database: sqlite3.Connection, rows: list[tuple[Any, ...]], names: Mapping[str, str]
) -> Iterator[TrackedRun]:
    ids = [row[0] for row in rows]
    points, params, tags = _points(database, ids), _texts(database, "params", ids), _texts(database, "tags", ids)
    beside = _beside(database, ids)
    for run_id, name, user, status, start, end, is_deleted, uri, experiment in rows:
        own = tags.get(run_id, {})
        yield tracked_run(
            run_id=str(run_id),
            experiment=names.get(str(experiment), str(experiment)),
            name=name or "",
            status=status,
            times=(start, end),
            params=params.get(run_id, {}),
            tags={**({"mlflow.user": user} if user and "mlflow.user" not in own else {}), **own},
            points=points.get(run_id, {}),
            left_out=(*_artifacts(uri, str(run_id)), *beside.get(run_id, ())),
            uri=uri,
            is_deleted=is_deleted,
        )


def _asked(database: sqlite3.Connection, sql: str, ids: list[str]) -> Iterator[tuple[Any, ...]]:
    return database.execute(sql.format(", ".join("?" * len(ids))), ids)


def _points(database: sqlite3.Connection, ids: list[str]) -> dict[str, dict[str, GrowingSeries]]:
    """By run, then metric: in the order in which they were logged."""
    found: dict[str, dict[str, GrowingSeries]] = {}
    asked = (
        "SELECT run_uuid, key, value, timestamp, step, is_nan FROM metrics "
        "WHERE run_uuid IN ({}) ORDER BY run_uuid, rowid"
    )
    for run_id, key, value, time, step, is_nan in _asked(database, asked, ids):
        axes = found.setdefault(run_id, {})
        axis = axes.get(key)
        if axis is None:
            axis = axes[key] = GrowingSeries()
        axis.add(step, time * _MILLI, math.nan if is_nan else as_logged(value))
    return found


def as_logged(value: float) -> float:
    """The value that was logged, of the one that MLflow keeps in its place."""
    return math.copysign(math.inf, value) if abs(value) == _LARGEST else value


def _traces(database: sqlite3.Connection, experiments: Collection[str]) -> int:
    """How many traces newer databases have of these experiments."""
    asked = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'trace_info'"
    if not database.execute(asked).fetchone()[0]:
        return 0
    rows = database.execute("SELECT experiment_id, count(*) FROM trace_info GROUP BY experiment_id").fetchall()
    return sum(count for number, count in rows if str(number) in experiments)


def _texts(database: sqlite3.Connection, table: str, ids: list[str]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    asked = f"SELECT run_uuid, key, value FROM {table} WHERE run_uuid IN ({{}}) ORDER BY key"  # noqa: S608
    for run_id, key, value in _asked(database, asked, ids):
        found.setdefault(run_id, {})[str(key)] = "" if value is None else str(value)
    return found


def _beside(database: sqlite3.Connection, ids: list[str]) -> dict[str, list[str]]:
    """Data sets and models that runs have, which newer databases know of."""
    known = {row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    found: dict[str, list[str]] = {}
    if {"inputs", "datasets"} <= known:
        asked = (
            "SELECT i.destination_id, d.name, d.digest FROM inputs i JOIN datasets d ON d.dataset_uuid = i.source_id "
            "WHERE i.destination_type = 'RUN' AND i.destination_id IN ({}) ORDER BY d.name"
        )
        for run_id, name, digest in _asked(database, asked, ids):
            found.setdefault(run_id, []).append(f"the data set {name} ({digest})")
    if "logged_models" in known:
        asked = "SELECT source_run_id, name FROM logged_models WHERE source_run_id IN ({}) ORDER BY name"
        for run_id, name in _asked(database, asked, ids):
            found.setdefault(run_id, []).append(f"the model {name}")
    return found


def _artifacts(uri: object, run_id: str) -> Iterator[str]:
    """The names of artifacts that lie in the folder of this run; what else an address may name is not looked at."""
    elsewhere = artifacts_elsewhere(uri)
    if elsewhere:
        yield elsewhere
        return
    path = Path(unquote(urlsplit(str(uri)).path) if str(uri).startswith("file:") else str(uri or ""))
    if path.parts[-2:] != (run_id, "artifacts"):
        return
    try:
        names = sorted(item.name for item in path.iterdir())
    except OSError:
        return
    yield from named_artifacts(names)


def artifacts_elsewhere(uri: object) -> str:
    """What is said of artifacts that no folder of this machine holds; empty where one may."""
    scheme, colon, _ = str(uri or "").partition(":")
    if not colon or scheme.lower() == "file" or not scheme.isascii() or "/" in scheme:
        return ""
    return f"its artifacts, if it has any ({scheme}:…, which is not looked into; every record has the address)"


def named_artifacts(names: Sequence[str]) -> Iterator[str]:
    """The first of these names, and how many more there are."""
    yield from (f"the artifact {name}" for name in names[:_ARTIFACTS_TOLD])
    if len(names) > _ARTIFACTS_TOLD:
        yield f"{len(names) - _ARTIFACTS_TOLD} more artifacts"
