"""Metrics that experiment trackers keep in files, and outputs of notebooks; read without the trackers' own packages.

MLflow (a file for each metric, or SQLite), Weights & Biases (offline: a log of records), trackio (SQLite), and the
cells of an executed notebook, whose text is read like a training's output. Whatever a file holds, nothing of it is
executed, reading is bounded, and what cannot be read gives a note.
"""

from __future__ import annotations

import json
import math
import sqlite3
import struct
import zlib
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, Final
from urllib.parse import quote

from isorun.sources import Found, merged
from isorun.sources.files import LARGEST_FILE, MOST_ROWS, Columns, FileRead, limit_note, only_noted
from isorun.sources.objects import flattened
from isorun.sources.tensorboard import MalformedMessage, TornRecord, fields
from isorun.study import Sources
from isorun.study.records import Note

__all__ = [
    "DATABASE",
    "WANDB_LOG",
    "mlflow_row",
    "opened_database",
    "read_database",
    "read_mlflow_metric",
    "read_notebook",
    "read_wandb",
    "wandb_records",
]

DATABASE: Final = b"SQLite format 3\0"
WANDB_LOG: Final = b":W&B"
"""What files of these kinds begin with."""

_CLOCK_SLACK_SECONDS: Final = 1.0


def _unreadable(file: FileRead, error: Exception) -> Found:
    why = getattr(error, "strerror", None) or str(error)[:80]
    return only_noted("files.unreadable", f"{file.shown} cannot be read: {why}")


# MLflow's files: one a metric, named as it, each line "milliseconds value step".


def read_mlflow_metric(path: Path, file: FileRead) -> Found:
    """The values of one metric."""
    name = path.as_posix().rpartition("/metrics/")[2]
    columns = Columns(file)
    try:
        if path.stat().st_size > LARGEST_FILE:
            return only_noted("files.too-large", f"{file.shown} is larger than {LARGEST_FILE // 2**20} MiB; not read")
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
    except OSError as error:
        return _unreadable(file, error)
    for number, line in enumerate(lines[:MOST_ROWS], start=1):
        if not line.endswith("\n") and not file.whole:
            continue
        row = mlflow_row(line.split())
        if row and _is_of_this_run(row[0], file):
            columns.add_row(number, {name: row[1], "step": row[2], "timestamp": row[0]})
    return _limited(columns.found(), len(lines), file)


def _limited(found: Found, rows: int, file: FileRead, which: str = "first") -> Found:
    return replace(found, notes=(*found.notes, *limit_note(rows, MOST_ROWS, file.shown, which)))


def mlflow_row(words: list[str]) -> tuple[float, float, float] | None:
    """Seconds since 1970, value and step; versions differ in what follows."""
    try:
        return (int(words[0]) / 1000, float(words[1]), float(words[2]) if len(words) > 2 else 0.0)
    except (ValueError, IndexError, OverflowError):
        return None


def _is_of_this_run(unix: float, file: FileRead) -> bool:
    return file.since - _CLOCK_SLACK_SECONDS <= unix < math.inf


# SQLite: MLflow's database, and trackio's.

_MOST_STEPS: Final = 50_000
"""Of a thousand instructions of SQLite's machine each: some seconds, whatever a database makes of a question."""
_LONGEST_TEXT: Final = 1 << 20
_BUSY_SECONDS: Final = 0.2
_MLFLOW: Final = frozenset(["key", "value", "timestamp", "run_uuid", "step", "is_nan"])
_TRACKIO: Final = frozenset(["run_name", "timestamp", "step", "metrics"])


def read_database(path: Path, file: FileRead) -> Found:
    """The metrics of a database of MLflow or trackio that were logged since the run began."""
    try:
        with path.open("rb") as opened:
            if opened.read(16) != DATABASE:
                return only_noted("files.no-metrics", f"{file.shown} is no SQLite database")
        try:
            with opened_database(path) as database:
                return _ask(database, file)
        except sqlite3.OperationalError:  # somebody holds a lock, or its log cannot be opened
            with opened_database(path, without_log=True) as database:
                return _ask(database, file)
    except (OSError, sqlite3.Error, ValueError, OverflowError) as error:  # its words on what is damaged may be no text
        return _unreadable(file, error)


