"""The client of a registry: packages by name, pushed and pulled (docs/registry.md).

    fetched("registry:lab/cifar10/resnet56@3")      the file, checked, from the cache or from the registry
    Client(chosen_registry()).push("resnet56.isorun", …)

A registry is not trusted with more than a name: what comes has to have the digest and the address that were told
before, and it is a package, which is read as if an enemy wrote it. A token goes to the server that it belongs to, and
to no other: redirects are not followed. `logins.py` keeps tokens.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final
from urllib.parse import quote, urlencode, urlsplit

from isorun.errors import (
    InputError,
    PackageError,
    RegistryConflict,
    RegistryDenied,
    RegistryError,
    RegistryMissing,
    harmless,
)
from isorun.own_machine import is_this_machine
from isorun.packages.container import MOST_BYTES
from isorun.packages.names import ADDRESS, PREFIX, PackageName, Wanted, parse_name, parse_wanted
from isorun.packages.reading import open_package
from isorun.registries.logins import chosen_registry, kept, normal
from isorun.worker.usercode import hash_of_file

__all__ = ["Client", "Offered", "fetched"]

_TIMEOUT: Final = 60.0
_LONGEST_ANSWER: Final = 8 * 2**20
_MOST_VALUES: Final = 10**6
"""As objects, values are larger than what says them: `{}` is 64 bytes."""
_PIECE: Final = 2**18
_KINDS: Final[Mapping[int, type[RegistryError] | type[PackageError]]] = {
    401: RegistryDenied,
    403: RegistryDenied,
    404: RegistryMissing,
    409: RegistryConflict,
    422: PackageError,
}
Observer = Callable[[float, float], None]


@dataclass(frozen=True, slots=True)
class Offered:
    """A version that a registry tells of, as it tells it. told: all of it."""

    name: PackageName
    version: int
    address: str
    sha256: str
    size: int
    yanked: str
    told: Mapping[str, Any]

    def __str__(self) -> str:
        return f"{self.name}@{self.version}"

    @property
    def tier(self) -> str:
        """How far others vouch for it: who replicated it, with the package that says so."""
        linked = self.told.get("replications")
        told = [one for one in linked if isinstance(one, dict)] if isinstance(linked, list) else []
        by = [f"{one.get('by')} ({PREFIX}{one.get('package')})" for one in told]
        by += [] if by else map(str, self.told.get("replicated_by") or [])  # a registry that links none yet
        return f"replicated by {', '.join(by)}" if by else str(self.told.get("tier", ""))


def fetched(text: str, *, registry: str | None = None, observer: Observer = lambda *_: None) -> Path:
    """The package that is named, as a file that was checked. One that was fetched before is not fetched again."""
    client = Client(chosen_registry(registry))
    offered = client.offered(parse_wanted(text))
    if offered.yanked:
        with suppress(OSError, ValueError):
            sys.stderr.write(f"isorun: {PREFIX}{offered} was yanked: {harmless(offered.yanked)}\n")
    return client.pull(offered, observer=observer)


class Client:
    """One registry. url: as `chosen_registry` gives it; token: by default the one that was logged in with."""

    def __init__(self, url: str, token: str | None = None, *, plain_http: bool | None = None) -> None:
        self.url = normal(url)
        known = kept(self.url)
        self._token = known.get("token") if token is None else token
        plain = known.get("plain_http", False) if plain_http is None else plain_http
        parts = urlsplit(self.url)
        own = is_this_machine(parts.hostname or "")
        if self._token and parts.scheme == "http" and not own and not plain:
            raise RegistryDenied(
                f"{self.url} is not encrypted: whoever listens would have your token",
                allowed="https://…, or a server on this machine",
                hint="isorun login URL --plain-http, if you know the way to it",
            )
        handlers: list[urllib.request.BaseHandler] = [_NoRedirects()]
        handlers += [urllib.request.ProxyHandler({})] if own else []
        self._opener = urllib.request.build_opener(*handlers)

    def me(self) -> dict[str, Any]:
        """Who the token belongs to, and what it allows."""
        return self.ask("GET", "/api/me")

    def search(self, words: str = "", *, most: int = 20) -> list[Offered]:
        """The latest versions of packages that all words are found in."""
        told = self.ask("GET", f"/api/search?{urlencode({'words': words, 'most': most})}")
        return [_offered(item) for item in _listed(told, "packages")]

    def rows(self, path: str, name: str, *needed: str) -> list[dict[str, Any]]:
        """What the registry lists under this name; needed: what each of them has to say."""
        found = _listed(self.ask("GET", path), name)
        if not all(isinstance(item, dict) and all(word in item for word in needed) for item in found):
            raise _no_registry(self.url, f"{name} that are none")
        return found

    def versions(self, name: PackageName) -> list[Offered]:
        """All versions of a package, the latest first."""
        return [_offered(item) for item in _listed(self.ask("GET", _path(name)), "versions")]

    def offered(self, wanted: Wanted) -> Offered:
        """What a name or an address stands for in this registry."""
        if wanted.name is None:
            found = [
                _offered(item) for item in _listed(self.ask("GET", f"/api/addresses/{wanted.address}"), "versions")
            ]
            if not found or found[0].address != wanted.address:
                raise _no_registry(self.url, "another package than was asked for")
            return found[0]
        offered = _offered(self.ask("GET", f"{_path(wanted.name)}/versions/{wanted.version or 'latest'}"))
        if offered.name != wanted.name or wanted.version not in {0, offered.version}:
            raise _no_registry(self.url, "another package than was asked for")
        return offered

    def pull(self, offered: Offered, *, observer: Observer = lambda *_: None) -> Path:
        """The file, checked against its digest and its address; it lies in the cache."""
        target = _cache() / f"{offered.sha256}.isorun"
        if target.is_file() and hash_of_file(target) == offered.sha256:
            return _checked(target, offered)
        part = target.with_name(f".{target.name}.{os.getpid()}.part")
        try:
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with part.open("wb") as file:
                self._download(offered, file, observer)
                file.flush()
                os.fsync(file.fileno())
            _checked(part, offered)
            part.replace(target)
        except OSError as error:
            raise InputError(f"{target} cannot be written", found=error.strerror or str(error)) from None
        finally:
            with suppress(OSError):
                part.unlink(missing_ok=True)
        return target

    def push(
        self,
        path: Path,
        wanted: Wanted,
        *,
        replicates: str = "",
        public: bool = False,
        observer: Observer = lambda *_: None,
    ) -> tuple[Offered, bool]:
        """Give a package to the registry; the version that it is there, and whether it is new."""
        assert wanted.name is not None
        with open_package(path) as package:
            package.check_all()
            address = package.address
        size, sha256, version = path.stat().st_size, hash_of_file(path), str(wanted.version or "new")
        offer = {"sha256": sha256, "bytes": size, "version": version, "replicates": replicates}
        told = self.ask("POST", f"{_path(wanted.name)}/offers", offer)
        if told.get("known"):
            return self._pushed(told["known"], wanted.name, sha256, address), False
        query = urlencode({"replicates": replicates, "public": str(public).lower()})
        with path.open("rb") as file:
            body = _Told(file, size, observer)
            told = self.ask("PUT", f"{_path(wanted.name)}/versions/{version}?{query}", body=body, size=size)
        return self._pushed(told, wanted.name, sha256, address), bool(told.get("new"))

    def _pushed(self, told: Any, name: PackageName, sha256: str, address: str) -> Offered:
        """What the registry says that a package is which was given to it: nothing else than that package."""
        offered = _offered(told)
        if (offered.sha256, offered.name, offered.address) != (sha256, name, address):
            raise _no_registry(self.url, "another package than was pushed")
        return offered

    def ask(
        self, method: str, path: str, said: Mapping[str, Any] | None = None, *, body: Any = None, size: int = 0
    ) -> dict[str, Any]:
        """What the registry answers, as JSON; RegistryError says why it does not."""
        headers = {"Accept": "application/json"}
        if said is not None:
            body = json.dumps(said).encode()
            size = len(body)
            headers["Content-Type"] = "application/json"
        elif body is not None:
            headers["Content-Type"] = "application/octet-stream"
        if body is not None:
            headers["Content-Length"] = str(size)
        with self._opened(method, path, headers, body) as answer:
            try:
                data = answer.read(_LONGEST_ANSWER + 1)
            except (http.client.HTTPException, OSError):
                raise _no_registry(self.url, "an answer that is cut") from None
            if answer.status == 204:
                return {}
        try:
            told = json.loads(data) if len(data) <= _LONGEST_ANSWER and _values(data) <= _MOST_VALUES else None
        except (ValueError, RecursionError):
            told = None
        if not isinstance(told, dict):
            raise _no_registry(self.url, "an answer that is no JSON object")
        return told

    def _download(self, offered: Offered, file: IO[bytes], observer: Observer) -> None:
        """Write what comes, as long as it is what was told: not a byte more."""
        hashed, done = hashlib.sha256(), 0
        with self._opened("GET", f"{_path(offered.name)}/versions/{offered.version}/file", {}, None) as answer:
            for piece in _pieces(answer):
                done += len(piece)
                if done > offered.size:
                    break
                hashed.update(piece)
                file.write(piece)
                observer(done, offered.size)
        if done != offered.size or hashed.hexdigest() != offered.sha256:
            found = f"{done:,} bytes with sha256 {hashed.hexdigest()}"
            allowed = f"{offered.size:,} bytes with sha256 {offered.sha256}"
            raise RegistryError(
                f"{offered} did not come as it was told", found=found, allowed=allowed, hint="try again"
            )

    def _opened(self, method: str, path: str, headers: dict[str, str], body: Any) -> Any:
        request = urllib.request.Request(f"{self.url}{path}", data=body, headers=headers, method=method)  # noqa: S310
        if self._token:  # also past a redirect it would not be sent: none is followed
            request.add_unredirected_header("Authorization", f"Bearer {self._token}")
        try:
            return self._opener.open(request, timeout=_TIMEOUT)
        except urllib.error.HTTPError as error:
            with error:
                raise self._refused(error) from None
        except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
            reason = getattr(error, "reason", None) or error
            hint = "is it there? --registry URL or ISORUN_REGISTRY names another"
            raise RegistryError(f"{self.url} cannot be reached", found=str(reason), hint=hint) from None

    def _refused(self, error: urllib.error.HTTPError) -> RegistryError | PackageError:
        if 300 <= error.code < 400:
            said = f"it leads to {harmless(str(error.headers.get('Location', '')))[:200]}"
            return RegistryError(
                f"{self.url} does not answer by itself", found=said, hint="--registry URL names another"
            )
        try:
            data = error.read(_LONGEST_ANSWER)
            told = json.loads(data if _values(data) <= _MOST_VALUES else b"{}")["error"]
            words = {name: harmless(str(told.get(name, "")))[:1000] for name in ("what", "found", "allowed", "next")}
        except (ValueError, RecursionError, KeyError, TypeError, AttributeError, OSError, http.client.HTTPException):
            return _no_registry(self.url, f"HTTP {error.code}")
        kind = _KINDS.get(error.code, RegistryError)
        return kind(words["what"], found=words["found"], allowed=words["allowed"], hint=words["next"])


def _values(data: bytes) -> int:
    """How many values JSON has at the most."""
    return sum(map(data.count, (b",", b"[", b"{")))


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A token is for one server, and so is a package: wherever that points, nobody follows."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


class _Told:
    """A file that tells how much of it was read."""

    def __init__(self, file: IO[bytes], size: int, observer: Observer) -> None:
        self._file, self._size, self._observer, self._done = file, size, observer, 0

    def read(self, most: int = _PIECE) -> bytes:
        """The next piece."""
        piece = self._file.read(most)
        self._done += len(piece)
        self._observer(self._done, self._size)
        return piece


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "isorun" / "packages"


def _path(name: PackageName) -> str:
    return f"/api/packages/{quote(name.owner)}/{quote(name.project)}/{quote(name.name)}"


def _pieces(answer: Any) -> Iterator[bytes]:
    try:
        while piece := answer.read(_PIECE):
            yield piece
    except (http.client.HTTPException, OSError):
        return  # what is missing is told by whoever counts


def _checked(path: Path, offered: Offered) -> Path:
    """The file, if it is the package that was told of."""
    with open_package(path) as package:
        if package.address != offered.address:
            raise RegistryError(
                f"{offered} has another address than the registry says", found=package.address, allowed=offered.address
            )
        package.check_all()
    return path


def _listed(told: Mapping[str, Any], name: str) -> list[Any]:
    found = told.get(name)
    if not isinstance(found, list):
        raise _no_registry("the registry", f"no {name}")
    return found


def _offered(told: Any) -> Offered:
    """A version as a registry tells of it, every part of its kind."""
    try:
        yank = told["yanked"]
        reason = "" if yank is None else str(yank["reason"]) or "without a reason"
        offered = Offered(
            parse_name(told["name"]), told["version"], told["address"], told["sha256"], told["bytes"], reason, told
        )
        counts = (offered.version, offered.size)
        fits = ADDRESS.fullmatch(offered.address) and ADDRESS.fullmatch(f"sha256:{offered.sha256}")
        if fits and all(type(value) is int and 0 < value <= MOST_BYTES for value in counts):
            return offered
    except (InputError, KeyError, TypeError, AttributeError):
        pass
    raise _no_registry("the registry", "something that is no version of a package")


def _no_registry(url: str, found: str) -> RegistryError:
    return RegistryError(
        f"{url} does not answer as a registry of isorun", found=found, hint="--registry URL names another"
    )
