"""trackio: a SQLite database a project, or the Parquet files that it exports, read without trackio.

trackio:PROJECT (in TRACKIO_DIR, or where trackio keeps them), trackio:FILE.db, trackio:FILE.parquet, or a folder of
such files.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from isorun.errors import InputError, MissingExtra, known_names
from isorun.share.trackers import (
    AbstractTracker,
    Chosen,
    GrowingSeries,
    TrackedRun,
    left_out_times,
    number_of,
    shown_where,
    unix_microseconds,
)
from isorun.share.trackers.foreign_files import asked_database, has_tables
from isorun.sources.objects import flattened
from isorun.study.records import RunState

__all__ = ["Trackio"]

_ASIDE: Final = ("_system", "_configs", "_traces", "_artifacts", "_artifact_versions", "_artifact_aliases", "_links")
_OF_ROWS: Final = frozenset(("id", "run_id", "run_name", "timestamp", "step", "log_id", "space_id", "created_at"))
_ASIDE_TABLES: Final = {
    "system_metrics": "system metrics",
    "traces": "traces",
    "alerts": "alerts",
    "run_artifact_links": "links to artifacts",
    "external_run_artifact_links": "links to artifacts of other projects",
    "pending_uploads": "files that wait to be uploaded",
}
"""Tables of runs whose rows have no place in one, with what they hold."""
_DAMAGED: Final = {"is no JSON": True}
_Row = Mapping[str, Any]
_Beside = dict[str, list[str]]


class Trackio(AbstractTracker):
    """Runs of trackio. An experiment is a project."""

    name = "trackio"
    where_hint = "trackio:PROJECT, trackio:FILE.db or trackio:FILE.parquet"

    def read(self, chosen: Chosen) -> Iterator[TrackedRun]:
        """Every run, in the order in which they began."""
        projects = {path.stem: path for path in self._files()}
        wanted = chosen.only({name: name for name in projects}, "project", self.place)
        silent = 0
        for name in sorted(wanted):
            path = projects[name]
            kept = _parquet(path) if path.suffix == ".parquet" else _database(path, self.where_hint)
            for run in sorted(_runs(name, *kept), key=lambda one: (one.started or 0, one.key)):
                silent += 1
                yield run
        if silent:
            self.notes.append(f"trackio does not tell how runs end: {silent} that may go on count as finished")

    def _files(self) -> list[Path]:
        path = Path(self.where)
        kept = Path(os.environ.get("TRACKIO_DIR") or Path.home() / ".cache" / "huggingface" / "trackio")
        if not path.exists() and path.name == self.where:
            if (kept / f"{self.where}.db").is_file():
                return [kept / f"{self.where}.db"]
            names = sorted(item.stem for item in kept.glob("*.db"))
            raise InputError(
                f"there is no project {self.where!r} of trackio in {shown_where(str(kept))}",
                allowed=known_names(self.where, names),
                hint="TRACKIO_DIR says where trackio keeps projects; a file may be named, too: trackio:FILE.db",
            )
        if path.is_file():
            return [path]
        found = [item for end in ("db", "parquet") for item in sorted(path.glob(f"*.{end}"))] if path.is_dir() else []
        found = [item for item in found if item.suffix == ".db" or not item.stem.endswith(_ASIDE)]
        if not found:
            raise InputError(f"there is no project of trackio in {shown_where(self.where)}", allowed=self.where_hint)
        return list({item.stem: item for item in reversed(found)}.values())


def _database(path: Path, allowed: str) -> tuple[list[_Row], list[_Row], _Beside]:
    with asked_database(path, "trackio's database") as database:
        has_tables(database, ("metrics",), shown_where(str(path)), "trackio", allowed)

        def rows(table: str, content: str) -> list[_Row]:
            asked = database.execute(f"SELECT * FROM {table} ORDER BY id")  # noqa: S608 - names of ours
            names = [column[0] for column in asked.description]
            if content not in names or "run_name" not in names:
                raise InputError(
                    f"{shown_where(str(path))} is no database of trackio", found=f"{table} has {', '.join(names)}"
                )
            return [_opened(dict(zip(names, row, strict=True)), content) for row in asked]

        tables = {row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        beside: _Beside = {}
        for table, what in _ASIDE_TABLES.items():
            columns = {row[1] for row in database.execute(f"PRAGMA table_info({table})")}
            named = [name for name in ("run_id", "run_name") if name in columns]
            if named:  # tables of older versions have one of the two alone
                asked = f"SELECT coalesce({', '.join([*named, 'NULL'])}), count(*) FROM {table} GROUP BY 1"  # noqa: S608
                for run_id, count in database.execute(asked):
                    beside.setdefault(str(run_id), []).append(left_out_times(what, count))
        return rows("metrics", "metrics"), rows("configs", "config") if "configs" in tables else [], beside


def _opened(row: dict[str, Any], content: str) -> _Row:
    """The row with what its JSON holds under `content`; what is none is named so."""
    try:
        found = json.loads(row[content] or "{}")
    except (ValueError, TypeError, RecursionError):
        found = None
    return {**row, content: found if isinstance(found, dict) else {}, **({} if isinstance(found, dict) else _DAMAGED)}


def _parquet(path: Path) -> tuple[list[_Row], list[_Row], _Beside]:
    try:
        import pyarrow as pa  # noqa: PLC0415  an extra
        import pyarrow.parquet as pq  # noqa: PLC0415
    except ImportError:
        raise MissingExtra("pyarrow", "tables", "reading Parquet files of trackio") from None
    parts: list[list[_Row]] = []
    beside = path.with_name(f"{path.stem}_configs.parquet")
    for file, content in ((path, "metrics"), (beside, "config")):
        try:
            rows = pq.read_table(file).to_pylist() if file.is_file() else []
        except (pa.ArrowException, OSError) as error:
            raise InputError(f"{shown_where(str(file))} cannot be read", found=str(error)[:200]) from None
        own = [{name: value for name, value in row.items() if name in _OF_ROWS} for row in rows]
        held = [{name: row[name] for name in row if name not in _OF_ROWS and row[name] is not None} for row in rows]
        parts.append([{**row, content: values} for row, values in zip(own, held, strict=True)])
    aside = [end for end in _ASIDE if end != "_configs" and path.with_name(f"{path.stem}{end}.parquet").is_file()]
    everywhere = [f"what {path.stem}{end}.parquet holds" for end in aside]
    return parts[0], parts[1], {_id(row): everywhere for row in (*parts[0], *parts[1])} if everywhere else {}


def _runs(project: str, rows: list[_Row], configs: list[_Row], beside: _Beside) -> Iterator[TrackedRun]:
    known = {_id(row): row["config"] for row in configs}
    found: dict[str, list[_Row]] = {name: [] for name in known}
    for row in rows:
        found.setdefault(_id(row), []).append(row)
    names = {_id(row): str(row.get("run_name", "")) for row in (*configs, *rows)}
    for run_id, own in found.items():
        damaged = sum(_DAMAGED.keys() <= row.keys() for row in (*own, *(row for row in configs if _id(row) == run_id)))
        also = [left_out_times("a row that is no JSON", damaged)] if damaged else []
        run = _run(project, run_id, names[run_id], own, known.get(run_id, {}))
        yield replace(run, left_out=(*run.left_out, *also, *beside.get(run_id, ())))


def _id(row: _Row) -> str:
    return str(row.get("run_id") or row.get("run_name"))


def _run(project: str, run_id: str, name: str, rows: list[_Row], config: Mapping[str, Any]) -> TrackedRun:
    axes: dict[str, GrowingSeries] = {}
    left_out: dict[str, int] = {}
    times = []
    for row in rows:
        time = _moment(row.get("timestamp"))
        times += [time] if time is not None else []
        for key, value in flattened(row["metrics"]):
            number = number_of(value)
            if number is None:
                left_out[key] = left_out.get(key, 0) + 1
            else:
                axes.setdefault(key, GrowingSeries()).add(float(row.get("step") or 0), time, number)
    own = {key: value for key, value in config.items() if not key.startswith("_")}
    tags = {
        f"trackio{key.lower()}".replace("_", ".", 1): str(value)
        for key, value in config.items()
        if key.startswith("_") and value is not None and key != "_Created"
    }
    began = _moment(config.get("_Created"))
    return TrackedRun(
        key=(project, run_id),
        experiment=project,
        name=name,
        state=RunState.FINISHED,
        started=began if began is not None else min(times, default=None),
        ended=max(times, default=None),
        params=own,
        tags=tags,
        series={key: axis.series() for key, axis in axes.items()},
        left_out=tuple(left_out_times(f"what was logged as {key}", count) for key, count in left_out.items()),
    )


def _moment(text: object) -> int | None:
    try:
        return unix_microseconds(text if isinstance(text, datetime) else datetime.fromisoformat(str(text)))
    except (ValueError, OverflowError):
        return None
