"""The zip: stored members without gaps, in one form.

Python's `zipfile` reads what is there as far as it can: it takes a comment, bytes before, between and behind members,
two members of one name, and local headers that say something else than the directory. Tools differ in what they make of
those, so that one file can hold two contents. Here every header is made again from name, size and CRC, and has to be
the same byte for byte: all of a file is data that is hashed, or follows from it.

No member is compressed by the zip. Compressors of the same name (zlib, zlib-ng) write other bytes, and what the zip
unpacks comes out before it is hashed. What is worth it is compressed inside its member.
"""

from __future__ import annotations

import os
import re
import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO, Final, Protocol

from isorun.packages import refused

__all__ = [
    "MOST_BYTES",
    "MOST_MEMBERS",
    "Entry",
    "OwnPlace",
    "Readable",
    "Writer",
    "directory",
    "pieces",
    "valid_name",
]

MOST_MEMBERS: Final = 20_000
MOST_BYTES: Final = 2**32 - 2
"""A zip without its 64-bit extension, which is one more way to say two things."""
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]*(?:\.[a-z0-9_-]+)*(?:/[a-z0-9][a-z0-9_-]*(?:\.[a-z0-9_-]+)*)*")
_DEVICE: Final = re.compile(r"(?:.*/)?(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?(?:/.*)?")
"""Names that are devices on some system, whatever stands behind their dot."""
_LONGEST_NAME: Final = 100
_LOCAL: Final = struct.Struct("<4s5H3I2H")
_CENTRAL: Final = struct.Struct("<4s6H3I5H2I")
_END: Final = struct.Struct("<4s4H2IH")
_NEEDED: Final = 20
_MADE_BY: Final = 3 << 8 | _NEEDED
"""Unix, so that the mode below is looked at."""
_FIRST_DAY: Final = 0x0021
"""1980-01-01, the first that a zip can say: when a package was packed is not in it."""
_MODE: Final = 0o100644 << 16
_PIECE: Final = 2**18


@dataclass(frozen=True, slots=True)
class Entry:
    """A member: its name, size and CRC-32, and where its header begins."""

    name: str
    size: int
    crc: int
    offset: int

    @property
    def start(self) -> int:
        """Where its content begins."""
        return self.offset + _LOCAL.size + len(self.name)

    @property
    def end(self) -> int:
        """Where the next member begins."""
        return self.start + self.size

    def local(self) -> bytes:
        """Its header before its content."""
        name = self.name.encode("ascii")
        return _LOCAL.pack(
            b"PK\3\4", _NEEDED, 0, 0, 0, _FIRST_DAY, self.crc, self.size, self.size, len(name), 0
        ) + name  # fmt: skip

    def central(self) -> bytes:
        """Its header in the directory at the end."""
        name = self.name.encode("ascii")
        sizes = (self.crc, self.size, self.size, len(name))
        return (
            _CENTRAL.pack(b"PK\1\2", _MADE_BY, _NEEDED, 0, 0, 0, _FIRST_DAY, *sizes, 0, 0, 0, 0, _MODE, self.offset)
            + name
        )


def valid_name(name: str) -> bool:
    """Whether a member may be called so: small letters, so that no two names are one on any disk; no dots alone."""
    return len(name) <= _LONGEST_NAME and _NAME.fullmatch(name) is not None and _DEVICE.fullmatch(name) is None


