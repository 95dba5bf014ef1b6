"""The run folder as seen from both sides: which process may write `events.jsonl`, and how a reader puts it together.

`events.jsonl` belongs to the first Python process of the run. When that one has ended without anything that looks
like a training (a helper called before it in a shell script), its file is set aside and the next process takes the
name. Every other process writes `events-<pid>.jsonl`, and only when it has something to say. Each file is entered in
`writers.txt` when it is made, so that a reader knows of one that was removed or replaced while it was written.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Callable, Iterable, Iterator, Mapping, NamedTuple, Sequence

from . import events

MAIN_EVENTS = "events.jsonl"
WRITERS = "writers.txt"
_HELPER_FILE_BYTES = 256 * 1024
_WRITERS_BYTES = 2**20
_MOST_FILES = 4096
_MOST_LIVE_BYTES = 2**18
_RANK_VARIABLES = ("RANK", "LOCAL_RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK")


def rank_of(environ: Mapping[str, str]) -> int:
    """The rank of this process in a distributed training; 0 where there is none."""
    ranks = [environ[name] for name in _RANK_VARIABLES if environ.get(name, "").isdigit()]
    return max(map(int, ranks), default=0)


def claim_main(folder: Path) -> events.EventFile | None:
    """`events.jsonl` for this process, or None when it belongs to another one."""
    path = folder / MAIN_EVENTS
    with _locked(folder):
        claimed = events.create(path)
        if claimed is None and (pid := _pid_of_helper(path)) is not None:
            path.rename(_free_name(folder, pid))
            claimed = events.create(path)
        return _entered(folder, claimed)


def open_other(folder: Path, pid: int) -> events.EventFile:
    """The file of a process that is not the run's main one."""
    while True:
        opened = _entered(folder, events.create(_free_name(folder, pid)))
        if opened is not None:
            return opened


def _entered(folder: Path, made: events.EventFile | None) -> events.EventFile | None:
    if made is not None:
        with suppress(OSError):  # the disk is full: the file itself will tell
            descriptor = os.open(folder / WRITERS, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
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
            if kind in ("row", "result", "predictions"):
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
    def is_ended_helper(self) -> bool:
        """Whether the process ended in an orderly way and left nothing that looks like training."""
        return self._last == "end" and not any(self.order[1:])


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
    reader, evidence = events.EventReader(path), Evidence()
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


def main_file(files: Sequence[ReadFile]) -> str:
    """The file of the process with the best evidence of training, `events.jsonl` among equals; empty for none."""
    return max(files, key=lambda file: file.evidence.order).name if files else ""


def missing_files(folder: Path) -> list[str]:
    """The event files that were made in this folder and are not in it any more, or are others by now."""
    try:
        entered = _small_file(folder / WRITERS)
    except OSError:
        return []
    present = {os.lstat(path).st_ino for path in _event_files(folder)}
    lines = [line.partition(b" ") for line in entered.splitlines()]
    return [os.fsdecode(name) for inode, _, name in lines if inode.isdigit() and int(inode) not in present]


def _small_file(path: Path) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return os.read(descriptor, _WRITERS_BYTES)
    finally:
        os.close(descriptor)


class RowTail:
    """The rows of a run that is going on: each call of `rows` gives those that came since the last one.

    Rows of rank 0, from whatever process logs them. Somebody who was away for more than 256 KiB gets the newest.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = Path(folder)
        self._readers: dict[int, events.EventReader] = {}
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
                self._readers[inode] = events.EventReader(Path(entry.path))
            rows += self._new_rows(inode, self._readers[inode])
        return rows

    def _new_rows(self, inode: int, reader: events.EventReader) -> list[dict[str, Any]]:
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
    """The process that wrote this file, if it was a helper and has ended; None if it is the training's."""
    reader, evidence = events.EventReader(path), Evidence()
    try:
        if reader.problem or reader.size > _HELPER_FILE_BYTES:
            return None
        evidence.take(reader.events())
        return evidence.pid if evidence.is_ended_helper else None
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
