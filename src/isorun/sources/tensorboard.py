"""Scalars from TensorBoard event files, without TensorBoard.

An own reader, because importing TensorBoard takes seconds and its packages more than 100 MB, and only one kind of
value is wanted: scalars, written either as a plain float or as a tensor without dimensions.

Three layers: the TFRecord framing (length, checksum of the length, data, checksum of the data), the wire format of
protocol buffers as far as event files need it, and the events. The checksum is CRC-32C (Castagnoli), rotated and
offset; it costs about a tenth of a microsecond a byte in Python, so that the data's is asked for only where it is used.
"""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from isorun.sources import Found
from isorun.study.records import Note, Numbers, Series

__all__ = [
    "LONGEST_RECORD",
    "Field",
    "MalformedMessage",
    "Record",
    "Scalar",
    "TornRecord",
    "crc32c",
    "fields",
    "masked_crc32c",
    "read_event_folder",
    "records",
    "scalars_in",
    "signed",
    "varints",
]

_WALL_TIME, _STEP, _SUMMARY = 1, 2, 5
_SUMMARY_VALUE, _TAG, _SIMPLE_VALUE, _TENSOR = 1, 1, 2, 8
_DTYPE, _SHAPE, _CONTENT, _DIMENSION = 1, 2, 4, 2
_FLOAT_VAL, _DOUBLE_VAL, _INT_VAL, _INT64_VAL = 5, 6, 7, 10
_FORMATS = {1: "<f", 2: "<d", 3: "<i", 9: "<q", 19: "<e"}
_CLOCK_SLACK_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Scalar:
    """One value of one event."""

    tag: str
    step: int
    wall_time: float
    value: float


@dataclass(slots=True)
class _Tag:
    origin: str
    example: str
    steps: Numbers = field(default_factory=Numbers)
    seconds: Numbers = field(default_factory=Numbers)
    values: Numbers = field(default_factory=Numbers)


def read_event_folder(paths: list[Path], since: float, shown: Callable[[Path], str]) -> Found:
    """The scalars of all the given event files.

    A tag keeps its name when all files lie in one folder. Otherwise the folder's path below the deepest common one
    comes before it ("train/epoch_loss"), so that names do not depend on a numbered or dated folder above.
    """
    top = Path(os.path.commonpath([path.parent for path in paths]))
    tags: dict[str, _Tag] = {}
    notes: list[Note] = []
    earlier = 0
    for path in paths:
        folder = path.parent.relative_to(top).as_posix()
        prefix = "" if folder == "." else f"{folder}/"
        for scalar in _trusted(path, shown(path), notes):
            if not since - _CLOCK_SLACK_SECONDS <= scalar.wall_time < math.inf:
                earlier += 1
                continue
            _append(tags, prefix + scalar.tag, scalar, since, shown(path))
    if earlier:
        notes.append(
            Note("tensorboard.earlier", f"{earlier} values have times before the run began, or none; left out")
        )
    return _found(tags, [*notes, *_several_writers_note(paths)])


def scalars_in(event: bytes) -> Iterator[Scalar]:
    """The scalars of one serialised event; raises MalformedMessage if it is none."""
    wall_time, step, summaries = 0.0, 0, []
    for number, _, value in fields(event):
        if number == _WALL_TIME and isinstance(value, bytes) and len(value) == 8:
            wall_time = struct.unpack("<d", value)[0]
        elif number == _STEP and isinstance(value, int):
            step = signed(value)
        elif number == _SUMMARY and isinstance(value, bytes):
            summaries.append(value)
    for summary in summaries:
        for number, _, value in fields(summary):
            if number == _SUMMARY_VALUE and isinstance(value, bytes):
                yield from _scalar(value, step, wall_time)


def _trusted(path: Path, shown: str, notes: list[Note]) -> Iterator[Scalar]:
    """The scalars of a file up to the first byte that cannot be trusted, where a note is left."""
    try:
        with path.open("rb") as file:
            for record in records(file):
                scalars = list(scalars_in(record.data))
                if scalars and not record.checks:
                    raise TornRecord(f"byte {record.offset}: the checksum of a record is wrong")
                yield from scalars
    except (TornRecord, MalformedMessage) as error:
        notes.append(Note("tensorboard.torn", f"{shown}: {error}; what follows is not read"))
    except OSError as error:
        notes.append(Note("tensorboard.unreadable", f"{shown} cannot be read: {error.strerror or error}"))


def _scalar(message: bytes, step: int, wall_time: float) -> Iterator[Scalar]:
    tag, value = "", None
    for number, _, content in fields(message):
        if not isinstance(content, bytes):
            continue
        if number == _TAG:
            tag = content.decode("utf-8", errors="replace")
        elif number == _SIMPLE_VALUE and len(content) == 4:
            value = struct.unpack("<f", content)[0]
        elif number == _TENSOR:
            value = _tensor_scalar(content)
    if tag and value is not None:
        yield Scalar(tag, step, wall_time, value)


def _tensor_scalar(message: bytes) -> float | None:
    """The number in a tensor that has no dimensions; None for all other tensors."""
    dtype, numbers = 0, []
    content = b""
    for number, _, value in fields(message):
        if number == _DTYPE and isinstance(value, int):
            dtype = value
        elif number == _SHAPE and isinstance(value, bytes) and any(item[0] == _DIMENSION for item in fields(value)):
            return None
        elif number == _CONTENT and isinstance(value, bytes):
            content = value
        elif number in (_FLOAT_VAL, _DOUBLE_VAL, _INT_VAL, _INT64_VAL):
            numbers += _listed(number, value)
    form = _FORMATS.get(dtype)
    if form is not None and len(content) == struct.calcsize(form):
        return float(struct.unpack(form, content)[0])
    return numbers[0] if len(numbers) == 1 else None


