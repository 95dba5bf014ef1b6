"""Records: everything one run left behind, as frozen values that travel as JSON, and in envelopes.

A failed run is a record too. Numbers that JSON cannot hold (NaN, infinities) travel as the strings that `float`
reads back, so that a diverged training is recorded as what it was. Series travel packed, as base64 of little-endian
float64.

The JSON says which version it is. Older versions are read, with defaults for what they did not have; a newer one is
refused. Fields are listed once, as those of `RunRecord`: how each travels is said by its type.

An envelope is a record as bytes that show when they were cut or altered: `{"format": 1, "digest": …, "record": …}`;
the digest is that of the record's canonical JSON. The inbox of a store holds envelopes, and every run's folder one
that is gzipped (`record.json.gz`).
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import enum
import functools
import hashlib
import itertools
import json
import math
import operator
import os
import re
import sys
import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, cast

from isorun.errors import StoreError, StoreTooNew
from isorun.study.cells import Cell

__all__ = [
    "ITEM_BYTES",
    "RECORD_VERSION",
    "Envelope",
    "Note",
    "Numbers",
    "Predictions",
    "RunRecord",
    "RunState",
    "Seeded",
    "Series",
    "canonical_fields",
    "canonical_json",
    "content_digest",
    "number_from_json",
    "number_to_json",
    "open_envelope",
    "record_digest",
    "sealed",
    "sealed_and_gzipped",
    "states",
    "step_text",
]

RECORD_VERSION: Final = 2
_IN_SOURCE: Final = " (in source)"
_KEYS: Final = {"origins": "sources"}
"""Fields of a record whose key on disk is older than their name."""
_EMPTY: Final[tuple[Any, ...]] = (None, "", {}, [], ())

if TYPE_CHECKING:
    _Array = array[float]
else:
    _Array = array  # which can be subscripted from Python 3.12 on


class RunState(enum.StrEnum):
    """How a run ended."""

    FINISHED = "finished"
    FAILED = "failed"
    TIMED_OUT = "timed-out"
    INTERRUPTED = "interrupted"


def number_to_json(value: float) -> float | str:
    """A number, or the word for one that JSON has no sign for."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")


def step_text(step: float) -> str:
    """An epoch or a step for people: a large one with all its digits, since the row beside it is another."""
    return str(int(step)) if float(step).is_integer() else f"{step:g}"


def number_from_json(value: float | str) -> float:
    """The number that `number_to_json` wrote."""
    return float(value)


class Numbers(_Array):
    """Many numbers in the memory of as many float64: an array that equals any sequence with the same numbers.

    numpy takes it as it is, without a copy: `numpy.asarray(numbers)`.
    """

    __slots__ = ()
    __hash__ = None  # it can be changed, as any array can

    def __new__(cls, values: Iterable[float] = ()) -> Self:
        """An array of its own with these numbers."""
        numbers = super().__new__(cls, "d")
        try:
            view = memoryview(values)  # type: ignore[arg-type]  # what has no buffer raises TypeError
        except TypeError:
            numbers.extend(iter(values))
        else:
            if view.format == "d":
                numbers.frombytes(view.cast("B") if view.c_contiguous else view.tobytes())
            else:
                numbers.extend(iter(values))
        return cast("Self", numbers)

    @classmethod
    def unpacked(cls, data: bytes) -> Numbers:
        """The numbers that little-endian float64 stand for."""
        numbers = cast("Numbers", _Array.__new__(cls, "d", data))
        if sys.byteorder == "big":
            numbers.byteswap()
        return numbers

    def packed(self) -> bytes:
        """The numbers as little-endian float64."""
        if sys.byteorder == "big":
            turned = Numbers(self)
            turned.byteswap()
            return turned.tobytes()
        return self.tobytes()

    def __eq__(self, other: object) -> bool:
        if isinstance(other, array):
            return self is other or self.tobytes() == other.tobytes() or self.tolist() == other.tolist()
        if isinstance(other, (tuple, list)):
            return len(self) == len(other) and self.tolist() == list(other)
        return NotImplemented

    def __repr__(self) -> str:
        return f"Numbers({self.tolist()})"


