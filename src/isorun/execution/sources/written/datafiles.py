"""One JSON, JSON lines or CSV file that a training wrote. A bad file gives notes, never an exception."""

from __future__ import annotations

import csv
import itertools
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from isorun.execution.sources.found import Found
from isorun.execution.sources.text.numbers import read_number
from isorun.execution.sources.text.structured import flattened
from isorun.execution.sources.written.columns import Columns, FileTimes
from isorun.study.records import Note

__all__ = ["LARGEST_FILE", "MOST_ROWS", "read_data_file"]

LARGEST_FILE = 256 * 1024 * 1024
MOST_ROWS = 1_000_000
_TABLE_SUFFIXES = frozenset([".csv", ".tsv"])
_LINES_SUFFIXES = frozenset([".jsonl", ".ndjson"])


def read_data_file(path: Path, shown: str, times: FileTimes) -> Found:
    """The metrics in a file. shown: its name as the user knows it, for origins and notes."""
    try:
        if path.stat().st_size > LARGEST_FILE:
            return _noted("files.too-large", f"{shown} is larger than {LARGEST_FILE // 2**20} MiB; not read")
        text = path.read_text(encoding="utf-8-sig", errors="replace")
    except OSError as error:
        return _noted("files.unreadable", f"{shown} cannot be read: {error.strerror or error}")
    if not text.strip():
        return _noted("files.empty", f"{shown} is empty")
    return _read_text(text, path.suffix.lower(), shown, times)


def _read_text(text: str, suffix: str, shown: str, times: FileTimes) -> Found:
    if suffix in _TABLE_SUFFIXES or (suffix not in _LINES_SUFFIXES and text.lstrip()[0] not in "{["):
        return _read_table(text, shown, times)
    if suffix not in _LINES_SUFFIXES:
        try:
            return _read_json(json.loads(text), shown, times)
        except (ValueError, RecursionError):
            pass  # many files named .json hold one object a line
    return _read_json_lines(text, shown, times)


def _read_json(data: Any, shown: str, times: FileTimes) -> Found:
    columns = Columns(shown, times)
    if isinstance(data, list):
        notes = _add_objects(columns, data, shown)
        return _with_notes(columns.found(), notes)
    if not isinstance(data, Mapping):
        return _noted("files.no-metrics", f"{shown} holds a single {type(data).__name__}, no named values")
    notes = []
    scalars = {}
    for name, value in flattened(data):
        if not isinstance(value, list):
            scalars[name] = value
        elif value and all(isinstance(item, Mapping) for item in value):
            notes += _add_objects(columns, value, shown)
        elif value and not any(isinstance(item, list | Mapping) for item in value):
            columns.add_values(name, value)
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
    return notes + _limit_note(len(items), shown)


def _read_json_lines(text: str, shown: str, times: FileTimes) -> Found:
    columns = Columns(shown, times)
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
    return _with_notes(columns.found(), _bad_lines_note(bad, shown) + _limit_note(len(lines), shown))


def _bad_lines_note(bad: list[tuple[int, str]], shown: str) -> list[Note]:
    if not bad:
        return []
    line, reason = bad[0]
    return [Note("files.bad-line", f"{shown}, line {line}: {reason}; {len(bad)} such lines left out")]


def _read_table(text: str, shown: str, times: FileTimes) -> Found:
    rows = csv.reader(text.replace("\0", "").splitlines(), delimiter=_delimiter(text))
    columns = Columns(shown, times)
    notes: list[Note] = []
    try:
        header = [cell.strip() for cell in next(rows)]
        if all(read_number(cell) is not None for cell in header if cell):
            return _noted("files.no-header", f"{shown}, line 1: numbers instead of the names of columns; not read")
        notes = _add_table_rows(columns, header, rows, shown)
    except (csv.Error, StopIteration) as error:
        notes.append(
            Note("files.bad-line", f"{shown}, line {rows.line_num}: {str(error) or 'no line'}; the rest is not read")
        )
    return _with_notes(columns.found(), notes)


def _add_table_rows(columns: Columns, header: list[str], rows: Iterator[list[str]], shown: str) -> list[Note]:
    uneven = []
    count = 1
    for count, row in enumerate(itertools.islice(rows, MOST_ROWS), start=2):
        if row and len(row) != len(header):
            uneven.append((count, f"{len(row)} cells under {len(header)} names"))
        elif row:
            columns.add_row(count, {name: cell.strip() for name, cell in zip(header, row, strict=True)})
    more = sum(1 for _ in rows)
    return _bad_lines_note(uneven, shown) + _limit_note(count - 1 + more, shown)


def _delimiter(text: str) -> str:
    first = text.lstrip().split("\n", 1)[0]
    return max(",;\t", key=first.count)


def _limit_note(rows: int, shown: str) -> list[Note]:
    return [Note("files.limit", f"{shown}: only the first {MOST_ROWS:,} rows were read")] if rows > MOST_ROWS else []


def _noted(code: str, message: str) -> Found:
    return Found(notes=(Note(code, message),))


def _with_notes(found: Found, notes: list[Note]) -> Found:
    return Found(found.series, found.results, found.origins, found.examples, (*notes, *found.notes))