def _listed(number: int, value: int | bytes) -> list[float]:
    """The numbers of a repeated field, packed or not."""
    if isinstance(value, int):
        return [float(signed(value))]
    if number in (_INT_VAL, _INT64_VAL):
        return [float(signed(item)) for item in varints(value)]
    form = "<f" if number == _FLOAT_VAL else "<d"
    whole = len(value) - len(value) % struct.calcsize(form)
    return [float(item[0]) for item in struct.iter_unpack(form, value[:whole])]


def _append(tags: dict[str, _Tag], name: str, scalar: Scalar, since: float, shown: str) -> None:
    if name not in tags:
        tags[name] = _Tag(f"tensorboard: {shown}", f"{scalar.tag} at step {scalar.step}")
    tags[name].steps.append(scalar.step)
    tags[name].seconds.append(scalar.wall_time - since)
    tags[name].values.append(scalar.value)


def _found(tags: dict[str, _Tag], notes: list[Note]) -> Found:
    return Found(
        series={name: Series(tag.steps, tag.seconds, tag.values) for name, tag in sorted(tags.items())},
        origins={name: tag.origin for name, tag in tags.items()},
        examples={name: tag.example for name, tag in tags.items()},
        notes=tuple(notes),
    )


def _several_writers_note(paths: list[Path]) -> list[Note]:
    """File names carry the process that wrote them; two in one folder may be two runs that got mixed."""
    writers: dict[Path, set[str]] = {}
    for path in paths:
        parts = path.name.split(".")
        if len(parts) >= 6 and parts[-2].isdigit():
            writers.setdefault(path.parent, set()).add(parts[-2])
    mixed = sorted(str(folder) for folder, processes in writers.items() if len(processes) > 1)
    message = f"several processes wrote event files in {', '.join(mixed)}: their values are in one series"
    return [Note("tensorboard.several-writers", message)] if mixed else []


LONGEST_RECORD = 1 << 30
_HEADER = struct.Struct("<QI")
_FOOTER = struct.Struct("<I")
_POLYNOMIAL = 0x82F63B78


class TornRecord(ValueError):
    """The file ends within a record, or its bytes do not check; nothing after this place can be trusted."""


@dataclass(frozen=True, slots=True)
class Record:
    """One record and the checksum that was stored with it."""

    offset: int
    data: bytes
    checksum: int

    @property
    def checks(self) -> bool:
        """Whether the data is what was written."""
        return masked_crc32c(self.data) == self.checksum


def records(file: BinaryIO) -> Iterator[Record]:
    """The records of an open file, up to its end; raises TornRecord at the first that is not whole."""
    offset = 0
    while header := file.read(_HEADER.size):
        if len(header) < _HEADER.size:
            raise TornRecord(f"byte {offset}: the file ends within a record's length")
        length, checksum = _HEADER.unpack(header)
        if masked_crc32c(header[:8]) != checksum or length > LONGEST_RECORD:
            raise TornRecord(f"byte {offset}: the checksum of a record's length is wrong")
        body = file.read(length + _FOOTER.size)
        if len(body) < length + _FOOTER.size:
            raise TornRecord(f"byte {offset}: the file ends within a record")
        yield Record(offset, body[:length], _FOOTER.unpack(body[length:])[0])
        offset += _HEADER.size + length + _FOOTER.size


def masked_crc32c(data: bytes) -> int:
    """The checksum as it is stored."""
    crc = crc32c(data)
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFF_FFFF


def crc32c(data: bytes) -> int:
    """CRC-32C of the data."""
    crc = 0xFFFF_FFFF
    table = _TABLE
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFF_FFFF


def _table_entry(index: int) -> int:
    for _ in range(8):
        index = (index >> 1) ^ (_POLYNOMIAL if index & 1 else 0)
    return index


_TABLE = tuple(_table_entry(index) for index in range(256))


_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_LONGEST_VARINT = 10

Field = tuple[int, int, int | bytes]


class MalformedMessage(ValueError):
    """The bytes are no message."""


def fields(message: bytes) -> Iterator[Field]:
    """The fields of a message as (number, wire type, value); fixed-size values are left as bytes."""
    position = 0
    while position < len(message):
        key, position = _varint(message, position)
        number, kind = key >> 3, key & 7
        if kind == _VARINT:
            value, position = _varint(message, position)
            yield number, kind, value
            continue
        if kind == _BYTES:
            size, position = _varint(message, position)
        elif kind in (_FIXED64, _FIXED32):
            size = 8 if kind == _FIXED64 else 4
        else:
            raise MalformedMessage(f"wire type {kind}")
        if position + size > len(message):
            raise MalformedMessage("a field reaches beyond the message")
        yield number, kind, message[position : position + size]
        position += size


def varints(packed: bytes) -> Iterator[int]:
    """The numbers of a packed field."""
    position = 0
    while position < len(packed):
        value, position = _varint(packed, position)
        yield value


def signed(value: int) -> int:
    """A varint read as a 64-bit signed number."""
    number: int = struct.unpack("<q", (value & 0xFFFF_FFFF_FFFF_FFFF).to_bytes(8, "little"))[0]
    return number


def _varint(message: bytes, position: int) -> tuple[int, int]:
    result = 0
    for index in range(_LONGEST_VARINT):
        if position >= len(message):
            raise MalformedMessage("a number reaches beyond the message")
        byte = message[position]
        position += 1
        result |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return result, position
    raise MalformedMessage("a number of more than ten bytes")
