"""The desk between scheduler and store: rights to run cells, jobs, and a place for records."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from pathlib import Path

from isorun.execution.base import Job, job_of
from isorun.execution.scheduler import Ticket
from isorun.store.base import AbstractStore, Claim
from isorun.study.cells import Cell
from isorun.study.design import Study
from isorun.study.records import RunRecord, RunState

__all__ = ["Desk"]


class Desk:
    """What a scheduler asks and tells.

    draw_seed: where the seeds of runs at level default come from; they are recorded, and never drawn twice on purpose.
    """

    def __init__(
        self, study: Study, store: AbstractStore, runs: Path, draw_seed: Callable[[], int] | None = None
    ) -> None:
        self._study = study
        self._store = store
        self._runs = runs
        self._draw_seed = draw_seed or (lambda: secrets.randbelow(2**31))
        self._lock = threading.Lock()
        self._known = store.run_ids()

    def claim(self, cell: Cell) -> Claim | None:
        """The right to carry out the cell; None when it is done, or somebody else has the right now."""
        claim = self._store.claim(cell.id)
        if claim is not None and self._tried_elsewhere(cell):
            claim.release()
            return None
        return claim

    def is_done(self, cell: Cell) -> bool:
        """Whether the cell is finished, or another scheduler tried it since this one began and was not interrupted."""
        found = self._store.records([cell.id])
        return any(record.state is RunState.FINISHED or self._is_from_elsewhere(record) for record in found)

    def job(self, cell: Cell, ticket: Ticket) -> Job:
        """What to carry out for the cell."""
        assert isinstance(ticket, Claim)
        seed = self._draw_seed() if cell.seed is None else cell.seed
        return job_of(self._study, cell, ticket.attempt, seed)

    def keep(self, record: RunRecord) -> None:
        """Make the record durable."""
        self._store.finish(record)
        with self._lock:
            self._known.add(record.run_id)

    def _tried_elsewhere(self, cell: Cell) -> bool:
        return any(map(self._is_from_elsewhere, self._store.records([cell.id])))

    def _is_from_elsewhere(self, record: RunRecord) -> bool:
        return record.run_id not in self._known and record.state is not RunState.INTERRUPTED
