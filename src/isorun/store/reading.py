"""Records from rows: all parts of many records at once."""

from __future__ import annotations

import base64
import dataclasses
import json
import sqlite3
import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from isorun.store.axes import PackedAxis, unpack_axes
from isorun.store.columns import integer_from_column, number_from_column, text_from_column
from isorun.study.records import RunRecord, Series

__all__ = ["finished_cells", "read_records", "read_run_ids"]

_ALL_RUNS = "SELECT id FROM runs"
_RUNS_OF_CELLS = """
SELECT id FROM runs WHERE state = 'finished' AND cell IN (SELECT value FROM json_each(:cells))
UNION ALL
SELECT id FROM runs WHERE state <> 'finished' AND cell IN (SELECT value FROM json_each(:cells))
"""
_ROWS = """
SELECT runs.id, attempt, cell_groups.content, seed, repeat, state, exit_code, signal, launch, seed_used, started_at,
    wall_seconds, cpu_seconds, peak_memory_bytes, runs.environment, code, sources, digest_names, digests,
    document, log_tail
FROM runs JOIN cell_groups ON cell_groups.id = cell_group
WHERE runs.id IN (SELECT value FROM json_each(:runs)) ORDER BY cell, attempt
"""


def finished_cells(connection: sqlite3.Connection) -> set[str]:
    """The ids of the cells that have a finished record in the database."""
    return {cell for (cell,) in connection.execute("SELECT cell FROM runs WHERE state = 'finished'")}


def read_run_ids(connection: sqlite3.Connection) -> set[str]:
    """The ids of all runs in the database."""
    return {f"{cell}-{attempt}" for cell, attempt in connection.execute("SELECT cell, attempt FROM runs")}


def read_records(connection: sqlite3.Connection, cell_ids: Iterable[str] | None = None) -> list[RunRecord]:
    """The records of the given cells, or all, ordered by cell and attempt; to be called within a transaction."""
    if cell_ids is None:
        chosen = connection.execute(_ALL_RUNS)
    else:
        chosen = connection.execute(_RUNS_OF_CELLS, {"cells": json.dumps(sorted(set(cell_ids)))})
    return _RecordReader(connection, [run for (run,) in chosen]).records()


class _RecordReader:
    """Reads the parts of the given runs, then puts each record together."""

    def __init__(self, connection: sqlite3.Connection, runs: list[int]) -> None:
        self._connection = connection
        self._runs = {"runs": json.dumps(runs)}
        self._documents: dict[int, Any] = {}
        self._environments: dict[int, Mapping[str, Any]] = {}
        self._series = self._read_series()
        self._predictions = self._read_predictions()

    def records(self) -> list[RunRecord]:
        return [self._record(row) for row in self._connection.execute(_ROWS, self._runs).fetchall()]

    def _record(self, row: tuple[Any, ...]) -> RunRecord:
        (run, attempt, group, seed, repeat, state, exit_code, signal, launch, seed_used) = row[:10]
        (started_at, wall, cpu, memory, environment, code, sources) = row[10:17]
        (digest_names, digests, document, log_tail) = row[17:]
        remaining = json.loads(document)
        content = {
            "cell": {**self._document(group), "seed": integer_from_column(seed), "repeat": repeat},
            "attempt": attempt,
            "state": state,
            "exit_code": exit_code,
            "signal": text_from_column(signal),
            "reason": remaining.get("reason", ""),
            "launch": text_from_column(launch),
            "seed_used": integer_from_column(seed_used),
            "started_at": text_from_column(started_at),
            "wall_seconds": number_from_column(wall),
            "cpu_seconds": number_from_column(cpu),
            "peak_memory_bytes": memory,
            "results": remaining.get("results", {}),
            "per_class": remaining.get("per_class", {}),
            "series": {},
            "predictions": self._predictions[run],
            "digests": {**self._digests(digest_names, digests), **remaining.get("digests", {})},
            "environment": self._environment(environment),
            "code": self._document(code),
            "sources": self._document(sources),
            "seeded": remaining.get("seeded", ()),
            "notes": remaining.get("notes", ()),
            "log_tail": zlib.decompress(log_tail).decode("utf-8", "surrogatepass") if log_tail else "",
        }
        return dataclasses.replace(RunRecord.from_json(content), series=self._series[run])

    def _document(self, number: int) -> Any:
        if number not in self._documents:
            row = self._connection.execute("SELECT content FROM documents WHERE id = ?", (number,)).fetchone()
            self._documents[number] = json.loads(row[0])
        return self._documents[number]

    def _environment(self, number: int) -> Mapping[str, Any]:
        """Put a document that was split back together, once for all runs that share it."""
        if number not in self._environments:
            split = self._document(number)
            whole = {key: dict(value) if isinstance(value, dict) else value for key, value in split["rest"].items()}
            for key, name, part in split["parts"]:
                whole[key][name] = self._document(part)
            self._environments[number] = whole
        return self._environments[number]

    def _read_series(self) -> defaultdict[int, dict[str, Series]]:
        axes = self._read_axes()
        rows = self._connection.execute(
            "SELECT run, name, axis, content FROM series JOIN names ON names.id = metric "
            "WHERE run IN (SELECT value FROM json_each(:runs))",
            self._runs,
        )
        found: defaultdict[int, dict[str, Series]] = defaultdict(dict)
        for run, metric, axis, content in rows:
            values = np.frombuffer(content, dtype="<f8").tolist()
            found[run][text_from_column(metric)] = Series(*axes[axis], tuple(values))
        return found

    def _read_axes(self) -> dict[int, tuple[tuple[float, ...], tuple[float, ...]]]:
        rows = self._connection.execute(
            "SELECT id, points, first_step, stride, steps, exponent, first_tick, seconds FROM axes "
            "WHERE id IN (SELECT axis FROM series WHERE run IN (SELECT value FROM json_each(:runs)))",
            self._runs,
        ).fetchall()
        unpacked = unpack_axes([PackedAxis(*row[1:]) for row in rows])
        steps, seconds, ends = unpacked.steps.tolist(), unpacked.seconds.tolist(), unpacked.offsets.tolist()
        return {
            row[0]: (tuple(steps[start:end]), tuple(seconds[start:end]))
            for row, (start, end) in zip(rows, pairwise(ends), strict=True)
        }

    def _digests(self, names: int, content: bytes) -> dict[str, str]:
        found, start = {}, 0
        for name, size in self._document(names):
            found[name] = content[start : start + size].hex()
            start += size
        return found

    def _read_predictions(self) -> defaultdict[int, list[dict[str, Any]]]:
        rows = self._connection.execute(
            "SELECT run, description, content FROM predictions "
            "WHERE run IN (SELECT value FROM json_each(:runs)) ORDER BY id",
            self._runs,
        )
        found: defaultdict[int, list[dict[str, Any]]] = defaultdict(list)
        for run, description, content in rows:
            data = {} if content is None else {"data": base64.b64encode(content).decode()}
            found[run].append({**json.loads(description), **data})
        return found
