r"""The event files of a run folder, from both sides: their lines, which process may write which, and how they are read.

`events.jsonl` belongs to the first Python process of the run. When that one has ended without anything that looks
like a training (a helper called before it in a shell script), or has become another program (`poetry run`), its file is
set aside and the next process takes the name. Every other process writes `events-<pid>.jsonl`, and only when it has
something to say. Each file is entered in `writers.txt` when it is made, so that a reader knows of one that was removed
or replaced while it was written.

Event files are numbered, framed lines, append-only, readable up to the first line that does not check.

A line is `<length> <crc32 hex> <number> <json>\n`. Length and CRC-32 are those of `<number> <json>`; the number counts
the lines of the file from 0, so that a line which is missing, doubled or out of its place does not check either.

A torn tail (a crash or a full disk in the middle of a write) can so never be mistaken for data. While events wait for
a disk that is full, the file ends in bytes that do not check: should the process end before they are written, in
whatever way, a reader knows that something is missing. Where not even that is possible (a limit on the size of files, a
file that was closed and cannot be opened again) a link named `events-lost-<pid>.jsonl` says so. No fsync: the file
survives the death of the process, and the executor makes the run durable when it has ended.
"""

from __future__ import annotations

import errno
import fcntl
import json
import math
import os
import re
import stat
import time
import zlib
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Callable, Iterable, Iterator, Mapping, NamedTuple, Sequence

PROTOCOL = 2
LOSS = "events-lost-"

# What a reader takes, and a writer gives: a training that logs more than this has failed.
MAX_FILE_BYTES = 2**30
MAX_LINE_BYTES = 2**28
MAX_WAITING_BYTES = 64 * 2**20
# Small enough that the events of a block are gone again before Python looks for garbage among them.
_BLOCK = 2**15
_HEADER = re.compile(rb"[0-9]{1,9} [0-9a-f]{8} ")
_LONGEST_HEADER = 19


def is_shared(folder: Path) -> bool:
    """Whether a group works with what is in the folder (`isorun store share`): setgid, and writable for it."""
    try:
        mode = folder.stat().st_mode
    except OSError:
        return False
    return bool(mode & stat.S_ISGID and mode & stat.S_IWGRP)


def open_own(path: Path, flags: int) -> int:
    """Open a file, made for its owner alone whatever the umask, or for the group too where the folder is shared."""
    descriptor = os.open(path, flags | os.O_CLOEXEC, 0o600)
    if is_shared(path.parent):
        with suppress(OSError):  # it was there, and is somebody else's
            os.fchmod(descriptor, 0o660)
    return descriptor


def write_own(path: Path, text: str, flags: int = 0) -> None:
    """Write such a file; OSError where that is not possible."""
    with os.fdopen(open_own(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | flags), "w", encoding="utf-8") as file:
        file.write(text)


def make_own_folder(path: Path) -> None:
    """Make a folder in the same way; FileExistsError where there is one."""
    path.mkdir(mode=0o700)
    if is_shared(path.parent):
        path.chmod(0o2770)


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
        found = os.fstat(descriptor)
        self.inode = found.st_ino
        self._identity = (found.st_dev, found.st_ino)
        self._descriptor = descriptor
        self._mark = _marked(descriptor)
        self._next = 0
        self._size = 0
        self._half_line = self._full = self._told = False
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
            if not self._full:
                self._tell_loss("too much was logged")
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
        if self._told and not self._waiting and not self.lost:
            self._told = False
            untell_loss(self.path.parent)
        return not self._waiting

    def close(self) -> None:
        """Let go of the file."""
        if self._is_ours(self._descriptor):
            os.close(self._descriptor)

    def _is_ours(self, descriptor: int) -> bool:
        try:
            found = os.fstat(descriptor)
        except OSError:
            return False
        return (found.st_dev, found.st_ino) == self._identity

    def _has_file(self) -> bool:
        """Whether the file is open. A training may close whatever is open, and get the number for a file of its own.

        Every line asks, so it is first asked for the mark, which takes a third of the time.
        """
        try:
            if os.lseek(self._descriptor, 0, os.SEEK_CUR) == self._mark:
                return True
        except OSError:
            pass
        if self._is_ours(self._descriptor):
            return True
        try:
            descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return False
        if not self._is_ours(descriptor):
            os.close(descriptor)
            return False
        self._descriptor = descriptor
        self._mark = _marked(descriptor)
        return True

    def _write(self, line: bytes) -> bool:
        if not self._has_file():
            self._tell_loss("its file was closed, and cannot be opened again")
            return False
        if self._half_line and not self._cut_half_line():
            return False
        written, why = 0, "no room"
        try:
            written = os.pwrite(self._descriptor, line, self._size)
        except OSError as error:
            why = error.strerror or why
        if written == len(line):
            self._size += written
            return True
        self._half_line = written > 0 or self._lengthen()
        if not self._half_line:
            self._tell_loss(why)
        return False

    def _tell_loss(self, why: str) -> None:
        if not self._told:
            self._told = True
            tell_loss(self.path.parent, why)

    def _lengthen(self) -> bool:
        """Leave a byte that does not check; lengthening a file takes no room, so a full disk allows it."""
        try:
            if self._has_file():
                os.ftruncate(self._descriptor, self._size + 1)
                return True
        except OSError:
            pass
        return False

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


