"""Rows from records and records from rows: shared parts once, and every record checked when it is read.

Fields of a record that have no column or table of their own are in `document`, so a new field needs no change here. A
run's checksum covers its row, the hashes of the shared documents it refers to, its series with their axes, and its
predictions: whatever a record is put together from.
"""

from __future__ import annotations

import base64
import gc
import hashlib
import hmac
import json
import math
import operator
import sqlite3
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final, NamedTuple

from isorun.errors import StoreDamaged, StoreError
from isorun.store.content import PackedAxis, digest_in_version_1, pack_axis, unpack_axes, unpack_axis
from isorun.study.cells import Cell
from isorun.study.records import (
    RECORD_VERSION,
    Numbers,
    RunRecord,
    Series,
    canonical_json,
    content_digest,
    record_digest,
)

__all__ = [
    "PackedSeries",
    "RecordReader",
    "RecordWriter",
    "RunRow",
    "Unwritable",
    "add_checksums",
    "has_withheld",
    "is_another_key",
    "joined_document",
    "no_garbage_collected",
    "packed_series",
    "read_run_rows",
    "remember_key",
    "shared_cell",
    "split_document",
    "unpacked_series",
]

_SHARED_FROM_CHARACTERS: Final = 120
_KEY_MEMBER: Final = "isorun.store.key"
_KEY_DOCUMENTS: Final = f'{{"{_KEY_MEMBER}":"*'
_SMALLEST, _LARGEST = -(2**63), 2**63 - 1
_MANY_POINTS: Final = 200_000
_RUNS_AT_ONCE: Final = 500


class _Column(NamedTuple):
    """How a value that SQLite has no exact place for is put into a column, and read back."""

    write: Callable[[Any], Any]
    read: Callable[[Any], Any]


def _text_to_column(text: str) -> str | bytes:
    """Any text: as bytes where it holds half characters (lone surrogates), which UTF-8 forbids."""
    data = text.encode("utf-8", "surrogatepass")
    try:
        data.decode()
    except UnicodeDecodeError:
        return data
    return text


def _text_from_column(value: str | bytes) -> str:
    return value.decode("utf-8", "surrogatepass") if isinstance(value, bytes) else value


def _name_from_column(value: str | bytes) -> str:
    """The name of a metric. One that is damaged stands for itself: no checksum is right with it."""
    try:
        return str(_text_from_column(value))
    except UnicodeDecodeError:
        return repr(value)


_AS_IS: Final = _Column(lambda value: value, lambda value: value)
_TEXT: Final = _Column(_text_to_column, _text_from_column)
_INTEGER: Final = _Column(  # as text beyond 64 bits
    lambda value: value if value is None or _SMALLEST <= value <= _LARGEST else str(value),
    lambda value: None if value is None else int(value),
)
_NUMBER: Final = _Column(  # SQLite keeps NaN as NULL
    lambda value: None if math.isnan(value) else value, lambda value: math.nan if value is None else value
)

# The fields of a record that have a column of their own, and those that are documents shared by many runs.
_COLUMNS: Final = {
    "state": _AS_IS,
    "exit_code": _AS_IS,
    "signal": _TEXT,
    "launch": _TEXT,
    "seed_used": _INTEGER,
    "started_at": _TEXT,
    "wall_seconds": _NUMBER,
    "cpu_seconds": _NUMBER,
    "peak_memory_bytes": _AS_IS,
}
_SHARED: Final = ("environment", "code", "sources")
_ELSEWHERE: Final = {"record", "cell", "attempt", "series", "predictions", "digests", "log_tail", *_COLUMNS, *_SHARED}

# The columns of `runs` in the order in which they are written, read and summed up; `documents` are the references.
_RUN_COLUMNS: Final = (
    *("cell", "attempt", "cell_group", "seed", "repeat"),
    *_COLUMNS,
    *_SHARED,
    *("content_digest", "digest_names", "digests", "document", "log_tail"),
)
_INSERT_RUN: Final = (
    f"INSERT INTO runs ({', '.join(_RUN_COLUMNS)}, checksum) "  # noqa: S608 - names of columns, all of them ours
    f"VALUES ({', '.join('?' * (len(_RUN_COLUMNS) + 1))})"
)
_SELECT_RUNS: Final = f"SELECT id, {', '.join(_RUN_COLUMNS)}, checksum FROM runs"  # noqa: S608
_all_run_columns: Final = operator.itemgetter(*_RUN_COLUMNS)
_AXIS: Final = "points, first_step, stride, steps, exponent, first_tick, seconds"
_EMPTY: Final[tuple[Any, ...]] = (None, "", {}, [])


