"""Runs that meet in a file: one overwrites what another wrote, or reads it in place of its own.

From the records alone: each names the files that were there before it wrote to them, with their times, and when it
wrote and read them. A file is known by its path and machine.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from isorun.analysis.evidence import Condition, first_of, some
from isorun.study.records import RunRecord, RunState
from isorun.worker.frameworks import is_model_file

__all__ = ["SharedFiles", "is_isolated", "shared_file_conditions", "shared_files"]

_TOLD: Final = 3
_DATABASES: Final = (".db", ".sqlite", ".sqlite3")
_COARSE: Final = 0.05
"""File systems keep the time of the last tick of the clock, which may lie before the start of a run."""


@dataclass(frozen=True, slots=True)
class SharedFiles:
    """Of each file that several runs wrote, those runs; of each that a run read, those who read what another wrote."""

    written: Mapping[str, frozenset[str]]
    read: Mapping[str, frozenset[str]]


@dataclass(frozen=True, slots=True)
class _Touch:
    """What one run did to one file. reads: when, the time that the file had, and of the last own writing before.

    only_loads: whether the run ended well and trained nothing that could be seen.
    """

    run: str
    cell: str
    only_loads: bool
    found: float | None
    wrote: tuple[float, ...]
    reads: tuple[tuple[float, float, float | None], ...]


@dataclass(frozen=True, slots=True)
class _Window:
    run: str
    cell: str
    begin: float
    end: float
    is_isolated: bool
    trained: bool

    def has(self, moment: float) -> bool:
        return self.begin - _COARSE <= moment <= self.end + _COARSE


def _began(record: RunRecord) -> float | None:
    """When the run began; None where its record does not say: one that others made may say anything."""
    try:
        return datetime.fromisoformat(record.started_at).timestamp()
    except (ValueError, OverflowError):
        return None


def shared_files(records: Sequence[RunRecord]) -> SharedFiles:
    """Which runs met in which files. Attempts at one cell are one training that goes on, and do not count."""
    windows: dict[str, list[_Window]] = {}
    touches: dict[tuple[str, str], list[_Touch]] = {}
    for record in records:
        host = str(record.where.get("host", ""))
        begin = _began(record)
        assert begin is not None
        own = list(_touches(record))
        # Records of earlier versions have a start that lies before that of the process, whose seconds are told.
        end = max((begin + record.wall_seconds, *(moment for _, touch in own for moment in touch.wrote)))
        window = _Window(record.run_id, record.cell.id, begin, end, is_isolated(record), _trained(record))
        windows.setdefault(host, []).append(window)
        for name, touch in own:
            touches.setdefault((host, name), []).append(touch)
    written: dict[str, frozenset[str]] = {}
    read: dict[str, frozenset[str]] = {}
    for (host, name), seen in touches.items():
        around = [window for window in windows.get(host, []) if not window.is_isolated or _lies_outside(name)]
        if writers := frozenset(run for touch in seen for run in _overwrote(touch, around)):
            written[name] = writers
        readers = {touch.run for touch in seen if _read_of_others(touch, seen, around)}
        if is_model_file(name):
            readers.update(touch.run for touch in seen if _loaded_what_another_trained(touch, around))
        if readers:
            read[name] = frozenset(readers)
    return SharedFiles(written, read)


def _touches(record: RunRecord) -> Iterator[tuple[str, _Touch]]:
    files = record.environment.get("files")
    only_loads = record.state is RunState.FINISHED and not _trained(record)
    for name, item in files.items() if isinstance(files, Mapping) else ():
        if is_isolated(record) and not _lies_outside(name):  # a file of its own folder
            continue
        try:
            found = None if item["found"] is None else float(item["found"])
            reads = tuple((float(t), float(m), None if own is None else float(own)) for t, m, own in item["read"])
            wrote = tuple(map(float, item["wrote"]))
            yield name, _Touch(record.run_id, record.cell.id, only_loads, found, wrote, reads)
        except (TypeError, ValueError, KeyError):
            continue


def _trained(record: RunRecord) -> bool:
    """Whether weights were seen that the run had trained."""
    return "weights.final" in record.digests


def _lies_outside(name: str) -> bool:
    """Whether the file is not in the folder that the run worked in: a copy of that folder does not hold it."""
    return os.path.isabs(name)  # noqa: PTH117  names of another machine


def is_isolated(record: RunRecord) -> bool:
    """Whether the run worked in a copy of its folder."""
    requested = record.environment.get("requested")
    return isinstance(requested, Mapping) and "isolated" in requested


def _overwrote(touch: _Touch, windows: Sequence[_Window]) -> Iterator[str]:
    """The run, and one in whose time the file was last written to before; nothing where that was no run's."""
    others = [] if touch.found is None else [one for one in _at(touch.found, windows) if one.cell != touch.cell]
    if others:
        yield from (touch.run, others[0].run)


