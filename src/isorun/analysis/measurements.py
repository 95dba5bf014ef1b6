"""Measurements: tables of results, one row a run, and the files and frames that they come from.

Files that hold tables: CSV, TSV, JSON lines and JSON (each also gzipped), and Parquet.

Text is read with the standard library alone: fifty thousand rows take a tenth of a second, less than importing pandas.

Tables of results, one row a run, from files and frames of many kinds.

Nothing is converted before it is asked for: a column is text until an analysis wants numbers, and then a cell that is
no number is an error with its line, and a missing one is counted.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import json
import math
import os
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from isorun.analysis.samples import FloatArray, require_moderate
from isorun.errors import InputError, MissingExtra, known_names

__all__ = [
    "Columns",
    "Group",
    "Measurements",
    "Values",
    "columns_of_rows",
    "is_list_of_numbers",
    "natural_order",
    "read_file",
    "read_table",
]

Columns = dict[str, npt.NDArray[Any]]
Lines = npt.NDArray[np.int64]


def read_file(path: Path) -> tuple[Columns, Lines | None]:
    """The columns of a file, and the line of each row where lines mean something."""
    if not path.is_file():
        hint = (
            "" if path.suffix else "a table by its file; a study by its file, or by its name where it was run (--store)"
        )
        raise InputError(f"there is no file {str(path)!r}", found="a folder" if path.is_dir() else "nothing", hint=hint)
    suffix = _suffix(path)
    if suffix in _PARQUET:
        return _parquet(path), None
    if suffix not in _TEXT:
        raise InputError(
            f"cannot tell what kind of table {path.name!r} is",
            found=f"the ending {suffix!r}",
            allowed=", ".join([*_TEXT, *_PARQUET]) + "; text also with .gz",
        )
    return _TEXT[suffix](_text(path), path.name)


def _suffix(path: Path) -> str:
    endings = [ending.lower() for ending in path.suffixes]
    gzipped = len(endings) > 1 and endings[-1] == ".gz"
    return endings[-2] if gzipped else (endings[-1] if endings else "")


def _text(path: Path) -> str:
    try:
        data = gzip.decompress(path.read_bytes()) if path.suffix.lower() == ".gz" else path.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"cannot read {path.name}", found=str(error), hint="is the file whole?") from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"{path.name} is not UTF-8 text",
            found=f"byte {data[error.start]:#04x} on line {line}",
            allowed="UTF-8, with or without a byte order mark",
            hint=f"iconv -f {'UTF-16' if data.startswith(_UTF_16) else 'LATIN1'} -t UTF-8 {path.name}",
        ) from error
    if not text.strip():
        raise InputError(f"{path.name} is empty")
    return text


def _delimited(text: str, name: str, delimiter: str) -> tuple[Columns, Lines]:
    reader = csv.reader(text.splitlines(keepends=True), delimiter=delimiter, strict=True)
    try:
        rows, lines = _rows_with_lines(reader)
    except csv.Error as error:
        raise InputError(f"cannot read {name} at line {reader.line_num}", found=str(error)) from error
    header = [cell.strip() for cell in rows[0]]
    _require_good_header(header, name)
    _require_equal_widths(rows, lines, len(header), name)
    cells = zip(*rows[1:], strict=True) if len(rows) > 1 else ((),) * len(header)
    columns = {title: np.array(column, dtype=object) for title, column in zip(header, cells, strict=True)}
    return columns, lines[1:]


def _rows_with_lines(reader: Any) -> tuple[list[list[str]], Lines]:
    """The rows that are not blank, and the line each ends on (a quoted cell may span lines)."""
    rows, lines = [], []
    for row in reader:
        if row:
            rows.append(row)
            lines.append(reader.line_num)
    return rows, np.array(lines, dtype=np.int64)


def _require_good_header(header: Sequence[str], name: str) -> None:
    doubled = sorted({title for title in header if header.count(title) > 1})
    if doubled:
        raise InputError(
            f"the header of {name} names columns twice",
            found=", ".join(map(repr, doubled)),
            hint="the first line must hold the names of the columns, each once",
        )


def _require_equal_widths(rows: Sequence[Sequence[str]], lines: Lines, width: int, name: str) -> None:
    ragged = [index for index, row in enumerate(rows) if len(row) != width]
    if ragged:
        first = ragged[0]
        raise InputError(
            f"line {lines[first]} of {name} has another number of cells than the header",
            found=f"{len(rows[first])} cells ({len(ragged)} such lines)",
            allowed=f"{width} cells",
        )


def _comma_separated(text: str, name: str) -> tuple[Columns, Lines]:
    """CSV as it is met: separated by commas, or by semicolons or tabs where the header has no comma."""
    header = text.lstrip().split("\n", 1)[0]
    delimiter = next((sign for sign in ",;\t" if sign in header), ",")
    return _delimited(text, name, delimiter)


def _tab_separated(text: str, name: str) -> tuple[Columns, Lines]:
    return _delimited(text, name, "\t")


def _json_lines(text: str, name: str) -> tuple[Columns, Lines]:
    numbered = [(number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]
    rows = [_json(line, f"line {number} of {name}") for number, line in numbered]
    lines = np.array([number for number, _ in numbered], dtype=np.int64)
    return columns_of_rows(rows, name, lambda row: f"line {lines[row]}"), lines


def _json_document(text: str, name: str) -> tuple[Columns, None]:
    document = _json(text, name)
    if isinstance(document, list):
        return columns_of_rows(document, name, lambda row: f"entry {row + 1}"), None
    if isinstance(document, dict) and all(isinstance(column, list) for column in document.values()):
        return {title: _cells(column) for title, column in document.items()}, None
    raise InputError(
        f"{name} holds no table",
        found=f"JSON of type {type(document).__name__}",
        allowed="a list of objects, or an object of lists",
    )


def _json(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"cannot read {where}", found=f"{error}", allowed="JSON") from error


def columns_of_rows(rows: Sequence[Any], name: str, place: Callable[[int], str]) -> Columns:
    """Columns from rows that are mappings; a key that a row lacks is a missing cell there."""
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise InputError(
                f"{place(number)} of {name} is no object", found=f"{row!r:.80}", allowed="names with values"
            )
    titles = dict.fromkeys(title for row in rows for title in row)
    return {str(title): _cells([row.get(title) for row in rows]) for title in titles}


def _cells(column: Sequence[Any]) -> npt.NDArray[np.object_]:
    cells = np.empty(len(column), dtype=object)
    cells[:] = column
    return cells


def _parquet(path: Path) -> Columns:
    import narwhals as nw  # only Parquet files need it

    for backend in ("pyarrow", "polars"):
        try:
            frame = nw.read_parquet(str(path), backend=backend)
            return {name: frame[name].to_numpy() for name in frame.columns}
        except ImportError:
            continue
        except (KeyboardInterrupt, SystemExit, MemoryError):
            raise
        except BaseException as error:  # Polars answers a damaged file with a panic, which is no Exception
            said = str(error).strip().split("\n")[0][:300]
            raise InputError(f"cannot read {path.name} as Parquet", found=said, hint="is the file whole?") from error
    raise MissingExtra("pyarrow", "tables", f"reading {path.name}")


def _text_kinds() -> Iterator[tuple[str, Callable[[str, str], tuple[Columns, Lines | None]]]]:
    yield ".csv", _comma_separated
    yield from ((ending, _tab_separated) for ending in (".tsv", ".tab"))
    yield from ((ending, _json_lines) for ending in (".jsonl", ".ndjson"))
    yield ".json", _json_document


_TEXT: Final = dict(_text_kinds())
_PARQUET: Final = (".parquet", ".pq")
_UTF_16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


_MISSING_WORDS = frozenset({"", "na", "n/a", "nan", "null", "none"})


@dataclass(frozen=True, slots=True)
class Measurements:
    """Named columns of equal length.

    source: where it came from, for messages. lines: the line each row stands on, when it was read from a text file.
    in_order: columns whose labels keep the order in which they first appear; those of the others are sorted.
    """

    source: str
    columns: Mapping[str, npt.NDArray[Any]]
    lines: npt.NDArray[np.int64] | None = None
    in_order: frozenset[str] = frozenset()

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(next(iter(self.columns.values()))) if self.columns else 0

    def column(self, name: str) -> npt.NDArray[Any]:
        """The column as it was read."""
        if name not in self.columns:
            raise InputError(
                f"{self.source} has no column {name!r}", allowed=f"columns: {known_names(name, self.columns)}"
            )
        return self.columns[name]

    def labels(self, name: str) -> list[str]:
        """The column as text, for grouping; a missing cell is the empty label."""
        return ["" if _is_missing(cell) else str(cell) for cell in self.column(name).tolist()]

    def numbers(self, name: str) -> FloatArray:
        """The column as numbers, missing cells as NaN. Text that is no number is an error that names its line."""
        column = self.column(name)
        if column.dtype.kind in "fiub":
            return column.astype(np.float64)
        cells = column.tolist()
        try:
            return np.array([_fast_number(cell) for cell in cells], dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            return self._checked_numbers(name, cells)

    def _checked_numbers(self, name: str, cells: Sequence[object]) -> FloatArray:
        numbers = [_number(cell) for cell in cells]
        wrong = [row for row, number in enumerate(numbers) if number is None]
        if wrong:
            raise InputError(
                f"column {name!r} of {self.source} holds text where a number is needed",
                found=f"{cells[wrong[0]]!r:.80} on {self.place(wrong[0])}; {len(wrong)} such cells of {len(cells)}",
                hint="name another column, or correct the table",
            )
        return np.array(numbers, dtype=np.float64)

    def typed(self) -> dict[str, npt.NDArray[Any]]:
        """All columns as R would read them: numbers where every cell is one or missing, text otherwise."""
        return {name: self._typed(name) for name in self.columns}

    def _typed(self, name: str) -> npt.NDArray[Any]:
        cells = self.columns[name].tolist()
        numbers = [_number(cell) for cell in cells]
        if any(number is None for number in numbers) or all(_is_missing(cell) for cell in cells):
            return np.array(self.labels(name), dtype=object)
        return np.array(numbers, dtype=np.float64)

    def place(self, row: int) -> str:
        """Where a row is found by its reader: its line in the file, or its number counted from 1."""
        return f"line {self.lines[row]}" if self.lines is not None else f"row {row + 1}"

    def where(self, conditions: Mapping[str, str]) -> Measurements:
        """The rows whose columns have these labels."""
        kept = np.ones(self.rows, dtype=bool)
        for name, wanted in conditions.items():
            labels = self.labels(name)
            if wanted not in labels:
                raise _unknown_label(f"column {name!r} of {self.source} never is", wanted, set(labels))
            kept &= np.array([label == wanted for label in labels], dtype=bool)
        return self._taken(np.flatnonzero(kept))

    def _taken(self, rows: npt.NDArray[np.intp]) -> Measurements:
        columns = {name: column[rows] for name, column in self.columns.items()}
        return Measurements(self.source, columns, None if self.lines is None else self.lines[rows], self.in_order)

    def groups(self, value: str, by: Sequence[str], *, drop_missing: bool = False) -> tuple[Group, ...]:
        """The values of each combination of labels, in the order of the labels; see `Values` for missing ones."""
        numbers = self.numbers(value)
        if not drop_missing:
            self._require_finite(value, numbers)
        require_moderate(numbers[np.isfinite(numbers)], f"column {value!r} of {self.source}")
        members: dict[tuple[str, ...], list[int]] = {}
        labels = [self.labels(name) for name in by]
        keys = zip(*labels, strict=True) if by else ((),) * self.rows
        for row, key in enumerate(keys):
            members.setdefault(key, []).append(row)
        orders = [self._order(name, column) for name, column in zip(by, labels, strict=True)]
        return tuple(
            Group(dict(zip(by, key, strict=True)), Values.of(numbers, np.array(members[key], dtype=np.intp)))
            for key in sorted(members, key=lambda key: [order[label] for order, label in zip(orders, key, strict=True)])
        )

    def _order(self, name: str, labels: Sequence[str]) -> dict[str, int]:
        """The place of each label of a column."""
        seen = dict.fromkeys(labels)
        return {
            label: place
            for place, label in enumerate(seen if name in self.in_order else sorted(seen, key=natural_order))
        }

    def _require_finite(self, name: str, numbers: FloatArray) -> None:
        bad = np.flatnonzero(~np.isfinite(numbers))
        if not bad.size:
            return
        missing = int(np.isnan(numbers).sum())
        raise InputError(
            f"column {name!r} of {self.source} has values that are not finite numbers",
            found=f"{missing} missing or NaN and {bad.size - missing} infinite of {numbers.size}, "
            f"the first on {self.place(int(bad[0]))}",
            allowed="finite numbers",
            hint="find out why; drop_missing (--drop-missing) leaves these runs out and says how many",
        )


@dataclass(frozen=True, slots=True)
class Values:
    """The finite values of a group, the rows they stand in, and the rows that were left out: of no finite value."""

    finite: FloatArray
    rows: npt.NDArray[np.intp]
    left_out: npt.NDArray[np.intp]

    @property
    def dropped(self) -> int:
        """How many values were left out."""
        return int(self.left_out.size)

    @classmethod
    def of(cls, numbers: FloatArray, rows: npt.NDArray[np.intp]) -> Values:
        """The values in these rows."""
        finite = np.isfinite(numbers[rows])
        return cls(numbers[rows[finite]], rows[finite], rows[~finite])


@dataclass(frozen=True, slots=True)
class Group:
    """Rows that share their labels."""

    labels: Mapping[str, str]
    values: Values

    @property
    def name(self) -> str:
        """The labels in one word, as they are given on the command line."""
        return ",".join(self.labels.values())


def is_list_of_numbers(data: Any) -> bool:
    """A list, an array or a series of one dimension, as against tables, whose rows have names for their cells."""
    shape = getattr(data, "shape", None)
    if shape is not None:
        return len(shape) == 1
    is_list = isinstance(data, Sequence) and not isinstance(data, str)
    return is_list and all(isinstance(item, Real) and not isinstance(item, bool) for item in data)


def read_table(source: Any) -> Measurements:
    """A table from a file (CSV, TSV, JSON lines, JSON, each also .gz; Parquet), a frame, columns, or rows.

    source: a path, a pandas, Polars or PyArrow frame (or any that narwhals knows), a mapping from names to columns,
    or a list of mappings from names to cells. Measurements are returned as they are.
    """
    if isinstance(source, Measurements):
        return source
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        columns, lines = read_file(path)
        return _checked(Measurements(path.name, columns, lines))
    if isinstance(source, Mapping):
        return _checked(Measurements("the table", {str(name): _array(column) for name, column in source.items()}))
    if isinstance(source, list | tuple):
        return _checked(Measurements("the table", columns_of_rows(source, "the table", lambda row: f"row {row + 1}")))
    return _checked(Measurements("the frame", _columns_of_frame(source)))


def _columns_of_frame(frame: Any) -> Columns:
    import narwhals as nw  # a tenth of a second that tables from files need not wait for

    try:
        native = nw.from_native(frame)
    except TypeError as error:
        raise InputError(
            "cannot read a table from this object",
            found=type(frame).__name__,
            allowed="a path, a pandas, Polars or PyArrow frame, a mapping of columns, a list of rows",
        ) from error
    if isinstance(native, nw.LazyFrame):
        native = native.collect()
    _require_unique([str(name) for name in native.columns], "the frame")
    return {str(name): native[name].to_numpy() for name in native.columns}


def _array(column: npt.ArrayLike) -> npt.NDArray[Any]:
    """Columns of numbers stay numbers; all else is kept cell by cell, so that 1 beside "a" does not become text."""
    array: npt.NDArray[Any] = np.asarray(column)
    if array.ndim == 0:
        raise InputError("a column of a table is a list", found=f"{column!r:.60}", allowed="one value a run")
    if array.dtype.kind in "fiub" and array.ndim == 1:
        return array
    cells = list(column) if isinstance(column, list | tuple) else array.tolist()
    kept = np.empty(len(cells), dtype=object)
    kept[:] = cells
    return kept


def _checked(table: Measurements) -> Measurements:
    lengths = {name: len(column) for name, column in table.columns.items()}
    if len(set(lengths.values())) > 1:
        raise InputError(f"the columns of {table.source} have different lengths", found=str(lengths))
    if table.rows == 0:
        raise InputError(f"{table.source} has no rows", found=f"columns: {', '.join(table.columns) or 'none'}")
    return table


def _require_unique(names: Sequence[str], source: str) -> None:
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise InputError(f"{source} has columns of the same name", found=", ".join(map(repr, doubled)))


def _is_missing(cell: object) -> bool:
    return cell is None or (isinstance(cell, float) and math.isnan(cell))


def _fast_number(cell: Any) -> float:
    """The number; raises where `_number` has to look closer: "1_000" and "" are not left to `float`."""
    if isinstance(cell, str) and "_" in cell:
        raise ValueError(cell)
    return float(cell)


def _number(cell: object) -> float | None:
    """The number in a cell, NaN when it is missing, None when it is something else."""
    if cell is None:
        return float("nan")
    if isinstance(cell, str) and cell.strip().lower() in _MISSING_WORDS:
        return float("nan")
    try:
        return _fast_number(cell)
    except (TypeError, ValueError, OverflowError):
        return None


def natural_order(label: str) -> tuple[int, float, str]:
    """The key that sorts labels that are numbers by size, and before the others."""
    number = _finite(label)
    return (1, 0.0, label) if number is None else (0, number, label)


def _finite(label: str) -> float | None:
    number = _number(label)
    return number if number is not None and math.isfinite(number) else None


def _unknown_label(what: str, wanted: str, labels: set[str]) -> InputError:
    ordered = sorted(labels, key=natural_order)
    return InputError(f"{what} {wanted!r}", allowed=known_names(wanted, ordered))