class RunRow(NamedTuple):
    """What tells the runs in the database apart."""

    id: int
    cell: str
    attempt: int
    state: str
    digest: bytes


class PackedSeries(NamedTuple):
    """One series as it lies in a database."""

    metric: str
    axis: PackedAxis
    content: bytes


def read_run_rows(connection: sqlite3.Connection, after: int = 0) -> list[RunRow]:
    """The runs whose row comes after the given one, read from the table itself: an index may be damaged."""
    rows = connection.execute(
        "SELECT id, cell, attempt, state, content_digest FROM runs NOT INDEXED WHERE id > ? ORDER BY id", (after,)
    )
    found = [RunRow(*row) for row in rows]
    for row in found:
        kinds = tuple(map(type, row))
        if kinds != (int, str, int, str, bytes):
            named = ", ".join(kind.__name__ for kind in kinds)
            raise StoreDamaged(f"row {row.id} of the runs is damaged", found=f"values of the types {named}")
    return found


def has_withheld(connection: sqlite3.Connection) -> bool:
    """Whether something was withheld from the command of a run in the database: only the store's key tells it apart."""
    asked = """
        SELECT EXISTS (SELECT 1 FROM cell_groups JOIN documents ON documents.id = cell_groups.content
        WHERE json_extract(documents.content, '$.withheld') IS NOT NULL)
    """
    return bool(connection.execute(asked).fetchone()[0])


def is_another_key(connection: sqlite3.Connection, key: bytes) -> bool:
    """Whether the database knows a key, and this is not it; an older isorun left none."""
    if _knows(connection, key):
        return False
    return connection.execute("SELECT 1 FROM documents WHERE content GLOB ?", (_KEY_DOCUMENTS,)).fetchone() is not None


def remember_key(connection: sqlite3.Connection, key: bytes) -> None:
    """Let the database know which key the store has, by a hash that tells nothing of it; within a transaction."""
    if not _knows(connection, key):
        connection.execute("DELETE FROM documents WHERE content GLOB ?", (_KEY_DOCUMENTS,))
        connection.execute("INSERT INTO documents (hash, content) VALUES (?, ?)", _key_document(key))


def _knows(connection: sqlite3.Connection, key: bytes) -> bool:
    found = connection.execute("SELECT content FROM documents WHERE hash = ?", _key_document(key)[:1]).fetchone()
    return bool(found == _key_document(key)[1:])


def _key_document(key: bytes) -> tuple[bytes, str]:
    """A document of the database's own, which no run refers to, and its hash."""
    hashed = hmac.new(key, b"the key of this store", hashlib.sha256).hexdigest()[:32]
    text = canonical_json({_KEY_MEMBER: hashed})
    return content_digest(text.encode("ascii")), text


class Unwritable(ValueError):
    """A record whose content the database cannot hold."""