def _at(moment: float, windows: Sequence[_Window]) -> list[_Window]:
    return [window for window in windows if window.has(moment)]


def _read_of_others(touch: _Touch, seen: Sequence[_Touch], windows: Sequence[_Window]) -> bool:
    """Whether the run read what another wrote since its own last writing, or before it wrote at all.

    A file that only one run writes is data that was made once, and may be read by all: it is none of these.
    """
    writings = [moment for other in seen if other.cell != touch.cell for moment in other.wrote]
    return bool(touch.wrote) and any(
        any(one.cell != touch.cell for one in _at(file_time, windows))
        if own is None
        else any(own < moment < when for moment in writings)
        for when, file_time, own in touch.reads
    )


def _loaded_what_another_trained(touch: _Touch, windows: Sequence[_Window]) -> bool:
    """Whether the run trained nothing itself and took its model from the time of one that did: a model kept for later.

    A run that trains on from a model that one run alone made may have fetched it, and is not judged here.
    """
    return (
        touch.only_loads
        and not touch.wrote
        and any(
            any(one.cell != touch.cell and one.trained for one in _at(file_time, windows))
            for _, file_time, _ in touch.reads
        )
    )


def shared_file_conditions(records: Sequence[RunRecord]) -> Iterator[Condition]:
    """What a reader has to know of them; nothing where each run kept to itself."""
    found = shared_files([record for record in records if _began(record) is not None])
    if found.read:
        runs = frozenset().union(*found.read.values())
        files = first_of(sorted(found.read), _TOLD, ", ")
        is_model = any(map(is_model_file, found.read))
        what = "these are" if is_model else "where training goes on from it, these are"
        yield Condition(
            "read-of-another-run",
            f"{some(len(runs), 'run')} of {len(records)} read back what another run wrote ({files}): {what} no "
            "independent trainings",
            f"{_apart(found.read)}; with a new --store these runs are made again",
            voids=is_model,
        )
    if found.written:
        runs = frozenset().union(*found.written.values())
        files = first_of(sorted(found.written), _TOLD, ", ")
        kept = all(name.endswith(_DATABASES) for name in found.written)
        left = "what a run finds there may be another's" if kept else "only what the last one wrote is left"
        yield Condition(
            "shared-write",
            f"{some(len(runs), 'run')} of {len(records)} wrote to the same file ({files}): {left}, and runs side by "
            "side may mix",
            _apart(found.written),
        )


def _apart(names: Iterable[str]) -> str:
    """How runs are kept from meeting in these files: a copy of the folder does it for those that lie in it."""
    if not any(map(_lies_outside, names)):
        return (
            "the same command with --isolate and a new --store: each run gets a copy of the folder; or let the "
            "training write below {run_dir}"
        )
    return (
        "let the training write below {run_dir}, by an option of its own, and name a new --store: --isolate copies the "
        "folder, and does not reach files outside it"
    )
