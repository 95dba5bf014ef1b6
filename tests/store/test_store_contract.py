"""What every store promises, over all of them."""

from __future__ import annotations

from pathlib import Path

from isorun.store import AbstractStore
from isorun.store.folder import FolderStore, open_store
from isorun.testing.memory_store import MemoryStore
from isorun.testing.store_contract import StoreContract


class TestFolderStore(StoreContract):
    def open(self, place: Path) -> AbstractStore:
        return open_store(place)

    def settle(self, store: AbstractStore) -> None:
        assert isinstance(store, FolderStore)
        store.pack()


class TestMemoryStore(StoreContract):
    lasting = False

    def open(self, place: Path) -> AbstractStore:
        return MemoryStore()
