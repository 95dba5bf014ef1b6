"""Metrics from files that a training wrote: which files belong to this run, and what they hold.

JSON, JSON lines and CSV here; event files, notebooks and what experiment trackers keep by readers of their own. Rows of
a file go in and series come out: which column is the clock, which are metrics, and what was no number. A bad file
gives notes, never an exception.
"""

from __future__ import annotations

import csv
import itertools
import json
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from isorun.sources import (
    EVENTS,
    FORMS,
    MLFLOW,
    NOTEBOOK,
    OBJECTS,
    SQLITE,
    TABLE,
    TEXT,
    WANDB,
    AbstractSource,
    Found,
    is_fresh,
    merged,
)
from isorun.sources.objects import EPOCH_KEYS, STEP_KEYS, flattened, number_in
from isorun.sources.rows import UNCLEAR_COMMA, has_unclear_comma, is_metric, read_number
from isorun.study.records import Note, Series

__all__ = [
    "LARGEST_FILE",
    "MOST_ROWS",
    "Columns",
    "DataFiles",
    "EventFiles",
    "FileRead",
    "begins_again",
    "counts",
    "file_form",
    "limit_note",
    "only_noted",
    "read_data_file",
    "read_data_text",
    "reader_of",
]


class DataFiles(AbstractSource):
    """The JSON, JSON lines and CSV files that the study names, as far as they were written since the run began.

    Paths and patterns ("logs/*.csv", "**/metrics.json") start at the working folder unless they are absolute. A file
    that was last changed before the run began belongs to another run: it is left out, and a note says so.
    """

    def finish(self, working_folder: Path, since_unix: float, *, whole: bool = False) -> Found:
        """The metrics in all of them."""
        run = _Run(working_folder, since_unix, whole)
        return merged(*(_read_pattern(pattern, run) for pattern in self.sources.files))


class EventFiles(AbstractSource):
    """The TensorBoard folders that the study names, as far as they were written since the run began."""

    def finish(self, working_folder: Path, since_unix: float, *, whole: bool = False) -> Found:  # noqa: ARG002
        """The scalars in all of them. A record says itself whether it is whole."""
        return merged(*(_read_folders(pattern, working_folder, since_unix) for pattern in self.sources.tensorboard))


@dataclass(frozen=True, slots=True)
class _Run:
    """Where a run worked, since when, and whether it ended well by itself."""

    folder: Path
    since: float
    whole: bool


@dataclass(frozen=True, slots=True)
class FileRead:
    """One file that is read. shown: its name as the user knows it, for origins and notes.

    since, modified: when the run began and when the file was last written, in seconds since 1970. whole: whoever wrote
    it ended well, so that a last line without an end is not half of one. unasked: nobody named the file, so that only
    what is surely a metric counts: by its name, and with an epoch or a step for each of several values.
    """

    shown: str
    since: float
    modified: float
    whole: bool = False
    unasked: bool = False


Reader = Callable[[Path, FileRead], Found]


def _read_pattern(pattern: str, run: _Run) -> Found:
    paths = [path for path in _matches(pattern, run.folder) if path.is_file()]
    fresh = [path for path in paths if _is_fresh(path, run.since)]
    if not fresh:
        return Found(notes=(_nothing_note("files", pattern, paths),))
    if all(file_form(path) == EVENTS for path in fresh):
        return _read_event_files(fresh, run.folder, run.since)
    parts = [_read_one(path, run) for path in fresh]
    return merged(*(_told_apart(parts, fresh, run.folder) if len(parts) > 1 else parts))


def _read_one(path: Path, run: _Run) -> Found:
    modified = path.stat().st_mtime if path.exists() else run.since
    file = FileRead(_shown(path, run.folder), run.since, modified, run.whole)
    if reader := reader_of(path):
        return reader(path, file)
    return read_data_file(path, file)


