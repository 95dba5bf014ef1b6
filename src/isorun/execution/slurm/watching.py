"""What a run tells while it goes on, read from the files of events that its element writes."""

from __future__ import annotations

import json
from pathlib import Path

from isorun.errors import ExecutionError
from isorun.execution import Event, RowsLogged, RunStarted, event_from_json
from isorun.execution.slurm.ledger import RunPlace, latest_begin
from isorun.study.records import RunRecord

__all__ = ["EventTail"]


class EventTail:
    """The events of one run: each call of `new` gives those that came since the last one.

    A run that SLURM began again tells its rows from the start; that it started is told once. No file stays open between
    two calls: thousands of runs are watched at a time, and a process may have a thousand files open.
    """

    def __init__(self) -> None:
        self._begin = -1
        self._read_bytes = 0
        self._half = b""
        self._has_started = False

    def new(self, place: RunPlace, run_id: str, names: set[str]) -> list[Event]:
        """Events of the latest begin. names: what lies in the place."""
        begin = latest_begin(names)
        if begin != self._begin:
            self._begin, self._read_bytes, self._half = begin, 0, b""
        name = f"events-{begin}.jsonl"
        if name not in names:
            return []
        try:
            with (place.folder / name).open("rb") as file:
                file.seek(self._read_bytes)
                more = file.read()
        except OSError:
            return []
        self._read_bytes += len(more)
        *lines, self._half = (self._half + more).split(b"\n")
        return [event for line in lines if (event := self._event(line, run_id, place.folder)) is not None]

    def _event(self, line: bytes, run_id: str, folder: Path) -> Event | None:
        def no_record() -> RunRecord:
            raise ExecutionError("an element never tells its end", found=str(folder))

        try:
            event = event_from_json(json.loads(line), no_record)
        except (ValueError, ExecutionError):
            return None
        is_first = isinstance(event, RunStarted) and not self._has_started
        self._has_started = self._has_started or is_first
        is_wanted = is_first or isinstance(event, RowsLogged)
        return event if is_wanted and getattr(event, "run_id", "") == run_id else None
