"""The one layer that every request passes, before any route is looked at.

Nothing is let through that no door is declared for, so that a route which somebody adds elsewhere is not served: an app
with one does not start. In this order: the form of the path, the host, the door, who asks, where a change comes from,
what the request brings. Every answer leaves with the same headers, and every error in the same form.

    Host            one of those that the server is reached by: a page of another site cannot use a name of its own
    who             a bearer token, or the session of a browser; a wrong token is refused also where none is needed
    not GET         a bearer token, which a browser adds to nothing by itself, or an Origin that is this server's
    bodies          bounded (bodies.py); none with GET
    Content-Security-Policy  nothing but files of this server: no inline scripts or styles, no frames, no other host
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from itertools import takewhile
from typing import Any, Final

from starlette.concurrency import run_in_threadpool
from starlette.routing import Match

from isorun.errors import IsorunError
from isorun.registry import STRANGER, Scope, Viewer
from isorun.serving import EVERYONE, Door
from isorun.serving.bodies import bounded, gathered, refuse_encodings
from isorun.serving.failures import Failures
from isorun.serving.refusals import Refusal, refusal_of, tell, wants_page

__all__ = ["HEADERS", "Gate", "Reached", "failed", "viewer_of"]

ASGIScope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Identify = Callable[[str], Viewer | None]

_POLICY: Final = "; ".join(
    [
        "default-src 'none'",
        *(f"{kind}-src 'self'" for kind in ("script", "style", "img", "font", "connect", "manifest")),
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    ]
)
HEADERS: Final = (
    ("content-security-policy", _POLICY),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("x-frame-options", "DENY"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
    ("x-robots-tag", "noindex"),
)
"""What every answer has, whatever a route says. A route may say how long its answer is kept; by default it is not."""
_LONGEST_PATH: Final = 2000
_LONGEST_TOKEN: Final = 200
_MOST_FORMS: Final = 8
_PLACE: Final = re.compile(r"\{(\w+)(?::\w+)?\}")
_UNFIT: Final = re.compile(r"[\x00-\x1f\x7f\\]|(?:^|/)\.{1,2}(?:/|$)|//")
_USUAL_PORT: Final = re.compile(r"^(http://[^/]*):80$|^(https://[^/]*):443$")
_ENCODED: Final = re.compile(rb"%(?:2f|5c|00|2e%2e|0[0-9a-f]|1[0-9a-f]|7f)", re.IGNORECASE)
_VIEWER, _FAILED = "isorun.viewer", "isorun.failed"


@dataclass(frozen=True, slots=True)
class Reached:
    """How the server is reached. origins: `https://registry.lab.org`; hosts: what stands in a request's Host."""

    hosts: frozenset[str]
    origins: frozenset[str]

    @classmethod
    def at(cls, addresses: Iterable[str]) -> Reached:
        """By these addresses, such as http://127.0.0.1:8008. Nobody sends the usual port, but whoever typed it."""
        named = [address.rstrip("/").lower() for address in addresses]
        origins = [_USUAL_PORT.sub(r"\1\2", address) for address in named]
        return cls(frozenset(one.partition("://")[2] for one in (*named, *origins)), frozenset(origins))

    @property
    def secure(self) -> bool:
        """Whether every way to it is encrypted, so that a browser may be told to use no other."""
        return all(origin.startswith("https://") for origin in self.origins)


