"""Columns of numbers, packed: bytes of equal weight together, each such plane as it is, or compressed, or one byte.

Of a float64 the first bytes are alike in all values of a metric and the last ones mostly noise, or zero where a
training computes in float32. Side by side, the former nearly vanish and the latter are left alone. Where few different
values occur (accuracies are k of n), they are listed once, and the column says which.

    column   chunks of 262,144 numbers, the last one shorter
    chunk    0, planes of the numbers
             or 1, how many different ones (uint32), planes of these in ascending order, planes of their places
    planes   from the least to the most significant byte: 0 and the one byte that all are;
             1 and the bytes; or 2, how many bytes (uint32) and a bzip2 stream of the bytes

All numbers are little-endian. bzip2 and not deflate: one library of it is in use, so that the same study gives the same
package everywhere, where deflates of several libraries differ.
"""

from __future__ import annotations

import bz2
import struct
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from isorun.packages import refused
from isorun.packages.container import Entry, Readable

__all__ = ["CHUNK", "Cursor", "packed", "unpacked"]

CHUNK: Final = 2**18
_LENGTH: Final = struct.Struct("<I")
_PLANES, _LISTED = b"\0", b"\1"
_CONSTANT, _PLAIN, _COMPRESSED = range(3)
_LOOKED_AT: Final = 4096
_LEAST_SHARE: Final = 256
"""No chunk is packed smaller than this share of it, so that what comes out of a file follows from its size."""
_Array = npt.NDArray[Any]


def packed(numbers: _Array) -> Iterator[bytes]:
    """A column of uint16 or uint64 numbers, chunk by chunk."""
    for start in range(0, len(numbers), CHUNK):
        chunk = np.ascontiguousarray(numbers[start : start + CHUNK])
        coded = _packed_chunk(chunk)
        if len(coded) * _LEAST_SHARE < chunk.nbytes and len(chunk) > _LOOKED_AT:
            coded = _PLANES + b"".join(_plane(plane, plain=not number) for number, plane in enumerate(_planes(chunk)))
        yield coded


def _packed_chunk(chunk: _Array) -> bytes:
    direct = _PLANES + b"".join(map(_plane, _planes(chunk)))
    if np.unique(chunk[:_LOOKED_AT]).size > min(len(chunk), _LOOKED_AT) // 2:
        return direct
    different, places = np.unique(chunk, return_inverse=True)
    narrow = places.astype(_width_of_places(different.size))
    parts = [_LISTED, _LENGTH.pack(different.size), *map(_plane, _planes(different)), *map(_plane, _planes(narrow))]
    return min(direct, b"".join(parts), key=len)


def _width_of_places(different: int) -> str:
    return "<u1" if different <= 2**8 else "<u2" if different <= 2**16 else "<u4"


def _planes(numbers: _Array) -> _Array:
    """The bytes of the numbers, those of each weight in a row."""
    width = numbers.dtype.itemsize
    ordered = numbers.astype(numbers.dtype.newbyteorder("<"), copy=False)
    return np.ascontiguousarray(ordered.view(np.uint8).reshape(-1, width).T)


def _plane(plane: _Array, *, plain: bool = False) -> bytes:
    """One plane. Bytes that are all about equally frequent are not worth the try."""
    data = plane.tobytes()
    if plain:
        return bytes([_PLAIN]) + data
    counts = np.bincount(plane, minlength=256)
    if counts.max() == len(data):
        return bytes([_CONSTANT, data[0]])
    if int(np.square(counts.astype(np.int64)).sum()) * 256 < len(data) ** 2 * 103 // 100:
        return bytes([_PLAIN]) + data
    stream = bz2.compress(data)
    if (len(stream) + _LENGTH.size) * 8 > len(data) * 7:  # what saves little is not worth the time of who reads it
        return bytes([_PLAIN]) + data
    return bytes([_COMPRESSED]) + _LENGTH.pack(len(stream)) + stream


class Cursor:
    """Reads a member of numbers from its beginning to its end, and no further; never more than a plane at a time."""

    def __init__(self, file: Readable, entry: Entry) -> None:
        self._file = file
        self._place = entry.start
        self._end = entry.end
        self.where = entry.name

    @property
    def place(self) -> int:
        """How far it is."""
        return self._place

    def take(self, size: int) -> bytes:
        """The next bytes."""
        if self._place + size > self._end:
            raise refused(
                f"{self.where}: numbers are missing", f"{self._end - self._place:,} bytes instead of {size:,}"
            )
        self._file.seek(self._place)
        self._place += size
        return self._file.read(size)

    def byte(self) -> int:
        """The next byte."""
        return self.take(1)[0]

    def length(self) -> int:
        """The next length."""
        return int(_LENGTH.unpack(self.take(_LENGTH.size))[0])

    def end(self) -> None:
        """PackageError where anything is left."""
        if self._place != self._end:
            raise refused(f"{self.where}: more numbers than there should be", f"{self._end - self._place:,} bytes")


def unpacked(cursor: Cursor, count: int, dtype: str) -> Iterator[_Array]:
    """So many numbers of a column, chunk by chunk; whoever wants them all puts them together."""
    for start in range(0, count, CHUNK):
        size, begin = min(CHUNK, count - start), cursor.place
        kind = cursor.byte()
        if kind not in (_PLANES[0], _LISTED[0]):
            raise refused(f"{cursor.where}: numbers in a form that is not known", f"{kind}", "0 or 1")
        chunk = _numbers(cursor, size, dtype) if kind == _PLANES[0] else _listed(cursor, size, dtype)
        packed_size = cursor.place - begin
        if packed_size * _LEAST_SHARE < chunk.nbytes and size > _LOOKED_AT:
            found = f"{chunk.nbytes:,} bytes in {packed_size:,}"
            raise refused(f"{cursor.where}: numbers are packed smaller than any package has them", found)
        yield chunk


def _listed(cursor: Cursor, size: int, dtype: str) -> _Array:
    different = cursor.length()
    if not 0 < different <= size:
        raise refused(f"{cursor.where}: {different:,} different numbers among {size:,}")
    numbers = _numbers(cursor, different, dtype)
    places = _numbers(cursor, size, _width_of_places(different))
    if not (numbers[1:] > numbers[:-1]).all() or int(places.max()) >= different:
        raise refused(f"{cursor.where}: numbers are listed twice, out of order, or not at all")
    found: _Array = numbers[places]
    return found


def _numbers(cursor: Cursor, size: int, dtype: str) -> _Array:
    kind = np.dtype(dtype)
    planes = np.empty((kind.itemsize, size), np.uint8)
    for plane in planes:
        method = cursor.byte()
        if method == _CONSTANT:
            plane[:] = cursor.byte()
        elif method == _PLAIN:
            plane[:] = np.frombuffer(cursor.take(size), np.uint8)
        elif method == _COMPRESSED:
            plane[:] = np.frombuffer(_decompressed(cursor, size), np.uint8)
        else:
            raise refused(f"{cursor.where}: bytes in a form that is not known", f"{method}", "0, 1 or 2")
    return np.ascontiguousarray(planes.T).reshape(-1).view(kind)


def _decompressed(cursor: Cursor, size: int) -> bytes:
    stream, length = bz2.BZ2Decompressor(), cursor.length()
    if length >= size:  # it would have been left as it is
        raise refused(f"{cursor.where}: a compressed part is longer than what it stands for")
    try:
        data = stream.decompress(cursor.take(length), size + 1)
        if stream.eof and len(data) == size and not stream.unused_data:
            return data
    except (OSError, EOFError, ValueError):
        pass
    raise refused(f"{cursor.where}: a compressed part is damaged")
