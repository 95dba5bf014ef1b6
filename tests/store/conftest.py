"""A store to be damaged."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from postgres_server import Server, needed
from store_faults import filled


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    filled(tmp_path / "store")
    return tmp_path / "store"


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A PostgreSQL server for all tests of this process."""
    server = Server(needed())
    yield server
    server.close()


@pytest.fixture
def database(postgres: Server) -> str:
    """The URL of a database without a store."""
    postgres.empty()
    return postgres.url()