class Gate:
    """The app, and who may use which of its routes. It raises where a route does not say so.

    identify: who a token belongs to; None where it is nobody's, or has expired. stranger: who asks without one.
    """

    def __init__(
        self, app: Any, reached: Reached, identify: Identify, *, stranger: Viewer = STRANGER, cookie: str = "isorun"
    ) -> None:
        self._app = app
        self._reached = reached
        self._identify = identify
        self._stranger = stranger
        self._cookie = cookie
        self._failures = Failures()
        self.routes = _declared(app.router.routes)

    async def __call__(self, scope: ASGIScope, receive: Receive, send: Send) -> None:
        """Answer one request, or hand on that the server starts and ends."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            raise RuntimeError("only HTTP is served")
        answer = _Answer(scope, send, secure=self._reached.secure)
        try:
            receive = await self._let_in(scope, receive)
            await self._app(scope, receive, answer.send)
        except Refusal as refusal:
            await answer.refuse(refusal)
        except IsorunError as error:
            tell(error)
            await answer.refuse(refusal_of(error))
        except Exception as error:
            tell(error)
            await answer.refuse(Refusal(500, "the server failed at this", hint="its terminal says where"))

    async def _let_in(self, scope: ASGIScope, receive: Receive) -> Receive:
        headers = _headers(scope)
        _refuse_path(scope)
        if headers.get("host", "").lower() not in self._reached.hosts:
            allowed = ", ".join(sorted(self._reached.hosts))
            raise Refusal(
                421, "this server is not reached by that name", allowed=allowed, hint="isorun serve --url URL"
            )
        route = self._matching(scope)
        door: Door = route.door
        who = scope["client"][0] if scope.get("client") else ""
        bearer = _bearer(headers)
        viewer = await self._viewer(bearer, headers, who, guarded=door.guarded)
        if door.method != "GET":
            self._refuse_foreign(bearer, headers)
        _refuse_unless_allowed(viewer, door)
        most = 0 if door.method == "GET" else door.largest_body
        refuse_encodings(headers, most)
        scope[_VIEWER] = viewer
        if door.guarded:
            scope[_FAILED] = lambda: self._failures.count(who)
        return bounded(receive, most) if door.streamed else await gathered(receive, most)

    def _matching(self, scope: ASGIScope) -> Any:
        """The route that answers; HEAD is asked as GET, and its answer loses its body."""
        asked = {**scope, "method": "GET" if scope["method"] == "HEAD" else scope["method"]}
        others = []
        for route in self.routes:
            match, _ = route.matches(asked)
            if match is Match.FULL:
                scope["method"] = asked["method"]
                return route
            others += [route.door.method] if match is Match.PARTIAL else []
        if others:
            allowed = ", ".join(sorted(set(others)))
            raise Refusal(405, "that is not done here", allowed=allowed, headers=(("allow", allowed),))
        near = _nearest(scope["path"], [route.path for route in self.routes])
        raise Refusal(404, "there is nothing here", found=scope["path"], allowed=near, hint="/ lists what there is")

    async def _viewer(self, bearer: str | None, headers: Mapping[str, str], who: str, *, guarded: bool) -> Viewer:
        """Who asks. Whoever knows that may wait for a disk or another machine, while others are answered."""
        if guarded:
            self._failures.refuse(who)
        if bearer is not None:
            viewer: Viewer | None = await run_in_threadpool(self._identify, bearer)
            if viewer is None:
                self._failures.count(who)
                self._failures.refuse(who)
                hint = "isorun login URL, with a token that is valid now"
                raise _unknown("the token is not known here, or has expired", hint)
            return viewer
        session = _session(headers, self._cookie)
        known: Viewer | None = await run_in_threadpool(self._identify, session) if session else None
        return known or self._stranger  # a session that is over makes a stranger of its user, who can log in again

    def _refuse_foreign(self, bearer: str | None, headers: Mapping[str, str]) -> None:
        """A change has to come from this server's own pages, or from a program that has a token."""
        if bearer is not None:
            return
        origin, site = headers.get("origin", ""), headers.get("sec-fetch-site", "same-origin")
        if origin.lower() not in self._reached.origins or site not in {"same-origin", "none"}:
            raise Refusal(
                403,
                "a change has to come from this server's own pages, or with a token",
                found=f"Origin {origin[:100]!r}" if origin else "no Origin",
                allowed=", ".join(sorted(self._reached.origins)),
                hint="programs send Authorization: Bearer TOKEN",
            )


def _nearest(path: str, doors: Sequence[str]) -> str:
    """The forms of addresses that begin as this one does, for whoever mistyped it or cut its end off."""
    asked = path.split("/")[1:]

    def shared(door: str) -> int:
        pairs = zip(asked, door.split("/")[1:], strict=False)
        return len(list(takewhile(lambda pair: pair[0] == pair[1] or pair[1].startswith("{"), pairs)))

    most = max(map(shared, doors), default=0)
    forms = [_PLACE.sub(lambda named: named[1].upper(), door) for door in doors if most and shared(door) == most]
    return ", ".join(list(dict.fromkeys(forms))[:_MOST_FORMS])


def viewer_of(request: Any) -> Viewer:
    """Who asks, as the gate knows it."""
    viewer: Viewer = request.scope[_VIEWER]
    return viewer


def failed(request: Any) -> None:
    """Count that whoever came through a guarded door could not say who he is."""
    request.scope[_FAILED]()