class RecordWriter:
    """Writes records within one transaction, each whole or not at all.

    It remembers the ids of shared parts, so it must not outlive a transaction that is rolled back.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._names: dict[str, int] = {}
        self._documents: dict[bytes, int] = {}

    def write(self, record: RunRecord, digest: bytes) -> None:
        """Write all parts of a record that is not in the database yet.

        Unwritable, and nothing is written, where its own content is the reason: no other record has to wait for it.
        """
        self._connection.execute("SAVEPOINT record")
        try:
            self._write_parts(record, digest)
        except _REFUSED as error:
            self._connection.execute("ROLLBACK TO record")
            self._connection.execute("RELEASE record")
            self._names, self._documents = {}, {}
            raise Unwritable(f"{type(error).__name__}: {error}") from error
        self._connection.execute("RELEASE record")

    def _write_parts(self, record: RunRecord, digest: bytes) -> None:
        content = replace(record, series={}).to_json()
        columns, summed = self._columns(record, content, digest)
        parts = packed_series(record.series)
        predictions = [_prediction_columns(item) for item in content["predictions"]]
        checksum = _checksum(summed, parts, predictions)
        run = _row_id(self._connection.execute(_INSERT_RUN, (*columns, checksum)))
        self._write_series(run, parts)
        self._connection.executemany(
            "INSERT INTO predictions (run, description, content) VALUES (?, ?, ?)",
            [(run, *item) for item in predictions],
        )

    def _columns(
        self, record: RunRecord, content: Mapping[str, Any], digest: bytes
    ) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The row of the run, and the same with hashes in place of the documents it refers to."""
        cell = record.cell
        packed = {name: data for name, value in sorted(record.digests.items()) if (data := _hex_to_bytes(value))}
        rest = {name: value for name, value in content.items() if name not in _ELSEWHERE and value not in _EMPTY}
        plain = {name: value for name, value in record.digests.items() if name not in packed}
        environment, part_hashes = split_document(record.environment, self._document)
        documents = {
            "cell_group": canonical_json(shared_cell(cell)),
            "environment": environment,
            "code": canonical_json(content["code"]),
            "sources": canonical_json(content["sources"]),
            "digest_names": canonical_json([[name, len(value)] for name, value in packed.items()]),
        }
        values = {
            "cell": cell.id,
            "attempt": record.attempt,
            "seed": _INTEGER.write(cell.seed),
            "repeat": cell.repeat,
            **{name: column.write(content[name]) for name, column in _COLUMNS.items()},
            "content_digest": digest,
            "digests": b"".join(packed.values()),
            "document": canonical_json({**rest, "digests": plain} if plain else rest),
            "log_tail": zlib.compress(record.log_tail.encode("utf-8", "surrogatepass")) if record.log_tail else b"",
        }
        ids = {name: self._document(text) for name, text in documents.items()}
        ids["cell_group"] = self._group(cell, ids["cell_group"])
        hashes = {name: content_digest(text.encode("ascii")) for name, text in documents.items()}
        hashes["environment"] = _joint_hash(hashes["environment"], part_hashes)
        return _in_order({**values, **ids}), _in_order({**values, **hashes})

    def _write_series(self, run: int, parts: Iterable[PackedSeries]) -> None:
        axes: dict[PackedAxis, int] = {}
        for part in parts:
            if part.axis not in axes:
                insert = f"INSERT INTO axes ({_AXIS}) VALUES (?, ?, ?, ?, ?, ?, ?)"  # noqa: S608
                axes[part.axis] = _row_id(self._connection.execute(insert, part.axis))
            self._connection.execute(
                "INSERT INTO series (run, metric, axis, content) VALUES (?, ?, ?, ?)",
                (run, self._name(part.metric), axes[part.axis], part.content),
            )

    def _group(self, cell: Cell, content: int) -> int:
        self._connection.execute(
            "INSERT INTO cell_groups (approach, config, environment, level, content) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT DO NOTHING",
            (*map(_text_to_column, cell.group), content),
        )
        return _one(self._connection.execute("SELECT id FROM cell_groups WHERE content = ?", (content,)))

    def _name(self, name: str) -> int:
        if name not in self._names:
            column = _text_to_column(name)
            self._connection.execute("INSERT INTO names (name) VALUES (?) ON CONFLICT DO NOTHING", (column,))
            self._names[name] = _one(self._connection.execute("SELECT id FROM names WHERE name = ?", (column,)))
        return self._names[name]

    def _document(self, content: str) -> int:
        digest = content_digest(content.encode("ascii"))
        if digest not in self._documents:
            self._connection.execute(
                "INSERT INTO documents (hash, content) VALUES (?, ?) ON CONFLICT DO NOTHING", (digest, content)
            )
            rows = self._connection.execute("SELECT id FROM documents WHERE hash = ?", (digest,))
            self._documents[digest] = _one(rows)
        return self._documents[digest]


