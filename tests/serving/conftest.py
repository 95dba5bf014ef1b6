"""A registry behind its gate, with three users; a store with studies to show, and an app over it without a socket."""

import os
import tempfile
from pathlib import Path

import pytest
from asking import REACHED, Asker, all_doors
from shown_studies import packed, shown_store

from isorun.registry.checking import Checkers
from isorun.registry.opening import Registry
from isorun.serving.app import gated
from registries_made import tokens


@pytest.fixture(scope="session")
def checkers():
    """The processes that verify packages, for all tests of this process."""
    made = Checkers()
    yield made
    made.close()


@pytest.fixture
def registry(tmp_path, checkers):
    """An empty registry, where nothing waits for a disk."""
    memory = Path("/dev/shm")
    base = memory if os.access(memory, os.W_OK) else tmp_path
    with tempfile.TemporaryDirectory(prefix="isorun-registry-", dir=base) as folder:
        made = Registry(Path(folder) / "registry", checkers=checkers)
        made.people.set_up_token()
        yield made
        made.close()


@pytest.fixture
def ask(registry):
    """A stranger at its gate."""
    return Asker(gated(all_doors(registry), REACHED, identify=registry.people.identify))


@pytest.fixture
def users(registry, ask):
    """root administrates; ann and bob act for lab; carl is alone; reader has a token of ann's that only reads."""
    return {name: ask.with_token(token) for name, token in tokens(registry).items()}


@pytest.fixture(scope="session")
def shown_places(tmp_path_factory):
    """A store with three studies, and a package of one of them."""
    folder = tmp_path_factory.mktemp("shown") / "lab"  # pages are addressed by its name, which is not to be numbered
    folder.mkdir()
    place = shown_store(folder)
    return [str(place), str(packed(folder, place))]


@pytest.fixture(scope="session")
def client(shown_places):
    from served import served

    with served(shown_places) as client:
        yield client