def reader_of(path: Path) -> Reader | None:
    """What reads files that are neither text of rows nor a table, by the name; None for those that are."""
    form = file_form(path)
    if form not in (WANDB, SQLITE, NOTEBOOK, MLFLOW):
        return None
    from isorun.sources import trackers  # noqa: PLC0415  only where there is such a file

    readers: dict[str, Reader] = {
        WANDB: trackers.read_wandb,
        SQLITE: trackers.read_database,
        NOTEBOOK: trackers.read_notebook,
        MLFLOW: trackers.read_mlflow_metric,
    }
    return readers[form]


_MLFLOW_METRIC = re.compile(r"/[0-9a-f]{32}/metrics/")


def file_form(path: Path) -> str:
    """What a file is read as, by its name; a text of which nothing is known where that does not say."""
    if "tfevents" in path.name:
        return EVENTS
    return MLFLOW if _MLFLOW_METRIC.search(path.as_posix()) else FORMS.get(path.suffix.lower(), TEXT)


def _read_folders(pattern: str, folder: Path, since: float) -> Found:
    matches = _matches(pattern, folder)
    events = sorted({path for match in matches for path in _event_files(match)})
    fresh = [path for path in events if _is_fresh(path, since)]
    if not fresh:
        return Found(notes=(_nothing_note("tensorboard", pattern, events),))
    return _read_event_files(fresh, folder, since)


def _read_event_files(paths: list[Path], folder: Path, since: float) -> Found:
    from isorun.sources.tensorboard import read_event_folder  # noqa: PLC0415  only where a study names such files

    return read_event_folder(paths, since, lambda path: _shown(path, folder))


def _event_files(path: Path) -> Iterable[Path]:
    return [path] if path.is_file() else (item for item in path.rglob("*tfevents*") if item.is_file())


def _matches(pattern: str, folder: Path) -> list[Path]:
    literal = folder / pattern
    if literal.exists():
        return [literal]
    anchor = Path(pattern).anchor
    start, rest = (Path(anchor), pattern[len(anchor) :]) if anchor else (folder, pattern)
    try:
        return sorted(start.glob(rest))
    except (ValueError, IndexError, NotImplementedError, OSError):
        return []  # what cannot be a pattern matches nothing, which the caller notes


def _is_fresh(path: Path, since: float) -> bool:
    try:
        return is_fresh(path.stat().st_mtime, since)
    except OSError:
        return False


def _shown(path: Path, folder: Path) -> str:
    return os.path.relpath(path, folder) if path.is_relative_to(folder) else str(path)


def _nothing_note(kind: str, pattern: str, stale: list[Path]) -> Note:
    if stale:
        message = f"{pattern!r}: {len(stale)} files are there, none of them changed since the run began; not read"
        return Note(f"{kind}.stale", message)
    return Note(f"{kind}.missing", f"{pattern!r}: no such file in the working folder")


def _told_apart(parts: list[Found], paths: list[Path], folder: Path) -> list[Found]:
    """Several files of one pattern may hold the same names: those are prefixed with their file's name."""
    counts: dict[str, int] = {}
    for part in parts:
        for name in part.origins:
            counts[name] = counts.get(name, 0) + 1
    doubled = {name for name, count in counts.items() if count > 1}
    prefixes = [_shown(path.with_suffix(""), folder) for path in paths]

    def prefixed(name: str, prefix: str) -> str:
        return f"{prefix}/{name}" if name in doubled else name

    return [part.renamed(partial(prefixed, prefix=prefix)) for part, prefix in zip(parts, prefixes, strict=True)]


LARGEST_FILE = 256 * 1024 * 1024
MOST_ROWS = 1_000_000


def read_data_file(path: Path, file: FileRead) -> Found:
    """The metrics in a file of any form that is known."""
    try:
        if path.stat().st_size > LARGEST_FILE:
            return only_noted("files.too-large", f"{file.shown} is larger than {LARGEST_FILE // 2**20} MiB; not read")
        text = path.read_text(encoding="utf-8-sig", errors="replace")
    except OSError as error:
        return only_noted("files.unreadable", f"{file.shown} cannot be read: {error.strerror or error}")
    return read_data_text(text, file_form(path), file)


