"""Pages and an API over stores, packages and a registry, for one person or a lab (docs/registry.md).

    gate.py       the one layer that every request passes, and what each answer is sent with
    bodies.py     what a request may bring, bounded before anything reads it
    failures.py   too many wrong tokens from one address
    refusals.py   one form of error, as JSON and as a page
    app.py        doors put behind the gate, and the server that listens
    sessions.py   logging in with a browser
    api.py        a registry over HTTP
    shelves.py    where shown studies come from; registry_shelf.py those of a registry
    kept.py       what was computed once, and is shown to many
    pages/        pages

A room offers what it answers as doors: `pages.doors(shelf)` and `api.doors(registry)` are lists of them, and `app.py`
puts them behind the gate. A door says who may go through it. What is shown to him is a second question, which the shelf
or the registry answers: `gate.viewer_of(request)` is who asks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from isorun.registry import Scope

__all__ = ["EVERYONE", "SMALL_BODY", "Door", "Who"]

SMALL_BODY: Final = 64 * 2**10


EVERYONE: Final = "everyone"
Who: TypeAlias = Scope | Literal["everyone"]
"""Who may use a door: everyone, or bearers of a token with this scope. On a laptop everyone may read."""


@dataclass(frozen=True, slots=True)
class Door:
    """A route: what answers it and who may use it.

    answer: a function as FastAPI takes it; one that waits for a disk or computes is a plain `def`, which runs in a
    thread. GET doors answer HEAD as well. largest_body: how many bytes a request may bring; none with GET. streamed:
    the body is not gathered before the answer begins, which reads it piece by piece. guarded: failures are counted, and
    too many of them from one address are refused for a while. listed: whether the API's description names it.
    plain: the answer takes a Request and nothing else. Where all doors are so, FastAPI is not loaded: it takes as long
    as all the rest.
    """

    path: str
    answer: Callable[..., Any]
    who: Who
    method: str = "GET"
    largest_body: int = SMALL_BODY
    streamed: bool = False
    guarded: bool = False
    listed: bool = False
    plain: bool = False