@contextmanager
def opened_database(
    path: Path,
    *,
    without_log: bool = False,
    steps: int = _MOST_STEPS,
    longest: int = _LONGEST_TEXT,
    patience: float = _BUSY_SECONDS,
) -> Iterator[sqlite3.Connection]:
    """A database that somebody else wrote, for reading alone: what it asks for is bounded, and it can call nothing.

    without_log: as its file is now, whoever writes to it. Where no log is left, nothing is made beside it either.
    steps: of a thousand instructions each, for all that is asked. longest: text. patience: seconds to wait for writers.
    """
    log = Path(f"{path}-wal")
    has_log = not without_log and log.is_file() and log.stat().st_size > 0
    place = f"file:{quote(str(path.absolute()))}?{'mode=ro' if has_log else 'mode=ro&immutable=1'}"
    with closing(sqlite3.connect(place, uri=True, timeout=patience)) as database:
        left = iter(range(steps))
        database.set_progress_handler(lambda: next(left, None) is None, 1_000)
        database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, longest)
        database.text_factory = lambda data: data.decode("utf-8", "replace")
        database.execute("PRAGMA trusted_schema = OFF")  # a schema may call functions
        yield database


def _ask(database: sqlite3.Connection, file: FileRead) -> Found:
    known = database.execute("SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'metrics'")
    if not known.fetchone()[0]:  # a view of that name may be any program
        return only_noted("files.no-metrics", f"{file.shown} has no table of metrics")
    names = {row[1] for row in database.execute("PRAGMA table_info(metrics)")}
    if names >= _MLFLOW:
        return _of_runs(_mlflow_rows(database, file), file, "first")
    if names >= _TRACKIO:
        return _of_runs(_trackio_rows(database, file), file, "last")
    return only_noted("files.no-metrics", f"{file.shown} has a table of metrics that neither MLflow nor trackio made")


_Rows = Iterator[tuple[str, dict[str, Any]]]


def _mlflow_rows(database: sqlite3.Connection, file: FileRead) -> _Rows:
    asked = (
        "SELECT run_uuid, key, value, timestamp, step, is_nan FROM metrics WHERE timestamp >= ? ORDER BY rowid LIMIT ?"
    )
    since = int((file.since - _CLOCK_SLACK_SECONDS) * 1000)
    for run, key, value, milliseconds, step, is_nan in database.execute(asked, (since, MOST_ROWS)):
        if isinstance(milliseconds, int) and isinstance(value, int | float):
            yield str(run), {str(key): math.nan if is_nan else value, "step": step, "timestamp": milliseconds / 1000}


def _trackio_rows(database: sqlite3.Connection, file: FileRead) -> _Rows:
    asked = "SELECT run_name, timestamp, step, metrics FROM metrics ORDER BY id DESC LIMIT ?"
    rows = []
    for run, moment, step, text in database.execute(asked, (MOST_ROWS,)):
        unix = _unix(moment)
        if not _is_of_this_run(unix, file):
            break
        values = _object(text)
        rows.append((str(run), {**dict(flattened(values)), "step": step, "timestamp": unix}))
    yield from reversed(rows)


def _unix(moment: Any) -> float:
    try:
        return datetime.fromisoformat(str(moment)).timestamp()
    except (ValueError, OverflowError, OSError):
        return -math.inf


