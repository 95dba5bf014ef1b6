"""The output of a training: kept in a bounded log without secrets, and passed on line by line, in bounded memory.

A training may print hundreds of megabytes, bytes that are no text, or one line that never ends. What is kept is the
start and the end; lines are cut at a length no metric needs. Metrics are read from the lines as they were printed, and
secrets are masked only in what is kept: a word that is also a password must not take a metric away.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import quote

from isorun.worker.redaction import REDACTED, is_ordinary, secret_values, withheld_values, without_secrets

__all__ = ["BoundedLog", "LineSplitter", "Output", "Secrets", "readable_tail"]

HEAD_BYTES: Final = 1_000_000
TAIL_BYTES: Final = 4_000_000
LOG_TAIL_BYTES: Final = 8_192
LINE_BYTES: Final = 16_384

_LINE_ENDS: Final = re.compile(rb"[\r\n]+")
# A shorter value is as likely a word that the training prints for other reasons.
_SHORTEST_SECRET: Final = 6
# What may hold a secret is looked at whole: a line, or a block of a private key, up to this length.
_LONGEST_PIECE: Final = 65_536

LineConsumer = Callable[[str, float], None]


class Secrets:
    """What may not be kept of a run: given values wherever they stand, and all that has the shape of a secret."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        lines = {line for value in values for line in (value, *value.splitlines())}
        known = {value for value in lines if len(value) >= _SHORTEST_SECRET and not is_ordinary(value)}
        known |= {quote(value, safe="") for value in known}
        # The longest first: one secret may be the start of another.
        ordered = sorted(known, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, ordered))) if ordered else None

    @classmethod
    def of(cls, command: Sequence[str], environ: Mapping[str, str]) -> Secrets:
        """Those that a command was given as arguments or variables."""
        return cls(secret_values(environ) | withheld_values(command, environ))

    def masked(self, text: str) -> str:
        """The text without them."""
        text = text if self._known is None else self._known.sub(REDACTED, text)
        return without_secrets(text)

    def masked_bytes(self, data: bytes) -> bytes:
        """The same for bytes, which need not be text."""
        text = data.decode("utf-8", "surrogateescape")
        masked = self.masked(text)
        return data if masked == text else masked.encode("utf-8", "surrogateescape")


class BoundedLog:
    """A log file with the first megabyte and the last four; a line in it says where and how much was cut.

    The start is written as it comes, line by line; the end is held in memory and written by `close`. With `secrets`
    these are masked in both, and a line that was cut in two is left out: half a secret has no shape.
    """

    def __init__(
        self,
        path: Path,
        head_bytes: int = HEAD_BYTES,
        tail_bytes: int = TAIL_BYTES,
        *,
        secrets: Secrets | None = None,
    ) -> None:
        self._file = path.open("wb", buffering=0)
        self._secrets = secrets
        self._head_room = head_bytes
        self._open_line = b""
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
            self._open_line = self._write_whole_lines(self._open_line + head)
        self._tail += rest
        if len(self._tail) > 2 * self._tail_bytes:
            self._cut_tail()

    def _write_whole_lines(self, data: bytes) -> bytes:
        """Write what can be judged now; what is left is the start of something whose end must be known."""
        end = len(data) if self._secrets is None else _end_of_whole_lines(data)
        if end:
            self._keep(data[:end])
        return data[end:]

    def _keep(self, data: bytes) -> None:
        masked = self._masked(data)
        self._end_of_head = (self._end_of_head + masked)[-LOG_TAIL_BYTES:]
        self._to_file(masked)

    def _masked(self, data: bytes) -> bytes:
        return data if self._secrets is None else self._secrets.masked_bytes(data)

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
        if self._file.closed:
            return self._end_of_head
        if self.cut_bytes or len(self._tail) > 2 * LOG_TAIL_BYTES:
            start = self._tail[-2 * LOG_TAIL_BYTES :]
            return self._masked(bytes(start if self._secrets is None else _from_a_line_on(start)))[-LOG_TAIL_BYTES:]
        return (self._end_of_head + self._masked(self._open_line + self._tail))[-LOG_TAIL_BYTES:]

    def close(self) -> None:
        """Write the end, and close the file."""
        self._cut_tail()
        if self.cut_bytes and self._secrets is not None:
            whole = _from_a_line_on(self._tail)
            self.cut_bytes += len(self._open_line) + len(self._tail) - len(whole)
            self._open_line, self._tail = b"", bytearray(whole)
        if self.cut_bytes:
            self._to_file(f"\n[isorun: {self.cut_bytes} bytes were cut here]\n".encode())
            self._end_of_head = b""
        self._keep(self._open_line + self._tail)
        self._open_line, self._tail = b"", bytearray()
        self._file.close()


def _end_of_whole_lines(data: bytes) -> int:
    """Up to where the bytes can be judged: their last line end, or the start of a private key that has no end yet."""
    if len(data) > _LONGEST_PIECE:
        return len(data)
    end = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
    begin = data.rfind(b"-----BEGIN", 0, end)
    return begin if begin >= 0 and data.find(b"-----END", begin, end) < 0 else end


def _from_a_line_on(data: bytearray) -> bytes:
    """The bytes from the first line that is whole; all of them when they are one endless line."""
    end = _LINE_ENDS.search(data, 0, _LONGEST_PIECE)
    return bytes(data[end.end() :] if end else data)


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
    """Takes what a run prints: into the log, and line by line as it was printed."""

    def __init__(self, log: BoundedLog, lines: LineSplitter) -> None:
        self._log = log
        self._lines = lines

    def write(self, data: bytes, seconds: float) -> None:
        """Take the next bytes, read `seconds` after the run's start."""
        self._log.write(data)
        self._lines.write(data, seconds)

    def close(self, seconds: float) -> None:
        """Pass on a last line that has no end. The log stays open."""
        self._lines.close(seconds)


def readable_tail(data: bytes) -> str:
    """The end of an output as a terminal would show it: of a line rewritten by carriage returns, the last version."""
    text = data.decode("utf-8", "replace").replace("\r\n", "\n").replace("\0", "\ufffd")
    return "\n".join(_last_version(line) for line in text.split("\n")).strip("\n")


def _last_version(line: str) -> str:
    return next((part for part in reversed(line.split("\r")) if part), "")