class Writer:
    """Writes members one after another, then the directory."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._entries: list[Entry] = []
        self._end = 0

    def add(self, name: str, content: Iterable[bytes]) -> None:
        """One more member; its header is written when its content is known, so the file has to be one that can seek."""
        assert valid_name(name)
        place, size, crc = self._end, 0, 0
        self._file.seek(place + _LOCAL.size + len(name))
        for piece in content:
            self._file.write(piece)
            size += len(piece)
            crc = zlib.crc32(piece, crc)
        entry = Entry(name, size, crc, place)
        self._refuse_too_much(entry)
        self._file.seek(place)
        self._file.write(entry.local())
        self._entries.append(entry)
        self._end = entry.end

    def finish(self) -> int:
        """Write the directory; the size of the file."""
        self._file.seek(self._end)
        written = b"".join(entry.central() for entry in self._entries)
        self._file.write(written + _end(len(self._entries), len(written), self._end))
        return self._end + len(written) + _END.size

    def _refuse_too_much(self, entry: Entry) -> None:
        directory_size = sum(_CENTRAL.size + len(item.name) for item in self._entries) + 10_000
        if entry.end + directory_size > MOST_BYTES or len(self._entries) >= MOST_MEMBERS:
            raise refused(
                "the study is too large for one package",
                found=f"more than {entry.offset / 2**30:.1f} GiB, {len(self._entries):,} members",
                allowed=f"{MOST_BYTES / 2**30:.0f} GiB and {MOST_MEMBERS:,} members",
            )


def _end(count: int, size: int, offset: int) -> bytes:
    return _END.pack(b"PK\5\6", 0, 0, count, count, size, offset, 0)


class Readable(Protocol):
    """A file as far as it is read."""

    def seek(self, place: int, /) -> int:
        """Go to a place."""

    def read(self, size: int, /) -> bytes:
        """So many bytes from there on; fewer where the file ends."""


class OwnPlace:
    """An open file, read from a place that no other reader of it moves: each thread has one."""

    def __init__(self, file: BinaryIO) -> None:
        self._number = file.fileno()
        self._place = 0

    def seek(self, place: int, /) -> int:
        """Go to a place."""
        self._place = place
        return place

    def read(self, size: int, /) -> bytes:
        """So many bytes from there on; fewer where the file ends."""
        data = os.pread(self._number, size, self._place)
        self._place += len(data)
        return data


def directory(file: Readable, file_size: int) -> dict[str, Entry]:
    """The members in their order, with nothing else in the file. PackageError says what is not so."""
    if file_size > MOST_BYTES or file_size < _END.size:
        raise refused("this is no package", f"{file_size:,} bytes", f"a zip of {_END.size} to {MOST_BYTES:,} bytes")
    file.seek(file_size - _END.size)
    tail = file.read(_END.size)
    magic, _, _, count, _, size, offset, _ = _END.unpack(tail)
    if magic != b"PK\5\6" or tail != _end(count, size, offset):
        raise refused("this is no package", "it does not end as one: cut short, or something stands behind it")
    if count > MOST_MEMBERS or size > count * (_CENTRAL.size + _LONGEST_NAME):
        raise refused("the directory of the package is too large", f"{count:,} members in {size:,} bytes")
    if offset + size + _END.size != file_size:
        raise refused("the directory of the package does not lie where it should", f"{offset:,} + {size:,} bytes")
    file.seek(offset)
    entries = _entries(file.read(size), count, offset)
    found = {entry.name: entry for entry in entries}
    if len(found) != len(entries):
        raise refused("two members of the package have the same name")
    if (entries[-1].end if entries else 0) != offset:
        raise refused("there are bytes in the package that belong to no member")
    for entry in entries:
        file.seek(entry.offset)
        if file.read(entry.start - entry.offset) != entry.local():
            raise refused(f"{entry.name}: its header is not what the directory says")
    return found


def _entries(data: bytes, count: int, limit: int) -> list[Entry]:
    """The members that the directory names, each where the one before ends, and none beyond the limit."""
    entries: list[Entry] = []
    place, offset = 0, 0
    for _ in range(count):
        if place + _CENTRAL.size > len(data):
            raise refused("the directory of the package is cut short")
        fields = _CENTRAL.unpack_from(data, place)
        begin, place = place, place + _CENTRAL.size + fields[10]
        name = data[begin + _CENTRAL.size : place].decode("ascii", "replace")
        if not valid_name(name):
            raise refused("a member of the package has a name that none may have", repr(name[:_LONGEST_NAME]))
        entry = Entry(name, fields[9], fields[7], offset)
        if entry.end > limit or data[begin:place] != entry.central():
            raise refused(
                f"{name}: its entry in the directory is not in the form of a package",
                allowed="a stored member without extras, comment or time, right behind the one before",
            )
        entries.append(entry)
        offset = entry.end
    if place != len(data):
        raise refused("there is more in the directory of the package than its members")
    return entries


def pieces(file: Readable, entry: Entry, start: int = 0, size: int | None = None) -> Iterator[bytes]:
    """The content of a member, or a part of it, in pieces; cut short where the file is."""
    file.seek(entry.start + start)
    left = entry.size - start if size is None else size
    while left > 0:
        piece = file.read(min(left, _PIECE))
        if not piece:
            raise refused(f"{entry.name}: the file ends before it does")
        left -= len(piece)
        yield piece
