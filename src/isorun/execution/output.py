"""The output of a training: kept in a bounded log, and passed on line by line, in bounded memory.

A training may print hundreds of megabytes, bytes that are no text, or one line that never ends. What is kept is the
start and the end; lines are cut at a length no metric needs.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from isorun.execution.masking import Mask

__all__ = ["BoundedLog", "LineSplitter", "Output", "readable_tail"]

HEAD_BYTES: Final = 1_000_000
TAIL_BYTES: Final = 4_000_000
LOG_TAIL_BYTES: Final = 8_192
LINE_BYTES: Final = 16_384

_LINE_ENDS: Final = re.compile(rb"[\r\n]+")

LineConsumer = Callable[[str, float], None]


class BoundedLog:
    """A log file with the first megabyte and the last four; a line in it says where and how much was cut.

    The start is written as it comes; the end is held in memory and written by `close`.
    """

    def __init__(self, path: Path, head_bytes: int = HEAD_BYTES, tail_bytes: int = TAIL_BYTES) -> None:
        self._file = path.open("wb", buffering=0)
        self._head_room = head_bytes
        self._end_of_head = b""
        self._tail = bytearray()
        self._tail_bytes = tail_bytes
        self.cut_bytes = 0
        self.failure = ""

    def write(self, data: bytes) -> None:
        """Take the next bytes."""
        head, rest = data[: self._head_room], data[self._head_room :]
        if head:
            self._head_room -= len(head)
            self._end_of_head = (self._end_of_head + head)[-LOG_TAIL_BYTES:]
            self._to_file(head)
        self._tail += rest
        if len(self._tail) > 2 * self._tail_bytes:
            self._cut_tail()

    def _cut_tail(self) -> None:
        surplus = max(len(self._tail) - self._tail_bytes, 0)
        del self._tail[:surplus]
        self.cut_bytes += surplus

    def _to_file(self, data: bytes) -> None:
        """A log that cannot be written (disk full) must not end the run it describes: the failure is kept instead."""
        try:
            self._file.write(data)
        except OSError as error:
            self.failure = self.failure or str(error)

    def end(self) -> bytes:
        """The last bytes, enough for a log tail."""
        before = b"" if self.cut_bytes else self._end_of_head
        return (before + self._tail[-LOG_TAIL_BYTES:])[-LOG_TAIL_BYTES:]

    def close(self) -> None:
        """Write the end, and close the file."""
        self._cut_tail()
        if self.cut_bytes:
            self._to_file(f"\n[isorun: {self.cut_bytes} bytes were cut here]\n".encode())
        self._to_file(bytes(self._tail))
        self._file.close()


class LineSplitter:
    """Passes on each line, ended by a newline or a carriage return, with the time it was read.

    A line longer than `line_bytes` is passed on cut, once; `cut_lines` counts them.
    """

    def __init__(self, consume: LineConsumer, line_bytes: int = LINE_BYTES) -> None:
        self._consume = consume
        self._line_bytes = line_bytes
        self._pending = b""
        self.cut_lines = 0

    def write(self, data: bytes, seconds: float) -> None:
        """Take the next bytes, read `seconds` after the run's start."""
        first, *others = _LINE_ENDS.split(data)
        self._extend(first)
        if others:
            self._pass_on(self._pending, seconds)
            for line in others[:-1]:
                self._pass_on(line, seconds)
            self._pending = b""
            self._extend(others[-1])

    def _extend(self, piece: bytes) -> None:
        """Keep one byte more than a line may have, as the sign that it was longer."""
        self._pending += piece[: self._line_bytes + 1 - len(self._pending)]

    def _pass_on(self, line: bytes, seconds: float) -> None:
        if not line:
            return
        if len(line) > self._line_bytes:
            self.cut_lines += 1
            line = line[: self._line_bytes]
        self._consume(line.decode("utf-8", "replace"), seconds)

    def close(self, seconds: float) -> None:
        """Pass on a last line that had no end."""
        self._pass_on(self._pending, seconds)
        self._pending = b""


class Output:
    """Takes what a run prints: without secrets, into the log and line by line."""

    def __init__(self, log: BoundedLog, lines: LineSplitter, mask: Mask) -> None:
        self._log = log
        self._lines = lines
        self._mask = mask

    def write(self, data: bytes, seconds: float) -> None:
        """Take the next bytes, read `seconds` after the run's start."""
        self._pass_on(self._mask.feed(data), seconds)

    def close(self, seconds: float) -> None:
        """Pass on what has no end. The log stays open."""
        self._pass_on(self._mask.rest(), seconds)
        self._lines.close(seconds)

    def _pass_on(self, data: bytes, seconds: float) -> None:
        self._log.write(data)
        self._lines.write(data, seconds)


def readable_tail(data: bytes) -> str:
    """The end of an output as a terminal would show it: of a line rewritten by carriage returns, the last version."""
    text = data.decode("utf-8", "replace").replace("\r\n", "\n").replace("\0", "\ufffd")
    return "\n".join(_last_version(line) for line in text.split("\n")).strip("\n")


def _last_version(line: str) -> str:
    return next((part for part in reversed(line.split("\r")) if part), "")
