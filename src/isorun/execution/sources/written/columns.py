"""Rows of a file in, series out: which column is the clock, which are metrics, and what was no number."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from isorun.execution.sources.found import Found
from isorun.execution.sources.text.structured import EPOCH_KEYS, STEP_KEYS, number_in
from isorun.study.records import Note, Series

__all__ = ["Columns", "FileTimes"]

_UNIX_TIMES = frozenset(["wall_time", "timestamp", "_timestamp", "unix_time", "unix"])
_SECONDS = frozenset(["seconds", "elapsed", "elapsed_seconds", "elapsed_time", "time_elapsed", "_runtime"])
_EARLIEST_UNIX_TIME = 1e9


@dataclass(frozen=True, slots=True)
class FileTimes:
    """When the run began and when the file was last written, in seconds since 1970."""

    since: float
    modified: float


@dataclass(frozen=True, slots=True)
class _Moment:
    line: int
    epoch: float | None
    step: float | None
    seconds: float


@dataclass(slots=True)
class _Column:
    """A column's numbers with their moments, and the first lines at which it held something else."""

    moments: list[_Moment] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    example: str = ""
    texts: int = 0
    first_text: tuple[int, str] = (0, "")
    first_not_finite: int = 0


class Columns:
    """Takes the rows of one file in order. Empty cells are allowed anywhere; nothing that is no number is guessed."""

    def __init__(self, shown: str, times: FileTimes) -> None:
        self._shown = shown
        self._times = times
        self._columns: dict[str, _Column] = {}
        self._rows = 0
        self._has_times = False
        self._has_clock = False

    def add_row(self, line: int, cells: Mapping[str, Any]) -> None:
        """Take in one row; line: where it stands in the file."""
        self._rows += 1
        clock = {str(name).lower(): number_in(cell) for name, cell in cells.items() if _is_clock(name)}
        moment = _Moment(line, _first(clock, EPOCH_KEYS), _first(clock, STEP_KEYS), self._seconds(clock))
        self._has_clock = self._has_clock or moment.epoch is not None or moment.step is not None
        for name, cell in cells.items():
            if name not in (None, "") and not _is_clock(name) and cell not in (None, ""):
                self._add_cell(str(name), cell, moment)

    def add_values(self, name: str, values: list[Any]) -> None:
        """Take in a whole metric given as one list of numbers."""
        for index, cell in enumerate(values):
            self._add_cell(name, cell, _Moment(1, None, float(index), self._seconds({})))
        self._has_clock = True

    def found(self, *, always_results: bool = False) -> Found:
        """The metrics of the file. always_results: single values are final ones, whatever clock stands beside them."""
        columns = {name: column for name, column in self._columns.items() if column.values}
        is_final = always_results or (self._rows == 1 and not self._has_clock)
        return Found(
            series={name: _series(column) for name, column in columns.items()},
            results={name: c.values[0] for name, c in columns.items() if is_final and len(c.values) == 1},
            origins=dict.fromkeys(columns, f"file: {self._shown}"),
            examples={name: column.example for name, column in columns.items()},
            notes=tuple(self._notes()),
        )

    def _add_cell(self, name: str, cell: Any, moment: _Moment) -> None:
        column = self._columns.setdefault(name, _Column())
        number = number_in(cell)
        if number is None:
            column.texts += 1
            column.first_text = column.first_text if column.first_text[0] else (moment.line, str(cell)[:40])
            return
        if not math.isfinite(number) and not column.first_not_finite:
            column.first_not_finite = moment.line
        column.example = column.example or f"line {moment.line}: {name} {cell}"
        column.moments.append(moment)
        column.values.append(number)

    def _seconds(self, clock: Mapping[str, float | None]) -> float:
        unix, seconds = _first(clock, _UNIX_TIMES), _first(clock, _SECONDS)
        if unix is not None and unix > _EARLIEST_UNIX_TIME:
            self._has_times = True
            return unix - self._times.since
        if seconds is not None:
            self._has_times = True
            return seconds
        return self._times.modified - self._times.since

    def _notes(self) -> list[Note]:
        notes = [note for name, column in self._columns.items() for note in self._column_notes(name, column)]
        texts = [name for name, column in self._columns.items() if not column.values]
        if texts:
            notes.append(Note("files.text", f"{self._shown}: not read, no numbers: {', '.join(texts)}"))
        if self._rows > 1 and not self._has_times and len(texts) < len(self._columns):
            message = f"{self._shown} has no column of times: its rows all got the time of the file's last change"
            notes.append(Note("files.no-times", message))
        return notes

    def _column_notes(self, name: str, column: _Column) -> list[Note]:
        notes = []
        if column.values and column.texts:
            line, text = column.first_text
            message = f"{self._shown}, line {line}: {name!r} is {text!r}, no number; {column.texts} such cells left out"
            notes.append(Note("files.not-a-number", message))
        if column.first_not_finite:
            message = f"{self._shown}, line {column.first_not_finite}: {name!r} is not finite; kept as it is"
            notes.append(Note("files.not-finite", message))
        return notes


def _is_clock(name: object) -> bool:
    lowered = str(name).lower()
    return lowered in EPOCH_KEYS or lowered in STEP_KEYS or lowered in _UNIX_TIMES or lowered in _SECONDS


def _first(clock: Mapping[str, float | None], names: frozenset[str]) -> float | None:
    given = (value for name, value in clock.items() if name in names and value is not None)
    return next(filter(math.isfinite, given), None)


def _series(column: _Column) -> Series:
    return Series(_steps(column.moments), tuple(moment.seconds for moment in column.moments), tuple(column.values))


def _steps(moments: list[_Moment]) -> tuple[float, ...]:
    """Epochs if each stands for one value, else the steps, else the repeated epochs, else 0, 1, 2, …"""
    epochs = [moment.epoch for moment in moments if moment.epoch is not None]
    steps = [moment.step for moment in moments if moment.step is not None]
    if len(epochs) == len(moments) == len(set(epochs)):
        return tuple(epochs)
    if len(steps) == len(moments):
        return tuple(steps)
    return tuple(epochs) if len(epochs) == len(moments) else tuple(map(float, range(len(moments))))