@dataclass(frozen=True, slots=True)
class Series:
    """One metric over a run: equally long steps, seconds since the run's start, and values.

    steps are epochs where the training logged epochs, else the steps it logged, else 0, 1, 2, …
    Any sequences of numbers may be given; they are kept as `Numbers`, 8 bytes a number.
    """

    steps: Sequence[float]
    seconds: Sequence[float]
    values: Sequence[float]

    def __post_init__(self) -> None:
        for name in ("steps", "seconds", "values"):
            given = getattr(self, name)
            if not isinstance(given, Numbers):
                object.__setattr__(self, name, Numbers(given))

    @property
    def begins_again(self) -> bool:
        """Whether the steps go back: folds, stages, or several trainings in one run."""
        return any(map(operator.gt, self.steps, itertools.islice(self.steps, 1, None)))


ITEM_BYTES: Final[Mapping[str, int]] = {
    "bool": 1,
    **{f"{kind}{8 * size}": size for kind in ("int", "uint") for size in (1, 2, 4, 8)},
    **{f"float{8 * size}": size for size in (2, 4, 8)},
}
"""What predictions are made of, and how many bytes one of them takes."""


@dataclass(frozen=True, slots=True)
class Predictions:
    """Per-example predictions, packed: little-endian numbers of `dtype`, zlib-compressed, base64 in JSON.

    name: which split or head ("test"); step: the epoch they belong to, None for the end of the run.
    kind: "class" (one integer an example) or "score" (one number an example or class).
    """

    name: str
    step: float | None
    kind: str
    dtype: str
    shape: tuple[int, ...]
    data: str

    @property
    def size(self) -> int:
        """How many bytes they are, unpacked, as they say themselves."""
        return math.prod(self.shape) * ITEM_BYTES.get(self.dtype, 8)

    def unpacked(self) -> bytes:
        """Their bytes, and never more than they say: a small record must not be able to fill the memory.

        ValueError where they are not packed as they should be.
        """
        try:
            return zlib.decompressobj().decompress(base64.b64decode(self.data, validate=True), max(self.size, 1))
        except zlib.error as error:
            raise ValueError(f"predictions {self.name!r} cannot be unpacked: {error}") from None


@dataclass(frozen=True, slots=True)
class Seeded:
    """A seed that the training fixed by itself: which call, which value, where in the code.

    call: a call that was seen ("torch.manual_seed"), or with " (in source)" behind it one that was only read in the
    training's source and may never have been made. replaced: what the generator was given instead, where the seed was
    taken over; empty where the training's own value took effect.
    """

    call: str
    value: str
    where: str
    replaced: str = ""

    @property
    def was_seen(self) -> bool:
        """Whether the call was seen to be made; else a line of the source has it, and nobody knows whether it ran."""
        return not self.call.endswith(_IN_SOURCE)

    @property
    def shown(self) -> str:
        """The call with its value: what was made, or what a line of the source says."""
        return f"{self.call[: None if self.was_seen else -len(_IN_SOURCE)]}({self.value})"

    @property
    def sets_global(self) -> bool:
        """Whether a generator that the whole process shares was seen to be seeded, by this call or by what made it."""
        from isorun.worker.frameworks import global_seed_calls  # noqa: PLC0415  most who read records never ask

        return self.call in global_seed_calls()


