"""A store with studies to show, made once, and an app over it that answers without a socket."""

import pytest

pytest.importorskip("fastapi")

from shown_studies import packed, shown_store


@pytest.fixture(scope="session")
def shown_places(tmp_path_factory):
    """A store with three studies, and a package of one of them."""
    folder = tmp_path_factory.mktemp("lab")
    place = shown_store(folder)
    return [str(place), str(packed(folder, place))]


@pytest.fixture(scope="session")
def client(shown_places):
    from served import served

    with served(shown_places) as client:
        yield client