def _declared(routes: Sequence[Any]) -> tuple[Any, ...]:
    """The routes, each with its door; an error where one has none: it would be open to nobody knows whom."""
    undeclared = [str(getattr(route, "path", route)) for route in routes if not _fits(route)]
    if undeclared:
        raise RuntimeError(f"these routes do not say who may use them: {', '.join(undeclared)}")
    return tuple(routes)


def _fits(route: Any) -> bool:
    door = getattr(route, "door", None)
    return isinstance(door, Door) and _says_who(door) and {door.method} == set(route.methods) - {"HEAD"}


def _says_who(door: Door) -> bool:
    return door.who == EVERYONE or isinstance(door.who, Scope)


def _headers(scope: ASGIScope) -> dict[str, str]:
    """The headers; one that is there twice is refused where it decides anything."""
    found: dict[str, str] = {}
    for name, value in scope["headers"]:
        key = name.decode("latin-1").lower()
        if key in found and key in {"host", "authorization", "origin", "content-length", "content-encoding", "cookie"}:
            raise Refusal(400, f"there is more than one {key}")
        found[key] = value.decode("latin-1")
    return found


def _refuse_path(scope: ASGIScope) -> None:
    """Paths that some part of a server might read in another way than the next one."""
    path, raw = scope["path"], scope.get("raw_path") or b""
    if len(raw) > _LONGEST_PATH or len(scope.get("query_string", b"")) > 2 * _LONGEST_PATH:
        raise Refusal(414, "the address is too long", allowed=f"{_LONGEST_PATH:,} bytes")
    if _UNFIT.search(path) or _ENCODED.search(raw) or "\N{REPLACEMENT CHARACTER}" in path:
        raise Refusal(404, "there is nothing here")


def _bearer(headers: Mapping[str, str]) -> str | None:
    said = headers.get("authorization")
    if said is None:
        return None
    kind, _, token = said.partition(" ")
    if kind.lower() != "bearer" or not 0 < len(token) <= _LONGEST_TOKEN or not token.isascii():
        raise _unknown("this is no token", "Authorization: Bearer TOKEN")
    return token


def _session(headers: Mapping[str, str], name: str) -> str:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(name)
    except CookieError:
        return ""
    return found.value if found is not None and len(found.value) <= _LONGEST_TOKEN and found.value.isascii() else ""


def _refuse_unless_allowed(viewer: Viewer, door: Door) -> None:
    if door.who == EVERYONE or door.who in viewer.scopes:
        return
    if not viewer.user and not viewer.scopes:
        raise _unknown("this needs a token", "isorun login URL, or log in at /login")
    hint = "make a token that has this scope"
    raise Refusal(403, f"this needs a token with the scope {door.who}", hint=hint)


def _unknown(what: str, hint: str) -> Refusal:
    return Refusal(401, what, hint=hint, headers=(("www-authenticate", 'Bearer realm="isorun"'),))


class _Answer:
    """What is sent back, with the headers of all answers. Once it has begun, it can only be cut."""

    def __init__(self, scope: ASGIScope, send: Send, *, secure: bool) -> None:
        self._send = send
        self._bare = scope["method"] == "HEAD"
        self._begun = False
        self._secure = secure
        accepted = next((value for name, value in scope["headers"] if name.lower() == b"accept"), b"")
        self._page = wants_page(scope["path"], accepted.decode("latin-1"))

    async def send(self, message: Message) -> None:
        """One piece of the answer."""
        if message["type"] == "http.response.start":
            self._begun = True
            message = {**message, "headers": self._with_own(message.get("headers", ()))}
        elif self._bare:
            message = {**message, "body": b""}
        await self._send(message)

    async def refuse(self, refusal: Refusal) -> None:
        """An error as the whole answer; nothing where an answer has begun, so that the line is cut."""
        if self._begun:
            return
        headers, body = refusal.rendered(page=self._page)
        encoded = [(name.encode(), value.encode("latin-1", "replace")) for name, value in headers]
        await self.send({"type": "http.response.start", "status": refusal.status, "headers": encoded})
        await self.send({"type": "http.response.body", "body": body})

    def _with_own(self, headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        own = dict(HEADERS)
        if self._secure:
            own["strict-transport-security"] = "max-age=31536000"
        kept = [(name, value) for name, value in headers if name.decode("latin-1").lower() not in own]
        if not any(name.lower() == b"cache-control" for name, _ in kept):
            own["cache-control"] = "no-store"
        return [*kept, *((name.encode(), value.encode()) for name, value in own.items())]