@dataclass(frozen=True, slots=True)
class Note:
    """Something a reader of the record should know: a stable code and one sentence."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class RunRecord:
    """Everything one run left.

    results: final values by metric. per_class: final values by metric, then class; per-class values that were logged
    at every epoch are series named "metric[class]". digests: name ("weights.initial", "weights.final", …) to hex.
    environment: {"requested": …, "made": …, "effective": …}: what was asked for, what was made and found for it, what
    was in force in the process; an earlier isorun had what was made in "requested". code: git commit, dirty-diff hash,
    hash of the script.
    origins: where each metric came from ("log", "stdout: <pattern>", "file: …", "tensorboard: …").
    startup_seconds: of the wall_seconds, those before the training's own work began (interpreter, imports of
    frameworks); None where that is not known. devices: those the run was lent. where: the machine ("host") and the
    folder ("folder") it ran in, and who carried it out ("executor"; not there for `local`). watched: what
    `isorun.watch` saw inside the training, a row an epoch, as plain JSON.
    """

    cell: Cell
    attempt: int
    state: RunState
    exit_code: int | None
    signal: str
    reason: str
    launch: str
    seed_used: int | None
    started_at: str
    wall_seconds: float
    cpu_seconds: float
    peak_memory_bytes: int
    results: Mapping[str, float] = field(default_factory=dict)
    per_class: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    series: Mapping[str, Series] = field(default_factory=dict)
    predictions: tuple[Predictions, ...] = ()
    digests: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)
    code: Mapping[str, Any] = field(default_factory=dict)
    origins: Mapping[str, str] = field(default_factory=dict)
    seeded: tuple[Seeded, ...] = ()
    notes: tuple[Note, ...] = ()
    log_tail: str = ""
    startup_seconds: float | None = None
    devices: tuple[str, ...] = ()
    where: Mapping[str, str] = field(default_factory=dict)
    watched: tuple[Mapping[str, Any], ...] = ()

    @property
    def run_id(self) -> str:
        """The id of this execution: the cell's id and the attempt."""
        return f"{self.cell.id}-{self.attempt}"

    def to_json(self) -> dict[str, Any]:
        """Plain JSON, the same for the same record. Runs that were not watched look as they did before one could."""
        return _fields(self, _codecs())

    def told_fields(self, *apart: str) -> dict[str, Any]:
        """The fields that are not empty, as plain JSON, but for those that are kept apart."""
        found = {}
        for name, key, write in _writers(apart):
            value = getattr(self, name)
            if value or value not in _EMPTY:
                found[key] = value if write is None else write(value)
        return found

    @classmethod
    def from_json(cls, data: Mapping[str, Any], **apart: Any) -> RunRecord:
        """The record that `to_json` wrote, in this version or an older one.

        apart: fields that are not in the JSON but were kept apart, as they are.
        """
        try:
            version = data["record"]
            _refuse_newer_record(version)
            return cls(**_read_fields(data, version), **apart)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise StoreError(
                "a record cannot be read",
                found=f"{type(error).__name__}: {error}",
                allowed="a record as isorun wrote it",
                hint="isorun store verify says what else is damaged",
            ) from error


def _fields(record: RunRecord, codecs: Mapping[str, _Codec]) -> dict[str, Any]:
    """The record as plain JSON, of the fields that there are codecs for."""
    fields = {_KEYS.get(name, name): codec.write(getattr(record, name)) for name, codec in codecs.items()}
    if not record.watched:
        del fields["watched"]
    return {"record": RECORD_VERSION, **fields}


def _read_fields(data: Mapping[str, Any], version: int) -> dict[str, Any]:
    """The fields that the JSON has, by their names. One pass over what is there: records are read by the thousand."""
    readers, fields = _readers(), dict[str, Any]()
    for key, value in data.items():
        if key in readers:
            name, read = readers[key]
            fields[name] = value if read is None else read(value, version)
    return fields


class _Codec(NamedTuple):
    """How the fields of one type travel. read is told the version of the record it reads from."""

    write: Callable[[Any], Any]
    read: Callable[[Any, int], Any]


def _refuse_newer_record(version: object) -> None:
    if not isinstance(version, int) or version < 1:
        raise ValueError(f"{version!r} is no version of a record")
    if version > RECORD_VERSION:
        raise StoreTooNew(
            "a record was written by a newer isorun",
            found=f"record version {version}",
            allowed=f"record versions up to {RECORD_VERSION}",
            hint="pip install --upgrade isorun",
        )


def _write_numbers(values: Mapping[str, float]) -> dict[str, float | str]:
    return {name: number_to_json(value) for name, value in values.items()}


def _read_numbers(values: Mapping[str, float | str], _version: int) -> dict[str, float]:
    return {name: number_from_json(value) for name, value in values.items()}


