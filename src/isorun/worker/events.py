r"""Event files: numbered, framed lines, append-only, readable up to the first line that does not check.

A line is `<length> <crc32 hex> <number> <json>\n`. Length and CRC-32 are those of `<number> <json>`; the number counts
the lines of the file from 0, so that a line which is missing, doubled or out of its place does not check either.
Lines of the first protocol have no number: `<length> <crc32 hex> <json>\n`; they are still read.

A torn tail (a crash or a full disk in the middle of a write) can so never be mistaken for data. While events wait for
a disk that is full, the file ends in bytes that do not check: should the process end before they are written, in
whatever way, a reader knows that something is missing. No fsync: the file survives the death of the process, and the
executor makes the run durable when it has ended.
"""

from __future__ import annotations

import errno
import json
import math
import os
import re
import stat
import zlib
from pathlib import Path
from typing import Any, Iterable, Iterator

PROTOCOL = 2

# What a reader takes, and a writer gives: a training that logs more than this has failed.
MAX_FILE_BYTES = 2**30
MAX_LINE_BYTES = 2**28
MAX_WAITING_BYTES = 64 * 2**20
# Small enough that the events of a block are gone again before Python looks for garbage among them.
_BLOCK = 2**15
_HEADER = re.compile(rb"[0-9]{1,9} [0-9a-f]{8} ")
_LONGEST_HEADER = 19

_encode_strict = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


def encode(number: int, event: dict[str, Any]) -> bytes:
    """One framed line. Numbers that JSON cannot hold travel as words."""
    try:
        text = _encode_strict(event)
    except ValueError:
        text = _encode_strict(spelled(event))
    return framed(number, text)


def framed(number: int, text: str) -> bytes:
    """One framed line of an event that is JSON already."""
    body = ("%d %s" % (number, text)).encode()
    return b"%d %08x %s\n" % (len(body), zlib.crc32(body), body)


def spelled(value: Any) -> Any:
    """The value with NaN and infinities, at any depth, as the words that `float` reads back."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    if isinstance(value, dict):
        return {key: spelled(item) for key, item in value.items()}
    return [spelled(item) for item in value] if isinstance(value, (list, tuple)) else value


class EventFile:
    """An append-only file with one writer: one `os.write` an event, nothing ever behind a half line.

    What cannot be written waits in memory and is tried again. lost: how many events were given up because more than
    MAX_WAITING_BYTES were waiting, or the file had grown to MAX_FILE_BYTES.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self.lost = 0
        self.inode = os.fstat(descriptor).st_ino
        self._descriptor = descriptor
        self._next = 0
        self._size = 0
        self._half_line = self._full = False
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0

    def append(self, event: dict[str, Any]) -> None:
        """Write the event, or keep it for the next attempt."""
        self._take(encode(self._next, event))

    def append_text(self, text: str) -> None:
        """The same for an event that is JSON already."""
        self._take(framed(self._next, text))

    def _take(self, line: bytes) -> None:
        if self._waiting:
            self.flush()
        if self._full or len(line) > MAX_LINE_BYTES or self._size + self._waiting_bytes + len(line) >= MAX_FILE_BYTES:
            self.lost += 1
            self._full = self._full or self._half_line or self._lengthen()
        elif (not self._waiting and self._write(line)) or self._keep(line):
            self._next += 1

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

    def _keep(self, line: bytes) -> bool:
        if self._waiting_bytes + len(line) > MAX_WAITING_BYTES:
            self.lost += 1
            return False
        self._waiting.append(line)
        self._waiting_bytes += len(line)
        return True


