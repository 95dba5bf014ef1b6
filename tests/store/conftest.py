"""A store to be damaged."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from postgres_server import Server, needed
from store_faults import filled

PASSWORD = "ge-heim7/x"


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


@pytest.fixture
def url(postgres: Server, database: str) -> str:
    """A role that has to say its password."""
    postgres.ask(
        f"DROP OWNED BY lab CASCADE; ALTER ROLE lab PASSWORD '{PASSWORD}'"
        if postgres.ask("SELECT 1 FROM pg_roles WHERE rolname = 'lab'")
        else f"CREATE ROLE lab LOGIN PASSWORD '{PASSWORD}'"
    )
    postgres.ask("GRANT CREATE ON DATABASE postgres TO lab")
    rules = postgres.folder / "data" / "pg_hba.conf"
    if "host all lab" not in rules.read_text():
        rules.write_text(f"host all lab 127.0.0.1/32 scram-sha-256\n{rules.read_text()}")
        postgres.ask("SELECT pg_reload_conf()")
    return f"postgresql://lab:{PASSWORD.replace('/', '%2F')}@127.0.0.1:{postgres.port}/postgres"