def _write_series(series: Mapping[str, Series]) -> dict[str, Any]:
    """Metrics that were logged together share their steps and seconds, which then travel once.

    In the order of their names, so that the same series give the same JSON.
    """
    axes, places = _shared_axes(series)
    values = {metric: [place, _pack(series[metric].values).decode("ascii")] for metric, place in places.items()}
    return {"axes": [[_pack(column).decode("ascii") for column in axis] for axis in axes], "values": values}


def _shared_axes(series: Mapping[str, Series]) -> tuple[list[tuple[Sequence[float], Sequence[float]]], dict[str, int]]:
    """The different pairs of steps and seconds, and which of them each metric has, by the order of names."""
    known: dict[bytes, int] = {}
    axes: list[tuple[Sequence[float], Sequence[float]]] = []
    places: dict[str, int] = {}
    for metric, item in sorted(series.items()):
        digest = b"".join(content_digest(memoryview(_as_numbers(column))) for column in (item.steps, item.seconds))
        if digest not in known:
            known[digest] = len(axes)
            axes.append((item.steps, item.seconds))
        places[metric] = known[digest]
    return axes, places


def _read_series(data: Mapping[str, Any], version: int) -> dict[str, Series]:
    if version == 1:
        return {
            metric: Series(item["steps"], item["seconds"], _floats(item["values"])) for metric, item in data.items()
        }
    axes = [(_unpack(steps), _unpack(seconds)) for steps, seconds in data["axes"]]
    places = {metric: (axes[axis], _unpack(packed)) for metric, (axis, packed) in data["values"].items()}
    return {metric: Series(steps, seconds, values) for metric, ((steps, seconds), values) in places.items()}


def _floats(values: Iterable[float | str]) -> list[float]:
    return [number_from_json(value) for value in values]


def _as_numbers(values: Sequence[float]) -> Numbers:
    return values if isinstance(values, Numbers) else Numbers(values)


def _pack(values: Sequence[float]) -> bytes:
    numbers = _as_numbers(values)
    return base64.b64encode(numbers if sys.byteorder == "little" else numbers.packed())


def _unpack(column: str | Numbers) -> Numbers:
    """Numbers from base64, where they were not read already."""
    return column if isinstance(column, Numbers) else Numbers.unpacked(base64.b64decode(column, validate=True))


def _write_predictions(items: Iterable[Predictions]) -> list[dict[str, Any]]:
    return [{**dataclasses.asdict(item), "shape": list(item.shape)} for item in items]


def _read_predictions(items: Iterable[Mapping[str, Any]], _version: int) -> tuple[Predictions, ...]:
    return tuple(Predictions(**{**item, "shape": tuple(item["shape"])}) for item in items)


def _write_seeded(items: Iterable[Seeded]) -> list[list[str]]:
    return [[item.call, item.value, item.where, *([item.replaced] if item.replaced else [])] for item in items]


_PLAIN: Final = _Codec(lambda value: value, lambda value, _: value)
_BY_TYPE: Final = {
    "Cell": _Codec(Cell.to_json, lambda value, _: Cell.from_json(value)),
    "RunState": _Codec(str, lambda value, _: RunState(value)),
    "Mapping[str, float]": _Codec(_write_numbers, _read_numbers),
    "Mapping[str, Mapping[str, float]]": _Codec(
        lambda values: {name: _write_numbers(item) for name, item in values.items()},
        lambda values, version: {name: _read_numbers(item, version) for name, item in values.items()},
    ),
    "Mapping[str, Series]": _Codec(_write_series, _read_series),
    "Mapping[str, str]": _Codec(dict, lambda value, _: dict(value)),
    "Mapping[str, Any]": _Codec(dict, lambda value, _: dict(value)),
    "tuple[Predictions, ...]": _Codec(_write_predictions, _read_predictions),
    "tuple[Seeded, ...]": _Codec(_write_seeded, lambda items, _: tuple(Seeded(*item) for item in items)),
    "tuple[Note, ...]": _Codec(
        lambda notes: [[note.code, note.message] for note in notes],
        lambda items, _: tuple(Note(*item) for item in items),
    ),
    "tuple[str, ...]": _Codec(list, lambda items, _: tuple(items)),
    "tuple[Mapping[str, Any], ...]": _Codec(list, lambda items, _: tuple(items)),
}


