"""Envelopes: a record as bytes that show when they were cut or altered.

An envelope is `{"format": 1, "digest": …, "record": …}`; the digest is that of the record's canonical JSON. The inbox
of a store holds envelopes, and every run's folder one that is gzipped (`record.json.gz`).
"""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from collections.abc import Mapping
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
    return content_digest(canonical_json(record.to_json()).encode("ascii"))


def sealed(record: RunRecord) -> tuple[bytes, bytes]:
    """The record in its envelope, and its digest."""
    data = canonical_json(record.to_json()).encode("ascii")
    digest = content_digest(data)
    return b'{"format":%d,"digest":"%b","record":%b}\n' % (_FORMAT, digest.hex().encode(), data), digest


def sealed_and_gzipped(record: RunRecord) -> bytes:
    """The record as a run's folder keeps it."""
    return gzip.compress(sealed(record)[0], compresslevel=3, mtime=0)


def open_envelope(data: bytes) -> Envelope:
    """The record in the envelope, gzipped or not; ValueError says what is wrong with it.

    StoreTooNew where a newer isorun wrote it.
    """
    try:
        envelope = json.loads(_unzipped(data))
        _refuse_newer(envelope)
        written, content = bytes.fromhex(envelope["digest"]), envelope["record"]
        found = content_digest(canonical_json(content).encode("ascii"))
        if found != written:
            raise ValueError(f"a record with the digest {found.hex()} instead of {written.hex()}")
        record = RunRecord.from_json(content)
    except StoreTooNew:
        raise
    except (StoreError, AttributeError, LookupError, RecursionError, TypeError, ValueError, MemoryError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from None
    return Envelope(record, found if content["record"] == RECORD_VERSION else record_digest(record))


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