class RecordReader:
    """Reads the given runs, or all, and checks each; to be used within one transaction."""

    def __init__(self, connection: sqlite3.Connection, runs: Sequence[int] | None = None) -> None:
        self._connection = connection
        self._which = "" if runs is None else "WHERE {} IN (SELECT value FROM json_each(?))"
        self._asked = () if runs is None else (json.dumps(list(runs)),)
        self._documents: dict[int, tuple[bytes, Any]] = {}
        self._cells: dict[int, Cell] = {}
        self._environments: dict[int, tuple[bytes, Mapping[str, Any]]] = {}
        self._unpacked: Mapping[PackedAxis, tuple[Numbers, Numbers]] = {}
        self._series = self._read_series()
        self._predictions = self._read_predictions()

    def records(self) -> list[RunRecord]:
        """The records, ordered by cell and attempt; StoreDamaged when one of them is not what was written."""
        rows = self._connection.execute(
            f"{_SELECT_RUNS} {self._which.format('id')} ORDER BY cell, attempt", self._asked
        )
        with no_garbage_collected():
            return list(self._all_checked(rows.fetchall()))

    def _all_checked(self, rows: Sequence[tuple[Any, ...]]) -> Iterator[RunRecord]:
        """The records of the rows; where they have many points, the axes of several records are unpacked at once."""
        sizes = (part.axis.points for parts in self._series.values() for part in parts)
        points = sum(size for size in sizes if type(size) is int)  # a damaged one may be anything
        for start in range(0, len(rows), _RUNS_AT_ONCE):
            some = rows[start : start + _RUNS_AT_ONCE]
            if points >= _MANY_POINTS:
                self._unpacked = unpack_axes(part.axis for row in some for part in self._series[row[0]])
            yield from map(self._checked, some)

    def each(self) -> Iterator[tuple[int, RunRecord | StoreDamaged]]:
        """The records with the ids of their rows, and in place of a damaged one what is wrong with it."""
        rows = self._connection.execute(f"{_SELECT_RUNS} {self._which.format('id')} ORDER BY id", self._asked)
        for row in rows.fetchall():
            try:
                yield row[0], self._checked(row)
            except StoreDamaged as error:
                yield row[0], error

    def sound_in_version_1(self) -> Iterator[tuple[int, bytes, bytes]]:
        """Of each run of schema 1 that is what was written: its row, today's digest of the record, and its checksum."""
        for row in self._connection.execute(_SELECT_RUNS).fetchall():
            values = dict(zip(_RUN_COLUMNS, row[1:-1], strict=True))
            try:
                record = self._record(row[0], values)
                if digest_in_version_1(record) == values["content_digest"]:
                    digest = record_digest(record)
                    yield row[0], digest, self._sum(row[0], {**values, "content_digest": digest})
            except _UNREADABLE:
                continue

    def _checked(self, row: tuple[Any, ...]) -> RunRecord:
        run, *columns, checksum = row
        values = dict(zip(_RUN_COLUMNS, columns, strict=True))
        try:
            if self._sum(run, values) != checksum:
                raise ValueError("its checksum is not that of its content")
            record = self._record(run, values)
        except _UNREADABLE as error:
            found = error.found if isinstance(error, StoreError) else str(error)
            name = f"{values['cell']}-{values['attempt']}"
            raise StoreDamaged(f"the record of run {name} is damaged", found=found) from error
        return record

    def _sum(self, run: int, values: Mapping[str, Any]) -> bytes:
        summed = {
            **values,
            "code": self._document(values["code"])[0],
            "sources": self._document(values["sources"])[0],
            "digest_names": self._document(values["digest_names"])[0],
            "environment": self._environment(values["environment"])[0],
            "cell_group": self._document(self._groups[values["cell_group"]])[0],
        }
        return _checksum(_in_order(summed), self._series[run], self._predictions[run])

    def _record(self, run: int, values: Mapping[str, Any]) -> RunRecord:
        document = json.loads(values["document"])
        content = {
            "record": RECORD_VERSION,
            "reason": "",
            **document,
            **{name: column.read(values[name]) for name, column in _COLUMNS.items()},
            "attempt": values["attempt"],
            "predictions": [_prediction(*item) for item in self._predictions[run]],
            "digests": {**self._digests(values), **document.get("digests", {})},
            "environment": self._environment(values["environment"])[1],
            "code": self._document(values["code"])[1],
            "sources": self._document(values["sources"])[1],
            "log_tail": _unzipped_text(values["log_tail"]),
        }
        series = unpacked_series(self._series[run], self._unpacked)
        return RunRecord.from_json(content, cell=self._cell(values), series=series)

    def _cell(self, values: Mapping[str, Any]) -> Cell:
        """The cell of a run; that its id is that of its content was so when its checksum was made."""
        group = values["cell_group"]
        if group not in self._cells:
            shared = self._document(self._groups[group])[1]
            self._cells[group] = Cell.from_json({**shared, "seed": None, "repeat": 0})
        return self._cells[group].sibling(_INTEGER.read(values["seed"]), values["repeat"], values["cell"])

    def _document(self, number: int) -> tuple[bytes, Any]:
        """A shared document and its hash, checked once."""
        if number not in self._documents:
            row = self._connection.execute("SELECT hash, content FROM documents WHERE id = ?", (number,)).fetchone()
            if row is None or content_digest(row[1].encode()) != row[0]:
                raise ValueError(f"document {number}, which it shares with others, is missing or changed")
            self._documents[number] = (row[0], json.loads(row[1]))
        return self._documents[number]

    def _environment(self, number: int) -> tuple[bytes, Mapping[str, Any]]:
        """Put a document that was split back together, once for all runs that share it; its hash covers its parts."""
        if number not in self._environments:
            hashed, split = self._document(number)
            hashes, whole = joined_document(split, self._document)
            self._environments[number] = (_joint_hash(hashed, hashes), whole)
        return self._environments[number]

    def _digests(self, values: Mapping[str, Any]) -> dict[str, str]:
        found, start = {}, 0
        for name, size in self._document(values["digest_names"])[1]:
            found[name] = values["digests"][start : start + size].hex()
            start += size
        return found

    def _read_series(self) -> defaultdict[int, list[PackedSeries]]:
        groups = self._connection.execute("SELECT id, content FROM cell_groups")
        self._groups: dict[int, int] = dict(groups.fetchall())
        names = {number: _name_from_column(name) for number, name in self._connection.execute("SELECT * FROM names")}
        axes = self._read_axes()
        found: defaultdict[int, list[PackedSeries]] = defaultdict(list)
        rows = self._connection.execute(
            f"SELECT run, metric, axis, content FROM series {self._which.format('run')}",  # noqa: S608
            self._asked,
        )
        for run, metric, axis, content in rows:
            if metric in names and axis in axes:
                found[run].append(PackedSeries(names[metric], axes[axis], content))
        return found

    def _read_axes(self) -> dict[int, PackedAxis]:
        of_runs = f"WHERE id IN (SELECT axis FROM series {self._which.format('run')})" if self._which else ""  # noqa: S608
        rows = self._connection.execute(f"SELECT id, {_AXIS} FROM axes {of_runs}", self._asked)  # noqa: S608
        return {row[0]: PackedAxis(*row[1:]) for row in rows}

    def _read_predictions(self) -> defaultdict[int, list[tuple[str, bytes | None]]]:
        found: defaultdict[int, list[tuple[str, bytes | None]]] = defaultdict(list)
        rows = self._connection.execute(
            f"SELECT run, description, content FROM predictions {self._which.format('run')} ORDER BY id",  # noqa: S608
            self._asked,
        )
        for run, description, content in rows:
            found[run].append((description, content))
        return found