def read_data_text(text: str, form: str, file: FileRead) -> Found:
    """The metrics in a text that is JSON, JSON lines or CSV; its first character says which where its form does not."""
    if not text.strip():
        return only_noted("files.empty", f"{file.shown} is empty")
    if form == TABLE or (form != OBJECTS and text.lstrip()[0] not in "{["):
        return _read_table(text, file)
    if form != OBJECTS:
        try:
            return _read_json(json.loads(text), file)
        except (ValueError, RecursionError):
            pass  # many files named .json hold one object a line
    return _read_json_lines(text, file)


def _read_json(data: Any, file: FileRead) -> Found:
    columns, shown = Columns(file), file.shown
    if isinstance(data, list):
        notes = _add_objects(columns, data, shown)
        return _with_notes(columns.found(), notes)
    if not isinstance(data, Mapping):
        return only_noted("files.no-metrics", f"{shown} holds a single {type(data).__name__}, no named values")
    notes = []
    scalars: dict[str, Any] = {}
    lists: dict[str, list[Any]] = {}
    if file.unasked and isinstance(data.get("log_history"), list):  # of transformers, beside settings
        data = {"log_history": data["log_history"]}
    for name, value in flattened(data):
        if not isinstance(value, list):
            scalars[name] = value
        elif value and all(isinstance(item, Mapping) for item in value):
            notes += _add_objects(columns, value, shown)
        elif value and not any(isinstance(item, list | Mapping) for item in value):
            lists[name] = value[:MOST_ROWS]
            notes += limit_note(len(value), MOST_ROWS, shown)
    _add_lists(columns, lists)
    columns.add_row(1, scalars)
    return _with_notes(columns.found(always_results=True), notes)


def _add_objects(columns: Columns, items: list[Any], shown: str) -> list[Note]:
    others = 0
    for number, item in enumerate(items[:MOST_ROWS], start=1):
        if isinstance(item, Mapping):
            columns.add_row(number, dict(flattened(item)))
        else:
            others += 1
    notes = [Note("files.not-a-row", f"{shown}: {others} entries are no objects; left out")] if others else []
    return notes + limit_note(len(items), MOST_ROWS, shown)


def _add_lists(columns: Columns, lists: Mapping[str, list[Any]]) -> None:
    """Lists of one length in one object, of which one counts, are the columns of a table; any other counts itself."""
    tables: dict[tuple[str, int], dict[str, list[Any]]] = {}
    for name, values in lists.items():
        group, slash, last = name.rpartition("/")
        clock = f"{group}{slash}epoch" if last.lower() == "epochs" else name  # of a list it is no number of epochs
        tables.setdefault((group, len(values)), {})[clock] = values
    for table in tables.values():
        if any(map(counts, table)):
            for cells in zip(*table.values(), strict=True):
                columns.add_row(1, dict(zip(table, cells, strict=True)))
        else:
            for name, values in table.items():
                columns.add_values(name, values)


