"""Any sequence of operations, against a dictionary as the model."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from isorun.errors import StoreConflict
from isorun.store import AbstractStore, Claim
from isorun.store.content import stored_form
from isorun.store.folder import FolderStore
from isorun.study.records import RunState
from isorun.testing.made_records import content, make_cell, make_record
from isorun.testing.memory_store import MemoryStore

CELLS = {cell.id: cell for cell in (make_cell(number) for number in range(3))}
cells = st.sampled_from(sorted(CELLS))
states = st.sampled_from(RunState)


class StoreMachine(RuleBasedStateMachine):
    """The store must always look like `model`: (cell, attempt) to content."""

    store: AbstractStore

    def __init__(self) -> None:
        super().__init__()
        self.model: dict[tuple[str, int], str] = {}
        self.finished: dict[str, int] = {}
        self.attempts: dict[str, int] = {}
        self.claims: dict[str, Claim] = {}

    @rule(cell=cells)
    def claim(self, cell: str) -> None:
        claim = self.store.claim(cell)
        if cell in self.claims or cell in self.finished:
            assert claim is None
            return
        assert claim is not None
        assert claim.attempt > self.attempts.get(cell, 0)
        self.attempts[cell] = claim.attempt
        self.claims[cell] = claim

    @rule(cell=cells, state=states, accuracy=st.integers(0, 1))
    def finish_claim(self, cell: str, state: RunState, accuracy: int) -> None:
        claim = self.claims.pop(cell, None)
        if claim is None:
            return
        self.finish(cell, claim.attempt, state, accuracy)
        claim.release()

    @rule(cell=cells, attempt=st.integers(1, 4), state=states, accuracy=st.integers(0, 1))
    def finish(self, cell: str, attempt: int, state: RunState, accuracy: int) -> None:
        record = make_record(CELLS[cell], attempt=attempt, state=state, accuracy=float(accuracy))
        expected = content(stored_form(record))
        known = self.model.get((cell, attempt))
        winner = self.finished.get(cell)
        conflict = known not in (None, expected)
        if known is None and winner is not None:
            conflict = state is RunState.FINISHED or attempt > winner
        if known is None and state is RunState.FINISHED and winner is None:
            conflict = self.attempts.get(cell, 0) > attempt  # a later one was recorded, or claimed
        if conflict:
            with pytest.raises(StoreConflict):
                self.store.finish(record)
            return
        self.store.finish(record)
        self.model[cell, attempt] = expected
        self.attempts[cell] = max(attempt, self.attempts.get(cell, 0))
        if state is RunState.FINISHED:
            self.finished[cell] = attempt

    @rule(cell=cells)
    def release(self, cell: str) -> None:
        if cell in self.claims:
            self.claims.pop(cell).release()

    @invariant()
    def looks_like_the_model(self) -> None:
        records = self.store.records()
        assert {(record.cell.id, record.attempt): content(record) for record in records} == self.model
        assert len(records) == len(self.model)
        assert self.store.finished() == set(self.finished)
        assert self.store.run_ids() == {f"{cell}-{attempt}" for cell, attempt in self.model}
        assert {holder.cell_id: holder.attempt for holder in self.store.holders()} == {
            cell: claim.attempt for cell, claim in self.claims.items()
        }

    def teardown(self) -> None:
        self.store.close()


class MemoryMachine(StoreMachine):
    @initialize()
    def open(self) -> None:
        self.store = MemoryStore()


class LocalMachine(StoreMachine):
    @initialize()
    def open(self) -> None:
        memory = Path("/dev/shm")
        self.folder = Path(tempfile.mkdtemp(dir=memory if memory.is_dir() else None))
        self.store = FolderStore(self.folder)

    @rule()
    def pack(self) -> None:
        self.store.pack()
        assert self.store.pack() == 0

    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.claims.clear()
        self.store = FolderStore(self.folder)

    def teardown(self) -> None:
        super().teardown()
        shutil.rmtree(self.folder)


for machine in (MemoryMachine, LocalMachine):
    machine.TestCase.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)

TestMemoryMachine = MemoryMachine.TestCase
TestLocalMachine = LocalMachine.TestCase