# What Python and SQLite say of the content of one record. Trouble of the disk or the file is none of these.
_CONTENT: Final = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
_REFUSED: Final = (
    sqlite3.DataError,
    sqlite3.IntegrityError,
    sqlite3.InterfaceError,
    sqlite3.ProgrammingError,
    *_CONTENT,
)
_UNREADABLE: Final = (StoreError, zlib.error, *_CONTENT)


@contextmanager
def no_garbage_collected() -> Iterator[None]:
    """While many records are made, none of which is garbage, looking for some takes a quarter of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def add_checksums(connection: sqlite3.Connection) -> None:
    """Give the rows of schema 1 their checksum, and the digest of the record's newer version, where they are sound."""
    for run, digest, checksum in RecordReader(connection).sound_in_version_1():
        connection.execute("UPDATE runs SET content_digest = ?, checksum = ? WHERE id = ?", (digest, checksum, run))


def _checksum(
    columns: tuple[Any, ...], parts: Iterable[PackedSeries], predictions: Iterable[tuple[str, bytes | None]]
) -> bytes:
    digest = hashlib.blake2b(repr(columns).encode("utf-8", "surrogatepass"), digest_size=16)
    for metric, axis, content in sorted(parts, key=lambda part: part.metric):
        sizes = (len(axis.steps or b""), len(axis.seconds), len(content))
        described = (metric, *axis[:3], axis.steps is None, axis.exponent, axis.first_tick, sizes)
        digest.update(repr(described).encode("utf-8", "surrogatepass"))
        digest.update(axis.steps or b"")
        digest.update(axis.seconds)
        digest.update(content)
    digest.update(repr(list(predictions)).encode("utf-8", "surrogatepass"))
    return digest.digest()


def _joint_hash(first: bytes, others: Iterable[bytes]) -> bytes:
    return content_digest(b"".join((first, *others)))


