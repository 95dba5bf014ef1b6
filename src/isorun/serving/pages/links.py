"""The addresses of pages. A name is quoted, and looked up by whoever is asked for it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

if TYPE_CHECKING:
    from isorun.serving.shelves import OpenedStudy

__all__ = ["HOME", "LEADERBOARD", "LOGIN", "address", "run_address", "store_option", "study_address"]

HOME = "/home"
LEADERBOARD = "/leaderboard"
LOGIN = "/login"


def address(
    path: str, query: Mapping[str, str] | None = None, ending: str = "", repeated: Sequence[tuple[str, str]] = ()
) -> str:
    """A path with its query; parts that are empty are left out. repeated: those that may come several times."""
    asked = urlencode([*repeated, *((name, value) for name, value in (query or {}).items() if value)])
    return f"{path}{ending}{f'?{asked}' if asked else ''}"


def study_address(shelf: str, name: str, page: str = "study", **query: str) -> str:
    """A page of a study."""
    return address(f"/shelves/{quote(shelf, safe='')}/{quote(name, safe='/@')}/{page}", query)


def run_address(shelf: str, name: str, run: str) -> str:
    """The page of a run."""
    return study_address(shelf, name, f"runs/{quote(run, safe='')}")


def store_option(study: OpenedStudy) -> str:
    """How a command that takes a run is told where it is kept; a package says by itself where its runs are."""
    return f" --store {shlex.quote(study.source)}" if study.entry.address else study.store
