"""One file that holds a study: its runs, design, environment, code reference and data digests (docs/packages.md).

    container.py    the zip: one form for each content, every byte of it determined or hashed
    canonical.py    JSON that has one form, and reading it within bounds
    columns.py      numbers, packed by bytes of equal weight
    runs.py         records as lines and columns, and back
    manifest.py     every member with its size and SHA-256; the manifest's own is the package's address
    signatures.py   who signed it (Ed25519)
    reading.py      a package that is opened: checked, then read as a stream
    counting.py     all of its runs read and counted, by two processes where they are many
    opened.py       the same as a store that is only read, so that whatever asks a store can ask a package

Nothing that is read is executed, and no name in a package becomes a path. Here is what all of it is bounded by. Whoever
made a package may be an enemy: what a reader spends follows from the size of the file, and never from what it says.
"""

from __future__ import annotations

import threading
from typing import Final

from isorun.errors import InputError, PackageError

__all__ = ["FORMAT", "MANIFEST", "SIGNATURE", "Budget", "NoRoom", "refused"]

FORMAT: Final = 1
MANIFEST: Final = "manifest.json"
SIGNATURE: Final = "signature.json"
_FREE: Final = 16 * 2**20
_NUMBERS: Final = 256
_TOLD: Final = 1024
"""Lines of runs that are much alike, identical ones or dead ones, are compressed further than any numbers."""


def refused(what: str, found: str = "", allowed: str = "") -> PackageError:
    """What a package is refused for."""
    return PackageError(
        what,
        found=found,
        allowed=allowed or "a package as isorun pack wrote it",
        hint="ask whoever made it for the file again, and compare its address",
    )


class NoRoom(InputError):
    """A package that is whole, and from which more comes out than whoever reads it keeps."""


class Budget:
    """How much memory reading a package may take. Packages of ours stay below.

    Numbers: 16 MiB, and 256 times the size of the file. What lines tell, as objects, and predictions, which stay packed
    until somebody asks for them, as large as they say that they are: 16 MiB, and 1,024 times the size.

    most: how many bytes of both together whoever reads has left for it; more is NoRoom, and no fault of the file.
    """

    def __init__(self, file_size: int, most: int | None = None) -> None:
        self._size = file_size
        self._most = most
        self._guard = threading.Lock()
        self.numbers = 0
        self.told = 0

    def take_numbers(self, size: int, where: str) -> None:
        """So many bytes of numbers come, or would; PackageError where that is too many."""
        with self._guard:
            self.numbers += size
        self._refuse_beyond(self.numbers, _NUMBERS, where)

    def take_told(self, size: int, where: str) -> None:
        """So many bytes are taken for what lines tell."""
        with self._guard:
            self.told += size
        self._refuse_beyond(self.told, _TOLD, where)

    def _refuse_beyond(self, taken: int, ratio: int, where: str) -> None:
        if self._most is not None and self.numbers + self.told > self._most:
            raise NoRoom("more comes out of the package than there is room for", allowed=f"{self._most:,} bytes")
        if taken > _FREE + ratio * self._size:
            raise refused(
                f"{where}: far more comes out of this package than it holds",
                allowed=f"{_FREE // 2**20} MiB and {ratio:,} times the size of the file",
            )
