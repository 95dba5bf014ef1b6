"""What a run printed: kept in a bounded log without secrets, and passed on line by line, in bounded memory.

A training may print hundreds of megabytes, bytes that are no text, or one line that never ends. What is kept is the
start and the end; lines are cut at a length no metric needs. Metrics are read from the lines as they were printed, and
secrets are masked only in what is kept: a word that is also a password must not take a metric away.
"""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from isorun.worker.redaction import (
    REDACTED,
    is_ordinary,
    secret_values,
    withheld_values,
    without_colours,
    without_secrets,
)
from isorun.worker.runfolder import RowTail, open_own, spelled, write_own

__all__ = [
    "BoundedLog",
    "LineSplitter",
    "LiveRows",
    "Output",
    "Secrets",
    "last_row",
    "readable_tail",
]

LAST_PRINTED: Final = "printed.json"
_MOST_LOOKS_APART: Final = 5
HEAD_BYTES: Final = 1_000_000
TAIL_BYTES: Final = 4_000_000
LOG_TAIL_BYTES: Final = 8_192
LINE_BYTES: Final = 16_384

_LINE_ENDS: Final = re.compile(rb"[\r\n]+")
_DIGIT: Final = re.compile(rb"\d")
# A shorter value is as likely a word that the training prints for other reasons.
_SHORTEST_SECRET: Final = 6
# What may hold a secret is looked at whole: a line, or a block of a private key, up to this length.
_LONGEST_PIECE: Final = 65_536
_HELD_BACK: Final = 4_096
_MOST_WAITING_BYTES: Final = 65_536

LineConsumer = Callable[[str, float], None]


class Secrets:
    """What may not be kept of a run: given values wherever they stand, and all that has the shape of a secret."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        lines = {line for value in values for line in (value, *value.splitlines())}
        known = {value for value in lines if len(value) >= _SHORTEST_SECRET and not is_ordinary(value)}
        known |= {form for value in known for form in _escaped_forms(value)}
        # The longest first: one secret may be the start of another.
        ordered = sorted(known, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, ordered))) if ordered else None
        self._known_bytes = (
            re.compile(b"|".join(re.escape(os.fsencode(value)) for value in ordered)) if ordered else None
        )

    @classmethod
    def of(cls, command: Sequence[str], environ: Mapping[str, str]) -> Secrets:
        """Those that a command was given as arguments or variables."""
        return cls(secret_values(environ) | withheld_values(command, environ))

    def before_known(self, data: bytes, place: int) -> int:
        """The place, or the start of a given value that stands across it: half of one would not be masked."""
        found = self._known_bytes.finditer(data) if self._known_bytes else ()
        return next((match.start() for match in found if match.start() < place < match.end()), place)

    def masked(self, text: str) -> str:
        """The text without them."""
        if self._known is not None:
            if "\x1b[" in text and self._known.search(plain := without_colours(text)):
                text = plain
            text = self._known.sub(REDACTED, text)
        return without_secrets(text)

    def masked_bytes(self, data: bytes) -> bytes:
        """The same for bytes, which need not be text."""
        text = data.decode("utf-8", "surrogateescape")
        masked = self.masked(text)
        return data if masked == text else masked.encode("utf-8", "surrogateescape")


def _escaped_forms(value: str) -> tuple[str, ...]:
    """How programs print a value: in an address, as JSON, in base64 by itself."""
    as_json = (json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1])
    # The last characters depend on what follows, where something does.
    in_base64 = base64.b64encode(os.fsencode(value)).decode().rstrip("=")
    return (quote(value, safe=""), quote(value), *as_json, in_base64)


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
        self._file = os.fdopen(open_own(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb", buffering=0)
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
        end = len(data) if self._secrets is None else _end_of_whole_lines(data, self._secrets)
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


def _end_of_whole_lines(data: bytes, secrets: Secrets) -> int:
    """Up to where the bytes can be judged: their last line end, or the start of a private key that has no end yet.

    Of a line that is too long all is judged but its end, which waits for what may be the rest of a secret.
    """
    end = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
    if len(data) > _LONGEST_PIECE:
        spaced = max(end, data.rfind(b" ", 0, len(data) - _HELD_BACK) + 1)
        return secrets.before_known(data, spaced or len(data) - _HELD_BACK)
    begin = data.rfind(b"-----BEGIN", 0, end)
    is_open = begin >= 0 and b"PRIVATE KEY" in data[begin : begin + 80] and data.find(b"-----END", begin, end) < 0
    return begin if is_open else end


def _from_a_line_on(data: bytearray) -> bytes:
    """The bytes from the first line that is whole; of one endless line, without what may be half a secret."""
    end = _LINE_ENDS.search(data, 0, _LONGEST_PIECE)
    return bytes(data[end.end() if end else min(_HELD_BACK, len(data) // 2) :])


class LineSplitter:
    """Passes on each line, ended by a newline or a carriage return, with the time it was read.

    A line longer than `line_bytes` is passed on cut, once; `cut_lines` counts them. torn_line: what a run that did
    not end well left in the middle of a line, which is not passed on; empty where it has no number.
    """

    def __init__(self, consume: LineConsumer, line_bytes: int = LINE_BYTES) -> None:
        self._consume = consume
        self._line_bytes = line_bytes
        self._pending = b""
        self.cut_lines = 0
        self.torn_line = ""

    def write(self, data: bytes, seconds: float) -> None:
        """Take the next bytes, read `seconds` after the run's start."""
        lines = _LINE_ENDS.split(data) if b"\r" in data else data.split(b"\n")
        self._extend(lines[0])
        if len(lines) == 1:
            return
        self._pass_on(self._pending, seconds)
        consume, most = self._consume, self._line_bytes
        for line in lines[1:-1]:
            if 0 < len(line) <= most:
                consume(line.decode("utf-8", "replace"), seconds)
            else:
                self._pass_on(line, seconds)
        self._pending = b""
        self._extend(lines[-1])

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

    def close(self, seconds: float, *, whole: bool = True) -> None:
        """Pass on a last line that had no end, unless it may be half of one: the run did not end well by itself."""
        if whole:
            self._pass_on(self._pending, seconds)
        elif _DIGIT.search(self._pending):
            self.torn_line = self._pending.decode("utf-8", "replace")
        self._pending = b""


