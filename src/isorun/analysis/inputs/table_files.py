"""Files that hold tables: CSV, TSV, JSON lines and JSON (each also gzipped), and Parquet.

Text is read with the standard library alone: fifty thousand rows take a tenth of a second, less than importing pandas.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from isorun.errors import InputError, MissingExtra

__all__ = ["Columns", "columns_of_rows", "read_file"]

Columns = dict[str, npt.NDArray[Any]]
Lines = npt.NDArray[np.int64]


def read_file(path: Path) -> tuple[Columns, Lines | None]:
    """The columns of a file, and the line of each row where lines mean something."""
    if not path.is_file():
        raise InputError(f"there is no file {str(path)!r}", found="a folder" if path.is_dir() else "nothing")
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
    import narwhals as nw  # noqa: PLC0415  # only Parquet files need it

    for backend in ("pyarrow", "polars"):
        try:
            frame = nw.read_parquet(str(path), backend=backend)
        except (ImportError, ModuleNotFoundError):
            continue
        except Exception as error:
            raise InputError(f"cannot read {path.name} as Parquet", found=f"{error}"[:300]) from error
        return {name: frame[name].to_numpy() for name in frame.columns}
    raise MissingExtra("pyarrow", "tables", f"reading {path.name}")


def _text_kinds() -> Iterator[tuple[str, Callable[[str, str], tuple[Columns, Lines | None]]]]:
    yield ".csv", _comma_separated
    yield from ((ending, _tab_separated) for ending in (".tsv", ".tab"))
    yield from ((ending, _json_lines) for ending in (".jsonl", ".ndjson"))
    yield ".json", _json_document


_TEXT: Final = dict(_text_kinds())
_PARQUET: Final = (".parquet", ".pq")
_UTF_16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