@functools.cache
def _codecs() -> Mapping[str, _Codec]:
    return {item.name: _BY_TYPE.get(str(item.type), _PLAIN) for item in dataclasses.fields(RunRecord)}


@functools.cache
def _writers(apart: tuple[str, ...]) -> Sequence[tuple[str, str, Callable[[Any], Any] | None]]:
    """The other fields, their keys in the JSON, and what writes them; None where they are what the JSON has."""
    return [
        (name, _KEYS.get(name, name), None if codec is _PLAIN else codec.write)
        for name, codec in _codecs().items()
        if name not in apart
    ]


@functools.cache
def _readers() -> Mapping[str, tuple[str, Callable[[Any, int], Any] | None]]:
    """By the keys of the JSON, the fields and what reads them; None where they are what the JSON has."""
    return {_KEYS.get(name, name): (name, None if codec is _PLAIN else codec.read) for name, codec in _codecs().items()}


@functools.cache
def _codecs_but_series() -> Mapping[str, _Codec]:
    return {name: codec for name, codec in _codecs().items() if name != "series"}


def states(records: Sequence[RunRecord]) -> dict[RunState, int]:
    """How many runs ended in each state."""
    counts = dict.fromkeys(RunState, 0)
    for record in records:
        counts[record.state] += 1
    return counts


_FORMAT: Final = 1
_RECORD: Final = b'"record":'
_END: Final = b"}\n"
_SERIES: Final = b'"series":{"axes":['
_LARGEST_UNZIPPED: Final = 2**31


@dataclass(frozen=True, slots=True)
class Envelope:
    """A record that was found as it was written. digest: of the record as this isorun writes it."""

    record: RunRecord
    digest: bytes


_CANONICAL: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


def canonical_json(data: Any) -> str:
    """The same ASCII text for the same content: sorted keys, no spaces."""
    return _CANONICAL.encode(data)


def canonical_fields(record: RunRecord) -> dict[str, str]:
    """The canonical JSON of each field of the record but its series, by their names in JSON, in order.

    Who needs the digest of a record and parts of its text makes them once.
    """
    content = _fields(record, _codecs_but_series())
    return {name: canonical_json(content[name]) for name in sorted(content)}


def content_digest(data: bytes | memoryview) -> bytes:
    """Sixteen bytes that stand for the content."""
    return hashlib.blake2b(data, digest_size=16).digest()


def record_digest(record: RunRecord, fields: Mapping[str, str] | None = None) -> bytes:
    """What tells this record from any other. fields: its `canonical_fields`, where they are at hand."""
    return _digest_of(_canonical_pieces(record, fields))


def sealed(record: RunRecord) -> tuple[list[bytes], bytes]:
    """The record in its envelope, in pieces to be written one after another, and its digest."""
    pieces = list(_canonical_pieces(record))
    digest = _digest_of(pieces)
    return [_start_of_envelope(digest), *pieces, _END], digest


def sealed_and_gzipped(record: RunRecord) -> Iterator[bytes]:
    """The record as a run's folder keeps it, in pieces, of which one is in memory at a time."""
    stream, fields = zlib.compressobj(level=1, wbits=31), canonical_fields(record)
    yield stream.compress(_start_of_envelope(record_digest(record, fields)))
    yield from map(stream.compress, _canonical_pieces(record, fields))
    yield stream.compress(_END) + stream.flush()


def _start_of_envelope(digest: bytes) -> bytes:
    return b'{"format":%d,"digest":"%b",%b' % (_FORMAT, digest.hex().encode(), _RECORD)