class Output:
    """Takes what a run prints: into the log, and line by line as it was printed.

    What was read waits until it is much, or `take_in` is called, about once a second: to begin with a line takes
    several times as long as to go on with the next, since the training has had the processor's caches meanwhile.
    """

    def __init__(self, log: BoundedLog, lines: LineSplitter) -> None:
        self._log = log
        self._lines = lines
        self._waiting: list[tuple[bytes, float]] = []
        self._waiting_bytes = 0

    def write(self, data: bytes, seconds: float) -> None:
        """Take the next bytes, read `seconds` after the run's start."""
        self._waiting.append((data, seconds))
        self._waiting_bytes += len(data)
        if self._waiting_bytes >= _MOST_WAITING_BYTES:
            self.take_in()

    def take_in(self) -> None:
        """Pass on all that waits; each line has the time at which it was read."""
        waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
        if waiting:
            self._log.write(b"".join(data for data, _ in waiting))
        for data, seconds in waiting:
            self._lines.write(data, seconds)

    def close(self, seconds: float, *, whole: bool = True) -> None:
        """Pass on what waits, and a last line that has no end, if the run is whole. The log stays open."""
        self.take_in()
        self._lines.close(seconds, whole=whole)


class LiveRows:
    """What a run that is going on has logged or, where it logs nothing, printed.

    What it printed last is also left in its folder, from the second look on: whoever asks how far the run is has no
    other way to see it, and a run that ends before is not worth a file. The longer it goes on, the more looks pass
    until it is left anew, up to five.
    """

    def __init__(self, folder: Path, printed: Callable[[], Mapping[str, Any]], secrets: Secrets) -> None:
        self._folder = folder
        self._tail = RowTail(folder)
        self._printed = printed
        self._secrets = secrets
        self._logs = False
        self._looks = 0
        self._leave_at_look = 2
        self._to_leave: Mapping[str, Any] = {}

    def rows(self) -> tuple[Mapping[str, Any], ...]:
        """What came since the last call, oldest first."""
        rows: tuple[Mapping[str, Any], ...] = tuple(self._tail.rows())
        self._looks += 1
        self._logs = self._logs or bool(rows)
        if self._logs:
            return rows
        if row := self._printed():
            named = {self._secrets.masked(name): spelled(value) for name, value in row["values"].items()}
            self._to_leave = {"kind": "row", **row, "values": named}
            rows = (self._to_leave,)
        if self._to_leave and self._looks >= self._leave_at_look:
            self._leave()
        return rows

    def _leave(self) -> None:
        """Whole or not at all; a disk that is full takes nothing away but this."""
        row, self._to_leave = self._to_leave, {}
        self._leave_at_look = self._looks + min(max(self._looks // 4, 1), _MOST_LOOKS_APART)
        path = self._folder / LAST_PRINTED
        with suppress(OSError):
            # A link or a pipe that the training put there is neither followed nor waited for.
            write_own(path.with_suffix(".new"), json.dumps(row) + "\n", os.O_NOFOLLOW | os.O_NONBLOCK)
            path.with_suffix(".new").replace(path)

    def close(self) -> None:
        """Let go of the files."""
        self._tail.close()


def last_row(folder: Path) -> Mapping[str, Any]:
    """What the run of this folder logged or, where it logs nothing, printed last; empty where nothing can be read."""
    tail = RowTail(folder)
    rows = tail.rows()
    tail.close()
    if rows:
        return rows[-1]
    try:
        row = json.loads((folder / LAST_PRINTED).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return row if isinstance(row, dict) and isinstance(row.get("values"), dict) else {}


def readable_tail(data: bytes) -> str:
    """The end of an output as a terminal would show it: of a line rewritten by carriage returns, the last version.

    Colours are left out: reasons, tables and pages quote it, and would show what is left of their codes.
    """
    text = without_colours(data.decode("utf-8", "replace")).replace("\r\n", "\n").replace("\0", "\ufffd")
    return "\n".join(_last_version(line) for line in text.split("\n")).strip("\n")


def _last_version(line: str) -> str:
    return next((part for part in reversed(line.split("\r")) if part), "")