def _object(text: Any) -> Mapping[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _of_runs(rows: _Rows, file: FileRead, kept: str) -> Found:
    """The metrics of all runs of a tracker that are new. Where several have one name, nobody knows which is meant.

    kept: which of more rows than are read these are, the first or the last.
    """
    runs: dict[str, Columns] = {}
    number = 0
    for number, (run, row) in enumerate(rows, start=1):
        runs.setdefault(run, Columns(replace(file, unasked=False))).add_row(number, row)
    parts = [columns.found() for columns in runs.values()]
    names = [name for part in parts for name in part.series]
    doubled = sorted({name for name in names if names.count(name) > 1})
    notes = [
        Note("files.left-out", f"left out: {name}: {len(parts)} runs in {file.shown} have it, all of this training")
        for name in doubled
    ]
    found = merged(*(part.without(doubled) for part in parts))
    told = replace(found, results={}, notes=(*notes, *found.notes))
    return _limited(told, number + 1, file, kept)  # as many as were asked for: there may be more


# Weights & Biases: records of protocol buffers in the framing of LevelDB's log, in blocks of 32 KiB.

_FILE_HEADER: Final = 7
_BLOCK: Final = 32_768
_RECORD_HEADER: Final = struct.Struct("<IHB")
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4
_LONGEST_RECORD: Final = 1 << 24
_LONGEST_NUMBER: Final = 40
_HISTORY, _SUMMARY = 2, 3
_ITEM, _KEY, _NESTED_KEY, _VALUE_JSON = 1, 1, 2, 16
_OWN: Final = "_wandb"


def read_wandb(path: Path, file: FileRead) -> Found:
    """The history of a run that was logged offline, and what its summary has besides."""
    columns, notes = Columns(replace(file, unasked=False)), []
    summary: dict[str, float] = {}
    try:
        with path.open("rb") as opened:
            if opened.read(_FILE_HEADER)[:4] != WANDB_LOG:
                return only_noted("files.no-metrics", f"{file.shown} is no log of Weights & Biases")
            for number, record in enumerate(wandb_records(opened), start=1):
                if number > MOST_ROWS:
                    notes += limit_note(number, MOST_ROWS, file.shown)
                    break
                for kind, _, content in fields(record):
                    if kind == _HISTORY and isinstance(content, bytes):
                        columns.add_row(number, dict(_items(content)))
                    elif kind == _SUMMARY and isinstance(content, bytes):
                        summary |= dict(_items(content))
    except (TornRecord, MalformedMessage) as error:
        notes.append(Note("files.torn", f"{file.shown}: {error}; what follows is not read"))
    except OSError as error:
        return _unreadable(file, error)
    found = columns.found()
    alone = Columns(replace(file, unasked=False))
    alone.add_row(1, {name: value for name, value in summary.items() if name not in found.series})
    last = alone.found(always_results=True)
    return Found(
        {**found.series, **last.series},
        last.results,
        {**found.origins, **last.origins},
        {**found.examples, **last.examples},
        (*notes, *found.notes, *last.notes),
    )


def wandb_records(file: BinaryIO) -> Iterator[bytes]:
    """Records that are whole; raises TornRecord where one is not."""
    position, size = _FILE_HEADER, 0
    parts: list[bytes] = []
    while True:
        left = _BLOCK - position % _BLOCK
        if left < _RECORD_HEADER.size:
            position += len(file.read(left))
            continue
        header = file.read(_RECORD_HEADER.size)
        if not header or not header.strip(b"\0"):
            return
        if len(header) < _RECORD_HEADER.size:
            raise TornRecord(f"byte {position}: the file ends within a record")
        checksum, length, kind = _RECORD_HEADER.unpack(header)
        data = file.read(length)
        if len(data) < length or zlib.crc32(data, zlib.crc32(bytes([kind]))) != checksum:
            raise TornRecord(f"byte {position}: a record is not whole, or its checksum is wrong")
        position += _RECORD_HEADER.size + length
        if kind in (_FULL, _FIRST):
            parts, size = [], 0
        size += length
        if size <= _LONGEST_RECORD:  # of a longer one nothing is kept
            parts.append(data)
        if kind in (_FULL, _LAST) and size <= _LONGEST_RECORD:
            yield b"".join(parts)


def _items(message: bytes) -> Iterator[tuple[str, float]]:
    """The numbers of a history or a summary, nested names joined by "/"."""
    for number, _, item in fields(message):
        if number != _ITEM or not isinstance(item, bytes):
            continue
        names, value = [], None
        for part, _, content in fields(item):
            if part in (_KEY, _NESTED_KEY) and isinstance(content, bytes):
                names.append(content.decode("utf-8", "replace"))
            elif part == _VALUE_JSON and isinstance(content, bytes):
                value = _number(content)
        if names and names[0] != _OWN and value is not None:
            yield "/".join(names), value


def _number(text: bytes) -> float | None:
    if len(text) > _LONGEST_NUMBER:
        return None
    try:
        value = json.loads(text)
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
    except (ValueError, OverflowError, RecursionError):
        return None


# Notebooks.

_MOST_LINES: Final = 200_000


def read_notebook(path: Path, file: FileRead) -> Found:
    """What the cells of an executed notebook printed and showed, read like a training's output."""
    from isorun.sources.lines import LineMetrics  # noqa: PLC0415  only where there is a notebook

    try:
        if path.stat().st_size > LARGEST_FILE:
            return only_noted("files.too-large", f"{file.shown} is larger than {LARGEST_FILE // 2**20} MiB; not read")
        notebook = json.loads(path.read_text(encoding="utf-8", errors="replace"))
    except (OSError, ValueError, RecursionError) as error:
        return _unreadable(file, error)
    reader = LineMetrics(Sources())
    more: list[Note] = []
    for number, line in enumerate(_lines_of(notebook)):
        if number >= _MOST_LINES:
            more = limit_note(number + 1, _MOST_LINES, file.shown)
            break
        reader.feed(line, file.modified - file.since)
    found = reader.finish()
    origins = dict.fromkeys(found.origins, f"file: {file.shown}")
    return replace(found, origins=origins, notes=(*more, *found.notes))


def _lines_of(notebook: Any) -> Iterator[str]:
    for cell in _listed(notebook, "cells"):
        for output in _listed(cell, "outputs"):
            if not isinstance(output, dict):
                continue
            shown = output.get("data")
            text = output.get("text") if output.get("output_type") == "stream" else None
            if text is None and isinstance(shown, dict):
                text = shown.get("text/plain")
            pieces = [text] if isinstance(text, str) else text if isinstance(text, list) else []
            yield from "".join(piece for piece in pieces if isinstance(piece, str)).replace("\r", "\n").split("\n")


def _listed(holder: Any, name: str) -> list[Any]:
    found = holder.get(name) if isinstance(holder, dict) else None
    return found if isinstance(found, list) else []