def _marked(descriptor: int) -> int:
    """Set the position of an open file to one that no other has, for what is written at a place of its own moves none.

    -1 where that is not possible.
    """
    try:
        return os.lseek(descriptor, 2**40 + time.time_ns() % 2**40, os.SEEK_SET)
    except OSError:
        return -1


def tell_loss(folder: Path, why: str) -> None:
    """Say in the folder that this process has events which it cannot write.

    A link that leads nowhere: it takes no room on a full disk and no open file, and no limit of the process forbids it.
    """
    with suppress(OSError):
        _loss(folder).symlink_to(why)


def untell_loss(folder: Path) -> None:
    """They were written after all."""
    with suppress(OSError):
        _loss(folder).unlink()


def _loss(folder: Path) -> Path:
    return folder / f"{LOSS}{os.getpid()}.jsonl"


def create(path: Path) -> EventFile | None:
    """A new file of this process's own; None when the name is taken."""
    try:
        return EventFile(path, open_own(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND))
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
        bodies = self._checked(lines)
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


MAIN_EVENTS = "events.jsonl"
WRITERS = "writers.txt"
_HELPER_FILE_BYTES = 256 * 1024
WRITERS_BYTES = 2**20
_MOST_FILES = 4096
_MOST_LIVE_BYTES = 2**18
_RANK_VARIABLES = ("RANK", "LOCAL_RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK")


def rank_of(environ: Mapping[str, str]) -> int:
    """The rank of this process in a distributed training; 0 where there is none."""
    ranks = [environ[name] for name in _RANK_VARIABLES if environ.get(name, "").isdigit()]
    return max(map(int, ranks), default=0)


def has_rank(environ: Mapping[str, str]) -> bool:
    """Whether this process is one of a distributed training, as whoever launched it says."""
    return any(environ.get(name, "").isdigit() for name in _RANK_VARIABLES)


def at_work(folder: Path) -> set[int]:
    """The processes that have a file, have not told their end, and are there."""
    found = read_files(folder, lambda *_: None)
    return {file.evidence.pid for file in found if not file.evidence.has_ended and is_there(file.evidence.pid)}


def is_there(pid: int) -> bool:
    """Whether there is such a process that still does something."""
    try:
        return Path("/proc/%d/stat" % pid).read_bytes().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except (OSError, IndexError):
        return False


def claim_main(folder: Path) -> EventFile | None:
    """`events.jsonl` for this process, or None when it belongs to another one."""
    path = folder / MAIN_EVENTS
    with _locked(folder):
        claimed = create(path)
        if claimed is None and (pid := _pid_of_helper(path)) is not None:
            path.rename(_free_name(folder, pid))
            claimed = create(path)
        return _entered(folder, claimed)


def open_other(folder: Path, pid: int) -> EventFile:
    """The file of a process that is not the run's main one."""
    while True:
        opened = _entered(folder, create(_free_name(folder, pid)))
        if opened is not None:
            return opened