def _in_order(values: Mapping[str, Any]) -> tuple[Any, ...]:
    columns: tuple[Any, ...] = _all_run_columns(values)
    return columns


def packed_series(series: Mapping[str, Series]) -> list[PackedSeries]:
    """Each series packed; those that share steps and seconds share an axis."""
    axes: dict[tuple[int, int], PackedAxis] = {}
    parts = []
    for metric, item in series.items():
        place = (id(item.steps), id(item.seconds))
        axis = axes[place] = axes.get(place) or pack_axis(item.steps, item.seconds)
        parts.append(PackedSeries(metric, axis, Numbers(item.values).packed()))
    return parts


def unpacked_series(
    parts: Iterable[PackedSeries], unpacked: Mapping[PackedAxis, tuple[Numbers, Numbers]] | None = None
) -> dict[str, Series]:
    """The series again; those whose axis is one and the same object go on sharing steps and seconds.

    unpacked: axes that were unpacked before.
    """
    axes: dict[int, tuple[Numbers, Numbers]] = {}
    found = {}
    for part in parts:
        known = axes.get(id(part.axis)) or (unpacked and unpacked.get(part.axis))
        axis = axes[id(part.axis)] = known or unpack_axis(part.axis)
        found[part.metric] = Series(*axis, Numbers.unpacked(part.content))
    return found


def split_document(document: Mapping[str, Any], refer: Callable[[str], Any]) -> tuple[str, list[bytes]]:
    """Keep the large members of a two-level document each once, so that one that differs costs only itself.

    refer: keeps a text and gives what stands for it. What is left of the document, with those references, and the
    hashes of the parts.
    """
    hashes: list[bytes] = []
    rest: dict[str, Any] = {}
    parts: list[list[Any]] = []
    for key, members in document.items():
        if not isinstance(members, Mapping):
            rest[key] = members
            continue
        texts = {name: canonical_json(value) for name, value in members.items()}
        shared = {name for name, text in texts.items() if len(text) >= _SHARED_FROM_CHARACTERS}
        parts += [[key, name, refer(texts[name])] for name in sorted(shared)]
        hashes += [content_digest(texts[name].encode("ascii")) for name in sorted(shared)]
        rest[key] = {name: value for name, value in members.items() if name not in shared}
    return canonical_json({"rest": rest, "parts": parts}), hashes


def joined_document(
    split: Mapping[str, Any], part_of: Callable[[Any], tuple[bytes, Any]]
) -> tuple[list[bytes], dict[str, Any]]:
    """The hashes of the parts of a document that was split, and the whole. part_of: the hash and content of one."""
    whole = {key: dict(value) if isinstance(value, dict) else value for key, value in split["rest"].items()}
    parts = [part_of(part) for *_, part in split["parts"]]
    for (key, name, _), (_, content) in zip(split["parts"], parts, strict=True):
        whole[key][name] = content
    return [hashed for hashed, _ in parts], whole


def shared_cell(cell: Cell) -> dict[str, Any]:
    """What identical runs share of their cells: all but seed and repeat."""
    return {name: value for name, value in cell.to_json().items() if name not in {"id", "seed", "repeat"}}


def _prediction_columns(item: Mapping[str, Any]) -> tuple[str, bytes | None]:
    """The description, and the packed numbers where base64 stands for them and for nothing else."""
    try:
        content = base64.b64decode(item["data"], validate=True)
    except ValueError:
        return canonical_json(item), None
    if base64.b64encode(content).decode() != item["data"]:
        return canonical_json(item), None
    return canonical_json({name: value for name, value in item.items() if name != "data"}), content


def _prediction(description: str, content: bytes | None) -> dict[str, Any]:
    data = {} if content is None else {"data": base64.b64encode(content).decode()}
    return {**json.loads(description), **data}


def _unzipped_text(data: bytes) -> str:
    return zlib.decompress(data).decode("utf-8", "surrogatepass") if data else ""


def _hex_to_bytes(text: str) -> bytes | None:
    """The bytes that plain lower-case hexadecimal stands for; None for any other text."""
    try:
        data = bytes.fromhex(text)
    except (TypeError, ValueError):
        return None
    return data if data.hex() == text else None


def _row_id(cursor: sqlite3.Cursor) -> int:
    assert cursor.lastrowid is not None
    return cursor.lastrowid


def _one(cursor: sqlite3.Cursor) -> int:
    return int(cursor.fetchone()[0])
