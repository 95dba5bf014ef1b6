"""TFRecord framing: length, checksum of the length, data, checksum of the data.

The checksum is CRC-32C (Castagnoli), rotated and offset. It costs about a tenth of a microsecond a byte in Python, so
that readers ask for the data's checksum only for the records they use.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

__all__ = ["LONGEST_RECORD", "Record", "TornRecord", "crc32c", "masked_crc32c", "records"]

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
