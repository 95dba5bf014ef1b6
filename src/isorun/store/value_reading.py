"""One metric of all finished runs, straight from the database and no more of it than is needed."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from typing import Any

import numpy as np

from isorun.store.columns import integer_from_column, text_from_column, text_to_column
from isorun.store.frame_reading import group_names
from isorun.store.group_statistics import RunValue
from isorun.study.records import number_from_json

__all__ = ["read_metric_names", "read_values"]

_WHOLE = """
SELECT cell_group, seed, repeat, content FROM runs LEFT JOIN series ON run = runs.id AND metric = ?
WHERE state = 'finished'
"""
_LAST = """
SELECT cell_group, seed, repeat, substr(content, -8) FROM runs LEFT JOIN series ON run = runs.id AND metric = ?
WHERE state = 'finished'
"""
_RESULTS = "SELECT cell_group, seed, repeat, document FROM runs WHERE state = 'finished'"


def read_values(connection: sqlite3.Connection, metric: str, point: str) -> list[RunValue]:
    """The metric's values of each finished run; to be called within a transaction."""
    rows = _result_rows(connection, metric) if point == "result" else _series_rows(connection, metric, point)
    groups = group_names(connection)
    return [(groups[group], integer_from_column(seed), repeat, content) for group, seed, repeat, content in rows]


def read_metric_names(connection: sqlite3.Connection) -> set[str]:
    """The metrics that any run in the database recorded, as a series or as a final value."""
    names = {text_from_column(name) for (name,) in connection.execute("SELECT name FROM names")}
    documents = connection.execute("SELECT document FROM runs")
    return names.union(*(json.loads(document).get("results", {}) for (document,) in documents))


def _series_rows(connection: sqlite3.Connection, metric: str, point: str) -> Iterable[tuple[Any, ...]]:
    number = connection.execute("SELECT id FROM names WHERE name = ?", (text_to_column(metric),)).fetchone()
    return connection.execute(_LAST if point == "last" else _WHOLE, number or (None,))


def _result_rows(connection: sqlite3.Connection, metric: str) -> Iterable[tuple[Any, ...]]:
    for group, seed, repeat, document in connection.execute(_RESULTS):
        value = json.loads(document).get("results", {}).get(metric)
        content = None if value is None else np.array([number_from_json(value)], dtype="<f8").tobytes()
        yield group, seed, repeat, content