def create(path: Path) -> EventFile | None:
    """A new file of this process's own; None when the name is taken."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
    try:
        return EventFile(path, os.open(path, flags, 0o600))
    except FileExistsError:
        return None


class EventReader:
    """Reads the events of one file, from where it stopped, while or after they are written, a block at a time.

    problem: why nothing behind `good_bytes` is read, in words; empty while everything checks. inode: of the file.
    The file is opened as data that somebody else made: regular files only, no links, nothing that could block.
    """

    def __init__(self, path: Path) -> None:
        self.good_bytes = 0
        self.problem = ""
        self.inode = 0
        self._descriptor = -1
        self._pending = b""
        self._next = 0
        self._numbered: bool | None = None
        self._open(path)

    def _open(self, path: Path) -> None:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
        try:
            self._descriptor = os.open(path, flags)
            found = os.fstat(self._descriptor)
        except OSError as error:
            is_link = error.errno == errno.ELOOP
            self.problem = "it is a link" if is_link else "it cannot be opened (%s)" % error.strerror
            return
        self.inode = found.st_ino
        if not stat.S_ISREG(found.st_mode):
            self.problem = "it is no ordinary file"
        elif found.st_size > MAX_FILE_BYTES:
            self.problem = "its %d bytes are more than the %d that are read" % (found.st_size, MAX_FILE_BYTES)

    @property
    def size(self) -> int:
        """How large the file is now; 0 where it could not be opened."""
        return os.fstat(self._descriptor).st_size if self._descriptor >= 0 else 0

    @property
    def unread_bytes(self) -> int:
        """How many bytes lie behind the last line that checked."""
        return max(self.size - self.good_bytes, 0) if stat.S_ISREG(self._mode) else 0

    @property
    def _mode(self) -> int:
        return os.fstat(self._descriptor).st_mode if self._descriptor >= 0 else 0

    def blocks(self) -> Iterator[list[dict[str, Any]]]:
        """The events that were not read yet, in blocks, up to the end or the first line that does not check."""
        while not self.problem:
            data = os.read(self._descriptor, self._wanted())
            if not data:
                return
            if self.good_bytes + len(self._pending) + len(data) > MAX_FILE_BYTES:
                self.problem = "it grew to more than the %d bytes that are read" % MAX_FILE_BYTES
                return
            whole, newline, rest = (self._pending + data).rpartition(b"\n")
            self._pending = rest
            if newline:
                yield self._decoded(whole)
            self._look_at_beginning(rest)

    def events(self) -> list[dict[str, Any]]:
        """All events that were not read yet."""
        return [event for block in self.blocks() for event in block]

    def skip_to(self, position: int) -> None:
        """Go on with the first line that begins behind `position`, whatever its number: for those who only watch."""
        os.lseek(self._descriptor, position, os.SEEK_SET)
        self._pending, self._next = b"", -1
        while skipped := os.read(self._descriptor, _BLOCK):
            newline = skipped.find(b"\n") + 1
            position += newline or len(skipped)
            if newline:
                break
        self.good_bytes = position
        os.lseek(self._descriptor, position, os.SEEK_SET)

    def close(self) -> None:
        """Let go of the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _wanted(self) -> int:
        """How many bytes to read next: the rest of a line that is larger than a block at once."""
        length = self._pending[:9].partition(b" ")[0] if self._may_be_line(self._pending) else b""
        missing = int(length) + _LONGEST_HEADER - len(self._pending) if length.isdigit() else 0
        return max(min(missing, MAX_LINE_BYTES), _BLOCK)

    def _look_at_beginning(self, rest: bytes) -> None:
        if not self.problem and not self._may_be_line(rest):
            self.problem = "line %d does not check" % (self._next + 1)

    def _may_be_line(self, rest: bytes) -> bool:
        """Whether the beginning of a line looks like one; else gigabytes of something else would be collected."""
        is_headed = len(rest) < _LONGEST_HEADER or _HEADER.match(rest) is not None
        return is_headed and len(rest) <= MAX_LINE_BYTES

    def _decoded(self, data: bytes) -> list[dict[str, Any]]:
        """The events of whole lines; at the first one that does not check `problem` is set."""
        lines = data.split(b"\n")
        if self._numbered is None:
            self._numbered = lines[0].split(b" ", 2)[-1][:1] != b"{"
        bodies = self._checked(lines) if self._numbered else self._checked_without_numbers(lines)
        found = _parsed(bodies)
        if len(found) < len(bodies):
            self.problem = "line %d is no event" % (self._next - len(bodies) + len(found) + 1)
        self.good_bytes += sum(map(len, lines[: len(found)])) + len(found)
        return found

    def _checked(self, lines: list[bytes]) -> list[bytes]:
        """The JSON of these lines, up to the first whose length, checksum or number is wrong."""
        crc32 = zlib.crc32
        bodies: list[bytes] = []
        for line in lines:
            length, _, rest = line.partition(b" ")
            body = rest[9:]
            if rest[:9] != b"%08x " % crc32(body) or length != b"%d" % len(body):
                self.problem = "line %d does not check" % (self._next + 1)
                break
            number, _, text = body.partition(b" ")
            if number != b"%d" % self._next and not self._is_first_after_skip(number):
                found = number.decode("ascii", "replace")[:20]
                self.problem = "the line with number %d is missing: there is %s" % (self._next, found or "none")
                break
            self._next += 1
            bodies.append(text)
        return bodies

    def _checked_without_numbers(self, lines: list[bytes]) -> list[bytes]:
        """The same for files of the first protocol."""
        bodies: list[bytes] = []
        for line in lines:
            length, _, rest = line.partition(b" ")
            body = rest[9:]
            if rest[:9] != b"%08x " % zlib.crc32(body) or length != b"%d" % len(body):
                self.problem = "line %d does not check" % (self._next + 1)
                break
            self._next += 1
            bodies.append(body)
        return bodies

    def _is_first_after_skip(self, number: bytes) -> bool:
        if self._next >= 0 or not number.isdigit():
            return False
        self._next = int(number)
        return True


def _parsed(bodies: list[bytes]) -> list[dict[str, Any]]:
    """The events of these texts, up to the first that is none. One call for all is twice as fast as one for each."""
    try:
        together = json.loads(b"[%s]" % b",".join(bodies))
        if len(together) == len(bodies) and all(type(event) is dict for event in together):
            return together  # type: ignore[no-any-return]
    except (ValueError, RecursionError):
        pass
    return list(_one_by_one(bodies))


def _one_by_one(bodies: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    for body in bodies:
        try:
            event = json.loads(body)
        except (ValueError, RecursionError):
            return
        if not isinstance(event, dict):
            return
        yield event
