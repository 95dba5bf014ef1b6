"""Rows from records: one record into the tables of the database, shared parts once."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from isorun.store.axes import pack_axis
from isorun.store.columns import base64_to_bytes, hex_to_bytes, integer_to_column, text_to_column
from isorun.store.stored_form import canonical_json, content_digest
from isorun.store.uniqueness import KnownAttempt
from isorun.study.cells import Cell
from isorun.study.records import Predictions, RunRecord

__all__ = ["RecordWriter", "known_attempts"]

_SHARED_FROM_CHARACTERS = 120

_KNOWN = """
SELECT attempt, 1, content_digest FROM runs WHERE state = 'finished' AND cell = :cell
UNION ALL
SELECT attempt, 0, content_digest FROM runs WHERE state <> 'finished' AND cell = :cell
"""

_RUN = """
INSERT INTO runs (cell, attempt, cell_group, seed, repeat, state, exit_code, signal, launch, seed_used, started_at,
    wall_seconds, cpu_seconds, peak_memory_bytes, environment, code, sources, content_digest, digest_names, digests,
    document, log_tail)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""

_AXIS = """
INSERT INTO axes (points, first_step, stride, steps, exponent, first_tick, seconds) VALUES (?, ?, ?, ?, ?, ?, ?)
"""

_GROUP = """
INSERT INTO cell_groups (approach, config, environment, level, content) VALUES (?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING
"""


def known_attempts(connection: sqlite3.Connection, cell_id: str) -> list[KnownAttempt]:
    """The attempts at the cell that are in the database."""
    rows = connection.execute(_KNOWN, {"cell": cell_id})
    return [KnownAttempt(attempt, bool(finished), digest) for attempt, finished, digest in rows]


class RecordWriter:
    """Writes records within one transaction.

    It remembers the ids of shared parts, so it must not outlive a transaction that is rolled back.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._names: dict[str, int] = {}
        self._documents: dict[bytes, int] = {}

    def write(self, record: RunRecord, digest: bytes) -> None:
        """Write all parts of a record that is not in the database yet."""
        run = self._write_run(record, digest)
        self._write_series(run, record)
        for predictions in record.predictions:
            self._write_predictions(run, predictions)

    def _write_run(self, record: RunRecord, digest: bytes) -> int:
        cell = record.cell
        digests = _packable_digests(record)
        values = (
            cell.id,
            record.attempt,
            self._group(cell),
            integer_to_column(cell.seed),
            cell.repeat,
            str(record.state),
            record.exit_code,
            text_to_column(record.signal),
            text_to_column(record.launch),
            integer_to_column(record.seed_used),
            text_to_column(record.started_at),
            record.wall_seconds,
            record.cpu_seconds,
            record.peak_memory_bytes,
            self._split_document(record.environment),
            self._document(canonical_json(dict(record.code))),
            self._document(canonical_json(dict(record.sources))),
            digest,
            self._document(canonical_json([[name, len(value)] for name, value in digests.items()])),
            b"".join(digests.values()),
            canonical_json(_remaining(record)),
            zlib.compress(record.log_tail.encode("utf-8", "surrogatepass")) if record.log_tail else b"",
        )
        return _row_id(self._connection.execute(_RUN, values))

    def _write_series(self, run: int, record: RunRecord) -> None:
        axes: dict[tuple[tuple[float, ...], tuple[float, ...]], int] = {}
        for metric, series in record.series.items():
            shared = (series.steps, series.seconds)
            if shared not in axes:
                axes[shared] = _row_id(self._connection.execute(_AXIS, pack_axis(*shared)))
            self._connection.execute(
                "INSERT INTO series (run, metric, axis, content) VALUES (?, ?, ?, ?)",
                (run, self._name(metric), axes[shared], np.array(series.values, dtype="<f8").tobytes()),
            )

    def _write_predictions(self, run: int, predictions: Predictions) -> None:
        description = predictions.to_json()
        content = base64_to_bytes(predictions.data)
        if content is not None:
            del description["data"]
        self._connection.execute(
            "INSERT INTO predictions (run, description, content) VALUES (?, ?, ?)",
            (run, canonical_json(description), content),
        )

    def _group(self, cell: Cell) -> int:
        shared = {key: value for key, value in cell.to_json().items() if key not in {"id", "seed", "repeat"}}
        content = self._document(canonical_json(shared))
        self._connection.execute(_GROUP, (*map(text_to_column, cell.group), content))
        return _one(self._connection.execute("SELECT id FROM cell_groups WHERE content = ?", (content,)))

    def _name(self, name: str) -> int:
        if name not in self._names:
            column = text_to_column(name)
            self._connection.execute("INSERT INTO names (name) VALUES (?) ON CONFLICT DO NOTHING", (column,))
            self._names[name] = _one(self._connection.execute("SELECT id FROM names WHERE name = ?", (column,)))
        return self._names[name]

    def _split_document(self, document: Mapping[str, Any]) -> int:
        """Keep the large members of a two-level document each once, so that one that differs costs only itself."""
        rest: dict[str, Any] = {}
        parts: list[list[Any]] = []
        for key, members in document.items():
            if not isinstance(members, Mapping):
                rest[key] = members
                continue
            texts = {name: canonical_json(value) for name, value in members.items()}
            shared = {name for name, text in texts.items() if len(text) >= _SHARED_FROM_CHARACTERS}
            parts += [[key, name, self._document(texts[name])] for name in sorted(shared)]
            rest[key] = {name: value for name, value in members.items() if name not in shared}
        return self._document(canonical_json({"rest": rest, "parts": parts}))

    def _document(self, content: str) -> int:
        digest = content_digest(content)
        if digest not in self._documents:
            self._connection.execute(
                "INSERT INTO documents (hash, content) VALUES (?, ?) ON CONFLICT DO NOTHING", (digest, content)
            )
            rows = self._connection.execute("SELECT id FROM documents WHERE hash = ?", (digest,))
            self._documents[digest] = _one(rows)
        return self._documents[digest]


def _remaining(record: RunRecord) -> dict[str, Any]:
    """The parts of a record that have no table of their own; empty ones are left out."""
    content = record.to_json()
    parts = {key: content[key] for key in ("reason", "results", "per_class", "seeded", "notes")}
    packed = _packable_digests(record)
    other_digests = {name: value for name, value in record.digests.items() if name not in packed}
    return {key: value for key, value in {**parts, "digests": other_digests}.items() if value}


def _packable_digests(record: RunRecord) -> dict[str, bytes]:
    """The digests that are plain hexadecimal, as the bytes they stand for."""
    return {name: data for name, value in sorted(record.digests.items()) if (data := hex_to_bytes(value)) is not None}


def _row_id(cursor: sqlite3.Cursor) -> int:
    assert cursor.lastrowid is not None
    return cursor.lastrowid


def _one(cursor: sqlite3.Cursor) -> int:
    return int(cursor.fetchone()[0])
