"""A store in memory, with the same promises as the others except that it ends with its process."""

from __future__ import annotations

import json
import tempfile
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from isorun.store.base import AbstractStore, Claim
from isorun.store.frame import FrameParts
from isorun.store.group_statistics import RunValue, run_value
from isorun.store.stored_form import canonical_json, content_digest, stored_form
from isorun.store.uniqueness import KnownAttempt, is_known
from isorun.study.records import Note, RunRecord, RunState

__all__ = ["MemoryStore"]


@dataclass(frozen=True, slots=True)
class MemoryClaim(Claim):
    """The right to execute one cell in this process."""

    cell_id: str
    attempt: int
    store: MemoryStore

    def release(self) -> None:
        """Give the right back; giving it back twice is nothing."""
        self.store.release(self)


class MemoryStore(AbstractStore):
    """Keeps records in dictionaries; run folders are temporary and go when it is closed."""

    def __init__(self) -> None:
        self._guard = threading.RLock()
        self._records: dict[tuple[str, int], RunRecord] = {}
        self._digests: dict[tuple[str, int], bytes] = {}
        self._unpacked: set[tuple[str, int]] = set()
        self._attempts: dict[str, int] = {}
        self._held: dict[str, int] = {}
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def claim(self, cell_id: str) -> Claim | None:
        """The right to execute the cell, as a new attempt."""
        with self._guard:
            known = self._known(cell_id)
            if cell_id in self._held or any(item.finished for item in known):
                return None
            attempt = max([self._attempts.get(cell_id, 0), *(item.attempt for item in known)]) + 1
            self._attempts[cell_id] = self._held[cell_id] = attempt
            return MemoryClaim(cell_id, attempt, self)

    def release(self, claim: MemoryClaim) -> None:
        """Take a claim back, unless it has passed to a later attempt."""
        with self._guard:
            if self._held.get(claim.cell_id) == claim.attempt:
                del self._held[claim.cell_id]

    def run_folder(self, claim: Claim) -> Path:
        """A temporary folder for this claim."""
        with self._guard:
            if self._folder is None:
                self._folder = tempfile.TemporaryDirectory(prefix="isorun-")
            folder = Path(self._folder.name) / f"{claim.cell_id}-{claim.attempt}"
            folder.mkdir(exist_ok=True)
            return folder

    def finish(self, record: RunRecord) -> None:
        """Keep the record for as long as this store lives."""
        text = canonical_json(stored_form(record).to_json())
        digest = content_digest(text)
        place = (record.cell.id, record.attempt)
        with self._guard:
            if is_known(record, digest, self._known(record.cell.id)):
                return
            self._records[place] = RunRecord.from_json(json.loads(text))
            self._digests[place] = digest
            self._unpacked.add(place)

    def finished_cells(self) -> set[str]:
        """The cells with a finished record."""
        return {record.cell.id for record in self.records() if record.state is RunState.FINISHED}

    def records(self, cell_ids: Iterable[str] | None = None) -> Sequence[RunRecord]:
        """All records, or those of the given cells."""
        wanted = None if cell_ids is None else set(cell_ids)
        with self._guard:
            return [self._records[place] for place in sorted(self._records) if wanted is None or place[0] in wanted]

    def frame_parts(self, metrics: frozenset[str] | None) -> FrameParts:
        """Runs and packed series."""
        parts = FrameParts()
        for record in self.records():
            parts.add(record, metrics)
        return parts

    def run_values(self, metric: str, point: str) -> list[RunValue]:
        """A metric of the finished runs."""
        return [run_value(record, metric, point) for record in self.records() if record.state is RunState.FINISHED]

    def metric_names(self) -> set[str]:
        """The metrics of all records."""
        return {metric for record in self.records() for metric in (*record.series, *record.results)}

    def notes(self) -> tuple[Note, ...]:
        """None: nothing in memory can be damaged or contradict."""
        return ()

    def pack(self) -> int:
        """Count what was finished since the last time; there is nothing to move."""
        with self._guard:
            count = len(self._unpacked)
            self._unpacked.clear()
            return count

    def close(self) -> None:
        """Remove the run folders and give back all claims."""
        with self._guard:
            self._held.clear()
            if self._folder is not None:
                self._folder.cleanup()
                self._folder = None

    def _known(self, cell_id: str) -> list[KnownAttempt]:
        return [
            KnownAttempt(attempt, record.state is RunState.FINISHED, self._digests[cell, attempt])
            for (cell, attempt), record in self._records.items()
            if cell == cell_id
        ]
