"""One form of error: what failed, what was found, what is allowed, what to do next; as JSON, or as a page for people.

An error of isorun says that by itself. Of anything else a request is told that it failed, and nothing more: a message
of a library may quote a path, a query or a secret.
"""

from __future__ import annotations

import html
import json
import re
import sys
from collections.abc import Iterable
from http import HTTPStatus
from typing import Final

from isorun.errors import (
    InputError,
    IsorunError,
    NothingRecorded,
    PackageError,
    RegistryConflict,
    RegistryDenied,
    RegistryError,
    RegistryMissing,
    StoreBusy,
    harmless,
    without_passwords,
)

__all__ = ["Refusal", "refusal_of", "tell", "wants_page"]

_STATUS: Final[tuple[tuple[type[IsorunError], int], ...]] = (
    (RegistryMissing, 404),
    (NothingRecorded, 404),
    (RegistryDenied, 403),
    (RegistryConflict, 409),
    (PackageError, 422),
    (RegistryError, 400),
    (InputError, 400),
    (StoreBusy, 503),
)
_LONGEST: Final = 500
_OWN_ADDRESS: Final = re.compile(r"/[\w.@%~-][\w.@%~/-]{0,400}", re.ASCII)


class Refusal(Exception):
    """A request that is not answered as asked. headers: what goes with it, such as when to come again."""

    def __init__(
        self,
        status: int,
        what: str,
        *,
        found: str = "",
        allowed: str = "",
        hint: str = "",
        headers: Iterable[tuple[str, str]] = (),
    ) -> None:
        super().__init__(what)
        self.status = status
        self.told = {"what": what, "found": found, "allowed": allowed, "next": hint}
        self.headers = tuple(headers)

    def rendered(self, *, page: bool) -> tuple[list[tuple[str, str]], bytes]:
        """The headers and the body of the answer."""
        body = self.as_page() if page else self.as_json()
        kind = "text/html; charset=utf-8" if page else "application/json"
        return [("content-type", kind), ("content-length", str(len(body))), *self.headers], body

    def as_json(self) -> bytes:
        """For machines; always with the same keys."""
        return json.dumps({"error": {"status": self.status, **self._shown()}}).encode()

    def as_page(self) -> bytes:
        """For people: a page that needs nothing else."""
        shown = self._shown()
        title = html.escape(f"{self.status} {_phrase(self.status)}")
        lines = "".join(
            f"<p>{html.escape(name)}: {_linked(shown[name]) if name == 'next' else html.escape(shown[name])}</p>"
            for name in ("found", "allowed", "next")
            if shown[name]
        )
        return (
            f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
            f'<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">'
            f'<link rel="stylesheet" href="/static/pages.css"><main><h1>{title}</h1>'
            f'<p>{html.escape(shown["what"])}</p>{lines}<p><a href="/">isorun</a></p></main></html>'
        ).encode()

    def _shown(self) -> dict[str, str]:
        return {name: harmless(without_passwords(text))[:_LONGEST] for name, text in self.told.items()}


def _linked(text: str) -> str:
    """What to do next, as a link where it is an address of this server."""
    shown = html.escape(text)
    return f'<a href="{shown}">{shown}</a>' if _OWN_ADDRESS.fullmatch(text) else shown


def refusal_of(error: IsorunError) -> Refusal:
    """What a request is told of an error of isorun."""
    status = next((code for kind, code in _STATUS if isinstance(error, kind)), 500)
    if status == 500:  # about the server's own files: for its terminal, not for whoever asks
        return Refusal(500, "the server could not do this", hint="its terminal says why")
    return Refusal(status, error.what, found=error.found, allowed=error.allowed, hint=error.hint)


def wants_page(path: str, accepted: str) -> bool:
    """Whether whoever asks reads pages: a browser, outside of the API."""
    return not path.startswith("/api/") and "text/html" in accepted


def tell(error: Exception) -> None:
    """For the server's terminal: what it was and where, without what the request brought."""
    if isinstance(error, IsorunError) and refusal_of(error).status != 500:
        return
    trace, place = error.__traceback__, ""
    while trace is not None:
        place, trace = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}", trace.tb_next
    said = f": {without_passwords(error.what)}" if isinstance(error, IsorunError) else ""
    print(f"isorun serve: {type(error).__name__} at {place}{said}", file=sys.stderr, flush=True)


def _phrase(status: int) -> str:
    return HTTPStatus(status).phrase
