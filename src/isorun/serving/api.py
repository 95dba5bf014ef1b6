"""A registry over HTTP. What may be done to what is the registry's answer (`isorun.registry`); here is only how to ask.

Names are three parts of a path, `/api/packages/lab/cifar10/resnet56`, and are read by one rule. A package is offered
before it is sent, so that nobody sends what is there already or may not be there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from fastapi import Path, Query, Request
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response, StreamingResponse

from isorun.errors import InputError, RegistryDenied, RegistryError
from isorun.packages.names import PackageName, Wanted, parse_name, parse_wanted
from isorun.registry import Scope, audit
from isorun.registry.index import NamedVersion
from isorun.registry.opening import LARGEST, Registry
from isorun.registry.people import TokenAsked
from isorun.serving import EVERYONE, Door
from isorun.serving.gate import viewer_of
from isorun.serving.refusals import Refusal

__all__ = ["doors"]

_PACKAGE: Final = "/api/packages/{owner}/{project}/{name}"
_VERSION: Final = _PACKAGE + "/versions/{version}"
_NEW: Final = "new"
_LATEST: Final = "latest"
_AT_ONCE: Final = 2**20
_MOST_RECEIVED: Final = 16
_Number = Annotated[int, Path(ge=1, le=2**31)]
_Most = Annotated[int, Query(ge=1, le=100)]
_After = Annotated[int, Query(ge=0, le=2**53)]


@dataclass(frozen=True)
class NewUser:
    """Somebody who is to use the registry."""

    user: str
    admin: bool = False
    days: float = 90.0


@dataclass(frozen=True)
class NewToken:
    """A token that is to be made. user: whose, where it is not the asker's own."""

    scopes: list[str] = field(default_factory=lambda: ["read"])
    owners: list[str] = field(default_factory=list)
    days: float = 90.0
    purpose: str = ""
    user: str = ""


@dataclass(frozen=True)
class SetUp:
    """The first user, who administrates the registry."""

    user: str


@dataclass(frozen=True)
class PushOffer:
    """A package that is to be pushed."""

    sha256: str
    bytes: int
    version: str = _NEW
    replicates: str = ""


@dataclass(frozen=True)
class Yank:
    """Why a version is not to be used any more."""

    reason: str


@dataclass(frozen=True)
class Visibility:
    """Whether everyone who reaches the registry sees a package."""

    public: bool


def doors(registry: Registry, *, largest: int = LARGEST) -> Sequence[Door]:
    """What a registry answers. largest: how many bytes a package may have."""
    api = _Api(registry, largest)
    members = "/api/owners/{owner}/members/{user}"
    return [
        Door("/api/me", api.me, EVERYONE, listed=True),
        Door("/api/setup", api.set_up, Scope.SET_UP, "POST", guarded=True, listed=True),
        Door("/api/users", api.users, Scope.ADMIN, listed=True),
        Door("/api/users", api.add_user, Scope.ADMIN, "POST", listed=True),
        Door("/api/users/{user}", api.close_user, Scope.ADMIN, "DELETE", listed=True),
        Door(members, api.add_member, Scope.ADMIN, "PUT", listed=True),
        Door(members, api.remove_member, Scope.ADMIN, "DELETE", listed=True),
        Door("/api/tokens", api.tokens, Scope.READ, listed=True),
        Door("/api/tokens", api.add_token, Scope.ADMIN, "POST", listed=True),
        Door("/api/tokens/{number}", api.revoke, Scope.READ, "DELETE", listed=True),
        Door("/api/search", api.search, EVERYONE, listed=True),
        Door(_PACKAGE, api.versions, EVERYONE, listed=True),
        Door(f"{_PACKAGE}/offers", api.offer, Scope.PUSH, "POST", listed=True),
        Door(f"{_PACKAGE}/visibility", api.show_to_all, Scope.ADMIN, "PUT", listed=True),
        Door(_VERSION, api.version, EVERYONE, listed=True),
        Door(_VERSION, api.push, Scope.PUSH, "PUT", largest, streamed=True, listed=True),
        Door(f"{_VERSION}/file", api.pull, EVERYONE, listed=True),
        Door(f"{_VERSION}/yank", api.yank, Scope.YANK, "PUT", listed=True),
        Door(f"{_VERSION}/yank", api.unyank, Scope.YANK, "DELETE", listed=True),
        Door("/api/addresses/{address}", api.addressed, EVERYONE, listed=True),
        Door("/api/addresses/{address}/file", api.pull_addressed, EVERYONE, listed=True),
        Door("/api/addresses/{address}/replications", api.replications, EVERYONE, listed=True),
        Door("/api/audit", api.audit, Scope.ADMIN, listed=True),
    ]


