"""Envelopes: a record as bytes that show when they were cut or altered.

An envelope is `{"format": 1, "digest": …, "record": …}`; the digest is that of the record's canonical JSON. The inbox
of a store holds envelopes, and every run's folder one that is gzipped (`record.json.gz`).
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from isorun.errors import StoreError, StoreTooNew
from isorun.study.records import RECORD_VERSION, RunRecord

__all__ = [
    "Envelope",
    "canonical_json",
    "content_digest",
    "open_envelope",
    "record_digest",
    "sealed",
    "sealed_and_gzipped",
]

_FORMAT: Final = 1
_RECORD: Final = b'"record":'
_END: Final = b"}\n"
_LARGEST_UNZIPPED: Final = 2**31


@dataclass(frozen=True, slots=True)
class Envelope:
    """A record that was found as it was written. digest: of the record as this isorun writes it."""

    record: RunRecord
    digest: bytes


def canonical_json(data: Any) -> str:
    """The same ASCII text for the same content: sorted keys, no spaces."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"))


def content_digest(data: bytes | memoryview) -> bytes:
    """Sixteen bytes that stand for the content."""
    return hashlib.blake2b(data, digest_size=16).digest()


def record_digest(record: RunRecord) -> bytes:
    """What tells this record from any other."""
    return _digest_of(_canonical_pieces(record))


def sealed(record: RunRecord) -> tuple[list[bytes], bytes]:
    """The record in its envelope, in pieces to be written one after another, and its digest."""
    pieces = _canonical_pieces(record)
    digest = _digest_of(pieces)
    return [b'{"format":%d,"digest":"%b",%b' % (_FORMAT, digest.hex().encode(), _RECORD), *pieces, _END], digest


def sealed_and_gzipped(record: RunRecord) -> bytes:
    """The record as a run's folder keeps it."""
    stream = zlib.compressobj(level=1, wbits=31)
    return b"".join([*map(stream.compress, sealed(record)[0]), stream.flush()])


def open_envelope(data: bytes) -> Envelope:
    """The record in the envelope, gzipped or not; ValueError says what is wrong with it.

    StoreTooNew where a newer isorun wrote it.
    """
    try:
        data = _unzipped(data)
        envelope = json.loads(data)
        _refuse_newer(envelope)
        written, content = bytes.fromhex(envelope["digest"]), envelope["record"]
        found = content_digest(memoryview(data)[data.index(_RECORD) + len(_RECORD) : -len(_END)])
        if found != written or not data.endswith(_END):
            raise ValueError(f"a record with the digest {found.hex()} instead of {written.hex()}")
        record = RunRecord.from_json(content)
    except StoreTooNew:
        raise
    except (StoreError, AttributeError, LookupError, RecursionError, TypeError, ValueError, MemoryError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from None
    return Envelope(record, found if content["record"] == RECORD_VERSION else record_digest(record))


def _canonical_pieces(record: RunRecord) -> list[bytes]:
    """The canonical JSON of the record. A million points are tens of megabytes, of which few copies are made."""
    content = record.to_json()
    series = content.pop("series")
    before = canonical_json({name: value for name, value in content.items() if name < "series"})
    after = canonical_json({name: value for name, value in content.items() if name > "series"})
    pieces = [before[:-1].encode("ascii"), b',"series":{"axes":[']
    for number in range(len(series["axes"])):
        steps, seconds = (part.encode("ascii") for part in series["axes"].pop(0))
        pieces += [b',["' if number else b'["', steps, b'","', seconds, b'"]']
    pieces.append(b'],"values":{')
    for number, metric in enumerate(sorted(series["values"])):
        axis, values = series["values"].pop(metric)
        name = json.dumps(metric).encode("ascii")
        pieces += [b'%b%b:[%d,"' % (b"," if number else b"", name, axis), values.encode("ascii"), b'"]']
    return [*pieces, b"}},", after[1:].encode("ascii")]


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


def _refuse_newer(envelope: Mapping[str, Any]) -> None:
    version = envelope["format"]
    if isinstance(version, int) and version > _FORMAT:
        raise StoreTooNew(
            "a record was written by a newer isorun",
            found=f"envelope format {version}",
            allowed=f"envelope format {_FORMAT}",
            hint="pip install --upgrade isorun",
        )
