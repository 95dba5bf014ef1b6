"""Packing: from the inbox into the database, many records a transaction, each exactly once.

A file leaves the inbox only after the commit that holds its record. What is damaged or contradicts a record is kept
under another name and reported when everything else has been packed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from isorun.errors import StoreConflict, StoreError
from isorun.store.inbox import DamagedFile, Inbox
from isorun.store.sqlite import writing
from isorun.store.uniqueness import is_known
from isorun.store.writing import RecordWriter, known_attempts

__all__ = ["pack_inbox"]

_BATCH = 256


@dataclass(slots=True)
class _Batch:
    """What one transaction did with the files it was given."""

    packed: int = 0
    safe: list[str] = field(default_factory=list)
    damaged: dict[str, DamagedFile] = field(default_factory=dict)
    conflicts: dict[str, StoreConflict] = field(default_factory=dict)


def pack_inbox(inbox: Inbox, connection: sqlite3.Connection, database: Path) -> int:
    """Pack all that waits; how many records were new. Whoever calls this holds the writer's lock."""
    packed = 0
    problems: list[StoreError] = []
    for run_ids in _batches(inbox.run_ids()):
        with writing(connection, database):
            batch = _write_batch(inbox, connection, run_ids)
        packed += batch.packed
        for run_id in batch.safe:
            inbox.remove(run_id)
        problems += _set_aside(inbox, batch)
    inbox.clean()
    if problems:
        raise _together(problems)
    return packed


def _write_batch(inbox: Inbox, connection: sqlite3.Connection, run_ids: Sequence[str]) -> _Batch:
    batch = _Batch()
    writer = RecordWriter(connection)
    for run_id in run_ids:
        waiting = inbox.read(run_id)
        if waiting is None:
            continue
        if isinstance(waiting, DamagedFile):
            batch.damaged[run_id] = waiting
            continue
        record, digest = waiting.record, waiting.digest
        try:
            known = is_known(record, digest, known_attempts(connection, record.cell.id))
        except StoreConflict as conflict:
            batch.conflicts[run_id] = conflict
            continue
        if not known:
            writer.write(record, digest)
            batch.packed += 1
        batch.safe.append(run_id)
    return batch


def _set_aside(inbox: Inbox, batch: _Batch) -> list[StoreError]:
    problems: list[StoreError] = []
    for run_id, file in batch.damaged.items():
        kept = inbox.set_aside(run_id, "damaged")
        problems.append(
            StoreError(
                f"the record in {file.path} is damaged; it was kept as {kept.name}",
                found=file.found,
                allowed="the file as it was written",
                hint="run the same command again to repeat this run",
            )
        )
    for run_id, conflict in batch.conflicts.items():
        kept = inbox.set_aside(run_id, "conflict")
        what = f"{conflict.what}; it was kept as {kept}"
        problems.append(StoreConflict(what, found=conflict.found, allowed=conflict.allowed, hint=conflict.hint))
    return problems


def _together(problems: Sequence[StoreError]) -> StoreError:
    """One error for all: a conflict when there is one among them."""
    first = next((problem for problem in problems if isinstance(problem, StoreConflict)), problems[0])
    what = "\n".join([first.what, *(problem.what for problem in problems if problem is not first)])
    return type(first)(what, found=first.found, allowed=first.allowed, hint=first.hint)


def _batches(run_ids: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(run_ids), _BATCH):
        yield run_ids[start : start + _BATCH]
