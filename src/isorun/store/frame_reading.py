"""Parts of a frame straight from the database, without making records in between."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from typing import Any

from isorun.store.axes import PackedAxis
from isorun.store.columns import integer_from_column, number_from_column, text_from_column
from isorun.store.frame import FrameParts, RunRow, SeriesColumns

__all__ = ["group_names", "read_parts"]

_RUNS = """
SELECT id, cell, attempt, cell_group, seed, repeat, state, started_at, wall_seconds, cpu_seconds, peak_memory_bytes
FROM runs ORDER BY cell, attempt
"""
_AXES = "SELECT id, points, first_step, stride, steps, exponent, first_tick, seconds FROM axes"
_AXES_OF_METRICS = """
SELECT id, points, first_step, stride, steps, exponent, first_tick, seconds FROM axes
WHERE id IN (SELECT axis FROM series WHERE metric IN (SELECT value FROM json_each(?)))
"""
_SERIES = "SELECT run, metric, axis, content FROM series"
_SERIES_OF_METRICS = """
SELECT run, metric, axis, content FROM series WHERE metric IN (SELECT value FROM json_each(?))
"""


def read_parts(connection: sqlite3.Connection, metrics: frozenset[str] | None) -> FrameParts:
    """Runs, and their series of the given metrics or of all; to be called within a transaction."""
    names = _names(connection)
    runs, places = _read_runs(connection)
    axes, axis_places = _read_axes(connection, names, metrics)
    rows = _chosen(connection, _SERIES, _SERIES_OF_METRICS, names, metrics).fetchall()
    series = SeriesColumns(
        runs=[places[row[0]] for row in rows],
        metrics=[names[row[1]] for row in rows],
        axes=[axis_places[row[2]] for row in rows],
        contents=[row[3] for row in rows],
    )
    return FrameParts(runs, axes, series)


def _names(connection: sqlite3.Connection) -> dict[int, str]:
    return {number: text_from_column(name) for number, name in connection.execute("SELECT id, name FROM names")}


def group_names(connection: sqlite3.Connection) -> dict[int, tuple[str, ...]]:
    """Approach, config, environment and level of each group of cells."""
    rows = connection.execute("SELECT id, approach, config, environment, level FROM cell_groups")
    return {number: tuple(map(text_from_column, group)) for number, *group in rows}


def _read_runs(connection: sqlite3.Connection) -> tuple[list[RunRow], dict[int, int]]:
    """The runs, and where in the list each run's row id lies."""
    groups = group_names(connection)
    rows = connection.execute(_RUNS).fetchall()
    return [_run_row(groups, row) for row in rows], {row[0]: place for place, row in enumerate(rows)}


def _run_row(groups: Mapping[int, tuple[str, ...]], row: tuple[Any, ...]) -> RunRow:
    _, cell, attempt, group, seed, repeat, state, started_at, wall, cpu, memory = row
    approach, config, environment, level = groups[group]
    return RunRow(
        f"{cell}-{attempt}",
        cell,
        approach,
        config,
        environment,
        level,
        integer_from_column(seed),
        repeat,
        attempt,
        state,
        text_from_column(started_at),
        number_from_column(wall),
        number_from_column(cpu),
        memory,
    )


def _read_axes(
    connection: sqlite3.Connection, names: Mapping[int, str], metrics: frozenset[str] | None
) -> tuple[list[PackedAxis], dict[int, int]]:
    """The axes, and where in the list each axis's row id lies."""
    rows = _chosen(connection, _AXES, _AXES_OF_METRICS, names, metrics).fetchall()
    return [PackedAxis(*row[1:]) for row in rows], {row[0]: place for place, row in enumerate(rows)}


def _chosen(
    connection: sqlite3.Connection, of_all: str, of_some: str, names: Mapping[int, str], metrics: frozenset[str] | None
) -> sqlite3.Cursor:
    if metrics is None:
        return connection.execute(of_all)
    return connection.execute(of_some, (json.dumps([number for number, name in names.items() if name in metrics]),))