def _entered(folder: Path, made: EventFile | None) -> EventFile | None:
    if made is not None:
        with suppress(OSError):  # the disk is full: the file itself will tell
            descriptor = open_own(folder / WRITERS, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            try:
                os.write(descriptor, b"%d %s\n" % (made.inode, os.fsencode(made.path.name)))
            finally:
                os.close(descriptor)
    return made


class Evidence:
    """How much a process looks like the training, as its events come by."""

    def __init__(self) -> None:
        self._rank = 0
        self._logged = self._weights = self._framework = False
        self._last = ""
        self.pid = 0

    def take(self, taken: Iterable[Mapping[str, Any]]) -> None:
        """Look at the next events."""
        for event in taken:
            kind = event.get("kind")
            self._last = str(kind)
            if kind in ("row", "result", "predictions", "watched"):
                self._logged = True
            elif kind in ("digest", "seeded"):
                self._weights = True
            elif kind == "start":
                self._rank = self._rank or (1 if event.get("rank") else 0)
                self.pid = self.pid or _whole(event.get("pid"))
            elif kind == "environment":
                effective = event.get("effective")
                self._framework = self._framework or (isinstance(effective, dict) and bool(effective.get("frameworks")))

    @property
    def order(self) -> tuple[bool, bool, bool, bool]:
        """Comparable: rank 0, logged something, weights, a framework."""
        return (not self._rank, self._logged, self._weights, self._framework)

    @property
    def has_ended(self) -> bool:
        """Whether the process told its end."""
        return self._last == "end"

    @property
    def has_trained(self) -> bool:
        """Whether the process left anything that looks like training."""
        return any(self.order[1:])


class ReadFile(NamedTuple):
    """One event file that was read to its end: how it looks, and why what follows `good_bytes` was left out."""

    name: str
    evidence: Evidence
    problem: str
    unread_bytes: int


Taker = Callable[[str, Sequence[Mapping[str, Any]]], None]


def read_files(folder: Path, take: Taker) -> list[ReadFile]:
    """Read every event file of a run block by block, `take(file name, events)`; `events.jsonl` first."""
    return [_read_file(path, take) for path in _event_files(folder)[:_MOST_FILES]]


def _read_file(path: Path, take: Taker) -> ReadFile:
    reader, evidence = EventReader(path), Evidence()
    try:
        for block in reader.blocks():
            evidence.take(block)
            take(path.name, block)
        return ReadFile(path.name, evidence, reader.problem, reader.unread_bytes)
    finally:
        reader.close()


def _event_files(folder: Path) -> list[Path]:
    """Whatever is named like an event file: one that is no file must be told, too."""
    return sorted(folder.glob("events*.jsonl"), key=lambda path: (path.name != MAIN_EVENTS, path.name))


def number_of_files(folder: Path) -> int:
    """How many processes of a run have an event file."""
    return len(_event_files(folder))


def main_file(files: Sequence[ReadFile]) -> str:
    """The file of the process with the best evidence of training, `events.jsonl` among equals; empty for none."""
    return max(files, key=lambda file: file.evidence.order).name if files else ""


def entered_files(folder: Path) -> bytes:
    """What `writers.txt` says; nothing where it cannot be read."""
    try:
        descriptor = os.open(folder / WRITERS, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(descriptor, WRITERS_BYTES)
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def missing_files(folder: Path, entered: bytes) -> list[str]:
    """The event files that were entered as made in this folder and are not in it any more, or are others by now."""
    present = {os.lstat(path).st_ino for path in _event_files(folder)}
    lines = [line.partition(b" ") for line in entered.splitlines()]
    return [os.fsdecode(name) for inode, _, name in lines if inode.isdigit() and int(inode) not in present]


class RowTail:
    """The rows of a run that is going on: each call of `rows` gives those that came since the last one.

    Rows of rank 0, from whatever process logs them. Somebody who was away for more than 256 KiB gets the newest.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = Path(folder)
        self._readers: dict[int, EventReader] = {}
        self._silent: set[int] = set()

    def rows(self) -> list[dict[str, Any]]:
        """The `row` events that were not given yet, oldest first within a process."""
        try:
            found = {entry.inode(): entry for entry in os.scandir(self._folder) if _is_event_name(entry.name)}
        except OSError:
            return []
        rows: list[dict[str, Any]] = []
        for inode, entry in found.items():
            if inode not in self._readers:
                self._readers[inode] = EventReader(Path(entry.path))
            rows += self._new_rows(inode, self._readers[inode])
        return rows

    def _new_rows(self, inode: int, reader: EventReader) -> list[dict[str, Any]]:
        if reader.problem or inode in self._silent:
            return []
        rows: list[dict[str, Any]] = []
        for block in reader.blocks():
            if any(event.get("kind") == "start" and event.get("rank") for event in block):
                self._silent.add(inode)
                return []
            rows += [event for event in block if event.get("kind") == "row"]
            if reader.unread_bytes > _MOST_LIVE_BYTES:
                rows = []
                reader.skip_to(reader.size - _MOST_LIVE_BYTES)
        return rows

    def close(self) -> None:
        """Let go of the files."""
        for reader in self._readers.values():
            reader.close()
        self._readers = {}


def _is_event_name(name: str) -> bool:
    return name.startswith("events") and name.endswith(".jsonl")


def _pid_of_helper(path: Path) -> int | None:
    """The process that wrote this file, if it was a helper and has ended; None if it is the training's.

    One that became this process (`os.execv`, as `poetry run` does) tells no end of its own.
    """
    reader, evidence = EventReader(path), Evidence()
    try:
        if reader.problem or reader.size > _HELPER_FILE_BYTES:
            return None
        evidence.take(reader.events())
        is_over = evidence.has_ended or evidence.pid == os.getpid()
        return evidence.pid if is_over and not evidence.has_trained else None
    finally:
        reader.close()


def _whole(value: Any) -> int:
    return value if isinstance(value, int) and 0 < value < 2**31 else 0


def _free_name(folder: Path, pid: int) -> Path:
    numbers = iter(range(2, 1_000_000))
    path = folder / f"events-{pid}.jsonl"
    while path.exists():
        path = folder / f"events-{pid}-{next(numbers)}.jsonl"
    return path


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the folder's lock; on file systems without locks for folders, go without."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
