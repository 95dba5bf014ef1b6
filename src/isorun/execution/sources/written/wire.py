"""The wire format of protocol buffers, as far as event files need it: numbered fields of four types."""

from __future__ import annotations

import struct
from collections.abc import Iterator

__all__ = ["Field", "MalformedMessage", "fields", "signed", "varints"]

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
