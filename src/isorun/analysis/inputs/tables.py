"""Tables of results, one row a run, from files and frames of many kinds.

Nothing is converted before it is asked for: a column is text until an analysis wants numbers, and then a cell that is
no number is an error with its line, and a missing one is counted.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from isorun.analysis.inputs.samples import FloatArray, require_moderate
from isorun.analysis.inputs.table_files import Columns, columns_of_rows, read_file
from isorun.errors import InputError, known_names

__all__ = ["Group", "Table", "Values", "natural_order", "read_table"]

_MISSING_WORDS = frozenset({"", "na", "n/a", "nan", "null", "none"})


@dataclass(frozen=True, slots=True)
class Table:
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
        except (TypeError, ValueError):
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

    def where(self, conditions: Mapping[str, str]) -> Table:
        """The rows whose columns have these labels."""
        kept = np.ones(self.rows, dtype=bool)
        for name, wanted in conditions.items():
            labels = self.labels(name)
            if wanted not in labels:
                raise _unknown_label(f"column {name!r} of {self.source} never is", wanted, set(labels))
            kept &= np.array([label == wanted for label in labels], dtype=bool)
        return self._taken(np.flatnonzero(kept))

    def _taken(self, rows: npt.NDArray[np.intp]) -> Table:
        columns = {name: column[rows] for name, column in self.columns.items()}
        return Table(self.source, columns, None if self.lines is None else self.lines[rows], self.in_order)

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
    """The finite values of a group, the rows they stand in, and how many values were left out as not finite."""

    finite: FloatArray
    rows: npt.NDArray[np.intp]
    dropped: int

    @classmethod
    def of(cls, numbers: FloatArray, rows: npt.NDArray[np.intp]) -> Values:
        """The values in these rows."""
        kept = rows[np.isfinite(numbers[rows])]
        return cls(numbers[kept], kept, rows.size - kept.size)


@dataclass(frozen=True, slots=True)
class Group:
    """Rows that share their labels."""

    labels: Mapping[str, str]
    values: Values

    @property
    def name(self) -> str:
        """The labels in one word, as they are given on the command line."""
        return ",".join(self.labels.values())


def read_table(source: Any) -> Table:
    """A table from a file (CSV, TSV, JSON lines, JSON, each also .gz; Parquet), a frame, columns, or rows.

    source: a path, a pandas, Polars or PyArrow frame (or any that narwhals knows), a mapping from names to columns,
    or a list of mappings from names to cells. A Table is returned as it is.
    """
    if isinstance(source, Table):
        return source
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        columns, lines = read_file(path)
        return _checked(Table(path.name, columns, lines))
    if isinstance(source, Mapping):
        return _checked(Table("the table", {str(name): _array(column) for name, column in source.items()}))
    if isinstance(source, list | tuple):
        return _checked(Table("the table", columns_of_rows(source, "the table", lambda row: f"row {row + 1}")))
    return _checked(Table("the frame", _columns_of_frame(source)))


def _columns_of_frame(frame: Any) -> Columns:
    import narwhals as nw  # noqa: PLC0415  # a tenth of a second that tables from files need not wait for

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
    if array.dtype.kind in "fiub" and array.ndim == 1:
        return array
    cells = list(column) if isinstance(column, list | tuple) else array.tolist()
    kept = np.empty(len(cells), dtype=object)
    kept[:] = cells
    return kept


def _checked(table: Table) -> Table:
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
    except (TypeError, ValueError):
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
