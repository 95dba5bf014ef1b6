"""One GET with a Range, over https; plain http only where a checksum guards what comes."""

from __future__ import annotations

import http.client
import re
import socket
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any, Final

from isorun import __version__
from isorun.errors import DataError

__all__ = ["Answer", "SourceFailed", "ensure_allowed", "opened_url"]

_PASSING: Final = (408, 425, 429, 500, 502, 503, 504)
_LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")


class SourceFailed(Exception):
    """An address did not give the file. again: trying the same address once more may help. reached: it answered."""

    def __init__(self, reason: str, *, again: bool, reached: bool = True) -> None:
        super().__init__(reason)
        self.again = again
        self.reached = reached


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server sends. start: the place of its first byte in the file. total: bytes of the whole file, if told."""

    body: IO[bytes]
    start: int
    total: int | None

    def read(self, size: int) -> bytes:
        """The next bytes as they come, b"" at the end."""
        try:
            return self.body.read1(size)  # type: ignore[attr-defined,no-any-return] # http.client.HTTPResponse
        except (OSError, http.client.HTTPException) as error:
            raise SourceFailed(_reason(error), again=True) from None


def ensure_allowed(url: str, *, guarded: bool) -> None:
    """https, or http where a checksum guards the file (or this machine itself answers). Never a local file."""
    parts = urllib.parse.urlsplit(url)
    plain = parts.scheme == "http" and (guarded or parts.hostname in _LOOPBACK)
    if parts.scheme != "https" and not plain:
        allowed = "https (or http, where a checksum is known)"
        raise DataError(f"{url} is no address to download from", found=parts.scheme or "no scheme", allowed=allowed)


@contextmanager
def opened_url(url: str, *, start: int, timeout: float) -> Iterator[Answer]:
    """Ask for the bytes from `start` on; a server that ignores that answers from 0, and the Answer says so."""
    headers = {"User-Agent": f"isorun/{__version__}", "Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
    request = urllib.request.Request(url, headers=headers)  # noqa: S310 - ensure_allowed has looked at the scheme
    try:
        response = _opener().open(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        with error:
            raise SourceFailed(f"HTTP {error.code} {error.reason}", again=error.code in _PASSING) from None
    except (OSError, http.client.HTTPException) as error:
        reached = not _unreachable(error)
        raise SourceFailed(_reason(error), again=reached, reached=reached) from None
    with response:
        yield Answer(response, *_extent(response))


def _extent(response: Any) -> tuple[int, int | None]:
    """First byte and whole size."""
    if response.status == http.HTTPStatus.PARTIAL_CONTENT:
        parts = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", response.headers.get("Content-Range", ""))
        if not parts:
            raise SourceFailed("the server sends a part without saying which", again=False)
        return int(parts[1]), None if parts[2] == "*" else int(parts[2])
    length = response.headers.get("Content-Length", "")
    return 0, int(length) if length.isdigit() else None


class _NoDowngrade(urllib.request.HTTPRedirectHandler):
    """Follows a server elsewhere, but never from https to anything less."""

    def redirect_request(  # noqa: PLR0917 - as urllib calls it
        self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> Any:
        scheme = urllib.parse.urlsplit(newurl).scheme
        if scheme != "https" and not (scheme == "http" and req.type == "http"):
            raise SourceFailed(f"the server leads on to {scheme}, which is not safe", again=False)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _opener() -> urllib.request.OpenerDirector:
    """Only the handlers of http and https, and the user's proxies: no file, ftp or data addresses."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.UnknownHandler(),
        _NoDowngrade(),
    ):
        opener.add_handler(handler)
    return opener


def _unreachable(error: BaseException) -> bool:
    """No name service, no route, nobody listening: the next address rather than the same again."""
    cause = getattr(error, "reason", error)
    return isinstance(cause, (socket.gaierror, ConnectionRefusedError)) or getattr(cause, "errno", 0) in (101, 113)


def _reason(error: BaseException) -> str:
    cause = getattr(error, "reason", error)
    if isinstance(cause, TimeoutError):
        return "no answer in time"
    if isinstance(cause, http.client.IncompleteRead):
        return "the connection broke off"
    return getattr(cause, "strerror", None) or str(cause) or type(cause).__name__
