"""The run folder as seen from both sides: which process may write `events.jsonl`, and how a reader puts it together.

`events.jsonl` belongs to the first Python process of the run. When that one has ended without anything that looks
like a training (a helper called before it in a shell script), its file is set aside and the next process takes the
name. Every other process writes `events-<pid>.jsonl`, and only when it has something to say.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Iterator, Mapping, NamedTuple, Sequence

from . import eventfile, frames

MAIN_EVENTS = "events.jsonl"
_HELPER_FILE_BYTES = 256 * 1024
_RANK_VARIABLES = ("RANK", "LOCAL_RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK")


class RunEvents(NamedTuple):
    """What a run left: the training process's events, those of its other processes by file name, and bad bytes."""

    main: list[dict[str, Any]]
    others: dict[str, list[dict[str, Any]]]
    torn_bytes: int


class RowTail:
    """The rows of a run that is going on: each call of `rows` gives those that came since the last one."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._path = Path(folder) / MAIN_EVENTS
        self._read = 0

    def rows(self) -> list[dict[str, Any]]:
        """The `row` events that were not given yet."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._read)
                found = frames.decode(file.read())
        except OSError:
            return []
        self._read += found.good_bytes
        return [event for event in found.events if event.get("kind") == "row"]


def rank_of(environ: Mapping[str, str]) -> int:
    """The rank of this process in a distributed training; 0 where there is none."""
    ranks = [environ[name] for name in _RANK_VARIABLES if environ.get(name, "").isdigit()]
    return max(map(int, ranks), default=0)


def claim_main(folder: Path) -> eventfile.EventFile | None:
    """`events.jsonl` for this process, or None when it belongs to another one."""
    path = folder / MAIN_EVENTS
    with _locked(folder):
        claimed = eventfile.create(path)
        if claimed is None and _was_helper(path):
            path.rename(_free_name(folder, frames.read(path).events[0].get("pid", 0)))
            claimed = eventfile.create(path)
    return claimed


def open_other(folder: Path, pid: int) -> eventfile.EventFile:
    """The file of a process that is not the run's main one."""
    while True:
        opened = eventfile.create(_free_name(folder, pid))
        if opened is not None:
            return opened


def read_run(folder: str | os.PathLike[str]) -> RunEvents:
    """All events of a run; the main process is the one with the best evidence of training, `events.jsonl` if equal."""
    paths = sorted(Path(folder).glob("events*.jsonl"), key=lambda path: (path.name != MAIN_EVENTS, path.name))
    files = {path.name: frames.read(path) for path in paths}
    torn = sum(found.torn_bytes for found in files.values())
    if not files:
        return RunEvents([], {}, 0)
    main = max(files, key=lambda name: evidence_of_training(files[name].events))
    return RunEvents(files[main].events, {name: found.events for name, found in files.items() if name != main}, torn)


def evidence_of_training(events: Sequence[Mapping[str, Any]]) -> tuple[bool, bool, bool, bool]:
    """How much a process looks like the training, comparable: rank 0, logged something, weights, a framework."""
    kinds = {event.get("kind") for event in events}
    rank_zero = not any(event.get("rank") for event in events if event.get("kind") == "start")
    environments = [event["effective"] for event in events if event.get("kind") == "environment"]
    return (
        rank_zero,
        bool(kinds & {"row", "result", "predictions"}),
        bool(kinds & {"digest", "seeded"}),
        any(effective.get("frameworks") for effective in environments),
    )


def _was_helper(path: Path) -> bool:
    if path.stat().st_size > _HELPER_FILE_BYTES:
        return False
    events = frames.read(path).events
    ended = bool(events) and events[-1].get("kind") == "end"
    return ended and not any(evidence_of_training(events)[1:])


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
