"""A registry with an index in SQLite, and one with an index in PostgreSQL."""

import os
import sys
import tempfile
from pathlib import Path

import pytest

from isorun.registry.checking import Checkers
from isorun.registry.opening import Registry
from registries_made import viewers

sys.path.append(str(Path(__file__).parent.parent / "store"))
from postgres_server import Server, needed


@pytest.fixture(scope="session")
def postgres():
    """A PostgreSQL server for all tests of this process."""
    server = Server(needed())
    yield server
    server.close()


@pytest.fixture(scope="session")
def checkers():
    """The processes that verify packages, for all tests of this process."""
    made = Checkers()
    yield made
    made.close()


@pytest.fixture
def quick_folder(tmp_path):
    """A folder where nothing waits for a disk, where there is such a place."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(prefix="isorun-registry-", dir=memory) as folder:
        yield Path(folder)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.long)])
def registry(request, quick_folder, checkers):
    url = ""
    if request.param == "postgres":
        server = request.getfixturevalue("postgres")
        server.ask("SET client_min_messages = warning; DROP SCHEMA IF EXISTS isorun_registry CASCADE")
        url = server.url()
    registry = Registry(quick_folder / "registry", url, checkers=checkers)
    registry.url = url
    registry.people.set_up_token()
    yield registry
    registry.close()


@pytest.fixture
def who(registry):
    return viewers(registry)
