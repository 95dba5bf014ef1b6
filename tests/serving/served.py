"""An app over stores and packages, asked without a socket."""

from contextlib import contextmanager

from starlette.testclient import TestClient

from isorun.registry import EVERYTHING
from isorun.serving.app import gated, own_doors
from isorun.serving.gate import Reached
from isorun.serving.pages.doors import page_doors
from isorun.serving.shelves import shelves_of

ADDRESS = "http://testserver"


@contextmanager
def served(places, stranger=EVERYTHING, shelves=None):
    doors, close = page_doors(shelves_of(places) if shelves is None else shelves)
    app = gated([*own_doors(), *doors], Reached.at([ADDRESS]), stranger=stranger, at_end=close)
    with TestClient(app, base_url=ADDRESS) as client:
        yield client
