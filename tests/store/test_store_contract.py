"""What every store promises, over all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from isorun.errors import StoreConflict
from isorun.store import AbstractStore
from isorun.store.folder import FolderStore
from isorun.study.records import RunState
from isorun.testing.made_records import make_cell, make_record
from isorun.testing.memory_store import MemoryStore
from isorun.testing.store_contract import StoreContract


class TestFolderStore(StoreContract):
    def open(self, place: Path, *, create: bool = True) -> AbstractStore:
        return FolderStore(place, create=create)

    def settle(self, store: AbstractStore) -> None:
        assert isinstance(store, FolderStore)
        store.pack()

    def test_a_conflict_says_what_it_met(self, tmp_path: Path) -> None:
        """Texts are no part of the contract, but of what a user of this store is told."""
        with FolderStore(tmp_path) as store:
            store.finish(make_record(make_cell(1), attempt=1))
            store.finish(make_record(make_cell(2), attempt=2, state=RunState.FAILED))
            with pytest.raises(StoreConflict, match="contradicts what is known of its cell") as raised:
                store.finish(make_record(make_cell(1), attempt=1, accuracy=0.1))
            assert "another record of the same run" in raised.value.found
            with pytest.raises(StoreConflict, match="finished by attempt 1"):
                store.finish(make_record(make_cell(1), attempt=2, state=RunState.FAILED))
            with pytest.raises(StoreConflict, match="attempt 2 was made and recorded after it"):
                store.finish(make_record(make_cell(2), attempt=1))


class TestMemoryStore(StoreContract):
    lasting = False

    def open(self, place: Path, *, create: bool = True) -> AbstractStore:
        return MemoryStore()