def _read_json_lines(text: str, file: FileRead) -> Found:
    # An object that is not whole lacks its last brace: the end of a line says nothing more.
    columns, shown = Columns(file), file.shown
    bad: list[tuple[int, str]] = []
    lines = text.split("\n")
    for number, line in enumerate(lines[:MOST_ROWS], start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            bad.append((number, str(error)[:80]))
            continue
        if isinstance(row, Mapping):
            columns.add_row(number, dict(flattened(row)))
        else:
            bad.append((number, f"a {type(row).__name__}, no object"))
    return _with_notes(columns.found(), _bad_lines_note(bad, shown) + limit_note(len(lines), MOST_ROWS, shown))


def _bad_lines_note(bad: list[tuple[int, str]], shown: str) -> list[Note]:
    if not bad:
        return []
    line, reason = bad[0]
    return [Note("files.bad-line", f"{shown}, line {line}: {reason}; {_so_many(len(bad), 'line')} left out")]


def _so_many(count: int, what: str) -> str:
    return f"{count} such {what}{'' if count == 1 else 's'}"


def _read_table(text: str, file: FileRead) -> Found:
    lines = text.replace("\0", "\ufffd").splitlines(keepends=True)  # a number with a hole in it is none
    torn = [] if file.whole or len(lines) < 2 or lines[-1].endswith(("\n", "\r")) else [lines.pop()]
    rows = csv.reader(lines, delimiter=_delimiter(text))
    columns, shown = Columns(file), file.shown
    notes: list[Note] = []
    try:
        header = [cell.strip() for cell in next(rows)]
        if all(read_number(cell) is not None for cell in header if cell):
            return only_noted("files.no-header", f"{shown}, line 1: numbers instead of the names of columns; not read")
        notes = _add_table_rows(columns, header, ((rows.line_num, row) for row in rows), shown)
    except (csv.Error, StopIteration) as error:
        notes.append(
            Note("files.bad-line", f"{shown}, line {rows.line_num}: {str(error) or 'no line'}; the rest is not read")
        )
    return _with_notes(columns.found(), notes + [_torn_note(line, shown) for line in torn])


def _torn_note(line: str, shown: str) -> Note:
    """Whoever was killed while it wrote 0.25 has left 0.2: only the end of a line says then that it is whole."""
    return Note("files.torn", f"{shown} ends in the middle of a line ({line[:40]!r}), which is not read: end it")


_FEWEST_NAMES = 2


class _Heading:
    """The names of a table's columns. clocks: which of them count. doubled: the names of two columns, not read."""

    def __init__(self, names: list[str]) -> None:
        self.names = names
        self.clocks = [place for place, name in enumerate(names) if counts(name)]
        self.doubled = {name for name in names if name and names.count(name) > 1}

    def comes_again(self, cells: list[str]) -> bool:
        """Whether a row names columns again: no number in it, and it counts epochs, or half its names are known."""
        if cells and cells[0].isdigit():  # nearly all rows: their numbers are read later
            return False
        if len(cells) < _FEWEST_NAMES or any(read_number(cell) is not None for cell in cells):
            return False
        given = [cell for cell in cells if cell]
        known = sum(cell in self.names for cell in given)
        return any(map(counts, given)) or (known > 0 and known * 2 >= len(given))

    def why_not(self, cells: list[str]) -> str:
        """Why a row is left out, "" if it is not: nothing says which of its cells belongs to which name.

        A mark after the last column ("2,0.8,0.81,*") is told apart, unless the commas may be decimal ("1,0,9,*").
        """
        for place in self.clocks:
            cell = cells[place] if place < len(cells) else ""
            if cell and not cell.isdigit() and read_number(cell) is None:
                return f"{self.names[place]} is {cell[:40]!r}"
        columns = len(self.names)
        if len(cells) == columns:
            return ""
        is_clear = len(cells) > columns and any("." in cell for cell in cells[:columns])
        has_marks = is_clear and not any(character.isdigit() for cell in cells[columns:] for character in cell)
        return "" if has_marks else f"{len(cells)} cells under {columns} names"

    def named(self, cells: list[str]) -> dict[str, str]:
        row = dict(zip(self.names, cells, strict=False))
        return {name: cell for name, cell in row.items() if name not in self.doubled} if self.doubled else row


def counts(name: str) -> bool:
    """Whether a column of this name counts epochs or steps."""
    return _clock_name(name) in EPOCH_KEYS or _clock_name(name) in _STEPS


def _add_table_rows(
    columns: Columns, names: list[str], rows: Iterator[tuple[int, list[str]]], shown: str
) -> list[Note]:
    bad: list[tuple[int, str]] = []
    heading = _Heading(names)
    doubled = set(heading.doubled)
    for line, row in itertools.islice(rows, MOST_ROWS):
        cells = [cell.strip() for cell in row]
        if heading.comes_again(cells):  # a run that was resumed appends a heading of its own
            heading = _Heading(cells)
            doubled |= heading.doubled
        elif cells and (why := heading.why_not(cells)):
            bad.append((line, why))
        elif cells:
            columns.add_row(line, heading.named(cells))
    has_more = next(rows, None) is not None
    columns.leave_out(sorted(doubled), "two columns have this name")
    return _bad_lines_note(bad, shown) + limit_note(MOST_ROWS + has_more, MOST_ROWS, shown)


def _delimiter(text: str) -> str:
    first = text.lstrip().split("\n", 1)[0]
    return max(",;\t", key=first.count)


def limit_note(rows: int, most: int, shown: str, which: str = "first") -> list[Note]:
    """That of so many rows not all were read: what the last of them says is not known, or what those before do."""
    return [Note("files.limit", f"{shown}: only the {which} {most:,} rows were read")] if rows > most else []


def only_noted(code: str, message: str) -> Found:
    """Nothing, and why."""
    return Found(notes=(Note(code, message),))


def _with_notes(found: Found, notes: list[Note]) -> Found:
    return Found(found.series, found.results, found.origins, found.examples, (*notes, *found.notes))


_UNIX_TIMES = frozenset(["wall_time", "timestamp", "_timestamp", "unix_time", "unix"])
_SECONDS = frozenset(["seconds", "elapsed", "elapsed_seconds", "elapsed_time", "time_elapsed", "_runtime"])
_EARLIEST_UNIX_TIME = 1e9


@dataclass(frozen=True, slots=True)
class _Moment:
    line: int
    epoch: float | None
    step: float | None
    seconds: float


@dataclass(slots=True)
class _Column:
    """A column's numbers with their moments, and the first lines at which it held something else.

    left_out: why nothing of it is read: a number with a comma in it that may be decimal, or two columns of one name.
    """

    moments: list[_Moment] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    example: str = ""
    texts: int = 0
    first_text: tuple[int, str] = (0, "")
    first_not_finite: int = 0
    left_out: str = ""


class Columns:
    """Takes the rows of one file in order. Empty cells are allowed anywhere; nothing that is no number is guessed."""

    def __init__(self, file: FileRead) -> None:
        self._file = file
        self._shown = file.shown
        self._columns: dict[str, _Column] = {}
        self._rows = 0
        self._has_times = False
        self._has_clock = False
        self._lists: dict[str, list[Any]] = {}

    def add_row(self, line: int, cells: Mapping[str, Any]) -> None:
        """Take in one row; line: where it stands in the file."""
        if self._file.unasked:
            cells = {name: cell for name, cell in cells.items() if _is_clock(name) or is_metric(str(name))}
        self._rows += 1
        clocks = ((_clock_name(name), number_in(cell)) for name, cell in cells.items() if _is_clock(name))
        clock = {name: number for name, number in clocks if number is not None}
        moment = _Moment(line, _first(clock, EPOCH_KEYS), _first(clock, _STEPS), self._seconds(clock))
        self._has_clock = self._has_clock or moment.epoch is not None or moment.step is not None
        for name, cell in cells.items():
            if name not in (None, "") and not _is_clock(name) and cell not in (None, ""):
                self._add_cell(str(name), cell, moment)

    def add_values(self, name: str, values: list[Any]) -> None:
        """Take in a whole metric given as one list of numbers."""
        self._lists[name] = values
        for index, cell in enumerate(values):
            self._add_cell(name, cell, _Moment(1, None, float(index), self._seconds({})))
        self._has_clock = True

    def leave_out(self, names: Iterable[str], why: str) -> None:
        """Give up whole columns."""
        for name in names:
            self._columns.setdefault(name, _Column()).left_out = why

    def found(self, *, always_results: bool = False) -> Found:
        """The metrics of the file. always_results: single values are final ones, whatever clock stands beside them."""
        if self._file.unasked:
            self._keep_what_is_sure()
        columns = {name: column for name, column in self._columns.items() if column.values and not column.left_out}
        is_final = always_results or (self._rows == 1 and not self._has_clock)
        return Found(
            series={name: _series(column) for name, column in columns.items()},
            results={name: c.values[0] for name, c in columns.items() if is_final and len(c.values) == 1},
            origins=dict.fromkeys(columns, f"file: {self._shown}"),
            examples={name: column.example for name, column in columns.items()},
            notes=tuple(self._notes()),
        )

    def _keep_what_is_sure(self) -> None:
        """Of a file that nobody named: metrics by their names, whose values each have an epoch or a step."""
        lengths = [len(values) for values in self._lists.values()]
        self._columns = {name: column for name, column in self._columns.items() if is_metric(name)}  # of lists
        for name, column in self._columns.items():
            if name in self._lists and lengths.count(len(self._lists[name])) == 1:
                column.left_out = "a list that nothing stands beside: nobody knows what it counts"
            elif len(column.values) > 1 and any(one.epoch is None and one.step is None for one in column.moments):
                column.left_out = "several values without an epoch or a step"
            elif begins_again(_steps(column.moments)):
                column.left_out = "its epochs or steps begin again: it may hold several trainings"

    def _add_cell(self, name: str, cell: Any, moment: _Moment) -> None:
        column = self._columns.setdefault(name, _Column())
        number = number_in(cell)
        if number is None:
            column.texts += 1
            if isinstance(cell, str) and has_unclear_comma(cell.strip()):
                column.left_out = UNCLEAR_COMMA
            column.first_text = column.first_text if column.first_text[0] else (moment.line, str(cell)[:40])
            return
        if not math.isfinite(number) and not column.first_not_finite:
            column.first_not_finite = moment.line
        column.example = column.example or f"line {moment.line}: {name} {cell}"
        column.moments.append(moment)
        column.values.append(number)

    def _seconds(self, clock: Mapping[str, float]) -> float:
        unix, seconds = _first(clock, _UNIX_TIMES), _first(clock, _SECONDS)
        if unix is not None and unix > _EARLIEST_UNIX_TIME:
            self._has_times = True
            return unix - self._file.since
        if seconds is not None:
            self._has_times = True
            return seconds
        return self._file.modified - self._file.since

    def _notes(self) -> list[Note]:
        notes = [note for name, column in self._columns.items() for note in self._column_notes(name, column)]
        if self._file.unasked:
            return notes
        texts = [name for name, column in self._columns.items() if not column.values and not column.left_out]
        if texts:
            notes.append(Note("files.text", f"{self._shown}: not read, no numbers: {', '.join(texts)}"))
        if self._rows > 1 and not self._has_times and len(texts) < len(self._columns):
            message = f"{self._shown} has no column of times: its rows all got the time of the file's last change"
            notes.append(Note("files.no-times", message))
        return notes

    def _column_notes(self, name: str, column: _Column) -> list[Note]:
        notes = []
        if column.left_out:
            line = column.first_text[0] or min((moment.line for moment in column.moments), default=1)
            message = f"left out: {name}: {column.left_out} ({self._shown}, line {line})"
            return [Note("files.left-out", message)]
        if column.values and column.texts:
            line, text = column.first_text
            told = f"{_so_many(column.texts, 'cell')} left out"
            message = f"{self._shown}, line {line}: {name!r} is {text!r}, no number; {told}"
            notes.append(Note("files.not-a-number", message))
        if column.first_not_finite:
            message = f"{self._shown}, line {column.first_not_finite}: {name!r} is not finite; kept as it is"
            notes.append(Note("files.not-finite", message))
        return notes


_STEPS = STEP_KEYS | {"total_timesteps", "timesteps", "num_timesteps", "iterations", "total_steps"}
_CLOCKS = EPOCH_KEYS | _STEPS | _UNIX_TIMES | _SECONDS


def _is_clock(name: object) -> bool:
    return _clock_name(name) in _CLOCKS


def _clock_name(name: object) -> str:
    """Its last part: loggers put "train/epoch" and "time/iterations" beside what they count."""
    return str(name).lower().rpartition("/")[2]


def begins_again(steps: Sequence[float]) -> bool:
    """Whether the steps of a series go back somewhere."""
    return any(later < earlier for earlier, later in itertools.pairwise(steps))


def _first(clock: Mapping[str, float], names: frozenset[str]) -> float | None:
    given = (value for name, value in clock.items() if name in names)
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