class _Api:
    def __init__(self, registry: Registry, largest: int) -> None:
        self._registry = registry
        self._index = registry.index
        self._people = registry.people
        self._largest = largest
        self._receiving = 0

    def me(self, request: Request) -> Any:
        viewer = viewer_of(request)
        return JSONResponse(
            {
                "user": viewer.user or None,
                "scopes": sorted(viewer.scopes),
                "owners": sorted(viewer.owners),
                "everything": viewer.everything,
                "token": viewer.token or None,
                "largest": self._largest,
            }
        )

    def set_up(self, request: Request, asked: SetUp) -> Any:
        return JSONResponse(self._people.set_up(viewer_of(request), asked.user).to_json(), 201)

    def users(self, request: Request) -> Any:
        return JSONResponse({"users": self._people.users(viewer_of(request))})

    def add_user(self, request: Request, asked: NewUser) -> Any:
        made = self._people.add_user(viewer_of(request), asked.user, admin=asked.admin, days=asked.days)
        return JSONResponse(made.to_json(), 201)

    def close_user(self, request: Request, user: str) -> Any:
        self._people.close_user(viewer_of(request), user)
        return Response(status_code=204)

    def add_member(self, request: Request, owner: str, user: str) -> Any:
        self._people.add_member(viewer_of(request), owner, user)
        return Response(status_code=204)

    def remove_member(self, request: Request, owner: str, user: str) -> Any:
        self._people.remove_member(viewer_of(request), owner, user)
        return Response(status_code=204)

    def tokens(self, request: Request) -> Any:
        return JSONResponse({"tokens": self._people.tokens(viewer_of(request))})

    def add_token(self, request: Request, asked: NewToken) -> Any:
        allowed = {scope.value: scope for scope in Scope if scope is not Scope.SET_UP}
        if not set(asked.scopes) <= set(allowed):
            raise RegistryError("a token has no such scope", allowed=", ".join(allowed))
        scopes = tuple(allowed[word] for word in dict.fromkeys(asked.scopes))
        wanted = TokenAsked(scopes, tuple(dict.fromkeys(asked.owners)), asked.days, asked.purpose)
        return JSONResponse(self._people.add_token(viewer_of(request), wanted, user=asked.user).to_json(), 201)

    def revoke(self, request: Request, number: _Number) -> Any:
        self._people.revoke(viewer_of(request), number)
        return Response(status_code=204)

    def search(self, request: Request, words: str = "", most: _Most = 20, after: str = "") -> Any:
        found = self._index.search(viewer_of(request), words, most=most, after=after)
        return JSONResponse({"packages": [item.to_json() for item in found]})

    def versions(self, request: Request, owner: str, project: str, name: str) -> Any:
        found = self._index.versions(viewer_of(request), _named(owner, project, name))
        return JSONResponse({"name": str(found[0].name), "versions": [item.to_json() for item in found]})

    def version(self, request: Request, owner: str, project: str, name: str, version: str) -> Any:
        wanted = _wanted(owner, project, name, version, _LATEST)
        return JSONResponse(self._index.version(viewer_of(request), wanted).to_json())

    def offer(self, request: Request, owner: str, project: str, name: str, offered: PushOffer) -> Any:
        wanted = _wanted(owner, project, name, offered.version, _NEW)
        if not 0 < offered.bytes <= self._largest:
            raise Refusal(413, "the package is too large for this registry", allowed=f"{self._largest:,} bytes")
        known = self._index.offered(viewer_of(request), wanted, offered.sha256, offered.replicates)
        return JSONResponse({"known": known.to_json() if known else None})

    async def push(
        self,
        request: Request,
        owner: str,
        project: str,
        name: str,
        *,
        version: str,
        replicates: str = "",
        public: bool = False,
    ) -> Any:
        viewer, wanted = viewer_of(request), _wanted(owner, project, name, version, _NEW)
        assert wanted.name is not None
        await asyncio.to_thread(self._index.refuse_push, viewer, wanted.name, replicates)
        if self._receiving >= _MOST_RECEIVED:
            raise Refusal(503, "too many packages are being pushed just now", headers=(("retry-after", "10"),))
        self._receiving += 1
        try:
            with await asyncio.to_thread(self._registry.blobs.incoming) as part:
                await _received(request, part.write)
                pushed = await asyncio.to_thread(
                    self._registry.push, viewer, wanted, part, replicates=replicates, public=public
                )
        finally:
            self._receiving -= 1
        return JSONResponse({**pushed.version.to_json(), "new": pushed.new}, 201 if pushed.new else 200)

    def pull(self, request: Request, owner: str, project: str, name: str, version: str) -> Any:
        wanted = _wanted(owner, project, name, version, _LATEST)
        return self._file(self._index.version(viewer_of(request), wanted))

    def yank(self, request: Request, owner: str, project: str, name: str, version: str, *, asked: Yank) -> Any:
        wanted = _wanted(owner, project, name, version)
        return JSONResponse(self._index.yank(viewer_of(request), wanted, asked.reason).to_json())

    def unyank(self, request: Request, owner: str, project: str, name: str, version: str) -> Any:
        wanted = _wanted(owner, project, name, version)
        return JSONResponse(self._index.unyank(viewer_of(request), wanted).to_json())

    def show_to_all(self, request: Request, owner: str, project: str, name: str, asked: Visibility) -> Any:
        self._index.show_to_all(viewer_of(request), _named(owner, project, name), public=asked.public)
        return Response(status_code=204)

    def addressed(self, request: Request, address: str) -> Any:
        found = self._index.addressed(viewer_of(request), address)
        return JSONResponse({"address": address, "versions": [item.to_json() for item in found]})

    def pull_addressed(self, request: Request, address: str) -> Any:
        return self._file(self._index.addressed(viewer_of(request), address)[0])

    def replications(self, request: Request, address: str) -> Any:
        found = self._index.replications(viewer_of(request), address)
        return JSONResponse({"address": address, "replications": [item.to_json() for item in found]})

    def audit(self, request: Request, after: _After = 0, most: _Most = 100) -> Any:
        if not viewer_of(request).everything:
            raise RegistryDenied("only who administrates the registry may read its audit log")
        found = audit.lines(self._registry.database, after, most)
        return JSONResponse({"lines": [line.to_json() for line in found]})

    def _file(self, version: NamedVersion) -> Any:
        headers = {
            "content-length": str(version.size),
            "content-disposition": f'attachment; filename="{version.name.name}-{version.version}.isorun"',
            "etag": f'"{version.digest}"',
            "x-isorun-address": version.address,
        }
        pieces = self._registry.blobs.pieces(version.digest)
        return StreamingResponse(pieces, headers=headers, media_type="application/octet-stream")


async def _received(request: Request, write: Any) -> None:
    """All of the body, handed to the disk a mebibyte at a time, by a thread."""
    waiting = bytearray()
    try:
        async for piece in request.stream():
            waiting += piece
            if len(waiting) >= _AT_ONCE:
                await asyncio.to_thread(write, bytes(waiting))
                waiting.clear()
    except ClientDisconnect:
        raise Refusal(400, "the package was cut short") from None
    await asyncio.to_thread(write, bytes(waiting))


def _named(owner: str, project: str, name: str) -> PackageName:
    return parse_name(f"{owner}/{project}/{name}")


def _wanted(owner: str, project: str, name: str, version: str, none: str = "") -> Wanted:
    """none: the word for no certain version; without it one has to be said."""
    if none and version == none:
        return Wanted(_named(owner, project, name))
    found = parse_wanted(f"{_named(owner, project, name)}@{version}")
    if found.name is None:
        raise InputError("this is no name of a package")
    return found