def open_envelope(data: bytes) -> Envelope:
    """The record in the envelope, gzipped or not; ValueError says what is wrong with it.

    StoreTooNew where a newer isorun wrote it.
    """
    try:
        data = _unzipped(data)
        found = content_digest(memoryview(data)[data.find(_RECORD) + len(_RECORD) : -len(_END)])
        is_whole, (text, columns) = data.endswith(_END), _columns_apart(data)
        del data  # of tens of megabytes no more copies are held than are needed
        envelope = _with_columns(json.loads(text), columns)
        _refuse_newer_envelope(envelope)
        written, content = bytes.fromhex(envelope["digest"]), envelope["record"]
        if found != written or not is_whole:
            raise ValueError(f"a record with the digest {found.hex()} instead of {written.hex()}")
        record = RunRecord.from_json(content)
    except StoreTooNew:
        raise
    except (StoreError, AttributeError, LookupError, RecursionError, TypeError, ValueError, MemoryError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from None
    return Envelope(record, found if content["record"] == RECORD_VERSION else record_digest(record))


# Not the name of a metric, behind which a colon stands: it may be as long, and be made of the same characters.
_LONG_COLUMN: Final = re.compile(rb'"([A-Za-z0-9+/]{4096,}={0,2})"(?!:)')


def _columns_apart(data: bytes) -> tuple[bytes, dict[str, Numbers]]:
    """The envelope without the long columns of numbers of its series, each a name in their place, and the columns.

    A million points are tens of megabytes of text, which need not become a Python string first.
    """
    begin = data.find(_SERIES)
    end = data.find(b"}}", begin)
    if min(begin, end) < 0 or data.find(_SERIES, begin + 1) >= 0:  # none, or more than the record's own
        return data, {}
    token, columns, texts, done = os.urandom(16).hex(), dict[str, Numbers](), list[bytes](), 0
    for match in _LONG_COLUMN.finditer(data, begin, end):
        first, last = match.span(1)
        name = f"{token}-{len(columns)}"
        columns[name] = Numbers.unpacked(binascii.a2b_base64(memoryview(data)[first:last], strict_mode=True))
        texts += [data[done:first], name.encode("ascii")]
        done = last
    return b"".join((*texts, data[done:])), columns


def _with_columns(envelope: Any, columns: Mapping[str, Numbers]) -> Any:
    """The same with the columns in their places."""
    if columns:
        series = envelope["record"]["series"]
        series["axes"] = [[columns.get(column, column) for column in axis] for axis in series["axes"]]
        series["values"] = {
            metric: [axis, columns.get(packed, packed)] for metric, (axis, packed) in series["values"].items()
        }
    return envelope


def _canonical_pieces(record: RunRecord, fields: Mapping[str, str] | None = None) -> Iterator[bytes]:
    """The canonical JSON of the record. A million points are tens of megabytes, of which no second copy is made."""
    texts = canonical_fields(record) if fields is None else fields
    before = ",".join(f'"{name}":{text}' for name, text in texts.items() if name < "series")
    after = ",".join(f'"{name}":{text}' for name, text in texts.items() if name > "series")
    axes, places = _shared_axes(record.series)
    yield b"{%b,%b" % (before.encode("ascii"), _SERIES)
    for number, (steps, seconds) in enumerate(axes):
        yield b',["' if number else b'["'
        yield _pack(steps)
        yield b'","'
        yield _pack(seconds)
        yield b'"]'
    yield b'],"values":{'
    for number, (metric, place) in enumerate(places.items()):
        yield b'%b%b:[%d,"' % (b"," if number else b"", json.dumps(metric).encode("ascii"), place)
        yield _pack(record.series[metric].values)
        yield b'"]'
    yield b"}},%b}" % after.encode("ascii")


def _digest_of(pieces: Iterable[bytes]) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for piece in pieces:
        digest.update(piece)
    return digest.digest()


def _unzipped(data: bytes) -> bytes:
    if not data.startswith(b"\x1f\x8b"):
        return data
    try:
        stream = zlib.decompressobj(wbits=31)
        unzipped = stream.decompress(data, _LARGEST_UNZIPPED)
    except zlib.error as error:
        raise ValueError(f"not whole: {error}") from None
    if not stream.eof:
        raise ValueError("not whole, or larger than 2 GiB")
    return unzipped


def _refuse_newer_envelope(envelope: Mapping[str, Any]) -> None:
    version = envelope["format"]
    if isinstance(version, int) and version > _FORMAT:
        raise StoreTooNew(
            "a record was written by a newer isorun",
            found=f"envelope format {version}",
            allowed=f"envelope format {_FORMAT}",
            hint="pip install --upgrade isorun",
        )
