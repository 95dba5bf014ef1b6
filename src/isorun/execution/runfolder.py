"""Reading a run's folder once the run has ended."""

from __future__ import annotations

from pathlib import Path

from isorun.execution.events import EventLog
from isorun.study.records import Note
from isorun.worker.runfolder import read_run

__all__ = ["read_run_folder"]


def read_run_folder(folder: Path) -> EventLog:
    """The events of the process that trained, filled up with those of the run's other processes."""
    found = read_run(folder)
    log = EventLog.of(found.main)
    for events in found.others.values():
        log.fill_from(EventLog.of(events))
    if found.torn_bytes:
        message = f"the last {found.torn_bytes} bytes of the run's events are damaged and were left out"
        log.notes.append(Note("torn-events", message))
    if not folder.is_dir():
        log.notes.append(Note("events-lost", "the run's folder was removed while it ran, and what it logged with it"))
    return log
