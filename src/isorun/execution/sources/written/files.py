"""Metrics from files that a training wrote: which files belong to this run, and what they hold."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from pathlib import Path

from isorun.execution.sources.found import Found, merged
from isorun.execution.sources.written.columns import FileTimes
from isorun.execution.sources.written.datafiles import read_data_file
from isorun.execution.sources.written.tensorboard import read_event_folder
from isorun.study.design import Sources
from isorun.study.records import Note

__all__ = ["read_files"]


def read_files(sources: Sources, working_folder: Path, since_unix: float) -> Found:
    """The metrics in the files and TensorBoard folders of the study that were written since the run began.

    Paths and patterns ("logs/*.csv", "**/metrics.json") start at the working folder unless they are absolute. A file
    that was last changed before the run began belongs to another run: it is left out, and a note says so.
    """
    parts = [_read_pattern(pattern, working_folder, since_unix) for pattern in sources.files]
    parts += [_read_folders(pattern, working_folder, since_unix) for pattern in sources.tensorboard]
    return merged(*parts)


def _read_pattern(pattern: str, folder: Path, since: float) -> Found:
    paths = [path for path in _matches(pattern, folder) if path.is_file()]
    fresh = [path for path in paths if _is_fresh(path, since)]
    if not fresh:
        return Found(notes=(_nothing_note("files", pattern, paths),))
    parts = [_read_one(path, folder, since) for path in fresh]
    return merged(*(_told_apart(parts, fresh, folder) if len(parts) > 1 else parts))


def _read_one(path: Path, folder: Path, since: float) -> Found:
    modified = path.stat().st_mtime if path.exists() else since
    return read_data_file(path, _shown(path, folder), FileTimes(since, modified))


def _read_folders(pattern: str, folder: Path, since: float) -> Found:
    matches = _matches(pattern, folder)
    events = sorted({path for match in matches for path in _event_files(match)})
    fresh = [path for path in events if _is_fresh(path, since)]
    if not fresh:
        return Found(notes=(_nothing_note("tensorboard", pattern, events),))
    return read_event_folder(fresh, since, lambda path: _shown(path, folder))


def _event_files(path: Path) -> Iterable[Path]:
    return [path] if path.is_file() else (item for item in path.rglob("*tfevents*") if item.is_file())


def _matches(pattern: str, folder: Path) -> list[Path]:
    literal = folder / pattern
    if literal.exists():
        return [literal]
    anchor = Path(pattern).anchor
    start, rest = (Path(anchor), pattern[len(anchor) :]) if anchor else (folder, pattern)
    try:
        return sorted(start.glob(rest))
    except (ValueError, NotImplementedError, OSError):
        return []  # what cannot be a pattern matches nothing, which the caller notes


def _is_fresh(path: Path, since: float) -> bool:
    """Whether the file was changed since. Clocks of file systems are coarse: some give whole seconds, ours some ms."""
    try:
        modified = path.stat().st_mtime
    except OSError:
        return False
    return modified >= (math.floor(since) if modified.is_integer() else since - 0.02)


def _shown(path: Path, folder: Path) -> str:
    return os.path.relpath(path, folder) if path.is_relative_to(folder) else str(path)


def _nothing_note(kind: str, pattern: str, stale: list[Path]) -> Note:
    if stale:
        message = f"{pattern!r}: {len(stale)} files are there, none of them changed since the run began; not read"
        return Note(f"{kind}.stale", message)
    return Note(f"{kind}.missing", f"{pattern!r}: no such file in the working folder")


def _told_apart(parts: list[Found], paths: list[Path], folder: Path) -> list[Found]:
    """Several files of one pattern may hold the same names: those are prefixed with their file's name."""
    counts: dict[str, int] = {}
    for part in parts:
        for name in part.origins:
            counts[name] = counts.get(name, 0) + 1
    doubled = {name for name, count in counts.items() if count > 1}
    return [
        _prefixed(part, doubled, _shown(path.with_suffix(""), folder)) for part, path in zip(parts, paths, strict=True)
    ]


def _prefixed(part: Found, doubled: set[str], prefix: str) -> Found:
    def rename(name: str) -> str:
        return f"{prefix}/{name}" if name in doubled else name

    return Found(
        {rename(name): series for name, series in part.series.items()},
        {rename(name): value for name, value in part.results.items()},
        {rename(name): origin for name, origin in part.origins.items()},
        {rename(name): example for name, example in part.examples.items()},
        part.notes,
    )
