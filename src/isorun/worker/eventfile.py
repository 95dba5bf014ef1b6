"""One process's event file: one `os.write` an event, nothing ever behind a half line.

While events wait for a disk that is full, the file ends in bytes that do not check: should the process end before
they are written, in whatever way, a reader knows that something is missing.

No fsync: the file survives the death of the process, and the executor makes the run durable when it has ended.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from . import frames

MAX_WAITING_BYTES = 64 * 2**20


class EventFile:
    """An append-only file with one writer. What cannot be written waits in memory and is tried again.

    lost: how many events were given up because more than MAX_WAITING_BYTES were waiting.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self.lost = 0
        self._descriptor = descriptor
        self._size = os.fstat(descriptor).st_size
        self._half_line = False
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0

    def append(self, event: dict[str, Any]) -> None:
        """Write the event, or keep it for the next attempt."""
        try:
            line = frames.encode(event)
        except ValueError:
            line = frames.encode(frames.spelled(event))
        if self._waiting:
            self.flush()
        if self._waiting or not self._write(line):
            self._keep(line)

    def flush(self) -> bool:
        """Try to write what waits, in order; whether nothing waits any more."""
        written = 0
        for line in self._waiting:
            if not self._write(line):
                break
            written += 1
        del self._waiting[:written]
        self._waiting_bytes = sum(map(len, self._waiting))
        return not self._waiting

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._descriptor)

    def _write(self, line: bytes) -> bool:
        if self._half_line and not self._cut_half_line():
            return False
        try:
            written = os.write(self._descriptor, line)
        except OSError:
            written = 0
        if written == len(line):
            self._size += written
            return True
        self._half_line = written > 0 or self._lengthen()
        return False

    def _lengthen(self) -> bool:
        """Leave a byte that does not check; lengthening a file takes no room, so a full disk allows it."""
        try:
            os.ftruncate(self._descriptor, self._size + 1)
        except OSError:
            return False
        return True

    def _cut_half_line(self) -> bool:
        """Nothing may be appended behind half a line: a reader stops there."""
        try:
            os.ftruncate(self._descriptor, self._size)
        except OSError:
            return False
        self._half_line = False
        return True

    def _keep(self, line: bytes) -> None:
        if self._waiting_bytes + len(line) > MAX_WAITING_BYTES:
            self.lost += 1
            return
        self._waiting.append(line)
        self._waiting_bytes += len(line)


def create(path: Path) -> EventFile | None:
    """A new file of this process's own; None when the name is taken."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
    try:
        return EventFile(path, os.open(path, flags, 0o644))
    except FileExistsError:
        return None
