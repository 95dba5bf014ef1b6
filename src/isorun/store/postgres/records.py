"""Rows of PostgreSQL from records, and records from rows: one row a run, and what many runs share once.

`body` is the record's canonical JSON, which is ASCII, so that any text a training left has a place in it. The shared
parts of it are kept by their hash, which is also what the body names them by. The checksum of a row covers all of it,
and with the hashes the parts: whatever a record is put together from.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from isorun.errors import StoreDamaged, StoreError
from isorun.store.content import PackedAxis
from isorun.store.rows import (
    PackedSeries,
    joined_document,
    no_garbage_collected,
    packed_series,
    shared_cell,
    split_document,
    unpacked_series,
)
from isorun.study.cells import Cell
from isorun.study.records import RunRecord, Series, canonical_fields, canonical_json, content_digest, record_digest

__all__ = ["COLUMNS", "KeptRow", "RowReader", "packed_row"]

COLUMNS: Final = "cell, attempt, state, digest, checksum, body, series"
_UNREADABLE: Final = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    StoreError,
    TypeError,
    ValueError,
)


class KeptRow(NamedTuple):
    """A run as the table has it, in the order of its columns."""

    cell: str
    attempt: int
    state: str
    digest: bytes
    checksum: bytes
    body: str
    series: bytes

    @property
    def run_id(self) -> str:
        """The id of the run."""
        return f"{self.cell}-{self.attempt}"

    def sum(self) -> bytes:
        """What the checksum of this row should be."""
        described = (self.cell, self.attempt, self.state, self.digest, len(self.body))
        hashed = hashlib.blake2b(repr(described).encode(), digest_size=16)
        hashed.update(self.body.encode())
        hashed.update(self.series)
        return hashed.digest()


def packed_row(record: RunRecord) -> tuple[KeptRow, dict[bytes, str]]:
    """The row of a record, and the parts that it shares with others, by their hashes."""
    texts = canonical_fields(record)
    digest = record_digest(record, texts)
    environment = _split_environment(texts["environment"], record.environment)
    shared = {
        "cell": canonical_json(shared_cell(record.cell)),
        "environment": environment.rest,
        "code": texts["code"],
        "sources": texts["sources"],
    }
    hashes = {name: content_digest(text.encode("ascii")) for name, text in shared.items()}
    parts = {**environment.parts, **{hashes[name]: text for name, text in shared.items()}}
    described, numbers = _packed_numbers(packed_series(record.series))
    cell = [hashes["cell"].hex(), record.cell.seed, record.cell.repeat]
    own = {**{name: f'"{hashed.hex()}"' for name, hashed in hashes.items()}, "cell": canonical_json(cell)}
    body = {**texts, **own, "series": canonical_json(described)}
    text = ",".join(f'"{name}":{body[name]}' for name in sorted(body))
    row = KeptRow(record.cell.id, record.attempt, str(record.state), digest, b"", f"{{{text}}}", numbers)
    return row._replace(checksum=row.sum()), parts


class _SplitEnvironment(NamedTuple):
    """What is left of an environment, and its large members, by their hashes."""

    rest: str
    parts: Mapping[bytes, str]


_environments: Final[dict[str, _SplitEnvironment]] = {}
_MOST_ENVIRONMENTS: Final = 64


def _split_environment(text: str, environment: Mapping[str, Any]) -> _SplitEnvironment:
    """Runs of a study mostly tell the same of where they ran, word for word: that is split once. text: its JSON."""
    found = _environments.get(text)
    if found is None:
        parts: dict[bytes, str] = {}

        def refer(member: str) -> str:
            hashed = content_digest(member.encode("ascii"))
            parts[hashed] = member
            return hashed.hex()

        found = _SplitEnvironment(split_document(environment, refer)[0], parts)
        if len(_environments) >= _MOST_ENVIRONMENTS:
            _environments.clear()
        _environments[text] = found
    return found


class RowReader:
    """Puts records together and checks each. contents_of: the contents of shared parts by their hashes."""

    def __init__(self, contents_of: Callable[[Sequence[bytes]], Mapping[bytes, str]]) -> None:
        self._contents_of = contents_of
        self._parts: dict[str, Any] = {}
        self._environments: dict[str, Mapping[str, Any]] = {}
        self._cells: dict[str, Cell] = {}

    def records(self, rows: Iterable[KeptRow]) -> list[RunRecord]:
        """The records, in the order of the rows; StoreDamaged when one of them is not what was written."""
        with no_garbage_collected():
            return [self.record(row) for row in rows]

    def each(self, rows: Iterable[KeptRow]) -> Iterator[tuple[str, RunRecord | StoreDamaged]]:
        """The ids of the runs, each with its record, or what is wrong with it."""
        for row in rows:
            try:
                yield row.run_id, self.record(row)
            except StoreDamaged as error:
                yield row.run_id, error

    def record(self, row: KeptRow) -> RunRecord:
        """The record of a row; StoreDamaged when it is not what was written."""
        try:
            if row.sum() != row.checksum:
                raise ValueError("its checksum is not that of its content")
            return self._record(row)
        except _UNREADABLE as error:
            found = error.found if isinstance(error, StoreError) else str(error)
            raise StoreDamaged(f"the record of run {row.run_id} is damaged", found=found) from error

    def _record(self, row: KeptRow) -> RunRecord:
        body = json.loads(row.body)
        group, seed, repeat = body.pop("cell")
        series = _unpacked_numbers(body.pop("series"), row.series)
        body["environment"] = self._environment(body["environment"])
        body["code"], body["sources"] = self._part(body["code"]), self._part(body["sources"])
        return RunRecord.from_json(body, cell=self._cell(group, seed, repeat, row.cell), series=series)

    def _cell(self, group: str, seed: int | None, repeat: int, cell_id: str) -> Cell:
        """The cell of a run; that its id is that of its content was so when the checksum was made."""
        if group not in self._cells:
            self._cells[group] = Cell.from_json({**self._part(group), "seed": None, "repeat": 0})
        return self._cells[group].sibling(seed, repeat, cell_id)

    def _environment(self, name: str) -> Mapping[str, Any]:
        if name not in self._environments:
            split = self._part(name)
            self._fetch([part for *_, part in split["parts"]])
            self._environments[name] = joined_document(split, lambda part: (b"", self._part(part)))[1]
        return self._environments[name]

    def _part(self, name: str) -> Any:
        if name not in self._parts:
            self._fetch([name])
        return self._parts[name]

    def _fetch(self, names: Iterable[str]) -> None:
        """Shared parts, each checked once: its hash is what it is kept under."""
        missing = [bytes.fromhex(name) for name in names if name not in self._parts]
        found = self._contents_of(missing) if missing else {}
        for hashed in missing:
            text = found.get(hashed)
            if text is None or content_digest(text.encode()) != hashed:
                raise ValueError(f"part {hashed.hex()}, which it shares with others, is missing or changed")
            self._parts[hashed.hex()] = json.loads(text)


def _packed_numbers(parts: Sequence[PackedSeries]) -> tuple[list[Any], bytes]:
    """What the numbers are, as JSON, and they: of each axis its steps and seconds, then of each metric its values.

    An axis: points, first step, stride, bytes of its steps or None, exponent, first tick, bytes of its seconds.
    """
    axes = list(dict.fromkeys(part.axis for part in parts))
    places = {axis: place for place, axis in enumerate(axes)}
    described = [
        [*axis[:3], None if axis.steps is None else len(axis.steps), axis.exponent, axis.first_tick, len(axis.seconds)]
        for axis in axes
    ]
    numbers = [piece for axis in axes for piece in (axis.steps or b"", axis.seconds)]
    metrics = [[part.metric, places[part.axis], len(part.content)] for part in parts]
    return [described, metrics], b"".join([*numbers, *(part.content for part in parts)])


def _unpacked_numbers(described: Sequence[Any], numbers: bytes) -> dict[str, Series]:
    start = 0

    def taken(size: int) -> bytes:
        nonlocal start
        start += size
        return numbers[start - size : start]

    axes = []
    for points, first, stride, of_steps, exponent, tick, of_seconds in described[0]:
        steps = None if of_steps is None else taken(of_steps)
        axes.append(PackedAxis(points, first, stride, steps, exponent, tick, taken(of_seconds)))
    series = unpacked_series(PackedSeries(metric, axes[axis], taken(size)) for metric, axis, size in described[1])
    if start != len(numbers):
        raise ValueError(f"{len(numbers):,} bytes of numbers instead of {start:,}")
    return series
