"""An app over stores and packages, asked without a socket."""

from contextlib import contextmanager

from asking import HOST, Asker

from isorun.registry import EVERYTHING
from isorun.serving.app import gated, own_doors
from isorun.serving.gate import Reached
from isorun.serving.pages.doors import page_doors
from isorun.serving.shelves import shelves_of


@contextmanager
def served(places, stranger=EVERYTHING):
    """What asks such an app; the shelves are closed in the end."""
    doors, close = page_doors(shelves_of(places))
    try:
        yield Asker(gated([*own_doors(), *doors], Reached.at([f"http://{HOST}"]), stranger=stranger))
    finally:
        close()
