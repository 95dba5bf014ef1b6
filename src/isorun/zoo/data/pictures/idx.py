"""The idx format of MNIST: a magic number, sizes, then bytes; gzipped or not."""

from __future__ import annotations

import gzip
import struct
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

from isorun.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["read_idx"]

_UNSIGNED_BYTES = 0x08


def read_idx(path: Path, dimensions: int) -> NDArray[np.uint8]:
    """The array of unsigned bytes in an idx file with so many dimensions."""
    import numpy as np  # noqa: PLC0415 - listing data sets needs no arrays

    content = _content(path)
    start = 4 + 4 * dimensions
    magic = content[:4].hex()
    expected = f"0000{_UNSIGNED_BYTES:02x}{dimensions:02x}"
    if len(content) < start or magic != expected:
        raise _damaged(
            path, f"magic number {magic or 'missing'}", f"{expected} (unsigned bytes, {dimensions} dimensions)"
        )
    shape = struct.unpack(f">{dimensions}I", content[4:start])
    values = np.frombuffer(content, dtype=np.uint8, offset=start)
    if values.size != int(np.prod(shape, dtype=np.int64)):
        raise _damaged(path, f"{values.size:,} values", f"{' x '.join(map(str, shape))} as its head says")
    return values.reshape(shape)


def _content(path: Path) -> bytes:
    try:
        content = path.read_bytes()
        return gzip.decompress(content) if path.suffix == ".gz" else content
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise _damaged(path, f"{error}", "a whole gzip file") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read", found=error.strerror or str(error)) from None


def _damaged(path: Path, found: str, allowed: str) -> DataError:
    hint = f"remove {path} and get it again: isorun data get {path.parent.name}"
    return DataError(f"{path} is damaged", found=found, allowed=allowed, hint=hint)
