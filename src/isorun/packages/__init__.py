"""One file that holds a study: its runs, design, environment, code reference and data digests (docs/packages.md).

    container.py    the zip: one form for each content, every byte of it determined or hashed
    canonical.py    JSON that has one form, and reading it within bounds
    columns.py      numbers, packed by bytes of equal weight
    runs.py         records as lines and columns, and back
    manifest.py     every member with its size and SHA-256; the manifest's own is the package's address
    signatures.py   who signed it (Ed25519)
    reading.py      a package that is opened: checked, then read as a stream
    opened.py       the same as a store that is only read, so that whatever asks a store can ask a package

Nothing that is read is executed, and no name in a package becomes a path. Here is what all of it is bounded by. Whoever
made a package may be an enemy: what a reader spends follows from the size of the file, and never from what it says.
"""

from __future__ import annotations

import threading
from typing import Final

from isorun.errors import PackageError

__all__ = ["FORMAT", "MANIFEST", "SIGNATURE", "Budget", "refused"]

FORMAT: Final = 1
MANIFEST: Final = "manifest.json"
SIGNATURE: Final = "signature.json"
_FREE: Final = 64 * 2**20
_RATIO: Final = 256


def refused(what: str, found: str = "", allowed: str = "") -> PackageError:
    """What a package is refused for."""
    return PackageError(
        what,
        found=found,
        allowed=allowed or "a package as isorun pack wrote it",
        hint="ask whoever made it for the file again, and compare its address",
    )


class Budget:
    """How many bytes may come out of a package: 64 MiB, and 256 times its size. Packages of ours stay below."""

    def __init__(self, file_size: int) -> None:
        self._left = _FREE + _RATIO * file_size
        self._guard = threading.Lock()

    @property
    def left(self) -> int:
        """How many bytes may still come."""
        return self._left

    def take(self, size: int, where: str) -> None:
        """So many bytes come, or would; PackageError where that is too many."""
        with self._guard:
            self._left -= size
        if self._left < 0:
            raise refused(
                f"{where}: far more comes out of this package than it holds",
                allowed=f"{_FREE // 2**20} MiB and {_RATIO} times the size of the file",
            )
