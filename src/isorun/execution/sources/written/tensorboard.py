"""Scalars from TensorBoard event files, without TensorBoard.

An own reader, because importing TensorBoard takes seconds and its packages more than 100 MB, and only one kind of
value is wanted: scalars, written either as a plain float or as a tensor without dimensions.
"""

from __future__ import annotations

import math
import os
import struct
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from isorun.execution.sources.found import Found
from isorun.execution.sources.written.tfrecord import TornRecord, records
from isorun.execution.sources.written.wire import MalformedMessage, fields, signed, varints
from isorun.study.records import Note, Series

__all__ = ["Scalar", "read_event_folder", "scalars_in"]

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
    steps: array[float] = field(default_factory=lambda: array("d"))
    seconds: array[float] = field(default_factory=lambda: array("d"))
    values: array[float] = field(default_factory=lambda: array("d"))


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
        series={
            name: Series(tuple(tag.steps), tuple(tag.seconds), tuple(tag.values)) for name, tag in sorted(tags.items())
        },
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
