"""Logging in with a browser: a token becomes a cookie that reads, for hours, and that no script can see."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final
from urllib.parse import parse_qs

from fastapi import Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from isorun.errors import RegistryDenied, RegistryMissing
from isorun.registry.people import People
from isorun.serving import EVERYONE, Door
from isorun.serving.gate import Reached, failed, viewer_of
from isorun.serving.refusals import Refusal

__all__ = ["cookie_name", "doors"]

_PAGE: Final = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Log in · isorun</title>
<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">
<main><h1>Log in</h1>
<form method="post" action="/login"><p><label for="token">Token</label>
<input id="token" name="token" type="password" autocomplete="off" required></p>
<p><button>Log in</button></p></form>
<form method="post" action="/logout"><p><button>Log out</button></p></form>
<p>A token comes from whoever administrates this registry, or from <code>isorun registry token</code>.</p></main></html>
"""


def cookie_name(reached: Reached) -> str:
    """What the session is called; the prefix makes browsers keep it to this host, encrypted."""
    return "__Host-isorun" if reached.secure else "isorun"


def doors(people: People, reached: Reached) -> Sequence[Door]:
    """The page to log in, and what its forms are sent to."""
    sessions = _Sessions(people, reached)
    return [
        Door("/login", sessions.login_page, EVERYONE),
        Door("/login", sessions.login, EVERYONE, "POST", 2000, guarded=True),
        Door("/logout", sessions.logout, EVERYONE, "POST", 2000),
    ]


class _Sessions:
    def __init__(self, people: People, reached: Reached) -> None:
        self._people = people
        self._cookie = cookie_name(reached)
        self._secure = reached.secure

    def login_page(self) -> Any:
        return Response(_PAGE, media_type="text/html")

    async def login(self, request: Request) -> Any:
        token = _field(await request.body(), "token")
        try:
            made = await run_in_threadpool(self._people.session, token)
        except RegistryDenied as error:
            failed(request)
            raise Refusal(403, error.what, hint="log in with a token that is valid now") from None
        answer = Response(status_code=303, headers={"location": "/"})
        settings = {"httponly": True, "samesite": "strict", "secure": self._secure, "path": "/"}
        answer.set_cookie(self._cookie, made.token, max_age=12 * 3600, **settings)
        return answer

    def logout(self, request: Request) -> Any:
        viewer = viewer_of(request)
        if viewer.token:
            with suppress(RegistryMissing):  # it was nobody's any more
                self._people.revoke(viewer, viewer.token)
        answer = Response(status_code=303, headers={"location": "/login"})
        answer.delete_cookie(self._cookie, path="/", secure=self._secure, httponly=True, samesite="strict")
        return answer


def _field(body: bytes, name: str) -> str:
    try:
        found = parse_qs(body.decode("ascii"), strict_parsing=True, max_num_fields=5)
    except ValueError:
        raise Refusal(400, "this is no form") from None
    return found.get(name, [""])[0].strip()
