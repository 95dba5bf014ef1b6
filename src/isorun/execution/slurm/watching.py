"""What a run tells while it goes on, read from the files of events that its element writes."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import IO

from isorun.errors import ExecutionError
from isorun.execution import Event, RowsLogged, RunStarted, event_from_json
from isorun.execution.slurm.ledger import RunPlace, latest_begin
from isorun.study.records import RunRecord

__all__ = ["EventTail"]


class EventTail:
    """The events of one run: each call of `new` gives those that came since the last one.

    A run that SLURM began again tells its rows from the start; that it started is told once.
    """

    def __init__(self) -> None:
        self._begin = -1
        self._file: IO[bytes] | None = None
        self._half = b""
        self._has_started = False

    def new(self, place: RunPlace, run_id: str, names: set[str]) -> list[Event]:
        """Events of the latest begin. names: what lies in the place."""
        begin = latest_begin(names)
        if begin != self._begin:
            self.close()
            self._begin = begin
        name = f"events-{begin}.jsonl"
        if self._file is None and name in names:
            with suppress(OSError):
                self._file = (place.folder / name).open("rb")
        if self._file is None:
            return []
        *lines, self._half = (self._half + self._file.read()).split(b"\n")
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

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()
        self._file, self._half = None, b""
