"""The store of many machines, on a real server: the promises of every store, and its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from isorun.store import AbstractStore
from isorun.testing.store_contract import StoreContract


class TestPostgresStore(StoreContract):
    @pytest.fixture(autouse=True)
    def _server(self, database: str) -> None:
        self.url = database

    def open(self, place: Path, *, create: bool = True) -> AbstractStore:
        from isorun.store.postgres import PostgresStore

        return PostgresStore(self.url, create=create)
